//! What a profile tells at lines, as the report that `check` prints: so SARIF has one writer.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use stitch_analysis::{Analysis, FunctionKind, Language};
use stitch_findings::{Finding, Span};
use stitch_profiles::place::{self, Target};
use stitch_profiles::profile::Profile;
use stitch_verifier::simulation::{Report as Simulated, Source as About};

use super::files::{Source, Sources};
use super::gather::Gathered;
use super::report::Report;
use crate::settings::Surrounding;
use crate::status::Status;

/// What a profile says of the files under `names`, and of no others. What ran on the simulator says besides what it caught. The command ends with `status`.
pub fn report(
    profile: &Profile,
    simulated: Option<&Simulated>,
    names: &[PathBuf],
    surrounding: &Surrounding,
    status: Status,
) -> Report {
    let sources = Sources::read(names);
    let mentioned = Mentioned::of(profile);
    let mut gathered = Gathered::default();
    for source in sources.files.iter().filter(|source| mentioned.has(source)) {
        let mut findings = findings(profile, source);
        if let Some(simulated) = simulated.filter(|_| source.language == Language::Cuda) {
            findings.extend(simulated.findings(&About::new(&source.canonical, &source.text)));
        }
        gathered.tell(source, findings);
    }
    let mut report = Report::new(gathered.report(surrounding), Vec::new());
    report.notes = notes(profile);
    report.warnings = surrounding.warnings();
    report.exit_status = status.number();
    report
}

/// How the profile was made, and what a reader has to know.
fn notes(profile: &Profile) -> Vec<String> {
    let device = profile.device.as_ref().map(|device| format!(" on {device}")).unwrap_or_default();
    let made = format!("{}{device}, by {}", profile.target, profile.way.by);
    let not_taken = profile.way.not_taken.iter().map(|not| format!("not by {}: {}", not.by, not.why));
    let notes = profile.notes.iter().map(|note| note.text.clone());
    std::iter::once(made).chain(not_taken).chain(notes).collect()
}

fn findings(profile: &Profile, source: &Source) -> Vec<Finding> {
    let analysis = Analysis::of(source.language, &source.text);
    let functions = &analysis.outline().functions;
    let kernels = functions.iter().filter(|function| function.kind == FunctionKind::Kernel);
    let kernels: Vec<(String, Span)> =
        kernels.map(|kernel| (kernel.name.to_string(), kernel.name_span)).collect();
    let program = functions.iter().find(|function| &*function.name == "main").map(|main| main.name_span);
    let target = Target { path: &source.canonical, text: &source.text, kernels: &kernels, program };
    // The program as a whole is told where the profile is about it, and not at any other `main`.
    let target = if place::speaks_of(profile, &target) { target } else { Target { program: None, ..target } };
    place::findings(profile, &target)
}

/// Names by which a file may be meant.
struct Mentioned {
    files: HashSet<String>,
    kernels: HashSet<String>,
}

impl Mentioned {
    fn of(profile: &Profile) -> Self {
        let lines = profile.launches.iter().flat_map(|launch| &launch.lines).map(|line| line.file.clone());
        let python = profile.python.iter().flat_map(|python| &python.lines).map(|line| line.file.clone());
        let defects = profile.defects.iter().filter_map(|defect| Some(defect.place()?.file.clone()));
        let target = profile.target.split("::").next().unwrap_or_default().to_owned();
        let all = lines.chain(python).chain(defects).chain([target]);
        let name = |file: String| Some(Path::new(&file).file_name()?.to_string_lossy().into_owned());
        let recorded = profile.system.iter().flat_map(|system| &system.kernels).flatten();
        let recorded = recorded.map(|kernel| stitch_profiles::kernel::kernel_name(&kernel.name).base);
        let kernels = profile.launches.iter().map(|launch| launch.kernel.base.clone()).chain(recorded);
        Self {
            files: all.filter_map(name).collect(),
            kernels: kernels.filter(|name| !name.is_empty()).collect(),
        }
    }

    /// Whether a file may be meant: looking closer takes time, and a folder may have thousands.
    fn has(&self, source: &Source) -> bool {
        let name = source.canonical.file_name().unwrap_or_default().to_string_lossy();
        let defines = || {
            let text = &source.text;
            text.contains("__global__") && self.kernels.iter().any(|kernel| text.contains(kernel.as_str()))
        };
        self.files.contains(&*name) || (source.language == Language::Cuda && defines())
    }
}
