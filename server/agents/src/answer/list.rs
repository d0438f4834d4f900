//! A plan as a numbered list in Markdown: what a model writes that forgot about JSON.

use super::first_words;
use super::plan::bare_name;
use crate::{Plan, Task};

/// Words before a colon that name a field of the task, in small letters.
const GAIN: [&str; 4] = ["expected gain", "gain", "expected", "benefit"];
const TEST: [&str; 4] = ["test", "check", "verification", "verify"];
const SCOPE: [&str; 5] = ["scope", "kernel", "kernels", "function", "functions"];

/// The plan that a numbered list is; `None` where there is no list.
pub(super) fn read(text: &str) -> Option<Plan> {
    let mut before = Vec::new();
    let mut items: Vec<Vec<&str>> = Vec::new();
    let mut is_fenced = false;
    for line in text.lines() {
        is_fenced ^= line.trim_start().starts_with("```");
        match numbered(line).filter(|_| !is_fenced) {
            Some(item) => items.push(vec![item]),
            // Prose after the list, set back to the margin after an empty line, is no longer part of its last item.
            None => match items.last_mut() {
                Some(item) => item.push(line),
                None => before.push(line),
            },
        }
    }
    let tasks: Vec<_> = items.iter().filter_map(|item| task(&item.join("\n"))).collect();
    (!tasks.is_empty()).then(|| Plan { summary: before.join("\n").trim().to_owned(), tasks })
}

/// What stands behind the number of a line like `1. x`, `2) x`, `### Step 3: x` or `**Task 4** x`.
fn numbered(line: &str) -> Option<&str> {
    let indentation = line.len() - line.trim_start().len();
    let bare = line.trim_start().trim_start_matches(['#', '*', ' ']);
    let bare =
        ["Step ", "Task ", "step ", "task "].iter().find_map(|word| bare.strip_prefix(word)).unwrap_or(bare);
    let digits = bare.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || digits > 2 || indentation > 3 {
        return None;
    }
    let rest = bare[digits..].strip_prefix(['.', ')', ':'])?;
    rest.starts_with([' ', '*', '\t']).then(|| rest.trim())
}

/// The task that an item describes: its first line is the title, and what follows a colon or a dash in it belongs to the description.
pub(super) fn task(item: &str) -> Option<Task> {
    let (first, rest) = item.split_once('\n').unwrap_or((item, ""));
    let first = first.replace("**", "").replace("__", "");
    let cut = [": ", " \u{2014} ", " \u{2013} ", " - "]
        .iter()
        .filter_map(|sign| Some((first.find(sign)?, sign.len())))
        .min();
    let (title, after) = match cut {
        Some((at, length)) => (&first[..at], &first[at + length..]),
        None => (first.as_str(), ""),
    };
    let title = first_words(title.trim().trim_end_matches([':', '.']));
    if title.is_empty() {
        return None;
    }
    let mut task = Task { title, ..Task::default() };
    let mut description = vec![after.trim()];
    for line in rest.lines() {
        let line = line.trim().trim_start_matches(['-', '*', ' ']);
        let bare = line.replace("**", "");
        let field =
            bare.split_once(':').map(|(name, value)| (name.trim().to_lowercase(), value.trim().to_owned()));
        match field {
            Some((name, value)) if GAIN.contains(&name.as_str()) => task.expected_gain = value,
            Some((name, value)) if TEST.contains(&name.as_str()) => task.test = value,
            Some((name, value)) if SCOPE.contains(&name.as_str()) => {
                task.scope = value.split(',').map(bare_name).filter(|name| !name.is_empty()).collect();
            }
            _ => description.push(line),
        }
    }
    description.retain(|line| !line.is_empty());
    task.description = description.join("\n");
    Some(task)
}
