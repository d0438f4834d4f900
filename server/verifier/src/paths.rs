//! Paths as compilers print them, compared and resolved.
//!
//! One log names the same file as `C:\a\k.cu`, `c:/a/k.cu` and `k.cu`, and headers as `…/bin/../include/x.h`.

use std::path::{Path, PathBuf};

use stitch_toolchain::paths::absolute;

/// `file`, as a compiler that ran in `directory` names it, as an absolute path without `.` and `..`; links are followed where
/// the file exists.
pub fn resolve(file: &str, directory: &Path) -> PathBuf {
    absolute(Path::new(file), Some(directory))
}

/// `path` absolute and with links followed where it exists.
pub fn canonical(path: &Path) -> PathBuf {
    absolute(path, None)
}

/// `path` as a text of one line; what is no UTF-8, or ends or controls lines, is written as `\u{fffd}`.
pub fn printable(path: &Path) -> String {
    path.to_string_lossy().replace(char::is_control, "\u{fffd}")
}

/// The first character of a path that a shell would act on within double quotes: nvcc hands the names of its files to `sh` so, and a
/// name like `$(rm -rf ~).cu` would be run.
pub fn shell_character(path: &Path) -> Option<char> {
    path.to_string_lossy().chars().find(|character| matches!(character, '$' | '`' | '"' | '\\'))
}

/// Whether `file`, as printed, is `path`, also one that is only printable so. Paths of Windows, known by their drive, are compared without regard to letter case
/// and to which way slashes lean.
pub fn is_same(file: &str, path: &Path) -> bool {
    let other = path.to_string_lossy();
    if !(has_drive(file) && has_drive(&other)) {
        return Path::new(file) == path || file == printable(path);
    }
    let fold = |text: &str| text.replace('\\', "/").to_lowercase();
    fold(file) == fold(&other)
}

/// Whether a path begins as `C:\` or `C:/`.
pub fn has_drive(text: &str) -> bool {
    matches!(text.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler_text::parse;

    #[test]
    fn names_that_a_shell_would_act_on_are_known() {
        for (name, expected) in [
            ("a b'(c)&;|*.cu", None),
            ("e$(id).cu", Some('$')),
            ("`id`/k.cu", Some('`')),
            ("a\";id;\".cu", Some('"')),
        ] {
            assert_eq!(shell_character(Path::new(name)), expected, "{name}");
        }
    }

    #[test]
    fn windows_paths_are_the_same_in_any_case() {
        let compiled = Path::new(r"C:\Users\dev\my kernels (old)\saxpy.cu");
        let mut lines = Vec::new();
        for log in [
            include_bytes!("../tests/fixtures/text/windows.log").as_slice(),
            include_bytes!("../tests/fixtures/text/windows_host.log"),
        ] {
            for message in parse(log) {
                let place = message.place.unwrap();
                assert!(is_same(&place.file, compiled), "{}", place.file);
                lines.push(place.line);
            }
        }
        assert_eq!(lines, [14, 9, 31, 33]);
        assert!(!is_same("/a/K.cu", Path::new("/a/k.cu")));
    }

    #[test]
    fn dots_go_even_where_nothing_exists() {
        assert_eq!(resolve("../no/./x.h", Path::new("/nowhere/bin")), Path::new("/nowhere/no/x.h"));
        assert_eq!(resolve("/nowhere/a/../b", Path::new("/x")), Path::new("/nowhere/b"));
    }
}
