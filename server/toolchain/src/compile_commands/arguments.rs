//! Splits a command into words, and finds the compiler among them.

use std::path::{Path, PathBuf};

/// Which compiler a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Nvcc,
    Clang,
    Nvcxx,
    Gcc,
    Other,
}

/// Programs that stand before a compiler and pass the rest on.
const LAUNCHERS: [&str; 10] =
    ["ccache", "sccache", "distcc", "icecc", "buildcache", "env", "time", "nice", "colorgcc", "launcher"];

/// Splits a command as a POSIX shell would; a Windows command, known by `\` in its program or by a drive, as Windows does.
/// `None` if a quote is not closed.
pub fn split_command(command: &str) -> Option<Vec<String>> {
    if is_windows(command) { split_windows(command) } else { shell_words::split(command).ok() }
}

fn is_windows(command: &str) -> bool {
    let program = command.trim_start().trim_start_matches('"');
    let end = program.find([' ', '"']).unwrap_or(program.len());
    let bytes = program.as_bytes();
    let drive = bytes.len() > 2
        && bytes[0].is_ascii_alphabetic()
        && bytes[1] == b':'
        && matches!(bytes[2], b'\\' | b'/');
    drive || program[..end].ends_with(".exe")
}

/// The rules of `CommandLineToArgvW`: a backslash is itself unless quotes follow it.
fn split_windows(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quoted, mut begun, mut slashes) =
        (Vec::new(), String::new(), false, false, 0usize);
    for character in command.chars() {
        if character == '\\' {
            slashes += 1;
            begun = true;
            continue;
        }
        let kept = if character == '"' { slashes / 2 } else { slashes };
        word.extend(std::iter::repeat_n('\\', kept));
        let escaped = slashes % 2 == 1;
        slashes = 0;
        match character {
            '"' if escaped => word.push('"'),
            '"' => {
                quoted = !quoted;
                begun = true;
            }
            _ if character.is_whitespace() && !quoted => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            _ => {
                word.push(character);
                begun = true;
            }
        }
    }
    word.extend(std::iter::repeat_n('\\', slashes));
    if begun {
        words.push(word);
    }
    (!quoted).then_some(words)
}

fn program_name(word: &str) -> String {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word).to_ascii_lowercase();
    name.strip_suffix(".exe").map_or(name.clone(), str::to_owned)
}

/// Whether `name` is `tool`, `tool-19`, or `aarch64-linux-gnu-tool`.
fn is_tool(name: &str, tool: &str) -> bool {
    name.match_indices(tool).any(|(at, _)| {
        let (before, after) = (&name[..at], &name[at + tool.len()..]);
        let version = after.strip_prefix('-').unwrap_or(after);
        (before.is_empty() || before.ends_with('-'))
            && version.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    })
}

fn kind_of(word: &str) -> Kind {
    let name = program_name(word);
    let is = |tools: &[&str]| tools.iter().any(|tool| is_tool(&name, tool));
    if is(&["nvcc", "nvcc_wrapper"]) {
        Kind::Nvcc
    } else if is(&["clang++", "clang", "clang-cuda"]) {
        Kind::Clang
    } else if is(&["nvc++"]) {
        Kind::Nvcxx
    } else if is(&["g++", "gcc", "c++", "cc"]) {
        Kind::Gcc
    } else {
        Kind::Other
    }
}

/// Where in `words` the compiler is: behind launchers, their options, and settings of variables. `None` for no word at all.
pub(super) fn compiler_of(words: &[String]) -> Option<(usize, Kind)> {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let launcher = LAUNCHERS.contains(&program_name(word).as_str());
        let setting = word
            .split_once('=')
            .is_some_and(|(name, _)| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
        let option = at > 0 && word.starts_with('-');
        if !launcher && !setting && !option {
            let kind = kind_of(word);
            // An unknown launcher may stand before nvcc.
            let later = words.iter().skip(at).take(4).position(|word| kind_of(word) == Kind::Nvcc);
            return match (kind, later) {
                (Kind::Other, Some(further)) => Some((at + further, Kind::Nvcc)),
                (kind, _) => Some((at, kind)),
            };
        }
        at += 1;
    }
    None
}

/// The compiler's path: absolute if it names folders, else the name alone, for `PATH`.
pub(super) fn compiler_path(word: &str, directory: &Path) -> PathBuf {
    if word.contains('/') { directory.join(word) } else { PathBuf::from(word) }
}
