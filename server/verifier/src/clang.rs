//! A type check between keystrokes by clang, where it is installed. Only errors, only for unsaved text, never the last word:
//! nvcc on save is.
//!
//! With a small header of ours the check takes some 30 ms, with CUDA's own ten times that. So the small header goes first, for a file
//! that includes nothing else; if the check is clean, so is the code. If it is not, the real headers decide, since the small one lacks
//! most of CUDA; where clang can't read those (an old clang, a new CUDA) nothing is said at all, and a note says why once.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stitch_findings::{Code, Finding};
use stitch_toolchain::discovery::Toolkit;
use stitch_toolchain::environment::Environment;
use stitch_toolchain::process::{Program, ProgramError, Scratch};
use tokio_util::sync::CancellationToken;

use crate::architecture::Architecture;
use crate::compiler_text::{self, Level, Message, Origin};
use crate::locate::{Lines, place_span};

const MINI: &str = include_str!("clang/mini.h");

/// The oldest clang that reads the headers of current CUDA.
const OLDEST: u32 = 20;
/// The newest that is looked for by name.
const NEWEST: u32 = 30;

/// A check that takes longer is of no use between keystrokes.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Headers for which the small one stands in, or that cost next to nothing.
const SMALL: [&str; 17] = [
    "cuda_runtime.h",
    "cuda_runtime_api.h",
    "device_launch_parameters.h",
    "cuda.h",
    "stdio.h",
    "cstdio",
    "stdlib.h",
    "cstdlib",
    "stdint.h",
    "cstdint",
    "float.h",
    "cfloat",
    "limits.h",
    "climits",
    "assert.h",
    "string.h",
    "stdbool.h",
];

/// An installed clang.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clang {
    /// The program.
    pub path: PathBuf,
    /// Its version's first number.
    pub major: u32,
}

impl Clang {
    /// The newest clang on `PATH` that is new enough: `clang-22` and its kin by their names, `clang` by asking it. Runs programs.
    pub async fn find(environment: &Environment, cancel: &CancellationToken) -> Option<Self> {
        let numbered = (OLDEST..=NEWEST).rev().find_map(|major| {
            let path = environment.find_program(&format!("clang-{major}"))?;
            Some(Self { path, major })
        });
        if numbered.is_some() {
            return numbered;
        }
        let path = environment.find_program("clang")?;
        let asked =
            Program::new(&path).arg("--version").time_limit(Duration::from_secs(5)).run(cancel).await.ok()?;
        let major = version(&String::from_utf8_lossy(&asked.stdout))?;
        (major >= OLDEST).then_some(Self { path, major })
    }
}

fn version(text: &str) -> Option<u32> {
    let rest = &text[text.find("clang version ")? + "clang version ".len()..];
    rest.split('.').next()?.parse().ok()
}

/// What to check.
#[derive(Clone, Debug)]
pub struct ClangRequest {
    /// The file, for its folder and its name.
    pub path: PathBuf,
    /// Its text as it is in the editor.
    pub text: Arc<str>,
    /// Flags of the project, as nvcc takes them; folders, macros and the standard are used.
    pub flags: Vec<String>,
    /// Where the flags' relative paths start.
    pub directory: PathBuf,
    /// The toolkit whose headers decide.
    pub toolkit: Toolkit,
    /// The architecture to check for.
    pub architecture: Architecture,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClangReport {
    /// Errors in the text.
    pub findings: Vec<Finding>,
    /// Why nothing is said, if clang could not do it. The same each time; show it once.
    pub note: Option<String>,
}

/// Checks a text. `Ok` with no findings also where clang can't say.
///
/// # Errors
/// If clang could not be run, or the check was cancelled, as by newer text.
pub async fn check(
    clang: &Clang,
    request: &ClangRequest,
    cancel: &CancellationToken,
) -> Result<ClangReport, ProgramError> {
    let Some(scratch) = prepare(request) else { return Ok(ClangReport::default()) };
    if is_small(&request.text) {
        let said = run(clang, request, &scratch, true, cancel).await?;
        if errors(&said).is_empty() {
            return Ok(ClangReport::default());
        }
    }
    let said = run(clang, request, &scratch, false, cancel).await?;
    let messages = errors(&said);
    // Where headers are is nvcc's to say, on save; what follows a header that was not found means nothing.
    if messages.iter().any(|message| message.text.contains("file not found")) {
        return Ok(ClangReport::default());
    }
    if messages.iter().any(|message| is_of_system(message, request)) {
        let toolkit = &request.toolkit;
        let note = format!(
            "clang {} can not check this file with the headers of CUDA {}.{}, so nothing is checked while typing; nvcc checks it on save",
            clang.major, toolkit.version.major, toolkit.version.minor
        );
        return Ok(ClangReport { findings: Vec::new(), note: Some(note) });
    }
    let lines = Lines::new(&request.text);
    let source = scratch.path().join(SOURCE);
    let own =
        |message: &&Message| message.place.as_ref().is_some_and(|place| Path::new(&place.file) == source);
    let findings = messages.iter().filter(own).filter_map(|message| finding(message, &lines)).collect();
    Ok(ClangReport { findings, note: None })
}

fn finding(message: &Message, lines: &Lines<'_>) -> Option<Finding> {
    let mut place = message.place.clone()?;
    // clang counts bytes, a tab as one; that is how a column without an echo is read.
    place.echo = None;
    let span = place_span(lines, &place, Origin::FrontEnd)?;
    Some(Finding::new(Code::CLANG_ERROR, span, message.text.clone()))
}

const SOURCE: &str = "checked.cu";

fn prepare(request: &ClangRequest) -> Option<Scratch> {
    let scratch = Scratch::new("clang").ok()?;
    let small = scratch.path().join("small");
    std::fs::create_dir(&small).ok()?;
    for name in ["cuda_runtime.h", "cuda_runtime_api.h", "device_launch_parameters.h", "cuda.h"] {
        std::fs::write(small.join(name), MINI).ok()?;
    }
    std::fs::write(scratch.path().join(SOURCE), request.text.as_bytes()).ok()?;
    Some(scratch)
}

/// Whether a text includes nothing but what the small header stands in for.
fn is_small(text: &str) -> bool {
    text.lines().filter_map(included).all(|name| SMALL.contains(&name))
}

fn included(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?.trim();
    Some(rest.trim_start_matches(['<', '"']).split(['>', '"']).next().unwrap_or(rest))
}

async fn run(
    clang: &Clang,
    request: &ClangRequest,
    scratch: &Scratch,
    small: bool,
    cancel: &CancellationToken,
) -> Result<Vec<u8>, ProgramError> {
    let architecture = format!("--cuda-gpu-arch={}", request.architecture);
    let mut arguments: Vec<String> =
        ["-x", "cuda", "-fsyntax-only", "--cuda-device-only", "-nocudalib", "-w", "-ferror-limit=50"]
            .map(str::to_owned)
            .to_vec();
    arguments.extend([architecture, "-fno-color-diagnostics".to_owned()]);
    // For a version that it does not know, clang looks for the launch function of CUDA 9.
    arguments
        .extend(["-Xclang".to_owned(), format!("-target-sdk-version={}", sdk_version(&request.toolkit))]);
    if small {
        let folder = scratch.path().join("small");
        arguments.extend(["-nocudainc".to_owned(), "-I".to_owned(), folder.display().to_string()]);
        arguments.extend(["-include".to_owned(), folder.join("cuda_runtime.h").display().to_string()]);
    } else {
        arguments.push(format!("--cuda-path={}", request.toolkit.root.display()));
        let cccl = request.toolkit.include.join("cccl");
        arguments.extend(["-isystem".to_owned(), cccl.display().to_string()]);
    }
    if let Some(folder) = request.path.parent() {
        arguments.extend(["-I".to_owned(), folder.display().to_string()]);
    }
    arguments.extend(flags(&request.flags));
    arguments.push(scratch.path().join(SOURCE).display().to_string());
    let finished = Program::new(&clang.path)
        .args(arguments)
        .env("LC_ALL", "C")
        .current_dir(&request.directory)
        .time_limit(TIME_LIMIT)
        .scratch(scratch)
        .run(cancel)
        .await?;
    Ok(finished.stderr)
}

/// The newest CUDA version that each clang which is used knows.
const KNOWN_SDK: (u32, u32) = (12, 3);

fn sdk_version(toolkit: &Toolkit) -> String {
    let (major, minor) = (toolkit.version.major, toolkit.version.minor).min(KNOWN_SDK);
    format!("{major}.{minor}")
}

/// The flags of nvcc that mean the same to clang.
fn flags(nvcc: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = nvcc.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-I" | "-isystem" | "-D" | "-U" | "-include" => {
                kept.extend([Some(word.clone()), words.next().cloned()].into_iter().flatten())
            }
            "-std" | "--std" => kept.extend(words.next().map(|standard| format!("-std={standard}"))),
            _ if word.starts_with("-std=")
                || ["-I", "-D", "-U"].iter().any(|flag| word.starts_with(flag)) =>
            {
                kept.push(word.clone())
            }
            _ => {}
        }
    }
    kept
}

fn errors(said: &[u8]) -> Vec<Message> {
    compiler_text::parse(said).into_iter().filter(|message| message.level == Level::Error).collect()
}

/// Whether an error is about clang itself or in headers that are not the user's: then clang can't read this CUDA version.
fn is_of_system(message: &Message, request: &ClangRequest) -> bool {
    message.place.as_ref().is_none_or(|place| {
        let path = crate::paths::resolve(&place.file, &request.directory);
        let roots = [crate::paths::canonical(&request.toolkit.root), PathBuf::from("/usr")];
        roots.iter().any(|root| path.starts_with(root)) || place.file.contains("/lib/clang/")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_translated_and_small_files_known() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let found = flags(&words("-gencode arch=x -I a -Ib -std c++17 -rdc=true -DX=1 -Xcompiler -Wall -O3"));
        assert_eq!(found.join(" "), "-I a -Ib -std=c++17 -DX=1");
        assert!(is_small("#include <cuda_runtime.h>\n # include <stdio.h> // x\n") && is_small(""));
        assert!(!is_small("#include <cuda_fp16.h>\n") && !is_small("#include \"mine.h\"\n"));
        assert_eq!(version("Debian clang version 22.1.8 (1~deb12u1)\n"), Some(22));
        assert_eq!(version("gcc 12"), None);
    }
}
