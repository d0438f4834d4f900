//! The last profile of a document as one version of its text sees it: what it says of a kernel, a line, a module, and whether that still holds.

use std::path::Path;
use std::sync::Arc;

use stitch_findings::{Code, Edit, Span};
use stitch_profiles::kernel::KernelLaunch;
use stitch_profiles::profile::Profile as Recorded;
use stitch_profiles::text::{self, Occupancy};
use stitch_verifier::occupancy::{Limits, Usage, limits, step, theoretical_occupancy};

use super::{Profile, Profiles};
use crate::uri::Key;
use crate::view::edit_between;

/// A profile, and what leads from its text to the one that is shown.
#[derive(Clone, Debug)]
pub struct Shown {
    profile: Arc<Profile>,
    edit: Option<Edit>,
    /// How a profiler may call the document's file.
    file: String,
}

/// Something that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// What, as Markdown.
    pub text: String,
    /// Whether its function has changed since.
    pub is_stale: bool,
}

impl Said {
    /// The text, which says so where it is of code that has changed since.
    pub fn markdown(&self) -> String {
        match self.is_stale {
            true => format!("**Measured before your last edit of this code.**\n\n{}", self.text),
            false => self.text.clone(),
        }
    }
}

impl Profiles {
    /// The last profile of a document in `path`, for its text as it is `now`, which is asked for only where there is one.
    pub fn shown(&self, key: &Key, path: Option<&Path>, now: impl FnOnce() -> Arc<str>) -> Option<Shown> {
        let profile = self.last(key)?;
        let file = path?.file_name()?.to_string_lossy().into_owned();
        let edit = edit_between(&profile.text, &now());
        Some(Shown { profile, edit, file })
    }
}

impl Shown {
    /// What was recorded.
    pub fn recorded(&self) -> &Recorded {
        &self.profile.recorded
    }

    /// What was measured of the kernel of this name, without namespaces. `span` is its name in the shown text; `None` for one of another file,
    /// whose edits are not known here.
    pub fn kernel(&self, name: &str, span: Option<Span>) -> Option<Said> {
        let recorded = self.recorded();
        let ours: Vec<&KernelLaunch> =
            recorded.launches.iter().filter(|launch| launch.kernel.base == name).collect();
        let mut parts = Vec::new();
        parts.extend(text::launches(&ours, occupancy));
        parts.extend(recorded.system.as_ref().and_then(|system| text::recorded(system, name)));
        (!parts.is_empty()).then(|| Said {
            text: parts.join("\n"),
            is_stale: span.is_some_and(|span| self.has_changed(span)),
        })
    }

    /// What was measured of a line of the shown text, by its text's span, without what findings of the codes `told` say of it. `None` for nothing,
    /// and for a line that was edited itself.
    pub fn line(&self, span: Span, told: &[Code]) -> Option<Said> {
        let number = self.line_then(span)?;
        let recorded = self.recorded();
        let is_file = |name: &str| self.is_file(name);
        let python = recorded.python.iter().flat_map(|python| &python.lines);
        let of_python = python.filter(|line| line.line == number && is_file(&line.file));
        let mut parts: Vec<String> = of_python.map(|line| text::python_line(line, recorded)).collect();
        parts.extend(text::line(&recorded.launches, &is_file, number, told));
        (!parts.is_empty()).then(|| Said { text: parts.join("\n"), is_stale: self.has_changed(span) })
    }

    /// What was measured of the modules of a class, or of those in an attribute of this name.
    pub fn modules(&self, name: &str, span: Span) -> Option<Said> {
        let modules = self.recorded().python.iter().flat_map(|python| &python.modules);
        let ours: String = modules.filter(|module| is_called(&module.path, name)).map(text::module).collect();
        (!ours.is_empty()).then(|| Said { text: ours, is_stale: self.has_changed(span) })
    }

    fn is_file(&self, name: &str) -> bool {
        Path::new(name).file_name().is_some_and(|name| *name == *self.file)
    }

    /// Whether the function around a span of the shown text has changed since.
    fn has_changed(&self, span: Span) -> bool {
        let Some(edit) = self.edit else { return false };
        let functions = self.profile.functions.iter().map(|function| (*function, edit.stretch(*function)));
        let around = functions.filter(|(_, now)| now.touches(span.start)).min_by_key(|(_, now)| now.len());
        let then = around.map_or(span, |(then, _)| then);
        edit.start < then.end && then.start < edit.old_end
    }

    /// The number that a line of the shown text had, from one; its text's span is `span`. `None` for one that was edited.
    fn line_then(&self, span: Span) -> Option<u32> {
        let start = match self.edit {
            None => span.start,
            Some(edit) if span.end <= edit.start => span.start,
            Some(edit) if span.start >= edit.new_end => span.start - edit.new_end + edit.old_end,
            Some(_) => return None,
        };
        let before = self.profile.text.get(..start)?;
        u32::try_from(before.matches('\n').count() + 1).ok()
    }
}

/// Whether the last module of a path is of this class, or stands in an attribute of this name: `Net_0/Linear_3` and `. Net/layers.fc Linear`.
fn is_called(path: &str, name: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or(path);
    if let Some((attribute, class)) = last.rsplit_once(' ') {
        return class == name || attribute.rsplit('.').next() == Some(name);
    }
    last.rsplit_once('_').is_some_and(|(class, number)| class == name && number.parse::<u32>().is_ok())
}

/// What the table of devices says of a launch: what fits, what limits it, and what more would take.
fn occupancy(launch: &KernelLaunch) -> Occupancy {
    let Some((limits, usage)) = usage(launch) else { return Occupancy::default() };
    let found = theoretical_occupancy(limits, &usage);
    Occupancy {
        theoretical: Some(found.ratio()),
        limited_by: Some(found.reason().trim_start_matches("limited by ").to_owned()),
        step: step(limits, &usage).map(|step| step.label()),
    }
}

/// What a launch asked of its multiprocessor, as far as that was recorded; barriers, which rarely limit, are taken for one.
fn usage(launch: &KernelLaunch) -> Option<(&'static Limits, Usage)> {
    use stitch_profiles::kernel::Metric;
    let limits = limits(launch.shape.compute_capability.as_deref()?.replace('.', "").parse().ok()?)?;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts of a launch are small"
    )]
    let count = |metric: Metric| launch.get(metric).map(|value| value.max(0.0).round() as u64);
    let block = launch.shape.block.map(|block| block.iter().map(|one| u64::from(*one)).product());
    let shared = count(Metric::SharedMemoryStatic)?.saturating_add(count(Metric::SharedMemoryDynamic)?);
    Some((
        limits,
        Usage {
            registers: u32::try_from(count(Metric::Registers)?).ok()?,
            shared,
            barriers: 1,
            block: u32::try_from(block.or_else(|| count(Metric::BlockSize))?).ok()?,
        },
    ))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use stitch_analysis::{Analysis, Language};
    use stitch_profiles::kernel::{Counters, Metric, SourceLine, kernel_name};
    use stitch_profiles::profile::Way;
    use stitch_profiles::python::{LineSum, ModuleSum, PythonTime};

    use super::*;

    const TEXT: &str = "__global__ void a(float *x) {\n  x[threadIdx.x * 32] = 1;\n}\nvoid b() {\n  y;\n}\n";

    fn shown(now: &str) -> Shown {
        let mut launch = KernelLaunch { kernel: kernel_name("a(float *)"), ..KernelLaunch::default() };
        launch.shape.compute_capability = Some("9.0".into());
        launch.shape.block = Some([256, 1, 1]);
        let metrics = [
            (Metric::Registers, 64.0),
            (Metric::SharedMemoryStatic, 0.0),
            (Metric::SharedMemoryDynamic, 0.0),
        ];
        launch.metrics.extend(metrics);
        let counters = Counters { sectors: Some(32), sectors_ideal: Some(4), ..Counters::default() };
        launch.lines =
            vec![SourceLine { file: "/elsewhere/k.cu".into(), line: 2, counters, ..SourceLine::default() }];
        let mut recorded = Recorded::new("k.cu", Way::default());
        recorded.launches = vec![launch];
        recorded.python = Some(PythonTime {
            lines: vec![LineSum {
                file: "/w/k.cu".into(),
                line: 5,
                launches: 3,
                kernel_ns: 7_000,
                ..LineSum::default()
            }],
            modules: vec![ModuleSum { path: ". Net/layers.fc Linear".into(), ..ModuleSum::default() }],
            ..PythonTime::default()
        });
        let profile = Profile {
            text: TEXT.into(),
            functions: Analysis::of(Language::Cuda, TEXT).function_spans(),
            lines: Vec::new(),
            device: "cuda:0".into(),
            recorded,
            defects: Vec::new(),
            took: Duration::ZERO,
        };
        let (profiles, key) = (Profiles::default(), Key::of("file:///w/k.cu"));
        profiles.keep(&key, Arc::new(profile));
        profiles.shown(&key, Some(Path::new("/w/k.cu")), || now.into()).unwrap()
    }

    fn line(now: &str, word: &str) -> Option<Said> {
        let at = now.find(word).unwrap();
        shown(now).line(Span::new(at, at + word.len()), &[])
    }

    #[test]
    fn a_line_is_found_where_it_is_now_and_says_when_its_function_changed() {
        let here = line(TEXT, "x[threadIdx.x * 32] = 1;").unwrap();
        assert!(here.text.contains("8.00 times") && !here.is_stale, "{here:?}");
        let below = line(&format!("// new\n{TEXT}"), "x[threadIdx.x * 32] = 1;").unwrap();
        assert_eq!(below, here);
        let beside = line(&TEXT.replace("  x[", "  int i;\n  x["), "x[threadIdx.x * 32] = 1;").unwrap();
        assert!(beside.is_stale && beside.markdown().contains("before your last edit"), "{beside:?}");
        assert_eq!(line(&TEXT.replace("* 32", "* 16"), "x[threadIdx.x * 16] = 1;"), None);
        let python = line(&TEXT.replace("x * 32", "x"), "y;").unwrap();
        assert!(python.text.contains("3 kernels") && !python.is_stale, "{python:?}");
    }

    #[test]
    fn a_kernel_has_its_occupancy_with_what_one_step_up_takes() {
        let name = Span::new(16, 17);
        let said = shown(TEXT).kernel("a", Some(name)).unwrap();
        assert!(
            said.text.contains("| one step up | at most 48 registers a thread (now 64): 5 blocks, 62% |"),
            "{}",
            said.text
        );
        assert!(said.text.contains("| limited by | registers |"), "{}", said.text);
        assert!(said.text.contains("| achieved occupancy | not measured |"), "{}", said.text);
        assert!(shown(&TEXT.replace("* 32", "")).kernel("a", Some(name)).unwrap().is_stale);
        assert_eq!(shown(TEXT).kernel("b", None), None);
    }

    #[test]
    fn modules_are_known_by_their_class_and_their_attribute() {
        let modules = |name: &str| shown(TEXT).modules(name, Span::new(0, 1));
        assert!(modules("Linear").is_some() && modules("fc").is_some());
        assert_eq!(modules("Net"), None, "it is around, and not the last");
        assert!(is_called("Net_0/Linear_12", "Linear") && !is_called("Net_0/Linear_12", "Net"));
    }
}
