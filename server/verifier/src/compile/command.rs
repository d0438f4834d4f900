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

/// Options that name folders of headers. Source: `nvcc --help`, and gcc's manual for what is passed on to it.
const INCLUDE: [&str; 7] =
    ["-I", "--include-path", "-isystem", "--system-include", "-iquote", "-idirafter", "/I"];

/// All folders of headers that flags name, also those passed on to the host compiler.
pub(super) fn include_folders(flags: &[String]) -> Vec<String> {
    let passed_on = flags.iter().flat_map(|flag| {
        let value = flag.strip_prefix("-Xcompiler=").or_else(|| flag.strip_prefix("--compiler-options="));
        value.unwrap_or(flag).split(',').map(|part| part.trim_matches(['"', '\'']).to_owned())
    });
    let words: Vec<String> = passed_on.collect();
    let mut folders = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let Some(option) =
            INCLUDE.iter().filter(|option| word.starts_with(**option)).max_by_key(|option| option.len())
        else {
            continue;
        };
        match word[option.len()..].trim_start_matches('=') {
            "" => folders.extend(words.get(at + 1).cloned()),
            glued => folders.push(glued.to_owned()),
        }
    }
    folders
}

/// Options whose value is a path, as a word of its own, after `=` or glued on. Source: `nvcc --help`, CUDA 13.
const PATHS: [&str; 12] = [
    "-I",
    "--include-path",
    "-isystem",
    "--system-include",
    "-include",
    "--pre-include",
    "-L",
    "--library-path",
    "-optf",
    "--options-file",
    "-ccbin",
    "--compiler-bindir",
];

/// The same flags with relative paths made absolute from `base`, so that they mean the same wherever the compiler runs.
/// Names of programs that `PATH` leads to stay.
pub(super) fn based(flags: &[String], base: &Path) -> Vec<String> {
    let mut is_value = false;
    flags
        .iter()
        .map(|flag| {
            if std::mem::replace(&mut is_value, PATHS.contains(&flag.as_str())) {
                return absolute(flag, base);
            }
            let glued = |option: &&&str| flag.len() > option.len() && flag.starts_with(**option);
            let Some(option) = PATHS.iter().filter(glued).max_by_key(|option| option.len()) else {
                return flag.clone();
            };
            match &flag[option.len()..] {
                value if value.starts_with('=') => format!("{option}={}", absolute(&value[1..], base)),
                value if matches!(*option, "-I" | "-L") => format!("{option}{}", absolute(value, base)),
                _ => flag.clone(),
            }
        })
        .collect()
}

/// Each of the paths between commas, as nvcc takes them.
fn absolute(value: &str, base: &Path) -> String {
    let one = |path: &str| {
        let joined = base.join(path);
        if joined.exists() { joined.display().to_string() } else { path.to_owned() }
    };
    value.split(',').map(one).collect::<Vec<_>>().join(",")
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
pub(crate) fn dependencies(text: &str) -> Vec<String> {
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
    fn relative_paths_are_based_and_all_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path();
        std::fs::create_dir_all(base.join("inc/sub")).unwrap();
        std::fs::write(base.join("pre.h"), "").unwrap();
        let at = |name: &str| base.join(name).display().to_string();
        let flags =
            words("-Iinc -I inc/sub -isystem=inc,/usr -include pre.h -DX=inc -ccbin g++ -O3 -std=c++17 inc");
        let expected = format!(
            "-I{0} -I {1} -isystem={0},/usr -include {2} -DX=inc -ccbin g++ -O3 -std=c++17 inc",
            at("inc"),
            at("inc/sub"),
            at("pre.h")
        );
        assert_eq!(super::based(&flags, base).join(" "), expected);
    }

    #[test]
    fn folders_of_headers_are_named_in_many_ways() {
        assert_eq!(
            include_folders(&words(
                "-I/a -I b -isystem=c -O3 -iquote d -Xcompiler=-fPIC,-I/e -Xcompiler -I/f -Ione,two"
            )),
            ["/a", "b", "c", "d", "/e", "/f", "one"]
        );
    }

    #[test]
    fn system_folders_are_named_in_three_ways() {
        assert_eq!(
            system_folders(&words("-isystem /a -isystem=/b,/c -isystem/d -I/e")),
            ["/a", "/b", "/c", "/d"]
        );
    }
}
