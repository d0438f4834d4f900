//! Turns names as compilers write them, `_Z5mixerILi96EEvPfi`, into what stands in the source: `mixer<96>(float*, int)`.
//!
//! The name is taken apart too, since kernels are looked up in the source by their name, their template arguments and their
//! parameters: overloads and instantiations differ in nothing else.

use cpp_demangle::{DemangleOptions, Symbol};

/// A name taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Namespaces, classes and the name itself, without template arguments: `["ns", "edge"]`. Unnamed namespaces are left out.
    pub path: Vec<String>,
    /// Template arguments of the last part, as the source would write them: `["96"]`.
    pub template_arguments: Vec<String>,
    /// Types of the parameters. `None` where the name does not tell, as for `extern "C"`.
    pub parameters: Option<Vec<String>>,
}

impl Name {
    /// The last part: `edge`.
    pub fn base(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    /// As a person would write it in a launch: `ns::mixer<96>`.
    pub fn display(&self) -> String {
        let path = self.path.join("::");
        if self.template_arguments.is_empty() {
            path
        } else {
            format!("{path}<{}>", self.template_arguments.join(", "))
        }
    }

    /// With its parameters, where they are known: `helper(float*, int)`.
    pub fn signature(&self) -> String {
        match &self.parameters {
            Some(parameters) => format!("{}({})", self.display(), parameters.join(", ")),
            None => self.display(),
        }
    }
}

/// Takes a mangled or plain name apart. A name that can't be read is kept as it is.
pub fn name(mangled: &str) -> Name {
    let Some(text) = demangled(mangled) else {
        return Name { path: vec![mangled.to_owned()], template_arguments: Vec::new(), parameters: None };
    };
    take_apart(&text)
}

/// nvcc writes unnamed namespaces as `_GLOBAL__N__<hash>_<length>_<file>_<hash>`, which demanglers do not know.
fn demangled(mangled: &str) -> Option<String> {
    if !mangled.starts_with("_Z") {
        // Some tools write names demangled.
        return mangled.contains('(').then(|| mangled.to_owned());
    }
    let symbol = Symbol::new(mangled).ok()?;
    symbol.demangle_with_options(&DemangleOptions::default()).ok()
}

fn take_apart(text: &str) -> Name {
    let text = text.replace("(anonymous namespace)::", "");
    let (head, parameters) = split_parameters(&text);
    let head = after_return_type(head);
    let mut path = Vec::new();
    let mut template_arguments = Vec::new();
    for part in split_outside(head, "::") {
        let (name, arguments) = match part.find('<').filter(|_| part.ends_with('>')) {
            Some(at) if !part.starts_with("operator") => (&part[..at], &part[at + 1..part.len() - 1]),
            _ => (part, ""),
        };
        template_arguments =
            split_outside(arguments, ",").into_iter().map(tidy).filter(|a| !a.is_empty()).collect();
        if !name.starts_with("_GLOBAL__N_") && !name.is_empty() {
            path.push(name.trim().to_owned());
        }
    }
    Name { path, template_arguments, parameters }
}

/// The text before the parameters, and the parameters: those in the last pair of brackets at depth nought.
fn split_parameters(text: &str) -> (&str, Option<Vec<String>>) {
    let text = text.trim_end().trim_end_matches(" const");
    let Some(inner) = text.strip_suffix(')') else { return (text, None) };
    let mut depth = 1usize;
    for (at, byte) in inner.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let parameters = split_outside(&inner[at + 1..], ",").into_iter().map(tidy);
            let known = parameters.filter(|parameter| !parameter.is_empty() && parameter != "void").collect();
            return (&inner[..at], Some(known));
        }
    }
    (text, None)
}

/// A template's name carries its return type, `void f<3>`: what follows the last space outside brackets is the name.
fn after_return_type(head: &str) -> &str {
    let mut depth = 0usize;
    let mut start = 0;
    for (at, byte) in head.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' | b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b' ' if depth == 0 && !head[..at].ends_with("operator") => start = at + 1,
            _ => {}
        }
    }
    &head[start..]
}

/// Parts between `separator`s that stand outside all brackets.
pub(crate) fn split_outside<'a>(text: &'a str, separator: &str) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let (mut depth, mut start, mut at) = (0usize, 0, 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        match bytes[at] {
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' | b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ if depth == 0 && bytes[at..].starts_with(separator.as_bytes()) => {
                parts.push(&text[start..at]);
                at += separator.len();
                start = at;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    parts.push(&text[start..]);
    parts
}

/// `(int)96` as `96`, `(bool)1` as `true`, `float const*` as `const float*`.
fn tidy(text: &str) -> String {
    let text = text.trim();
    match text {
        "(bool)1" => return "true".to_owned(),
        "(bool)0" => return "false".to_owned(),
        _ => {}
    }
    if let Some((cast, value)) = text.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        let plain =
            !cast.contains('(') && value.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
        if plain {
            return value.trim_end_matches(|c: char| c.is_ascii_alphabetic()).to_owned();
        }
    }
    const_first(text)
}

/// Demanglers write `float const*`; people write `const float*`.
fn const_first(text: &str) -> String {
    match text.split_once(" const") {
        Some((ty, rest))
            if !ty.contains(['<', '*', '&', '(', ' '])
                && !rest.starts_with(|c: char| c.is_alphanumeric()) =>
        {
            format!("const {ty}{rest}")
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        for (mangled, display, parameters) in [
            ("_ZN2ns4edgeEP1P", "ns::edge", Some("P*")),
            ("_Z5mixerILi96EEvPfi", "mixer<96>", Some("float*, int")),
            ("_Z6helperPfi", "helper", Some("float*, int")),
            ("edge", "edge", None),
            ("_Z11row_softmaxPKfPfi", "row_softmax", Some("const float*, float*, int")),
            ("_Z9copy_vec4PK6float4PS_i", "copy_vec4", Some("const float4*, float4*, int")),
            ("_ZN2ns36_GLOBAL__N__ddbf1e87_4_g_cu_19ff7e905innerEPf4int4", "ns::inner", Some("float*, int4")),
            ("_ZN36_GLOBAL__N__ddbf1e87_4_g_cu_19ff7e904anonIfEEvPT_", "anon<float>", Some("float*")),
            ("_Z2ktI6half2_Li7ELb0EEvPKT_N2ns3FooIS1_XT0_EEEy", "kt<half2_, 7, false>", None),
            ("_Z2ktIfLin3ELb1EEvPKT_N2ns3FooIS0_XT0_EEEy", "kt<float, -3, true>", None),
            ("_Z1kv", "k", Some("")),
            ("_Znonsense", "_Znonsense", None),
            ("k<96>(float*, int)", "k<96>", Some("float*, int")),
            ("void ns::k<(int)96>(float*, int)", "ns::k<96>", Some("float*, int")),
            ("", "", None),
        ] {
            let found = name(mangled);
            assert_eq!(found.display(), display, "{mangled}: {found:?}");
            if let Some(parameters) = parameters {
                assert_eq!(
                    found.parameters.clone().map(|p| p.join(", ")).as_deref(),
                    Some(parameters),
                    "{mangled}"
                );
            }
        }
    }
}
