//! Statements in another version of their file, and the function that they become.
//!
//! A candidate for statements is the whole file with these lines rewritten, and what they need added above. Where they stand in it is told by
//! what did not change: all that follows them, and the lines right above.

use stitch_findings::Span;

use super::super::source::Source;
use super::super::statements::{Statements, statements};
use super::layout::{moved, names};

/// Lines above that are looked at to find a place again.
const MOST_ABOVE: usize = 40;
/// What the function is called, and what else where the file uses that name.
const NAMES: [&str; 2] = ["statements", "statements_new"];

/// Where the statements `of` the original stand in another version of the file. What they read and set stays what it was.
///
/// # Errors
/// They can't be found, or read or set something else, in one sentence.
pub fn in_version(original: &str, of: &Statements, version: &str) -> Result<Statements, String> {
    let line_start = original[..of.span.start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = original[of.span.end..].find('\n').map_or(original.len(), |at| of.span.end + at);
    let (above, below) = (&original[..line_start], original[line_end..].trim_end());
    let version_end = version.trim_end().len();
    let end = version[..version_end]
        .strip_suffix(below)
        .map(str::len)
        .ok_or("The candidate changes what follows the selected lines, which must stay as it is.")?;
    let start = if version[..end].starts_with(above) { above.len() } else { behind(above, &version[..end])? };
    let found = statements(version, Span::new(start, end.max(start)))
        .map_err(|why| format!("What stands in place of the selected lines can't be a function. {why}"))?;
    if let Some(read) = found.reads.iter().find(|name| !of.reads.contains(name)) {
        return Err(format!("The candidate's lines read `{read}`, which the selected lines do not."));
    }
    if let Some(unset) = of.sets.iter().find(|name| !found.sets.contains(name)) {
        return Err(format!("The candidate's lines do not set `{unset}`, which is read later."));
    }
    Ok(Statements { reads: of.reads.clone(), sets: of.sets.clone(), ..found })
}

/// The place behind the last lines of `above`, as few of them as make it the only one.
fn behind(above: &str, version: &str) -> Result<usize, String> {
    let lines: Vec<&str> = above.split_inclusive('\n').collect();
    for count in 1..=lines.len().min(MOST_ABOVE) {
        let block = lines[lines.len() - count..].concat();
        let mut places = version
            .match_indices(&block)
            .filter(|(at, _)| *at == 0 || version[..*at].ends_with('\n'))
            .map(|(at, _)| at + block.len());
        match (places.next(), places.next()) {
            (Some(place), None) => return Ok(place),
            (None, _) => break,
            _ => {}
        }
    }
    Err("The candidate changes the line right above the selected ones, by which they are found.".to_owned())
}

/// The version's text with a function of the statements at its end, as [`super::compose`] takes a candidate for statements.
///
/// # Errors
/// The text can't be parsed, or uses the names that the function could have.
pub fn as_function(version: &str, found: &Statements) -> Result<String, String> {
    let plain = version.replace("\r\n", "\n");
    let removed = version[..found.span.start].matches("\r\n").count();
    let within = version[found.span.range()].matches("\r\n").count();
    let span = Span::new(found.span.start - removed, found.span.end - removed - within);
    let source = Source::new(&plain).ok_or("The candidate is too long or too deeply nested to be parsed.")?;
    let used = names(&source);
    let name = NAMES.iter().find(|name| !used.contains(**name));
    let name = name.ok_or_else(|| format!("The candidate uses the names {}.", NAMES.join(" and ")))?;
    let step = source.step();
    let body = moved(&source, span.start, span.end, source.indent(span.start), &step, (&step, &step));
    Ok(format!(
        "{}\n\n\ndef {name}({}):\n{body}\n{step}return {}\n",
        plain.trim_end(),
        found.reads.join(", "),
        found.sets.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::super::super::statements::on_lines;
    use super::*;

    const FILE: &str = "import torch\n\n\ndef f(x, w):\n    y = x\n    for i in range(3):\n        y = y + w\n    return y * 2\n";

    #[test]
    fn statements_are_found_again_and_become_a_function() {
        let of = on_lines(FILE, 5, 7).unwrap();
        let version = FILE
            .replace("import torch\n", "import math\nimport torch\n\n\ndef three(w):\n    return w * 3\n")
            .replace(
                "    y = x\n    for i in range(3):\n        y = y + w\n",
                "    more = three(w)\n    y = x + more\n",
            );
        let found = in_version(FILE, &of, &version).unwrap();
        assert_eq!(
            (found.lines, found.reads.join(" "), found.sets.join(" ")),
            ([10, 11], "x w".into(), "y".into())
        );
        let text = as_function(&version, &found).unwrap();
        let end = "\n\n\ndef statements(x, w):\n    more = three(w)\n    y = x + more\n    return y\n";
        assert!(text.ends_with(end), "{text}");
        let windows = version.replace('\n', "\r\n");
        let original = FILE.replace('\n', "\r\n");
        let of = on_lines(&original, 5, 7).unwrap();
        let found = in_version(&original, &of, &windows).unwrap();
        assert!(as_function(&windows, &found).unwrap().ends_with(end));
    }

    #[test]
    fn what_changes_something_else_is_refused() {
        let of = on_lines(FILE, 5, 7).unwrap();
        let refused = |old: &str, new: &str| in_version(FILE, &of, &FILE.replace(old, new)).unwrap_err();
        assert!(refused("y * 2", "y * 3").contains("follows the selected lines"));
        assert!(refused("def f(x, w):", "def f(x, w=1):").contains("right above"));
        assert!(
            refused("    y = x\n    for i in range(3):\n        y = y + w\n", "    z = x + w\n")
                .contains("can't be a function")
        );
    }
}
