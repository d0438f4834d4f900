//! Which kernels of a program are timed by themselves: those that a person's scope names, and of two versions those that differ.

use stitch_analysis::{Analysis, Function, FunctionKind, Language};

/// What differs between two versions of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// These kernels, which both versions have, and perhaps host code besides.
    Kernels {
        /// Their names.
        kernels: Vec<String>,
        /// Whether a host function differs too.
        host: bool,
    },
    /// Something that no kernel by itself shows; why, in a clause.
    Elsewhere(&'static str),
}

/// The kernels that a text defines, of those that `scope` names; all where it is empty.
pub fn kernels(text: &str, scope: &[String]) -> Vec<String> {
    let analysis = Analysis::of(Language::Cuda, text);
    let in_scope = |kernel: &&Function| {
        scope.is_empty() || scope.contains(&kernel.qualified_name) || scope.contains(&kernel.name)
    };
    let defined = analysis.outline().kernels().filter(|kernel| kernel.is_definition).filter(in_scope);
    defined.map(|kernel| kernel.qualified_name.clone()).collect()
}

/// What differs between two versions of a file; of the kernels, only those named in `kernels` are looked at.
pub fn change(before: &str, after: &str, kernels: &[String]) -> Change {
    let (before, after) = (Parts::of(before), Parts::of(after));
    let names = |parts: &Parts| parts.kernels.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    if names(&before) != names(&after) {
        return Change::Elsewhere("the candidate has other kernels");
    }
    let host = before.host != after.host;
    let differ = before.kernels.iter().zip(&after.kernels);
    // A device function, a macro or a constant may be used by any kernel.
    let differ = differ.filter(|(before, after)| before != after).map(|(before, _)| before.0.clone());
    let changed: Vec<String> =
        if before.shared == after.shared { differ.collect() } else { kernels.to_vec() };
    if changed.iter().any(|name| !kernels.contains(name)) {
        return Change::Elsewhere("the candidate changes kernels outside of what was selected");
    }
    if changed.is_empty() {
        return Change::Elsewhere("the candidate changes host code only");
    }
    Change::Kernels { kernels: changed, host }
}

/// A text by what runs where, without blanks.
struct Parts {
    kernels: Vec<(String, String)>,
    host: String,
    /// All the rest: device functions, types, macros.
    shared: String,
}

impl Parts {
    fn of(text: &str) -> Self {
        let analysis = Analysis::of(Language::Cuda, text);
        let mut parts = Self { kernels: Vec::new(), host: String::new(), shared: String::new() };
        let mut at = 0;
        let mut functions: Vec<&Function> =
            analysis.outline().functions.iter().filter(|function| function.is_definition).collect();
        functions.sort_by_key(|function| function.span.start);
        for function in functions {
            if function.span.start < at {
                continue;
            }
            let own = bare(text.get(function.span.range()).unwrap_or_default());
            match function.kind {
                FunctionKind::Kernel => parts.kernels.push((function.qualified_name.clone(), own)),
                FunctionKind::Host => parts.host.push_str(&own),
                FunctionKind::Device | FunctionKind::HostDevice => continue,
            }
            parts.shared.push_str(&bare(text.get(at..function.span.start).unwrap_or_default()));
            at = function.span.end;
        }
        parts.shared.push_str(&bare(text.get(at..).unwrap_or_default()));
        parts
    }
}

fn bare(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "#define N 4\n__device__ int twice(int x) { return 2 * x; }\n__global__ void a(int* x) { x[0] = twice(N); }\n\
                        __global__ void b(int* x) { x[1] = 1; }\nint main() { a<<<1, 1>>>(0); b<<<1, 1>>>(0); }\n";

    #[test]
    fn what_differs_says_what_is_timed() {
        let all = kernels(TEXT, &[]);
        assert_eq!(all, ["a", "b"]);
        assert_eq!(kernels(TEXT, &["b".into()]), ["b"]);
        let of = |names: &[&str], host| Change::Kernels {
            kernels: names.iter().map(|&name| name.into()).collect(),
            host,
        };
        for (what, from, to, expected) in [
            ("one kernel", "x[1] = 1", "x[1] = 2 - 1", of(&["b"], false)),
            (
                "a kernel and its launch",
                "x[1] = 1; }\nint main() { a<<<1",
                "x[1] = 2; }\nint main() { a<<<2",
                of(&["b"], true),
            ),
            ("a device function", "2 * x", "x + x", of(&["a", "b"], false)),
            ("a macro", "N 4", "N 5", of(&["a", "b"], false)),
            (
                "the host",
                "a<<<1, 1>>>",
                "a<<<1, 2>>>",
                Change::Elsewhere("the candidate changes host code only"),
            ),
            ("blanks", "x[1] = 1;", "x[1]  =  1;", Change::Elsewhere("the candidate changes host code only")),
            (
                "a new kernel",
                "int main",
                "__global__ void c() {}\nint main",
                Change::Elsewhere("the candidate has other kernels"),
            ),
        ] {
            assert!(TEXT.contains(from), "{what}");
            assert_eq!(change(TEXT, &TEXT.replace(from, to), &all), expected, "{what}");
        }
        let outside = change(TEXT, &TEXT.replace("x[1] = 1", "x[1] = 2"), &["a".into()]);
        assert!(matches!(outside, Change::Elsewhere(why) if why.contains("outside")), "{outside:?}");
    }
}
