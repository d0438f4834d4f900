//! Finds the kernel that a person named.

use stitch_analysis::{Function, Outline};

/// Why there is no such kernel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// None of that name is defined in the file.
    #[error("{file} defines no kernel `{name}`{}.", known(kernels))]
    Unknown {
        /// The file.
        file: String,
        /// The name.
        name: String,
        /// Kernels of the file.
        kernels: Vec<String>,
    },
    /// Several are called so.
    #[error("{file} defines several kernels that `{name}` may mean: {}. Write one of these.", kernels.join(", "))]
    Several {
        /// The file.
        file: String,
        /// The name.
        name: String,
        /// With their namespaces.
        kernels: Vec<String>,
    },
}

fn known(kernels: &[String]) -> String {
    if kernels.is_empty() {
        "; it defines none at all".to_owned()
    } else {
        format!("; it defines {}", kernels.join(", "))
    }
}

/// The kernel called `name` in a file, and the template arguments that were written with it: `ns::gemm<float, 16>`.
///
/// # Errors
/// There is none, or there are several.
pub fn find<'o>(
    outline: &'o Outline,
    file: &str,
    name: &str,
) -> Result<(&'o Function, Option<Vec<String>>), KernelError> {
    let (bare, template) = match name.split_once('<') {
        Some((bare, rest)) => {
            let inner = rest.trim_end().strip_suffix('>').unwrap_or(rest);
            (bare.trim(), Some(split(inner)))
        }
        None => (name.trim(), None),
    };
    let exact = |kernel: &&Function| kernel.qualified_name == bare;
    let mut found: Vec<&Function> = outline.kernels().filter(exact).collect();
    if found.is_empty() {
        found = outline.kernels().filter(|kernel| kernel.name == bare).collect();
    }
    let names =
        |kernels: Vec<&Function>| kernels.iter().map(|kernel| kernel.qualified_name.clone()).collect();
    match found[..] {
        [kernel] => Ok((kernel, template)),
        [] => Err(KernelError::Unknown {
            file: file.to_owned(),
            name: bare.to_owned(),
            kernels: names(outline.kernels().collect()),
        }),
        _ => {
            Err(KernelError::Several { file: file.to_owned(), name: bare.to_owned(), kernels: names(found) })
        }
    }
}

/// Template arguments at their commas, those within brackets left alone.
pub fn split(text: &str) -> Vec<String> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0usize, 0);
    for (at, character) in text.char_indices() {
        match character {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' | ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(text[start..at].trim().to_owned());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    if !last.is_empty() {
        parts.push(last.to_owned());
    }
    parts
}

#[cfg(test)]
mod tests {
    use stitch_analysis::{Analysis, Language};

    use super::*;

    #[test]
    fn kernels_are_found_with_and_without_their_scopes() {
        let source = "namespace a { __global__ void k(int n) {} }\nnamespace b { __global__ void k(int n) {} }\n\
                      template <typename T, int N> __global__ void t(T* p) {}\n__global__ void declared();\n";
        let analysis = Analysis::of(Language::Cuda, source);
        let find = |name: &str| find(analysis.outline(), "f.cu", name);
        assert_eq!(find("a::k").unwrap().0.qualified_name, "a::k");
        assert_eq!(find("t<std::pair<int, int>, 4>").unwrap().1.unwrap(), ["std::pair<int, int>", "4"]);
        assert!(find("k").unwrap_err().to_string().contains("a::k, b::k"));
        assert!(find("declared").unwrap_err().to_string().contains("it defines a::k, b::k, t"));
    }
}
