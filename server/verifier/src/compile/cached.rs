//! Runs a planned compile, or gives what the same compile said before.
//!
//! A result stands while nvcc, the flags, the source and every file that was read are what they were. The compiler lists the files
//! itself (`-MD`); what it looked for and did not find, [`lookups`] works out. Those of the system are compared by size and time of change, the others by content, so that a
//! `git checkout` there and back costs nothing.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stitch_session::cache::Key;
use stitch_toolchain::process::{Finished, Program, Scratch};
use tokio_util::sync::CancellationToken;

use super::lookups::Lookups;
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
    /// Which of the paths that were looked at exist: [`Lookups::print`].
    lookups: u64,
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
    let own_name = crate::paths::printable(&plan.unit);
    let renamed = with_plain_name(plan, scratch)?;
    let plan = renamed.as_ref().unwrap_or(plan);
    let arguments = command::arguments(plan, scratch.path());
    let place = scratch.path().display().to_string();
    let program = program(request, plan, scratch, &arguments);
    let line = program.command_line();
    let key = match &request.cache {
        Some(_) => {
            // What it said names the source.
            let embedded =
                if renamed.is_some() { format!("{embedded}{own_name}") } else { embedded.to_owned() };
            let (plan, place) = (plan.clone(), place.clone());
            let arguments = arguments.clone();
            blocking(move || key(&plan, &arguments, &place, &embedded)).await?
        }
        None => None,
    };
    if let Some((cache, key)) = request.cache.clone().zip(key) {
        let (plan, place) = (plan.clone(), place.clone());
        let kept =
            blocking(move || cache.get(&key).and_then(|bytes| still_true(&bytes, &plan, &place))).await?;
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
        success: finished.status.success() && made_code(&finished, plan, scratch)?,
        text: said(&finished),
        dependencies: listed(&scratch.path().join(command::DEPENDENCIES)),
        command: line,
        from_cache: false,
    };
    if !outcome.success && names_assembly(&outcome.text) {
        outcome.text = place_assembly(request, plan, scratch, cancel).await?.unwrap_or(outcome.text);
    }
    if renamed.is_some() {
        outcome.text = outcome.text.replace(&*plan.unit.to_string_lossy(), &own_name);
    }
    if let Some((cache, key)) = request.cache.clone().zip(key) {
        let (outcome, plan) = (outcome.clone(), plan.clone());
        blocking(move || keep(&outcome, &plan, &place).map(|value| cache.put(&key, &value))).await?;
    }
    Ok(outcome)
}

/// A plan that reaches a source by another name, where its own is no text of one line and can't be said to nvcc, or by it. `None`
/// where it can.
fn with_plain_name(plan: &Plan, scratch: &Scratch) -> Result<Option<Plan>, Trouble> {
    if plan.unit.to_str().is_some_and(|name| !name.contains(char::is_control)) {
        return Ok(None);
    }
    let refuse = |reason: String| Trouble::Unreadable { path: plan.unit.clone(), reason };
    let folder = plan.unit.parent().and_then(Path::to_str);
    let folder = folder.ok_or_else(|| refuse("the name of its folder is not UTF-8; rename it".to_owned()))?;
    let ending = plan.unit.extension().and_then(|ending| ending.to_str()).unwrap_or("cu");
    let link = scratch.path().join(format!("source.{ending}"));
    #[cfg(unix)]
    std::os::unix::fs::symlink(&plan.unit, &link)
        .map_err(|error| refuse(format!("its name is not UTF-8, and it can't be linked to: {error}")))?;
    let mut arguments = plan.arguments.clone();
    arguments.extend(["-I".to_owned(), folder.to_owned()]);
    Ok(Some(Plan { unit: link, arguments, ..plan.clone() }))
}

/// Whether there is code. Whoever ends well without any is no nvcc, or was told to do something else.
fn made_code(finished: &Finished, plan: &Plan, scratch: &Scratch) -> Result<bool, Trouble> {
    let size = scratch.path().join(command::OUTPUT).metadata().map_or(0, |metadata| metadata.len());
    if size > 0 {
        return Ok(true);
    }
    let printed = said(finished);
    let first = printed.lines().map(str::trim).find(|line| !line.is_empty());
    let printed =
        first.map_or("nothing".to_owned(), |line| format!("`{}`", line.chars().take(80).collect::<String>()));
    Err(Trouble::Failed {
        reason: format!(
            "{} ended well but wrote no code; it printed {printed}. Check that it is nvcc, and that no flag asks for something else",
            plan.nvcc.display()
        ),
    })
}

fn program(request: &CompileRequest, plan: &Plan, scratch: &Scratch, arguments: &[String]) -> Program {
    // Only a database says where to run. Anywhere else, what a compiler leaves behind would lie among the user's sources.
    let directory = if plan.from_database { plan.directory.as_path() } else { scratch.path() };
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
pub(crate) fn fingerprint(path: &Path) -> Option<u64> {
    if is_system(path) {
        let metadata = path.metadata().ok()?;
        let changed = metadata.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        let print = format!("{}/{}", metadata.len(), changed.as_nanos());
        return Some(xxhash_rust::xxh3::xxh3_64(print.as_bytes()));
    }
    Some(xxhash_rust::xxh3::xxh3_64(&std::fs::read(path).ok()?))
}

/// Whether a file belongs to the system or to a toolkit, whose files change all at once.
fn is_system(path: &Path) -> bool {
    let system = ["/usr/", "/opt/"].iter().any(|folder| path.starts_with(folder));
    let in_toolkit =
        || path.components().any(|part| matches!(part.as_os_str().to_str(), Some("cccl" | "crt" | "nvidia")));
    system || in_toolkit()
}

fn key(plan: &Plan, arguments: &[String], place: &str, embedded: &str) -> Option<Key> {
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
pub(crate) fn fingerprint_of_program(program: &Path) -> Option<String> {
    let metadata = program.metadata().ok()?;
    let changed = metadata.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(format!("{}/{}/{}", program.display(), metadata.len(), changed.as_nanos()))
}

/// The kept result, if every file it was made from is what it was, and none has appeared that would be found before one of them.
fn still_true(bytes: &[u8], plan: &Plan, place: &str) -> Option<Kept> {
    let mut kept: Kept = serde_json::from_slice(bytes).ok()?;
    let same = |(name, print): &(String, u64)| fingerprint(&plan.directory.join(name)) == Some(*print);
    if !kept.files.iter().all(same) || kept.lookups != lookups(plan, kept.files.iter().map(|(name, _)| name))
    {
        return None;
    }
    kept.text = kept.text.replace(PLACE, place);
    Some(kept)
}

/// What to keep. `None` where the compiler did not list what it read, as when a header was not found: the result may change
/// without any listed file changing.
fn keep(outcome: &Outcome, plan: &Plan, place: &str) -> Option<Vec<u8>> {
    let outside = |name: &&String| !Path::new(name.as_str()).starts_with(place);
    let files: Option<Vec<(String, u64)>> = outcome
        .dependencies
        .iter()
        .filter(outside)
        .map(|name| Some((name.clone(), fingerprint(&plan.directory.join(name))?)))
        .collect();
    let files = files.filter(|_| !outcome.dependencies.is_empty())?;
    let lookups = lookups(plan, files.iter().map(|(name, _)| name));
    let text = outcome.text.replace(place, PLACE);
    serde_json::to_vec(&Kept { success: outcome.success, text, files, lookups }).ok()
}

/// One number for which of the files exist that a compile looks for, which reads these.
pub(crate) fn lookups<'a>(plan: &Plan, files: impl Iterator<Item = &'a String>) -> u64 {
    let mut lookups = Lookups::new(plan.include_folders());
    if let Ok(text) = std::fs::read(&plan.unit) {
        lookups.of_source(&plan.unit, &text);
    }
    for name in files {
        let path = plan.directory.join(name);
        if is_system(&path) {
            lookups.of_system(&path);
        } else if path != plan.unit
            && let Ok(text) = std::fs::read(&path)
        {
            lookups.of_source(&path, &text);
        }
    }
    lookups.print()
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
        let plan = Plan::in_folder(folder.path());
        let bytes = keep(&outcome, &plan, "/tmp/s").unwrap();
        let stands = || still_true(&bytes, &plan, "/tmp/t");
        assert_eq!(stands().unwrap().text, "/tmp/t/unit.cu(3): error: x");
        std::fs::write(&header, "two").unwrap();
        assert!(stands().is_none());
        std::fs::write(&header, "one").unwrap();
        assert!(stands().is_some());
        std::fs::remove_file(&header).unwrap();
        assert!(stands().is_none());
        assert!(keep(&Outcome { dependencies: Vec::new(), ..outcome }, &plan, "/tmp/s").is_none());
    }
}
