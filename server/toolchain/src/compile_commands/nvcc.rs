//! What nvcc's options mean, as far as a compile of ours must know: which say where input and output are, which say the
//! architecture, and what the options of other compilers are called here.

use std::path::Path;

use super::absolute;

/// Options that say what comes out and where, without a value.
const OUTPUT: &[&str] = &[
    "-c",
    "--compile",
    "-dc",
    "--device-c",
    "-dw",
    "--device-w",
    "-E",
    "--preprocess",
    "-ptx",
    "--ptx",
    "-cubin",
    "--cubin",
    "-fatbin",
    "--fatbin",
    "-cuda",
    "--cuda",
    "-S",
    "-optix-ir",
    "--optix-ir",
    "-lib",
    "--lib",
    "-link",
    "--link",
    "-dlink",
    "--device-link",
    "-M",
    "-MM",
    "-MD",
    "-MMD",
    "-MP",
    "-MG",
    "--generate-dependencies",
    "--generate-nonsystem-dependencies",
    "--generate-dependencies-with-compile",
    "--generate-nonsystem-dependencies-with-compile",
    "--generate-dependency-targets",
    "-keep",
    "--keep",
    "-save-temps",
    "--save-temps",
    "-run",
    "--run",
    "-shared",
    "--shared",
    "-dryrun",
    "--dryrun",
    "-fsyntax-only",
    "-ltoir",
    "--ltoir",
    "-time-trace",
];

/// Options that say what comes out and where, with a value behind them or behind `=`.
const OUTPUT_WITH_VALUE: &[&str] = &[
    "-o",
    "--output-file",
    "-odir",
    "--output-directory",
    "-MF",
    "--dependency-output",
    "-MT",
    "-MQ",
    "--dependency-target-name",
    "-keep-dir",
    "--keep-dir",
    "-time",
    "--time",
    "-MJ",
    "--fdevice-time-trace",
    "-fdevice-time-trace",
];

/// Options of nvcc whose value is the next word. Their values are no input files.
const WITH_VALUE: &[&str] = &[
    "-I",
    "--include-path",
    "-isystem",
    "--system-include",
    "-include",
    "--pre-include",
    "-D",
    "--define-macro",
    "-U",
    "--undefine-macro",
    "-L",
    "--library-path",
    "-l",
    "--library",
    "-x",
    "--x",
    "-std",
    "--std",
    "-ccbin",
    "--compiler-bindir",
    "-Xcompiler",
    "--compiler-options",
    "-Xlinker",
    "--linker-options",
    "-Xptxas",
    "--ptxas-options",
    "-Xarchive",
    "--archive-options",
    "-Xcudafe",
    "-Xnvlink",
    "--nvlink-options",
    "-arch",
    "--gpu-architecture",
    "-code",
    "--gpu-code",
    "-gencode",
    "--generate-code",
    "-maxrregcount",
    "--maxrregcount",
    "-m",
    "--machine",
    "-O",
    "--optimize",
    "-cudart",
    "--cudart",
    "-cudadevrt",
    "--cudadevrt",
    "-ftz",
    "--ftz",
    "-prec-div",
    "--prec-div",
    "-prec-sqrt",
    "--prec-sqrt",
    "-fmad",
    "--fmad",
    "-rdc",
    "--relocatable-device-code",
    "-t",
    "--threads",
    "-default-stream",
    "--default-stream",
    "-diag-error",
    "--diag-error",
    "-diag-suppress",
    "--diag-suppress",
    "-diag-warn",
    "--diag-warn",
    "-Werror",
    "--Werror",
    "-target-dir",
    "--target-directory",
    "-nvvm-ptx",
    "-idp",
    "--input-drive-prefix",
    "-ddp",
    "--dependency-drive-prefix",
    "-dopt",
    "--dopt",
    "-split-compile",
    "--split-compile",
    "-arch-list",
    "-res-usage-out",
    "-aug-hls",
    "-isysroot",
    "-imacros",
    "-iquote",
    "-idirafter",
];

/// Options that set the architecture.
const ARCHITECTURE: &[&str] = &[
    "-arch",
    "--gpu-architecture",
    "-code",
    "--gpu-code",
    "-gencode",
    "--generate-code",
    "--cuda-gpu-arch",
    "--offload-arch",
];

/// `name` and `value` of `-name=value` and of `-name value`; the number of words taken.
fn option<'a>(words: &'a [String], names: &[&str]) -> Option<(&'a str, Option<&'a str>, usize)> {
    let word = words.first()?.as_str();
    if names.contains(&word) {
        return Some((word, words.get(1).map(String::as_str), 2.min(words.len())));
    }
    let (name, value) = word.split_once('=')?;
    names.contains(&name).then_some((name, Some(value), 1))
}

/// Whether `word` names the input of this entry.
fn is_input(word: &str, file: &Path, directory: &Path) -> bool {
    !word.starts_with('-') && absolute(Path::new(word), Some(directory)) == file
}

/// The flags of an nvcc command without its input and output. What stays is unchanged and in order; `-dc`, which is `-c` with
/// relocatable device code, leaves `-rdc=true`.
pub(super) fn without_input_and_output(words: &[String], file: &Path, directory: &Path) -> Vec<String> {
    let mut kept = Vec::with_capacity(words.len());
    let mut at = 0;
    while at < words.len() {
        let word = words[at].as_str();
        let rest = &words[at..];
        if matches!(word, "-dc" | "--device-c") {
            kept.push("-rdc=true".to_owned());
            at += 1;
        } else if OUTPUT.contains(&word) {
            at += 1;
        } else if let Some((_, _, used)) = option(rest, OUTPUT_WITH_VALUE) {
            at += used;
        } else if is_glued_output(word) || word == "--" {
            at += 1;
        } else if WITH_VALUE.contains(&word) {
            kept.extend(rest.iter().take(2).cloned());
            at += 2;
        } else {
            if !is_input(word, file, directory) {
                kept.push(word.to_owned());
            }
            at += 1;
        }
    }
    without_language(kept)
}

/// `-ofile` and `-MFfile`, as gcc allows.
fn is_glued_output(word: &str) -> bool {
    let output =
        word.strip_prefix("-o").is_some_and(|rest| rest.contains(['.', '/']) && !rest.starts_with("ptx"));
    output || (word.starts_with("-MF") && word.len() > 3)
}

/// `-x cu` is about the input and stays with it: our command names its own input as CUDA.
fn without_language(words: Vec<String>) -> Vec<String> {
    let mut kept = Vec::with_capacity(words.len());
    let mut at = 0;
    while at < words.len() {
        match option(&words[at..], &["-x", "--x"]) {
            Some((_, _, used)) => at += used,
            None => {
                kept.push(words[at].clone());
                at += 1;
            }
        }
    }
    kept
}

/// What the options ask for, in order and once each: `compute_80`, `sm_80`, `native`.
pub(super) fn architectures(words: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let Some((name, value, used)) = option(&words[at..], ARCHITECTURE) else {
            at += 1;
            continue;
        };
        let value = value.unwrap_or("");
        let named = if name.ends_with("gencode") || name.ends_with("generate-code") {
            generated_code(value)
        } else {
            value.split(',').map(str::trim).collect()
        };
        for one in named.into_iter().filter(|one| !one.is_empty()) {
            if !found.iter().any(|known| known == one) {
                found.push(one.to_owned());
            }
        }
        at += used;
    }
    found
}

/// `compute_80` and `sm_80` of `arch=compute_80,code=[compute_80,sm_80]`: what code is made for, else the architecture.
fn generated_code(value: &str) -> Vec<&str> {
    let trim = |c: char| matches!(c, '[' | ']' | '"' | '\'' | ' ' | '\\');
    match value.split_once("code=") {
        Some((_, code)) => code.split(',').map(|one| one.trim_matches(trim)).collect(),
        None => vec![value.trim_start_matches("arch=").trim_matches(trim)],
    }
}

/// The flags of clang, nvc++ or gcc, as nvcc takes them: folders, macros, the standard and the architecture. The rest is about
/// how code is made, and would make nvcc refuse the command.
pub(super) fn translate(words: &[String], file: &Path, directory: &Path) -> Vec<String> {
    const WITH_WORD: &[&str] = &["-I", "-isystem", "-D", "-U", "-include"];
    let mut kept = Vec::new();
    let words = without_input_and_output(words, file, directory);
    let mut at = 0;
    while at < words.len() {
        let word = words[at].as_str();
        let mut used = 1;
        if WITH_WORD.contains(&word) {
            kept.extend(words[at..].iter().take(2).cloned());
            used = 2;
        } else if let Some((_, Some(value), taken)) =
            option(&words[at..], &["--cuda-gpu-arch", "--offload-arch"])
        {
            kept.extend(
                value
                    .split(',')
                    .map(|one| format!("-gencode=arch={},code={one}", one.replace("sm_", "compute_"))),
            );
            used = taken;
        } else if let Some(capability) =
            word.strip_prefix("-gpu=").and_then(|list| list.split(',').find_map(|one| one.strip_prefix("cc")))
        {
            kept.push(format!("-arch=sm_{capability}"));
        } else if matches!(word, "-fopenmp" | "-fPIC") {
            kept.push(format!("-Xcompiler={word}"));
        } else if word.starts_with("-std=")
            || ["-I", "-D", "-U", "-isystem"].iter().any(|flag| word.starts_with(flag))
        {
            kept.push(word.to_owned());
        }
        at += used;
    }
    kept
}
