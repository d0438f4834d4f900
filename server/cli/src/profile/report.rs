//! `--report OUT.html`: the profile as a page, written at once or not at all.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use stitch_profiles::kernel::KernelLaunch;
use stitch_profiles::note::{Note, NoteKind};
use stitch_profiles::profile::Profile;
use stitch_profiles::report::page;
use tempfile::NamedTempFile;

use super::Run;
use crate::status::Status;

/// Where a page goes.
#[derive(Debug)]
pub(super) struct Place(PathBuf);

impl Place {
    /// A place that can be written, which is tried: whoever waited for a profile shall not lose it then. Says what is wrong with another one.
    pub(super) fn new(path: &Path) -> Result<Self, Status> {
        let tried = match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => Err(io::Error::other("it is a folder; name a file in it")),
            Ok(found) if !found.is_file() => Err(io::Error::other("it is no ordinary file")),
            _ => beside(path).map(drop),
        };
        match tried {
            Ok(()) => Ok(Self(path.to_owned())),
            Err(error) => {
                complain(path, &error);
                Err(Status::Usage)
            }
        }
    }

    /// Writes the page of a profile and says where it is.
    pub(super) fn write(&self, profile: &Profile, run: Option<&Run<'_>>) -> Result<(), Status> {
        let written = match run {
            Some(run) => page(&with_run(profile, run)),
            None => page(profile),
        };
        let written = match written {
            Ok(written) => written,
            Err(error) => {
                anstream::eprintln!("error: {error}");
                return Err(Status::Bad);
            }
        };
        match put(&self.0, &written) {
            Ok(()) => {
                anstream::eprintln!("The report is in {}", self.0.display());
                Ok(())
            }
            Err(error) => {
                complain(&self.0, &error);
                Err(Status::Usage)
            }
        }
    }
}

fn complain(path: &Path, error: &io::Error) {
    anstream::eprintln!(
        "error: The report can't be written to {}: {error}. Give `--report` a file in a folder that exists and that you may write.",
        path.display()
    );
}

/// A new file in the same folder, which no reader of the old one notices.
fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".stitchcuda-report-");
    // As any new file: what the person's umask leaves. Temporary files are for their owner alone otherwise.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    // What the library says has the hidden file's name in it, which nobody asked for.
    builder.tempfile_in(folder).map_err(|error| io::Error::from(error.kind()))
}

fn put(path: &Path, page: &str) -> io::Result<()> {
    let mut file = beside(path)?;
    file.write_all(page.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Larger sources are not shown line by line.
const MOST_SOURCE: u64 = 4 << 20;

/// Gives lines their text, which the simulator does not know: that of the files which it has just built and run.
fn fill_in(launches: &mut [KernelLaunch]) {
    let mut sources: HashMap<String, Vec<String>> = HashMap::new();
    for line in launches.iter_mut().flat_map(|launch| &mut launch.lines).filter(|line| line.text.is_empty()) {
        let lines = sources.entry(line.file.clone()).or_insert_with(|| source(Path::new(&line.file)));
        if let Some(text) = (line.line as usize).checked_sub(1).and_then(|at| lines.get(at)) {
            line.text.clone_from(text);
        }
    }
}

/// The lines of a source without their indentation; none where it can't be read.
fn source(path: &Path) -> Vec<String> {
    let is_small = std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= MOST_SOURCE);
    let text = if is_small { std::fs::read(path).unwrap_or_default() } else { Vec::new() };
    String::from_utf8_lossy(&text).lines().map(|line| line.trim().to_owned()).collect()
}

/// The profile with what else the simulator has to say.
fn with_run(profile: &Profile, run: &Run<'_>) -> Profile {
    let mut profile = profile.clone();
    fill_in(&mut profile.launches);
    let mut say = |text: String| profile.notes.push(Note::new(NoteKind::Remark, text));
    if let Some(share) = run.sample {
        say(format!(
            "{:.3} % of the blocks were simulated; counters are those of the share, and results are wrong.",
            share * 100.0
        ));
    }
    match (run.exit_status, run.signal) {
        (Some(0), _) => {}
        (Some(status), _) => say(format!("The program ended with exit status {status}.")),
        (_, Some(signal)) => say(format!("The program was ended by signal {signal}.")),
        _ => {}
    }
    let simulated = run.simulated;
    for fault in &simulated.faults {
        say(format!("Fault: {}", fault.words()));
    }
    for defect in &simulated.defects {
        let place = defect.lines.place.as_ref().map(|(file, line)| format!("{file}:{line}: "));
        say(format!("{}{}", place.unwrap_or_default(), defect.words()));
    }
    simulated.notes.iter().cloned().chain(simulated.checked()).for_each(&mut say);
    profile
}
