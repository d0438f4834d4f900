//! What the function around a launch tells of its arguments: the value of an integer, the size of the memory that a pointer
//! points to.

use super::arguments::{group_end, split_tokens};
use super::lexer::{Kind, Token};
use super::locals::Locals;
use super::tidy::tidy;
use crate::outline::ArgumentFacts;

/// Functions of the runtime that allocate, with the index of the argument that says how many bytes.
const ALLOCATE: &[(&[u8], usize)] = &[(b"cudaMalloc", 1), (b"cudaMallocManaged", 1), (b"cudaMallocAsync", 1)];

/// A call that allocates.
pub struct Allocation {
    /// The variable that it sets.
    name: String,
    /// How many bytes, as written.
    bytes: String,
    /// Where.
    at: usize,
}

/// The allocations among the tokens of a function's body.
pub fn of(tokens: &[Token], masked: &str) -> Vec<Allocation> {
    let bytes = masked.as_bytes();
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate().filter(|(_, token)| token.kind == Kind::Word) {
        let Some((_, size)) = ALLOCATE.iter().find(|(name, _)| *name == token.text(bytes)) else { continue };
        // `cudaMalloc(…)` and `cudaMalloc<float>(…)` alike.
        let Some(open) = (index + 1..tokens.len().min(index + 6)).find(|at| tokens[*at].is(b'(')) else {
            continue;
        };
        let Some(close) = group_end(tokens, open) else { continue };
        let arguments = split_tokens(&tokens[open + 1..close]);
        let (Some(target), Some(size)) = (arguments.first(), arguments.get(*size)) else { continue };
        let target = masked.get(target.range()).unwrap_or_default();
        let Some((_, name)) = target.rsplit_once('&') else { continue };
        let name = name.trim_matches(|c: char| c.is_whitespace() || c == ')' || c == '(');
        found.push(Allocation {
            name: name.to_owned(),
            bytes: tidy(masked.get(size.range()).unwrap_or_default()),
            at: token.start,
        });
    }
    found
}

impl Allocation {
    /// Whether it sets what `argument` names.
    pub fn sets(&self, argument: &str) -> bool {
        self.name == named(argument)
    }
}

/// The variable that an argument is, casts taken off.
fn named(argument: &str) -> &str {
    argument.rsplit(')').next().unwrap_or_default().trim()
}

/// Why the size of each argument's allocation is not known, where it is allocated and its size is not.
pub fn reasons(
    arguments: &[String],
    at: usize,
    locals: &Locals,
    allocations: &[Allocation],
) -> Vec<Option<String>> {
    let reason = |argument: &String| {
        let set: Vec<&Allocation> =
            allocations.iter().filter(|allocation| allocation.sets(argument) && allocation.at < at).collect();
        let name = named(argument);
        match set[..] {
            [] => None,
            [only] => {
                let words = only.bytes.split(|c: char| !c.is_alphanumeric() && c != '_');
                let vector = words.filter_map(|word| locals.unknown_size(word, only.at)).next();
                let vector = vector.map(|why| format!(", and {why}")).unwrap_or_default();
                let known = locals.at(only.at).fold(&only.bytes).is_some();
                (!known).then(|| format!("`{name}` is allocated with `{}` bytes{vector}", only.bytes))
            }
            _ => Some(format!("`{name}` is allocated {} times before the launch", set.len())),
        }
    };
    arguments.iter().map(reason).collect()
}

/// What is known of a launch's arguments at the byte `at`.
pub fn facts(
    arguments: &[String],
    at: usize,
    locals: &Locals,
    allocations: &[Allocation],
) -> Vec<ArgumentFacts> {
    let fact = |argument: &String| {
        let mut set = allocations.iter().filter(|allocation| allocation.sets(argument) && allocation.at < at);
        // Allocated twice, the size is that of the last before the launch only if nothing branches; better none.
        let bytes = match (set.next(), set.next()) {
            (Some(only), None) => locals.at(only.at).fold(&only.bytes),
            _ => None,
        };
        ArgumentFacts { value: locals.at(at).fold(argument), bytes }
    };
    arguments.iter().map(fact).collect()
}

#[cfg(test)]
mod tests {
    use crate::{Analysis, Language};

    #[test]
    fn sizes_and_values_of_arguments() {
        for (body, arguments, expected) in [
            ("cudaMalloc(&x, N * sizeof(float));", "x, N", "- 4096 | 1024 -"),
            ("cudaMalloc((void**)&x, sizeof(int) * (N + 1));", "(float*)x, 2 * N", "- 4100 | 2048 -"),
            ("size_t bytes = N * 8; CHECK(cudaMallocManaged(&(x), bytes));", "x", "- 8192"),
            ("cudaMalloc<float>(&x, 64);", "x", "- 64"),
            ("cudaMalloc(&x, 64); cudaMalloc(&x, 128);", "x", "- -"),
            ("cudaMalloc(&x, n * 4);", "x, n", "- - | - -"),
            ("int m = 7; cudaMalloc(&s.x, m);", "s.x, m", "- 7 | 7 -"),
        ] {
            let source = format!(
                "#define N 1024\n__global__ void k(float* x, int n);\nvoid f(int n) {{ {body} k<<<1, 1>>>({arguments}); }}\n"
            );
            let analysis = Analysis::of(Language::Cuda, &source);
            let show = |value: Option<i64>| value.map_or("-".to_owned(), |value| value.to_string());
            let facts = &analysis.outline().launches[0].argument_facts;
            let shown: Vec<_> =
                facts.iter().map(|f| format!("{} {}", show(f.value), show(f.bytes))).collect();
            assert_eq!(shown.join(" | "), expected, "{body}");
        }
    }
}
