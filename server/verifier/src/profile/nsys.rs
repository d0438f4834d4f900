//! Nsight Systems: has it look at a program, and makes an SQLite file of what it saw.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use stitch_toolchain::process::{Program as Process, ProgramError};
use tokio_util::sync::CancellationToken;

use super::{Refused, cut};
use crate::program::Observer;

/// Calls of CUDA and named ranges. Samples of the processor's stack need rights that few have, and say nothing of the GPU.
const TRACED: [&str; 4] = ["-t", "cuda,nvtx", "--sample=none", "--cpuctxsw=none"];
/// How long a report may take to be turned into another file.
const EXPORT_LIMIT: Duration = Duration::from_secs(600);

/// What `nsys` says of a report that it can't make sense of.
pub(super) const UNREADABLE: &str = "Cannot read from stream";

/// `nsys` in front of a program. It writes its report to `report`, to which it adds an ending.
pub(super) fn observer(nsys: &Path, report: &Path) -> Observer {
    let mut arguments: Vec<OsString> = vec!["profile".into()];
    arguments.extend(TRACED.map(OsString::from));
    arguments.extend(["--force-overwrite=true", "-o"].map(OsString::from));
    arguments.push(report.into());
    Observer { path: nsys.to_owned(), arguments }
}

/// The SQLite file of what `nsys` wrote to `report`, made beside it. A report that was left half-made is finished first.
///
/// # Errors
/// Why there is none, in a sentence.
pub(super) async fn finish(
    nsys: &Path,
    report: &Path,
    cancel: &CancellationToken,
) -> Result<PathBuf, Refused> {
    let made = report.with_extension("nsys-rep");
    let raw = report.with_extension("qdstrm");
    if !made.exists() && raw.exists() {
        import(nsys, &raw, &made, cancel).await?;
    }
    if !made.exists() {
        return Err(Refused::once("nsys left no report."));
    }
    export(nsys, &made, &report.with_extension("sqlite"), cancel).await
}

/// Turns a report (`.nsys-rep`) into an SQLite file.
///
/// # Errors
/// Why it can't be, in a sentence.
pub async fn export(
    nsys: &Path,
    report: &Path,
    into: &Path,
    cancel: &CancellationToken,
) -> Result<PathBuf, Refused> {
    let process = Process::new(nsys)
        .args(["export", "--type", "sqlite", "--force-overwrite=true", "-o"])
        .arg(into)
        .arg(report)
        .large_files()
        .time_limit(EXPORT_LIMIT);
    let said = said(process, cancel).await?;
    if into.exists() { Ok(into.to_owned()) } else { Err(Refused::once(broken("export its report", &said))) }
}

/// Does what `nsys` could not: it looks for its importer beside itself, and some packages keep that elsewhere.
async fn import(nsys: &Path, raw: &Path, into: &Path, cancel: &CancellationToken) -> Result<(), Refused> {
    let Some(importer) = importer(nsys) else {
        return Err(Refused::once(
            "nsys recorded the program and could not make a report of it, since it has no importer. Install all of NVIDIA Nsight Systems.",
        ));
    };
    let process =
        Process::new(importer).arg("-i").arg(raw).arg("-o").arg(into).large_files().time_limit(EXPORT_LIMIT);
    let said = said(process, cancel).await?;
    if into.exists() {
        Ok(())
    } else {
        Err(Refused::once(broken("make a report of what it recorded", &said)))
    }
}

/// Where the importer lies: in the folder for hosts beside that for targets, by what was linked or by where the link leads.
fn importer(nsys: &Path) -> Option<PathBuf> {
    let real = nsys.canonicalize().ok();
    let folders = [Some(nsys.to_owned()), real];
    let near = folders.iter().flatten().flat_map(|path| path.ancestors().skip(1).take(3));
    near.flat_map(|folder| {
        let inside = std::fs::read_dir(folder).into_iter().flatten().flatten();
        inside.map(|entry| entry.path().join("QdstrmImporter")).collect::<Vec<_>>()
    })
    .chain(folders.iter().flatten().filter_map(|path| Some(path.parent()?.parent()?.join("QdstrmImporter"))))
    .find(|path| path.is_file())
}

async fn said(process: Process, cancel: &CancellationToken) -> Result<String, Refused> {
    match process.run(cancel).await {
        Ok(finished) => Ok(format!("{}\n{}", finished.stderr_text(), finished.stdout_text())),
        Err(ProgramError::Cancelled { .. }) => Err(Refused::Cancelled),
        Err(error) => Err(Refused::once(error.to_string())),
    }
}

fn broken(what: &str, said: &str) -> String {
    match missing_library(said) {
        Some(library) => format!(
            "nsys could not {what}, since {library} is missing on this machine. Install the package that has it (on Debian and Ubuntu `apt-file search {library}` names it)."
        ),
        None => format!("nsys could not {what}: {}", cut(said)),
    }
}

/// The library that a program says it can't be started without.
fn missing_library(said: &str) -> Option<&str> {
    let (before, _) = said.split_once(": cannot open shared object file")?;
    before.rsplit([' ', '\n']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_named() {
        let said = "/opt/nsys/QdstrmImporter: error while loading shared libraries: libdw.so.1: cannot open shared object file: No such file or directory\n";
        let text = broken("export its report", said);
        assert!(text.contains("libdw.so.1 is missing"), "{text}");
        assert!(broken("export its report", "Something else.").ends_with("Something else."));
    }

    #[test]
    fn the_importer_is_found_where_a_package_keeps_it_apart() {
        let scratch = tempfile::tempdir().unwrap();
        let [target, host] =
            ["lib/target-linux-x64", "share/nsys/host-linux-x64"].map(|folder| scratch.path().join(folder));
        for folder in [&target, &host] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(target.join("nsys"), "").unwrap();
        std::fs::write(host.join("QdstrmImporter"), "").unwrap();
        assert_eq!(importer(&target.join("nsys")), None);
        let link = scratch.path().join("share/nsys/target-linux-x64");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert_eq!(importer(&link.join("nsys")), Some(host.join("QdstrmImporter")));
    }
}
