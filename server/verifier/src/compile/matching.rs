//! Which function of the source a compiler's name means, and which launches are its.

use stitch_analysis::{Function, FunctionKind, Launch, Outline};

use crate::demangle::Name;

/// The definition among `functions` that `name` means.
pub(super) fn definition<'a>(functions: &'a [Function], name: &Name) -> Option<&'a Function> {
    let mut best: Option<(i32, &Function)> = None;
    for function in functions.iter().filter(|function| function.is_definition && function.name == name.base())
    {
        let score = score(function, name);
        if best.is_none_or(|(known, _)| score > known) {
            best = Some((score, function));
        }
    }
    best.map(|(_, function)| function)
}

/// How well a function of the right name fits. What is certain counts more than what may be an alias.
fn score(function: &Function, name: &Name) -> i32 {
    let mut score = 0;
    let path = name.path.join("::");
    let qualified = function.qualified_name.trim_start_matches("::").replace("(anonymous namespace)::", "");
    if qualified == path {
        score += 100;
    } else if qualified.ends_with(&format!("::{path}")) || path.ends_with(&format!("::{qualified}")) {
        score += 50;
    }
    if function.template_parameters.is_empty() == name.template_arguments.is_empty() {
        score += 20;
    }
    if matches!(function.kind, FunctionKind::Host) {
        score -= 40;
    }
    let Some(parameters) = &name.parameters else { return score };
    if parameters.len() != function.parameters.len() {
        return score;
    }
    score += 200;
    for (known, written) in parameters.iter().zip(&function.parameters) {
        if is_template_dependent(&written.ty, function) {
            score += 1;
        } else if same_type(known, &written.ty) {
            score += 4;
        }
    }
    score
}

fn is_template_dependent(ty: &str, function: &Function) -> bool {
    let mut words = ty.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    words.any(|word| {
        function.template_parameters.iter().any(|parameter| !word.is_empty() && parameter.name == word)
    })
}

/// Whether two spellings name the same type, as far as text tells.
fn same_type(one: &str, other: &str) -> bool {
    plain_type(one) == plain_type(other)
}

/// Names for types that have several.
const ALIASES: [(&str, &str); 16] = [
    ("unsignedint", "unsigned"),
    ("uint", "unsigned"),
    ("uint32_t", "unsigned"),
    ("int32_t", "int"),
    ("size_t", "unsignedlong"),
    ("uint64_t", "unsignedlong"),
    ("int64_t", "long"),
    ("uint8_t", "unsignedchar"),
    ("uchar", "unsignedchar"),
    ("int8_t", "signedchar"),
    ("uint16_t", "unsignedshort"),
    ("int16_t", "short"),
    ("longlong", "longlong"),
    ("half", "__half"),
    ("nv_bfloat16", "__nv_bfloat16"),
    ("longint", "long"),
];

fn plain_type(ty: &str) -> String {
    let ty = ty.replace("[]", "*");
    let mut plain = String::new();
    for word in ty.split_inclusive(|c: char| !(c.is_alphanumeric() || c == '_')) {
        let name = word.trim_end_matches(|c: char| !(c.is_alphanumeric() || c == '_'));
        let rest = &word[name.len()..];
        if !matches!(
            name,
            "const"
                | "__restrict__"
                | "__restrict"
                | "restrict"
                | "struct"
                | "class"
                | "volatile"
                | "__grid_constant__"
        ) {
            plain.push_str(name);
        }
        plain.extend(rest.chars().filter(|c| !c.is_whitespace()));
    }
    let (base, signs) = match plain.find(['*', '&']) {
        Some(at) => plain.split_at(at),
        None => (plain.as_str(), ""),
    };
    let base = base.rsplit("::").next().unwrap_or(base);
    let base = ALIASES.iter().find(|(alias, _)| *alias == base).map_or(base, |(_, name)| name);
    format!("{base}{signs}")
}

/// A launch, with the file it is in and the namespaces around it and before the kernel's name.
pub(super) struct Seen {
    pub file: usize,
    pub launch: Launch,
    /// The namespaces that are written before the kernel's name: `a::b`; with `::` in front where the search begins at the top.
    qualifier: String,
    /// The namespaces of the function that launches.
    scope: String,
}

impl Seen {
    /// A launch of the file `file`, whose text is `text`, with this outline.
    pub(super) fn new(file: usize, text: &str, launch: &Launch, outline: &Outline) -> Self {
        let before = text.get(..launch.name_span.start).unwrap_or("");
        let length = before.len()
            - before.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_' || c == ':').len();
        let written = &before[before.len() - length..];
        let top = if written.starts_with("::") { "::" } else { "" };
        let qualifier = format!("{top}{}", written.trim_matches(':'));
        let caller = outline.function_at(launch.span.start).map_or("", |caller| &caller.qualified_name);
        let caller = caller.replace("(anonymous namespace)::", "");
        let scope = caller.trim_start_matches("::").rsplit_once("::").map_or("", |(scope, _)| scope);
        Self { file, launch: launch.clone(), qualifier, scope: scope.to_owned() }
    }

    /// Whether this launches `name`: the kernel of the innermost namespace around that has one so called, as C++ looks names up.
    /// Where none has, as after `using namespace`, any whose namespaces end as written.
    fn is_of(&self, name: &Name, kernels: &[&Name]) -> bool {
        if self.launch.kernel != name.base() {
            return false;
        }
        let written = self.qualifier.trim_start_matches(':');
        let inside = |scope: &str| {
            let parts = [scope, written, &self.launch.kernel];
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("::")
        };
        let from = if self.qualifier.starts_with("::") { "" } else { self.scope.as_str() };
        let outwards = std::iter::successors(Some(from), |scope| {
            (!scope.is_empty()).then(|| scope.rsplit_once("::").map_or("", |(outer, _)| outer))
        });
        let is = |kernel: &Name, path: &str| kernel.path.join("::") == path;
        let meant = outwards.map(inside).find(|path| kernels.iter().any(|kernel| is(kernel, path)));
        match meant {
            Some(path) => is(name, &path),
            None => {
                let scope = name.path[..name.path.len().saturating_sub(1)].join("::");
                let ends = |rest: &str| rest.is_empty() || rest.ends_with("::");
                written.is_empty() || scope.strip_suffix(written).is_some_and(ends)
            }
        }
    }

    /// Whether another of the kernels that are called the same takes as many arguments as are given here, and `name` does not.
    fn fits_another(&self, name: &Name, kernels: &[&Name]) -> bool {
        let given = self.launch.arguments.len();
        let takes = |kernel: &Name| kernel.parameters.as_ref().is_some_and(|taken| taken.len() == given);
        let others = kernels.iter().filter(|kernel| kernel.path == name.path);
        name.parameters.is_some() && !takes(name) && others.into_iter().any(|other| takes(other))
    }
}

/// The launches of what `name` means among `kernels`. Where some are written with the same template arguments, only those.
pub(super) fn launches<'a>(launches: &'a [Seen], name: &Name, kernels: &[&Name]) -> Vec<&'a Seen> {
    let plain = |text: &String| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    let exact = |seen: &&Seen| {
        let written: Vec<String> = seen.launch.template_arguments.iter().map(plain).collect();
        let known: Vec<String> = name.template_arguments.iter().map(plain).collect();
        !written.is_empty() && known.starts_with(&written)
    };
    let is_ours = |seen: &&Seen| seen.is_of(name, kernels) && !seen.fits_another(name, kernels);
    let (first, mut rest): (Vec<_>, Vec<_>) = launches.iter().filter(is_ours).partition(exact);
    if first.is_empty() {
        // One that is written with other literals is another instantiation's.
        rest.retain(|seen| !contradicts(&seen.launch, name));
        return rest;
    }
    first
}

/// Whether a launch's template arguments are literals or basic types that differ from the name's.
fn contradicts(launch: &Launch, name: &Name) -> bool {
    launch.template_arguments.iter().zip(&name.template_arguments).any(|(written, known)| {
        let literal = |text: &str| {
            let number = text.trim_start_matches('-').bytes().all(|b| b.is_ascii_digit());
            number || matches!(text, "float" | "double" | "int" | "true" | "false" | "bool" | "char" | "long")
        };
        let written = written.trim();
        literal(written) && literal(known) && written != known
    })
}

/// The parameter types of a signature: used where only text is at hand.
#[cfg(test)]
fn types(signature: &str) -> Vec<String> {
    crate::demangle::split_outside(signature, ",").into_iter().map(|ty| ty.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_compared_by_meaning() {
        for (one, other) in [
            ("const float*, float*, int", "const float* __restrict__, float *, const int"),
            ("unsigned int, unsigned long, long", "uint32_t, size_t, std::int64_t"),
            ("float4*, unsigned char", "struct float4 *, uchar"),
            ("__half const*, int*", "half*, int[]"),
        ] {
            let (one, other) = (types(one), types(other));
            assert!(one.iter().zip(&other).all(|(a, b)| same_type(a, b)), "{one:?} {other:?}");
        }
        assert!(!same_type("float*", "float") && !same_type("int", "long") && !same_type("", "int"));
    }

    #[test]
    fn a_launch_means_the_kernel_that_its_scope_sees() {
        let text = "extern \"C\" __global__ void k(float* a) {}\n\
            namespace ns { __global__ void k(float* a, int n) {} void in() { k<<<1, 8>>>(p, 1); ::k<<<1, 16>>>(p); } }\n\
            namespace far { __global__ void only(int n) {} __global__ void only(int n, int m) {} }\nusing namespace far;\n\
            void out() { k<<<1, 32>>>(p); ns::k<<<1, 64>>>(p, 1); only<<<1, 128>>>(1); only<<<1, 256>>>(1, 2); }\n";
        let analysis =
            stitch_analysis::Analysis::of(stitch_analysis::Language::Cuda, &std::sync::Arc::from(text));
        let outline = analysis.outline();
        let seen: Vec<Seen> =
            outline.launches.iter().map(|launch| Seen::new(0, text, launch, outline)).collect();
        let names: Vec<Name> =
            ["k", "_ZN2ns1kEPfi", "_ZN3far4onlyEi", "_ZN3far4onlyEii"].map(crate::demangle::name).into();
        let kernels: Vec<&Name> = names.iter().collect();
        let blocks = |name: &Name| {
            let found = launches(&seen, name, &kernels);
            found.iter().map(|seen| seen.launch.block.as_ref().unwrap().text.clone()).collect::<Vec<_>>()
        };
        let found: Vec<_> = names.iter().map(blocks).collect();
        assert_eq!(found, [vec!["16", "32"], vec!["8", "64"], vec!["128"], vec!["256"]]);
    }
}
