//! Instantiates the kernel templates that a text launches, so that the compiler makes code of them: without the host code,
//! nothing else asks for them.

use stitch_analysis::{Function, FunctionKind, Launch, Outline, TemplateParameter};

/// Dispatch macros of torch that choose integers.
const INTEGRAL_DISPATCH: [&str; 2] = ["AT_DISPATCH_INTEGRAL_TYPES", "AT_DISPATCH_INDEX_TYPES"];

/// Most instantiations of one kernel.
const MOST: usize = 8;

/// Code to put behind the device part of `text`. Empty where nothing is a template.
///
/// Template arguments are those of the launches where they are types and constants that stand at the top of the text; for a type that
/// a dispatch macro chooses, `float` (`int` for the integral ones).
pub fn instantiations(text: &str, outline: &Outline) -> String {
    let mut uses = Vec::new();
    let templates = outline.functions.iter().filter(|function| {
        function.kind == FunctionKind::Kernel
            && function.is_definition
            && !function.template_parameters.is_empty()
    });
    for template in templates {
        // The address of an overloaded name means nothing.
        let same_name = outline
            .functions
            .iter()
            .filter(|other| other.name == template.name && other.is_definition)
            .count();
        if same_name > 1 {
            continue;
        }
        let mut made: Vec<String> = Vec::new();
        let launches = outline.launches.iter().filter(|launch| launch.kernel == template.name);
        for arguments in launches.filter_map(|launch| arguments(text, template, launch)) {
            if !made.contains(&arguments) && made.len() < MOST {
                made.push(arguments);
            }
        }
        uses.extend(
            made.into_iter().map(|arguments| format!("(void)&{}<{arguments}>;", template.qualified_name)),
        );
    }
    if uses.is_empty() {
        return String::new();
    }
    format!("\nstatic void stitchcuda_uses() {{\n{}\n}}\n", uses.join("\n"))
}

fn arguments(text: &str, template: &Function, launch: &Launch) -> Option<String> {
    let mut arguments = Vec::new();
    for (index, parameter) in template.template_parameters.iter().enumerate() {
        let argument = match launch.template_arguments.get(index) {
            Some(written) => written_argument(text, parameter, written, launch)?,
            None if parameter.default.is_some() => break,
            // Deduced from the arguments of the launch.
            None if is_type(parameter) => scalar(text, launch).to_owned(),
            None => return None,
        };
        arguments.push(argument);
    }
    Some(arguments.join(", "))
}

fn is_type(parameter: &TemplateParameter) -> bool {
    matches!(parameter.kind.trim(), "typename" | "class")
}

/// Types that mean the same wherever they stand.
const TYPES: [&str; 22] = [
    "float",
    "double",
    "int",
    "long",
    "short",
    "char",
    "bool",
    "unsigned",
    "size_t",
    "int8_t",
    "int16_t",
    "int32_t",
    "int64_t",
    "uint8_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "half",
    "__half",
    "__nv_bfloat16",
    "nv_bfloat16",
    "half2",
];

fn written_argument(
    text: &str,
    parameter: &TemplateParameter,
    written: &str,
    launch: &Launch,
) -> Option<String> {
    let written = written.trim();
    if !is_type(parameter) {
        return constant(text, written, 0);
    }
    let base = written.trim_start_matches("const ").trim_end_matches(['*', '&', ' ']);
    let plain =
        base.split_whitespace().all(|word| TYPES.contains(&word) || matches!(word, "unsigned" | "signed"));
    if plain || base.contains("Half") || base.contains("BFloat16") || is_declared_type(text, base) {
        return Some(written.to_owned());
    }
    Some(scalar(text, launch).to_owned())
}

fn is_declared_type(text: &str, name: &str) -> bool {
    let word = |text: &str, at: usize| {
        !text[at + name.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
    };
    ["struct ", "class ", "enum "].iter().any(|keyword| {
        let declared = format!("{keyword}{name}");
        !name.is_empty() && text.match_indices(&declared).any(|(at, _)| word(text, at + keyword.len()))
    })
}

/// The type that the nearest dispatch macro before a launch stands for.
fn scalar(text: &str, launch: &Launch) -> &'static str {
    let before = text.get(..launch.span.start).unwrap_or("");
    let nearest = before.rfind("AT_DISPATCH_").map_or("", |at| &before[at..]);
    if INTEGRAL_DISPATCH.iter().any(|name| nearest.starts_with(name)) { "int" } else { "float" }
}

/// A literal, or the literal that a name is set to somewhere in the text. Three names deep.
fn constant(text: &str, written: &str, depth: usize) -> Option<String> {
    let number = written.trim_start_matches('-');
    if number.starts_with(|c: char| c.is_ascii_digit()) || matches!(written, "true" | "false") {
        return Some(written.to_owned());
    }
    let is_name = !written.is_empty() && written.chars().all(|c| c.is_alphanumeric() || c == '_');
    if !is_name || depth > 2 {
        return None;
    }
    for (at, _) in text.match_indices(written) {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        if text[..at].ends_with(word) {
            continue;
        }
        let line = text[..at].rsplit('\n').next().unwrap_or("").trim();
        let rest = text[at + written.len()..].split('\n').next().unwrap_or("");
        let value = if line == "#define" || line == "# define" {
            rest.trim()
        } else if let Some(value) =
            rest.trim_start().strip_prefix('=').filter(|value| !value.starts_with('='))
        {
            value.split([';', ',']).next().unwrap_or("").trim()
        } else {
            continue;
        };
        let value = value.split("//").next().unwrap_or("").trim().trim_matches(['(', ')']).trim();
        if let Some(found) = constant(text, value, depth + 1) {
            return Some(found);
        }
    }
    None
}
