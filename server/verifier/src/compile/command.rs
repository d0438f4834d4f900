//! The command that compiles: the project's flags, and what we add to hear more.

use std::path::Path;

use super::plan::Plan;

/// Options that set the architecture, as the database reader knows them.
const GENERATE: [&str; 2] = ["-gencode", "--generate-code"];
const VIRTUAL: [&str; 2] = ["-arch", "--gpu-architecture"];
const REAL: [&str; 2] = ["-code", "--gpu-code"];
/// Options that choose the runtime library.
const RUNTIME: [&str; 2] = ["-cudart", "--cudart"];

/// `name` and value of the option at the start of `words`, and how many words it takes.
fn option<'a>(words: &'a [String], names: &[&str]) -> Option<(&'a str, usize)> {
    let word = words.first()?;
    if names.contains(&word.as_str()) {
        return Some((words.get(1)?.as_str(), 2));
    }
    let (name, value) = word.split_once('=')?;
    names.contains(&name).then_some((value, 1))
}

/// The flags without those that say which architecture code is for, or which runtime it is linked to.
pub(crate) fn without_architecture(flags: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut at = 0;
    while let Some(flag) = flags.get(at) {
        let named = [&GENERATE[..], &VIRTUAL[..], &REAL[..], &RUNTIME[..]];
        match named.iter().find_map(|names| option(&flags[at..], names)) {
            Some((_, words)) => at += words,
            None => {
                kept.push(flag.clone());
                at += 1;
            }
        }
    }
    kept
}

/// What flags ask code for: `sm_90`, `compute_90`, `native`.
pub(super) fn architectures(flags: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for at in 0..flags.len() {
        let rest = &flags[at..];
        let named: Vec<&str> = if let Some((value, _)) = option(rest, &GENERATE) {
            value
                .split_once("code=")
                .map_or(value.trim_start_matches("arch="), |(_, code)| code)
                .split(',')
                .collect()
        } else if let Some((value, _)) = option(rest, &VIRTUAL).or_else(|| option(rest, &REAL)) {
            value.split(',').collect()
        } else {
            continue;
        };
        for name in named {
            let name = name.trim_matches(|c: char| matches!(c, '[' | ']' | '"' | '\'' | ' '));
            if !name.is_empty() && !found.iter().any(|known| known == name) {
                found.push(name.to_owned());
            }
        }
    }
    found
}

/// Where flags ask for PTX alone, asks for real code too: only the assembler knows registers.
pub(super) fn add_real_code(arguments: &mut Vec<String>, architectures: &mut Vec<String>) {
    let is_virtual = |name: &String| name.starts_with("compute_");
    if !architectures.iter().all(is_virtual) {
        return;
    }
    let Some(name) = architectures.last().and_then(|last| last.strip_prefix("compute_")).map(str::to_owned)
    else {
        return;
    };
    let generated = (0..arguments.len()).any(|at| option(&arguments[at..], &GENERATE).is_some());
    arguments.push(if generated {
        format!("-gencode=arch=compute_{name},code=sm_{name}")
    } else {
        format!("-code=sm_{name}")
    });
    if !generated {
        architectures.clear();
    }
    architectures.push(format!("sm_{name}"));
}

/// Folders that `-isystem` names.
pub(super) fn system_folders(flags: &[String]) -> Vec<String> {
    let mut folders = Vec::new();
    for at in 0..flags.len() {
        if let Some((value, _)) = option(&flags[at..], &["-isystem", "--system-include"]) {
            folders.extend(value.split(',').map(str::to_owned));
        } else if let Some(glued) =
            flags[at].strip_prefix("-isystem").filter(|rest| rest.starts_with(['/', '.']))
        {
            folders.push(glued.to_owned());
        }
    }
    folders
}

/// Where the compiler writes, in a scratch folder.
pub(super) const OUTPUT: &str = "code.bin";
/// Where the compiler lists what it read.
pub(super) const DEPENDENCIES: &str = "code.d";

/// The arguments in full.
pub(super) fn arguments(plan: &Plan, scratch: &Path) -> Vec<String> {
    let mut all = plan.arguments.clone();
    // Code for several architectures comes in one file only as a fat binary.
    all.push(if plan.several { "-fatbin" } else { "-cubin" }.to_owned());
    all.push("-Xptxas=-v".to_owned());
    let file = |name: &str| scratch.join(name).display().to_string();
    all.extend(["-MD".to_owned(), "-MF".to_owned(), file(DEPENDENCIES), "-o".to_owned(), file(OUTPUT)]);
    // Only `.cu` is CUDA by its name; entries may compile other endings with `-x cu`.
    if plan.unit.extension().is_none_or(|ending| ending != "cu") {
        all.extend(["-x".to_owned(), "cu".to_owned()]);
    }
    all.push(plan.unit.display().to_string());
    all
}

/// The files that a dependency file lists: words after the first `: `, with `\ ` for a blank and lines that go on.
pub(super) fn dependencies(text: &str) -> Vec<String> {
    let Some((_, list)) = text.split_once(": ") else { return Vec::new() };
    let mut files = Vec::new();
    let mut file = String::new();
    let mut characters = list.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if matches!(characters.peek(), Some(' ' | '#')) => file.extend(characters.next()),
            '\\' if matches!(characters.peek(), Some('\n' | '\r')) => {}
            '$' if characters.peek() == Some(&'$') => file.extend(characters.next()),
            _ if character.is_whitespace() => {
                if !file.is_empty() {
                    files.push(std::mem::take(&mut file));
                }
            }
            _ => file.push(character),
        }
    }
    if !file.is_empty() {
        files.push(file);
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn code_is_asked_for_where_flags_ask_for_ptx_alone() {
        for (flags, expected, known) in [
            ("-arch=compute_80", "-arch=compute_80 -code=sm_80", "sm_80"),
            (
                "-gencode arch=compute_90a,code=compute_90a",
                "-gencode arch=compute_90a,code=compute_90a -gencode=arch=compute_90a,code=sm_90a",
                "compute_90a sm_90a",
            ),
            ("-arch sm_80", "-arch sm_80", "sm_80"),
            ("-arch=native", "-arch=native", "native"),
            (
                "--generate-code=arch=compute_80,code=[compute_80,sm_80]",
                "--generate-code=arch=compute_80,code=[compute_80,sm_80]",
                "compute_80 sm_80",
            ),
        ] {
            let mut arguments = words(flags);
            let mut found = architectures(&arguments);
            add_real_code(&mut arguments, &mut found);
            assert_eq!(
                (arguments.join(" ").as_str(), found.join(" ").as_str()),
                (expected, known),
                "{flags}"
            );
        }
    }

    #[test]
    fn a_program_for_another_device_keeps_all_other_flags() {
        let flags = words(
            "-O3 -arch=sm_80 -gencode arch=compute_80,code=sm_80 -cudart shared -I inc --gpu-code=sm_90 -lm",
        );
        assert_eq!(without_architecture(&flags).join(" "), "-O3 -I inc -lm");
    }

    #[test]
    fn dependencies_keep_their_blanks() {
        let text = "o.cubin : a\\ b(c).cu \\\n    /usr/include/x.h \\\n  c$$d.h\n";
        assert_eq!(dependencies(text), ["a b(c).cu", "/usr/include/x.h", "c$d.h"]);
        assert_eq!(dependencies("C:\\x"), Vec::<String>::new());
    }

    #[test]
    fn system_folders_are_named_in_three_ways() {
        assert_eq!(
            system_folders(&words("-isystem /a -isystem=/b,/c -isystem/d -I/e")),
            ["/a", "/b", "/c", "/d"]
        );
    }
}
