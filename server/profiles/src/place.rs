//! Puts what is known of a profile onto the lines of one text.
//!
//! A profiler names files as its compiler did, on another machine perhaps. A file is the same if its path is, or else its name; a line is
//! taken only if its text, where the profiler kept that, is still what stands there.

use std::path::Path;

use stitch_findings::{Finding, Measurement, Place, Producer, Provenance, Quantity, Related, Severity, Span};

use crate::kernel::{self, KernelLaunch, LinePlace, line_table};
use crate::profile::Profile;
use crate::python::LineSum;
use crate::{system, text, units};

/// A text, and where its kernels are.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Its file.
    pub path: &'a Path,
    /// Its content.
    pub text: &'a str,
    /// Its kernels: names without namespaces, and where these stand.
    pub kernels: &'a [(String, Span)],
    /// Where to tell what is about the program as a whole, if anywhere.
    pub program: Option<Span>,
}

impl Target<'_> {
    /// Whether a profiler's name is this file's.
    fn is(&self, name: &str) -> bool {
        let name = Path::new(name);
        name == self.path || (name.file_name().is_some() && name.file_name() == self.path.file_name())
    }

    /// A line, counted from one, without its indentation. `None` where it has none, or stands for something else now.
    fn line(&self, number: u32, then: Option<&str>) -> Option<Span> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        let line = self.text.split('\n').nth(index)?;
        let text = line.trim();
        if text.is_empty() || then.is_some_and(|then| !then.trim().is_empty() && then.trim() != text) {
            return None;
        }
        let start = self.text.split_inclusive('\n').take(index).map(str::len).sum::<usize>();
        let start = start + (line.len() - line.trim_start().len());
        Some(Span::new(start, start + text.len()))
    }

    fn kernel(&self, base: &str) -> Option<Span> {
        self.kernels.iter().find(|(name, _)| name == base).map(|(_, span)| *span)
    }
}

/// Whether a profile is about this text: it names one of its kernels, or a line of its file. One that was recorded elsewhere may be about others.
pub fn speaks_of(profile: &Profile, target: &Target<'_>) -> bool {
    let launched = profile.launches.iter().any(|launch| {
        target.kernel(&launch.kernel.base).is_some() || launch.lines.iter().any(|line| target.is(&line.file))
    });
    let recorded = profile.system.iter().flat_map(|system| &system.kernels).flatten();
    let mut recorded = recorded.map(|kernel| kernel::kernel_name(&kernel.name));
    let mut python = profile.python.iter().flat_map(|python| &python.lines);
    launched
        || recorded.any(|name| target.kernel(&name.base).is_some())
        || python.any(|line| target.is(&line.file))
        || profile.defects.iter().any(|defect| defect.place().is_some_and(|place| target.is(&place.file)))
}

/// The findings about one text: of each kernel's launches, of the program, of its lines of Python, and of defects. One place is told one thing once.
pub fn findings(profile: &Profile, target: &Target<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let mut add = |finding: Finding| {
        if !findings.iter().any(|known| known.code == finding.code && known.span == finding.span) {
            findings.push(finding);
        }
    };
    for launch in &profile.launches {
        let then = |place: &LinePlace| {
            launch
                .lines
                .iter()
                .find(|line| line.file == place.file && line.line == place.line)
                .map(|line| &*line.text)
        };
        for insight in kernel::explain(launch).insights {
            let line = |place: &LinePlace| {
                target.is(&place.file).then(|| target.line(place.line, then(place))).flatten()
            };
            let span = match &insight.place {
                Some(place) => line(place),
                None => target.kernel(&insight.kernel),
            };
            let Some(span) = span else { continue };
            let mut finding = insight.finding(span);
            finding.related = insight
                .related
                .iter()
                .filter_map(|related| {
                    Some(Related { place: Place::Here(line(&related.place)?), message: related.what.clone() })
                })
                .collect();
            add(finding);
        }
    }
    if let Some(system) = &profile.system {
        for insight in system::explain(system, profile.python.as_ref()) {
            of_program(&insight, target).into_iter().for_each(&mut add);
        }
    }
    for defect in &profile.defects {
        let place = defect.place().filter(|place| target.is(&place.file));
        if let Some(span) = place.and_then(|place| target.line(place.line, None)) {
            add(defect.finding(span));
        }
    }
    findings
}

/// What is told of the program: at each of the lines of this text that cause it, the first as it is and the others as hints; else at the kernel,
/// or where the program is told.
fn of_program(insight: &system::Insight, target: &Target<'_>) -> Vec<Finding> {
    if insight.lines.is_empty() {
        let span = match &insight.kernel {
            Some(name) => target.kernel(&kernel::kernel_name(name).base),
            None => target.program,
        };
        return span.map(|span| insight.finding(span)).into_iter().collect();
    }
    let place = |line: &system::SourceLine| -> Option<Place> {
        if target.is(&line.file) {
            return target.line(line.line, None).map(Place::Here);
        }
        let path = Path::new(&line.file);
        let line = line.line.checked_sub(1).filter(|_| path.is_absolute())?;
        Some(Place::File { path: path.to_owned(), line, column: 0 })
    };
    let found = insight.lines.iter().enumerate().filter_map(|(at, line)| {
        let Some(Place::Here(span)) = place(line) else { return None };
        let mut finding = insight.finding(span);
        finding.message = format!("{} This line {}.", finding.message, line.what);
        if at > 0 {
            finding.severity = Severity::Hint;
        }
        let others = insight.lines.iter().enumerate().filter(|(other, _)| *other != at);
        let related = others.filter_map(|(_, other)| {
            Some(Related { place: place(other)?, message: format!("This line {}.", other.what) })
        });
        finding.related = related.collect();
        Some(finding)
    });
    found.collect()
}

/// Numbers about single lines of one text: the time of the GPU by line of Python, and of a kernel's lines their part of its samples, or where nobody
/// sampled, as on the simulator, how many times what they need their accesses ask for.
pub fn measurements(profile: &Profile, target: &Target<'_>) -> Vec<Measurement> {
    let device = profile.device.clone().unwrap_or_default();
    let provenance = |producer, tool: &str| Provenance {
        producer,
        tool: tool.to_owned(),
        device: device.clone(),
        runs: 1,
    };
    let mut measurements = Vec::new();
    for line in profile.python.iter().flat_map(|python| &python.lines).filter(|line| target.is(&line.file)) {
        let Some(span) = target.line(line.line, None) else { continue };
        measurements.push(Measurement {
            quantity: Quantity::GpuTime,
            value: line.kernel_ns as f64 / 1e9,
            subject: line.function.clone(),
            span,
            note: Some(words(line, profile)),
            provenance: provenance(Producer::Nsys, &profile.way.by),
        });
    }
    for launch in &profile.launches {
        let from = provenance(Producer::Ncu, &launch.origin.tool);
        measurements.extend(of_launch(launch, target, &from));
    }
    measurements
}

fn of_launch(launch: &KernelLaunch, target: &Target<'_>, from: &Provenance) -> Vec<Measurement> {
    let is_sampled = launch.lines.iter().any(|line| line.share.is_some());
    let rows = line_table(launch);
    let mut measurements = Vec::new();
    for line in launch.lines.iter().filter(|line| target.is(&line.file)) {
        let Some(span) = target.line(line.line, Some(&line.text)) else { continue };
        let row = rows.iter().find(|row| row.place.line == line.line && row.place.file == line.file);
        let excess = || row?.excess_ratio().map(|excess| (Quantity::AccessExcess, excess));
        let sampled = line.share.map(|share| (Quantity::SampleShare, share));
        let Some((quantity, value)) = (if is_sampled { sampled } else { excess() }) else { continue };
        let remarks = row.map(|row| row.remarks.join(" · ")).filter(|remarks| !remarks.is_empty());
        measurements.push(Measurement {
            quantity,
            value,
            subject: launch.kernel.base.clone(),
            span,
            note: remarks,
            provenance: from.clone(),
        });
    }
    measurements
}

/// What is said beside a line's time: `41% · 3 kernels · memory-bound`, the class where a profiler measured those kernels.
fn words(line: &LineSum, profile: &Profile) -> String {
    let launches = units::counted(line.launches, "kernel", "kernels");
    let class = text::class(line, profile).map(|class| format!(" · {class}")).unwrap_or_default();
    format!("{} · {launches}{class}", units::percent(line.share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{KernelLaunch, SourceLine};
    use crate::profile::Way;
    use crate::sanitizer;

    const TEXT: &str = "__global__ void k(float *x) {\n  x[threadIdx.x * 32] = 1;\n}\nint main() {}\n";

    fn target<'a>(path: &'a Path, kernels: &'a [(String, Span)]) -> Target<'a> {
        Target { path, text: TEXT, kernels, program: None }
    }

    fn profile_with(text: &str, file: &str) -> Profile {
        let counters =
            kernel::Counters { sectors: Some(3200), sectors_ideal: Some(400), ..kernel::Counters::default() };
        let line = SourceLine {
            file: file.to_owned(),
            line: 2,
            text: text.to_owned(),
            counters,
            accesses: vec![kernel::Access::GlobalStore],
            share: Some(0.5),
        };
        let mut profile = Profile::new("k.cu", Way::default());
        let launch = KernelLaunch {
            kernel: kernel::kernel_name("k(float *)"),
            lines: vec![line],
            ..KernelLaunch::default()
        };
        profile.launches = vec![launch.clone(), launch];
        profile
    }

    #[test]
    fn a_line_is_told_once_and_only_where_it_is_still_the_same() {
        let (path, kernels) = (Path::new("/w/k.cu"), [("k".to_owned(), Span::new(16, 17))]);
        let here = target(path, &kernels);
        let found = findings(&profile_with("x[threadIdx.x * 32] = 1;", "/elsewhere/k.cu"), &here);
        let of_line: Vec<_> =
            found.iter().map(|finding| (&TEXT[finding.span.range()], finding.code.as_str())).collect();
        assert_eq!(of_line, [("x[threadIdx.x * 32] = 1;", "ncu/uncoalesced-access")]);
        let measured = measurements(&profile_with("", "k.cu"), &here);
        assert_eq!((measured[0].quantity, measured[0].value), (Quantity::SampleShare, 0.5));
        for other in [profile_with("x[threadIdx.x] = 1;", "k.cu"), profile_with("", "other.cu")] {
            assert_eq!(findings(&other, &here), []);
            assert_eq!(measurements(&other, &here), []);
        }
    }

    #[test]
    fn each_line_that_causes_something_is_told_with_the_others() {
        let line = |file: &str, line: u32, what: &str| system::SourceLine {
            file: file.to_owned(),
            line,
            what: what.to_owned(),
        };
        let insight = system::Insight {
            rule: "synchronization".to_owned(),
            code: stitch_findings::Code::NSYS_SYNCHRONIZATION,
            severity: Severity::Information,
            kernel: None,
            lines: vec![
                line("/w/other.py", 7, "waits 9 times, 2 ms in all"),
                line("/w/k.cu", 2, "waits once, 1 ms in all"),
                line("/w/k.cu", 9, "waits beyond the text"),
            ],
            limits: "The host waits.".to_owned(),
            advice: "Wait once.".to_owned(),
            gain: system::Gain { share: 0.0, formula: String::new() },
            source: String::new(),
            link: String::new(),
        };
        let found = of_program(&insight, &target(Path::new("/w/k.cu"), &[]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].message, "The host waits. This line waits once, 1 ms in all.");
        assert_eq!(found[0].severity, Severity::Hint, "another line costs more");
        let other = Place::File { path: "/w/other.py".into(), line: 6, column: 0 };
        assert_eq!(found[0].related[0].place, other);
        assert_eq!(found[0].related.len(), 1);
    }

    #[test]
    fn a_defect_is_told_at_its_line() {
        let text = "========= COMPUTE-SANITIZER\n========= Invalid __global__ write of size 4 bytes\n=========     at k(float *)+0x80 in k.cu:2\n=========     by thread (9,0,0) in block (0,0,0)\n=========     Address 0x7f00 is out of bounds\n========= ERROR SUMMARY: 1 error\n";
        let mut profile = Profile::new("k.cu", Way::default());
        profile.defects = sanitizer::read(text.as_bytes()).unwrap().defects;
        let found = findings(&profile, &target(Path::new("k.cu"), &[]));
        assert_eq!(found.len(), 1, "{:?}", profile.defects);
        assert_eq!(&TEXT[found[0].span.range()], "x[threadIdx.x * 32] = 1;");
    }
}
