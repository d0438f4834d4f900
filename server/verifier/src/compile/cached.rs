//! Runs a planned compile, or gives what the same compile said before.
//!
//! A result stands while nvcc, the flags, the source and every file that was read are what they were. The compiler lists the files
//! itself (`-MD`). Those of the system are compared by size and time of change, the others by content, so that a
//! `git checkout` there and back costs nothing.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stitch_session::cache::Key;
use stitch_toolchain::process::{Finished, Program, Scratch};
use tokio_util::sync::CancellationToken;

use super::{CompileRequest, Trouble, blocking, command, plan::Plan};
use crate::compiler_text::{self, Origin};

/// What a compile said.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// Whether it made code.
    pub success: bool,
    /// What it printed.
    pub text: String,
    /// The files it read, as it names them.
    pub dependencies: Vec<String>,
    /// The command, as one could type it.
    pub command: String,
    /// Whether it was not run, because nothing changed.
    pub from_cache: bool,
}

/// What is kept on disk. Paths in the scratch folder have [`PLACE`] for its name, which differs each time.
#[derive(Serialize, Deserialize)]
struct Kept {
    success: bool,
    text: String,
    files: Vec<(String, u64)>,
}

const PLACE: &str = "@scratch@";

/// Bytes of a message that is kept; a compile that says more has gone astray.
const OUTPUT_LIMIT: usize = 16 << 20;

/// Runs `plan` with a scratch folder of its own.
pub(super) async fn run(
    request: &CompileRequest,
    plan: &Plan,
    cancel: &CancellationToken,
) -> Result<Outcome, Trouble> {
    let scratch = scratch()?;
    run_in(request, plan, &scratch, "", cancel).await
}

/// A scratch folder for one compile.
pub(super) fn scratch() -> Result<Scratch, Trouble> {
    Scratch::new("compile").map_err(|error| Trouble::Failed {
        reason: format!(
            "no scratch folder could be made: {error}; free some space in the cache folder or in TMPDIR"
        ),
    })
}

/// Runs `plan` in a scratch folder that may hold its source. `embedded` is text that the result depends on besides.
pub(super) async fn run_in(
    request: &CompileRequest,
    plan: &Plan,
    scratch: &Scratch,
    embedded: &str,
    cancel: &CancellationToken,
) -> Result<Outcome, Trouble> {
    let arguments = command::arguments(plan, scratch.path());
    let place = scratch.path().display().to_string();
    let program = program(request, plan, scratch, &arguments);
    let line = program.command_line();
    let key = match &request.cache {
        Some(_) => {
            let (plan, place, embedded) = (plan.clone(), place.clone(), embedded.to_owned());
            let arguments = arguments.clone();
            blocking(move || key(&plan, &arguments, &place, &embedded)).await?
        }
        None => None,
    };
    if let Some((cache, key)) = request.cache.clone().zip(key) {
        let (directory, place, line) = (plan.directory.clone(), place.clone(), line.clone());
        let kept = blocking(move || cache.get(&key).and_then(|bytes| still_true(&bytes, &directory, &place)))
            .await?;
        if let Some(kept) = kept {
            let dependencies = kept.files.into_iter().map(|(name, _)| name).collect();
            return Ok(Outcome {
                success: kept.success,
                text: kept.text,
                dependencies,
                command: line,
                from_cache: true,
            });
        }
    }
    let finished = program.run(cancel).await?;
    let mut outcome = Outcome {
        success: finished.status.success(),
        text: said(&finished),
        dependencies: listed(&scratch.path().join(command::DEPENDENCIES)),
        command: line,
        from_cache: false,
    };
    if !outcome.success && names_assembly(&outcome.text) {
        outcome.text = place_assembly(request, plan, scratch, cancel).await?.unwrap_or(outcome.text);
    }
    if let Some((cache, key)) = request.cache.clone().zip(key) {
        let (outcome, directory) = (outcome.clone(), plan.directory.clone());
        blocking(move || keep(&outcome, &directory, &place).map(|value| cache.put(&key, &value))).await?;
    }
    Ok(outcome)
}

fn program(request: &CompileRequest, plan: &Plan, scratch: &Scratch, arguments: &[String]) -> Program {
    // Messages are read, so they must be in the language that is read, and without colours.
    Program::new(&plan.nvcc)
        .args(arguments)
        .env("LC_ALL", "C")
        .env("LANG", "C")
        .env("LANGUAGE", "C")
        .env_remove("CLICOLOR_FORCE")
        .env_remove("GCC_COLORS")
        .current_dir(directory)
        .time_limit(request.time_limit)
        .output_limit(OUTPUT_LIMIT)
        .scratch(scratch)
}

/// Both streams: on Windows the host compiler speaks on standard output.
fn said(finished: &Finished) -> String {
    let mut text = compiler_text::printed(&finished.stdout);
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&compiler_text::printed(&finished.stderr));
    text
}

fn listed(file: &Path) -> Vec<String> {
    std::fs::read(file)
        .map(|bytes| command::dependencies(&String::from_utf8_lossy(&bytes)))
        .unwrap_or_default()
}

/// What tells one version of a file from another.
fn fingerprint(path: &Path) -> Option<u64> {
    let system = ["/usr/", "/opt/"].iter().any(|folder| path.starts_with(folder));
    let in_toolkit =
        || path.components().any(|part| matches!(part.as_os_str().to_str(), Some("cccl" | "crt" | "nvidia")));
    if system || in_toolkit() {
        let metadata = path.metadata().ok()?;
        let changed = metadata.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        let print = format!("{}/{}", metadata.len(), changed.as_nanos());
        return Some(xxhash_rust::xxh3::xxh3_64(print.as_bytes()));
    }
    Some(xxhash_rust::xxh3::xxh3_64(&std::fs::read(path).ok()?))
}

fn key(plan: &Plan, arguments: &[String], place: &str, embedded: &str) -> Option<Key> {
    // Only a database says where to run. Anywhere else, what a compiler leaves behind would lie among the user's sources.
    let directory = if plan.from_database { plan.directory.as_path() } else { scratch.path() };
    let nvcc = fingerprint_of_program(&plan.nvcc)?;
    let source = std::fs::read(&plan.unit).ok()?;
    let arguments = arguments.join("\0").replace(place, PLACE);
    let variables =
        ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN", "PATH", "CPATH", "CPLUS_INCLUDE_PATH"];
    let environment: Vec<String> = variables
        .iter()
        .map(|name| std::env::var_os(name).unwrap_or_default().to_string_lossy().into_owned())
        .collect();
    let environment = environment.join("\0");
    let directory = plan.directory.display().to_string().replace(place, PLACE);
    let parts: [&[u8]; 6] = [
        nvcc.as_bytes(),
        arguments.as_bytes(),
        environment.as_bytes(),
        directory.as_bytes(),
        &source,
        embedded.as_bytes(),
    ];
    Some(Key::of("nvcc", parts))
}

/// A program by its path, size and time of change.
fn fingerprint_of_program(program: &Path) -> Option<String> {
    let metadata = program.metadata().ok()?;
    let changed = metadata.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(format!("{}/{}/{}", program.display(), metadata.len(), changed.as_nanos()))
}

/// The kept result, if every file it was made from is what it was.
fn still_true(bytes: &[u8], directory: &Path, place: &str) -> Option<Kept> {
    let mut kept: Kept = serde_json::from_slice(bytes).ok()?;
    let same = |(name, print): &(String, u64)| fingerprint(&directory.join(name)) == Some(*print);
    if !kept.files.iter().all(same) {
        return None;
    }
    kept.text = kept.text.replace(PLACE, place);
    Some(kept)
}

/// What to keep. `None` where the compiler did not list what it read, as when a header was not found: the result may change
/// without any listed file changing.
fn keep(outcome: &Outcome, directory: &Path, place: &str) -> Option<Vec<u8>> {
    let outside = |name: &&String| !Path::new(name.as_str()).starts_with(place);
    let files: Option<Vec<(String, u64)>> = outcome
        .dependencies
        .iter()
        .filter(outside)
        .map(|name| Some((name.clone(), fingerprint(&directory.join(name))?)))
        .collect();
    let files = files.filter(|_| !outcome.dependencies.is_empty())?;
    let kept = Kept { success: outcome.success, text: outcome.text.replace(place, PLACE), files };
    serde_json::to_vec(&kept).ok()
}

/// Whether the assembler points into a file that nvcc made and removed.
fn names_assembly(text: &str) -> bool {
    compiler_text::parse(text.as_bytes())
        .iter()
        .any(|message| message.origin == Origin::Ptxas && message.place.is_some())
}

/// Compiles once more with line tables and keeps the assembly, to say in which line of the source the assembler's errors are:
/// inline assembly is the one part of the code that only the assembler checks.
async fn place_assembly(
    request: &CompileRequest,
    plan: &Plan,
    scratch: &Scratch,
    cancel: &CancellationToken,
) -> Result<Option<String>, Trouble> {
    let kept = scratch.path().join("kept");
    if std::fs::create_dir_all(&kept).is_err() {
        return Ok(None);
    }
    let mut arguments = command::arguments(plan, scratch.path());
    let source = arguments.pop().unwrap_or_default();
    arguments.extend([
        "-lineinfo".to_owned(),
        "-keep".to_owned(),
        "-keep-dir".to_owned(),
        kept.display().to_string(),
        source,
    ]);
    let finished = program(request, plan, scratch, &arguments).run(cancel).await?;
    let text = said(&finished);
    let directory = plan.directory.clone();
    blocking(move || {
        Some(text.lines().map(|line| place_line(line, &directory, &kept)).collect::<Vec<_>>().join("\n"))
    })
    .await
}

/// `ptxas x.ptx, line 21; error : m` as `source(line): error: m`; any other line as it is.
fn place_line(line: &str, directory: &Path, kept: &Path) -> String {
    let placed = || {
        let message = compiler_text::parse(line.as_bytes())
            .into_iter()
            .find(|message| message.origin == Origin::Ptxas)?;
        let place = message.place?;
        let name = Path::new(&place.file).file_name()?;
        let assembly =
            std::fs::read(kept.join(name)).or_else(|_| std::fs::read(directory.join(&place.file))).ok()?;
        let (file, number) = source_line(&String::from_utf8_lossy(&assembly), place.line)?;
        Some(format!("{}({number}): error: {} (said by ptxas)", file.display(), message.text))
    };
    placed().unwrap_or_else(|| line.to_owned())
}

/// The source line that a line of assembly was made from: the last `.loc` before it, whose number a `.file` names.
fn source_line(assembly: &str, line: u32) -> Option<(PathBuf, u32)> {
    let before = assembly.lines().take(usize::try_from(line).ok()?);
    let location = before.filter_map(|text| text.trim().strip_prefix(".loc")).last()?;
    let mut words = location.split_whitespace();
    let (file, number) = (words.next()?, words.next()?.parse().ok()?);
    assembly.lines().find_map(|text| {
        let rest = text.trim().strip_prefix(".file")?.trim_start().strip_prefix(file)?;
        let name = rest.trim_start().strip_prefix('"')?;
        Some((PathBuf::from(&name[..name.find('"')?]), number))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_assembly_leads_to_its_source() {
        let assembly =
            ".file\t1 \"/a/k.cu\"\n.file 2 \"/a/h.cuh\"\n.loc\t1 3 5\nmov\n.loc 2 9 1\nfoo.bar\n.loc 1 4 1\n";
        assert_eq!(source_line(assembly, 4), Some((PathBuf::from("/a/k.cu"), 3)));
        assert_eq!(source_line(assembly, 6), Some((PathBuf::from("/a/h.cuh"), 9)));
        assert_eq!(source_line(assembly, 1), None);
        assert_eq!(source_line("", 7), None);
    }

    #[test]
    fn a_result_stands_until_a_file_it_was_made_from_changes() {
        let folder = tempfile::tempdir().unwrap();
        let header = folder.path().join("h.cuh");
        std::fs::write(&header, "one").unwrap();
        let outcome = Outcome {
            success: true,
            text: "/tmp/s/unit.cu(3): error: x".to_owned(),
            dependencies: vec!["h.cuh".to_owned(), "/tmp/s/unit.cu".to_owned()],
            command: String::new(),
            from_cache: false,
        };
        let bytes = keep(&outcome, folder.path(), "/tmp/s").unwrap();
        let kept = still_true(&bytes, folder.path(), "/tmp/t").unwrap();
        assert_eq!(kept.text, "/tmp/t/unit.cu(3): error: x");
        std::fs::write(&header, "two").unwrap();
        assert!(still_true(&bytes, folder.path(), "/tmp/t").is_none());
        std::fs::write(&header, "one").unwrap();
        assert!(still_true(&bytes, folder.path(), "/tmp/t").is_some());
        std::fs::remove_file(&header).unwrap();
        assert!(still_true(&bytes, folder.path(), "/tmp/t").is_none());
        assert!(keep(&Outcome { dependencies: Vec::new(), ..outcome }, folder.path(), "/tmp/s").is_none());
    }
}
