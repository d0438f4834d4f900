//! Paths of one machine in what is said on another: in every text of a JSON value, the folders of the one side for those of the other.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Entries of an order that are about the other machine as they are: its interpreter.
const AS_THEY_ARE: [&str; 1] = ["python"];

/// Flags of a compiler that a folder may follow without anything between.
const FLAGS: [&str; 6] = ["-I", "-L", "-isystem", "-iquote", "-idirafter", "-B"];

/// Puts `under` before each of `roots`, wherever in a text a path begins with one: `/home/me/p/a.cu` becomes `UNDER/home/me/p/a.cu`.
pub fn put_under(value: &mut Value, roots: &[PathBuf], under: &Path) {
    let roots: Vec<String> = roots.iter().map(|root| root.to_string_lossy().into_owned()).collect();
    let under = under.to_string_lossy();
    each_text(value, &mut |text| {
        for root in roots.iter().filter(|root| root.len() > 1) {
            if text.contains(root.as_str()) {
                *text = text_under(text, root, &under);
            }
        }
    });
}

/// The same in a plain text.
pub fn text_under(text: &str, root: &str, under: &str) -> String {
    let mut made = String::with_capacity(text.len() + under.len());
    let mut rest = text;
    while let Some(at) = rest.find(root) {
        let (before, after) = (&rest[..at], &rest[at + root.len()..]);
        made.push_str(before);
        // `/x/home/me` is no path of `/home/me`, and `/home/me2` neither; that of an include folder follows its flag at once.
        let begins = FLAGS.iter().any(|flag| made.ends_with(flag)) || !made.ends_with(is_of_path);
        let ends = after.is_empty() || after.starts_with('/') || !after.starts_with(is_of_path);
        if begins && ends {
            made.push_str(under);
        }
        made.push_str(root);
        rest = after;
    }
    made.push_str(rest);
    made
}

fn is_of_path(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '/' | '.' | '_' | '-' | '~')
}

/// Takes the folder `under` out of every text, so that paths are again those of the person's side.
pub fn take_out(value: &mut Value, under: &Path) {
    let under = under.to_string_lossy().into_owned();
    each_text(value, &mut |text| {
        if text.contains(&under) {
            *text = text.replace(&under, "");
        }
    });
}

/// Calls `change` with every text of a value but those that are to stay.
fn each_text(value: &mut Value, change: &mut impl FnMut(&mut String)) {
    let mut waiting = vec![value];
    while let Some(value) = waiting.pop() {
        match value {
            Value::String(text) => change(text),
            Value::Array(list) => waiting.extend(list.iter_mut()),
            Value::Object(object) => waiting.extend(
                object
                    .iter_mut()
                    .filter(|(name, _)| !AS_THEY_ARE.contains(&name.as_str()))
                    .map(|(_, value)| value),
            ),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_go_and_come_back_and_nothing_else_changes() {
        let order = json!({
            "path": "/w/p/a.cu",
            "flags": ["-I/w/p/include", "-isystem/w/p/s", "-DX=\"/w/p/x\"", "/other/w/p", "/w/p2/x", "/w/p", "a /w/p/b.bin"],
            "python": "/w/p/.venv/bin/python",
        });
        let mut there = order.clone();
        put_under(&mut there, &["/w/p".into()], Path::new("/m/t"));
        assert_eq!(
            there,
            json!({
                "path": "/m/t/w/p/a.cu",
                "flags": ["-I/m/t/w/p/include", "-isystem/m/t/w/p/s", "-DX=\"/m/t/w/p/x\"", "/other/w/p", "/w/p2/x", "/m/t/w/p", "a /m/t/w/p/b.bin"],
                "python": "/w/p/.venv/bin/python",
            })
        );
        take_out(&mut there, Path::new("/m/t"));
        assert_eq!(there, order);
    }
}
