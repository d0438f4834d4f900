//! The names of files that a text may hold, as far as they can be seen without a compiler or an interpreter.

/// Longer texts name no file.
const LONGEST_NAME: usize = 200;

/// The name in `#include "name"` or `<name>`.
pub fn included(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?.trim_start();
    let (open, rest) = (rest.chars().next()?, rest.get(1..)?);
    let close = match open {
        '"' => '"',
        '<' => '>',
        _ => return None,
    };
    rest.split(close).next().filter(|name| !name.is_empty() && name.len() <= LONGEST_NAME)
}

/// The texts in quotes of a line.
pub fn quoted(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        loop {
            let at = rest.find(['"', '\''])?;
            let quote = rest.as_bytes()[at] as char;
            let after = &rest[at + 1..];
            let Some(end) = after.find(quote) else {
                rest = after;
                continue;
            };
            let text = &after[..end];
            // The closing one may be an opening one: `'` is also in words.
            rest = if quote == '"' { &after[end + 1..] } else { after };
            if !text.is_empty() && text.len() <= LONGEST_NAME && !text.contains(['\n', '\0']) {
                return Some(text);
            }
        }
    })
}

/// The statements of a Python file that import, each in one line: in parentheses, or after a backslash, one goes over several.
pub fn imports(text: &str) -> Vec<String> {
    let mut lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        if !line.starts_with("import ") && !line.starts_with("from ") {
            continue;
        }
        let mut statement = line.to_owned();
        while statement.ends_with('\\') || (statement.contains(" import (") && !statement.ends_with(')')) {
            let Some(line) = lines.next() else { break };
            statement = format!("{} {line}", statement.trim_end_matches('\\'));
        }
        found.push(statement);
    }
    found
}

/// A module that a line imports.
pub struct Module<'a> {
    /// How many dots are before it: where it is looked for.
    pub dots: usize,
    /// Its packages and itself.
    pub words: Vec<&'a str>,
}

/// The modules that `import a.b, c` or `from ..a import b, c` names; a name that is imported may be a module too.
pub fn modules(line: &str) -> Vec<Module<'_>> {
    if let Some(rest) = line.strip_prefix("import ") {
        let names = rest.split(',').map(|name| split(first_word(name)));
        return names.map(|words| Module { dots: 0, words }).collect();
    }
    let Some((from, names)) = line.strip_prefix("from ").and_then(|rest| rest.split_once(" import ")) else {
        return Vec::new();
    };
    let from = from.trim();
    let dots = from.len() - from.trim_start_matches('.').len();
    let base = split(&from[dots..]);
    let mut found = vec![Module { dots, words: base.clone() }];
    for name in names.split(',') {
        let name = first_word(name.trim_matches(['(', ')', ' ']));
        let mut words = base.clone();
        words.extend(split(name));
        found.push(Module { dots, words });
    }
    found
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

/// The words of a dotted name; none where it is no name.
fn split(name: &str) -> Vec<&str> {
    let words: Vec<&str> = name.split('.').filter(|word| !word.is_empty()).collect();
    let is_word = |word: &&str| word.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    if words.iter().all(is_word) { words } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_seen_and_prose_is_not() {
        assert_eq!(included("  # include \"a/b.cuh\" // x"), Some("a/b.cuh"));
        assert_eq!(included("#include <c.h>"), Some("c.h"));
        assert_eq!(
            [included("#include MACRO"), included("#define x \"y\""), included("#include \"")],
            [None; 3]
        );
        assert!(quoted("don't open(\"a.bin\")").any(|name| name == "a.bin"));
        assert_eq!(quoted("x = 'a' / 'b'").filter(|name| name.len() == 1).collect::<Vec<_>>(), ["a", "b"]);
        let text = "import a.b as c, d\nfrom . import (  # two\n  e,\n  f as g,\n)\nfrom .h \\\n  import i\nfrom here (and on\nimport j\n";
        let statements = imports(text);
        let found: Vec<(usize, String)> = statements
            .iter()
            .flat_map(|statement| modules(statement))
            .map(|module| (module.dots, module.words.join(".")))
            .collect();
        let names =
            [(0, "a.b"), (0, "d"), (1, ""), (1, "e"), (1, "f"), (1, ""), (1, "h"), (1, "h.i"), (0, "j")];
        assert_eq!(found, names.map(|(dots, name)| (dots, name.to_owned())));
    }
}
