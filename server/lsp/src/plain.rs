//! Our own Markdown as plain text, for clients that show text as it is.
//!
//! Only what our pages and tables use: headings, emphasis, code, links, lists, fences, tables, rules.

/// The same without marks.
pub fn text(markdown: &str) -> String {
    let mut plain = String::with_capacity(markdown.len());
    let mut in_fence = false;
    for line in markdown.lines() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") {
            in_fence = !in_fence;
            continue;
        }
        if in_fence {
            plain.push_str(line);
        } else if is_rule(trimmed) {
            continue;
        } else if let Some(row) = trimmed.strip_prefix('|') {
            plain.push_str(&cells(row));
        } else {
            let heading = trimmed.trim_start_matches('#');
            let is_heading = heading.len() < trimmed.len() && heading.starts_with(' ');
            plain.push_str(&inline(if is_heading { heading.trim_start() } else { line }));
        }
        plain.push('\n');
    }
    // What stood around rules and fences.
    while plain.contains("\n\n\n") {
        plain = plain.replace("\n\n\n", "\n\n");
    }
    plain.trim().to_owned()
}

/// `---`, and the row under a table's heading.
fn is_rule(line: &str) -> bool {
    line.len() >= 3 && line.contains("---") && line.chars().all(|c| matches!(c, '-' | '|' | ':' | ' '))
}

fn cells(row: &str) -> String {
    let row = row.trim_end().trim_end_matches('|').replace("\\|", "\0");
    let cells: Vec<String> = row.split('|').map(|cell| inline(cell.trim()).replace('\0', "|")).collect();
    cells.join("  ")
}

/// Takes marks out of a line: code keeps its text as it is.
fn inline(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    for (index, part) in line.split('`').enumerate() {
        if index % 2 == 1 {
            plain.push_str(part);
        } else {
            plain.push_str(&links(&part.replace("**", "")));
        }
    }
    plain
}

/// `[text](address)` becomes `text (address)`.
fn links(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(middle) = rest.find("](") {
        let (Some(open), Some(close)) = (rest[..middle].rfind('['), rest[middle..].find(')')) else { break };
        let close = middle + close;
        plain.push_str(&rest[..open]);
        plain.push_str(&format!("{} ({})", &rest[open + 1..middle], &rest[middle + 2..close]));
        rest = &rest[close + 1..];
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_gone_and_the_words_stay() {
        for (markdown, expected) in [
            ("**`k`** kernel", "k kernel"),
            (
                "# Title\n\ntext `a**b` [docs](https://x.y/z) c[i](j)",
                "Title\n\ntext a**b docs (https://x.y/z) ci (j)",
            ),
            ("| a | b |\n|---|---:|\n| `x\\|y` | 1 |\n", "a  b\nx|y  1"),
            ("a\n\n---\n\nb", "a\n\nb"),
            ("```cuda\n  p[i] **= 2;\n```\n- one\n- two", "p[i] **= 2;\n- one\n- two"),
            ("#define N", "#define N"),
            ("", ""),
        ] {
            assert_eq!(text(markdown), expected, "{markdown}");
        }
    }
}
