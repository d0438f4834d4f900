//! The lower rungs: what can be known where no profiler works. On a GPU the time of kernels by our own clock; without one that can be used what the simulator
//! counts; and where nothing runs, what the compiler and the static rules say.

use std::time::Duration;

use stitch_analysis::{Analysis, Language};
use stitch_findings::Finding;
use stitch_profiles::kernel::{KernelLaunch, LaunchShape, Metric, Origin, kernel_name};
use stitch_profiles::note::{Note, NoteKind};
use stitch_profiles::profile::{NotTaken, Profile, Way};
use tokio_util::sync::CancellationToken;

use super::ladder::Rung;
use super::simulated;
use super::take::{TakeError, Wanted};
use crate::compile::{CompileRequest, KernelResources, Trouble, compile};
use crate::harness::Answers;
use crate::measure::{
    Cost, Harnesses, KernelCost, MeasureError, Measured, Measurement, Timed, measure, twin,
};
use crate::occupancy::Limiter;
use crate::program::{Builder, End, Running, Target, build, run};

/// Findings of the compiler and of the static rules that are told.
const MOST_FINDINGS: usize = 20;

/// Times a program by our own clock: its kernels in harnesses made from its launches, or else the whole process. `Err` with the reason.
///
/// # Errors
/// The outer one: the job was cancelled.
pub(super) async fn timed(
    wanted: &Wanted<'_>,
    cancel: &CancellationToken,
) -> Result<Result<Profile, String>, TakeError> {
    let Wanted { target, program, builder, running, .. } = *wanted;
    let measurement = Measurement {
        builder: builder.clone(),
        arguments: running.arguments.clone(),
        answers: Answers::default(),
        scope: Vec::new(),
        tolerance: None,
        time_limit: running.time_limit,
        executable: running.simulation.executable.clone(),
        harnesses: Harnesses::default(),
    };
    let version = Target::Program(Box::new(program.clone()));
    match measure(&measurement, &version, &version, cancel).await {
        Ok(measured) => Ok(Ok(of_times(&measured, target, &builder.device.to_string()))),
        Err(MeasureError::Cancelled) => Err(TakeError::Cancelled),
        Err(error) => Ok(Err(error.to_string())),
    }
}

/// The profile that measured times make. A kernel whose launches were counted besides keeps its lines.
fn of_times(measured: &Measured, target: &str, device: &str) -> Profile {
    let Measured { cost, report } = measured;
    let way = Way { by: Rung::Clock.to_string(), ..Way::default() };
    let mut profile = Profile { device: Some(device.to_owned()), ..Profile::new(target, way) };
    profile.launches = cost.kernels.iter().zip(0..).map(|(kernel, id)| of_time(kernel, id, device)).collect();
    for kernel in &report.kernels {
        let (metrics, lines) = simulated::counted(kernel);
        let base = kernel_name(&crate::demangle::name(&kernel.name).display()).base;
        if let Some(launch) = profile.launches.iter_mut().find(|launch| launch.kernel.base == base) {
            launch.metrics.extend(metrics);
            launch.lines = lines;
            launch.shape.grid = Some(kernel.grid);
            launch.shape.block = Some(kernel.block);
        }
    }
    let mut say = |text: String| profile.notes.push(Note::new(NoteKind::Remark, text));
    let moved = |kernel: &KernelCost| {
        let (time, traffic) = (kernel.microseconds?, kernel.traffic?);
        Some(format!("`{}` moves {}.", kernel_name(&kernel.name).base, traffic.words(time.median)))
    };
    cost.kernels.iter().filter_map(moved).for_each(&mut say);
    if let Cost { time: Some(time), .. } = cost {
        if time.of == Timed::Process {
            say(format!("The whole process takes {}.", crate::measure::interval(&time.microseconds)));
        }
        time.notes.iter().cloned().for_each(&mut say);
    }
    profile
}

fn of_time(kernel: &KernelCost, id: u64, device: &str) -> KernelLaunch {
    let time = kernel.microseconds.map(|time| (Metric::Duration, time.median * 1e-6));
    KernelLaunch {
        id,
        kernel: kernel_name(&kernel.name),
        shape: LaunchShape { device_name: Some(device.to_owned()), ..LaunchShape::default() },
        metrics: time.into_iter().collect(),
        origin: Origin { tool: Rung::Clock.to_string(), ..Origin::default() },
        ..KernelLaunch::default()
    }
}

/// What a simulated device of the GPU's architecture counts. `Err` with the reason.
///
/// # Errors
/// The outer one: the job was cancelled.
pub(super) async fn on_twin(
    wanted: &Wanted<'_>,
    cancel: &CancellationToken,
) -> Result<Result<Profile, String>, TakeError> {
    let Wanted { target, program, builder, running, .. } = *wanted;
    let Some(device) = twin(&builder.device) else {
        return Ok(Err("No device of its architecture can be simulated.".to_owned()));
    };
    let Builder { toolkit, config, workspace, .. } = builder;
    let prepared = Builder::prepare(device.clone(), toolkit.clone(), config.clone(), workspace.clone()).await;
    let builder = match prepared {
        Ok(prepared) => Builder { origin: builder.origin.clone(), ..prepared },
        Err(why) => return Ok(Err(why)),
    };
    let tried = async {
        let built = build(&builder, program, cancel).await.map_err(TakeError::from)?;
        let running = Running { device: device.clone(), ..running.clone() };
        Ok::<_, TakeError>(run(&built, &running, cancel).await?)
    };
    Ok(match tried.await {
        Err(TakeError::Cancelled) => return Err(TakeError::Cancelled),
        Err(error) => Err(error.to_string()),
        Ok(ran) => match (ran.end, ran.report) {
            (End::Status(0), Some(report)) => Ok(simulated::profile(&report, target, &device)),
            (end, _) => Err(format!("The program {} there.", crate::verify::ended(&end))),
        },
    })
}

/// What the compiler and the static rules say of the kernels, where nothing of them runs.
///
/// # Errors
/// They do not compile, or the job was cancelled.
pub(super) async fn statically(
    wanted: &Wanted<'_>,
    not_taken: Vec<NotTaken>,
    cancel: &CancellationToken,
) -> Result<Profile, TakeError> {
    let Wanted { target, program, builder, .. } = *wanted;
    let source = program.sources.first().cloned().unwrap_or_default();
    let text = std::fs::read_to_string(&source)
        .map_err(|error| TakeError::Ended(format!("{} could not be read: {error}.", source.display())))?;
    let mut request = CompileRequest::new(&source, text.clone(), Language::Cuda, builder.toolkit.clone())
        .configured(&builder.config, builder.workspace.clone())
        .await;
    let real = builder.device.architecture().real();
    request.architecture.get_or_insert(real);
    request.time_limit = request.time_limit.max(Duration::from_secs(1));
    let compiled = match compile(&request, cancel).await {
        Ok(compiled) => compiled,
        Err(Trouble::Cancelled) => return Err(TakeError::Cancelled),
        Err(trouble) => return Err(TakeError::Ended(format!("{trouble}."))),
    };
    let way = Way { by: Rung::Static.to_string(), not_taken, ..Way::default() };
    let mut profile = Profile { device: Some(builder.device.to_string()), ..Profile::new(target, way) };
    profile.launches =
        compiled.kernels.iter().zip(0..).map(|(kernel, id)| of_resources(kernel, id)).collect();
    let spills = compiled.kernels.iter().filter(|kernel| kernel.spill_stores + kernel.spill_loads > 0);
    let spills = spills.map(|kernel| {
        let (stores, loads) = (kernel.spill_stores, kernel.spill_loads);
        format!("`{}` spills registers: {stores} bytes stored and {loads} loaded a thread.", kernel.name)
    });
    let analysis = Analysis::of(Language::Cuda, &text);
    let of_compiler =
        compiled.files.iter().filter(|file| file.path == source).flat_map(|file| &file.findings);
    let findings = of_compiler.chain(analysis.findings());
    let findings = findings.take(MOST_FINDINGS).map(|finding| placed(finding, &text));
    let notes = spills.chain(findings).chain(compiled.not_compiled.iter().map(|not| not.reason.clone()));
    profile.notes.extend(notes.map(|text| Note::new(NoteKind::Remark, text)));
    Ok(profile)
}

/// Findings of static rules that are told, as notes: `Line 12: …`
pub(crate) fn of_rules(analysis: &Analysis, text: &str) -> Vec<Note> {
    let told = analysis.findings().iter().take(MOST_FINDINGS);
    told.map(|finding| Note::new(NoteKind::Remark, placed(finding, text))).collect()
}

/// `Line 12: …`
fn placed(finding: &Finding, text: &str) -> String {
    let line = text.get(..finding.span.start).map_or(0, |before| before.matches('\n').count()) + 1;
    format!("Line {line}: {} [{}]", finding.message, finding.code)
}

fn of_resources(kernel: &KernelResources, id: u64) -> KernelLaunch {
    let known = [
        (Metric::Registers, kernel.registers.map(f64::from)),
        (Metric::SharedMemoryStatic, Some(kernel.shared as f64)),
        (Metric::SharedMemoryDynamic, kernel.dynamic_shared.map(|bytes| bytes as f64)),
        (Metric::BlockSize, Some(f64::from(kernel.block))),
        (Metric::TheoreticalOccupancy, kernel.occupancy.as_ref().map(|found| found.ratio() * 100.0)),
    ];
    let known = known.into_iter().filter_map(|(metric, value)| Some((metric, value?)));
    let limits = kernel.occupancy.iter().flat_map(|found| {
        found.limiters.iter().map(|limiter| (limited(*limiter), f64::from(found.active_blocks)))
    });
    KernelLaunch {
        id,
        kernel: kernel_name(&kernel.signature),
        metrics: known.chain(limits).collect(),
        origin: Origin { tool: format!("ptxas for {}", kernel.architecture), ..Origin::default() },
        ..KernelLaunch::default()
    }
}

/// The metric of blocks that this allows.
fn limited(limiter: Limiter) -> Metric {
    match limiter {
        Limiter::Warps => Metric::LimitWarps,
        Limiter::Registers => Metric::LimitRegisters,
        Limiter::SharedMemory => Metric::LimitSharedMemory,
        Limiter::Blocks => Metric::LimitBlocks,
        Limiter::Barriers => Metric::LimitBarriers,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::measure::Traffic;
    use crate::measure::sample::Interval;
    use crate::simulation::{Counters, Kernel, Report};

    #[test]
    fn what_the_rules_say_of_python_has_its_line() {
        let text = "import torch\n\ndef f(xs):\n    for x in xs:\n        print(x.item())\n";
        let notes = of_rules(&Analysis::of(Language::Python, text), text);
        let words: Vec<&str> = notes.iter().map(|note| note.text.as_str()).collect();
        assert!(
            words.iter().any(|note| note.starts_with("Line 5: ") && note.ends_with("[static/item-in-loop]")),
            "{words:?}"
        );
    }

    #[test]
    fn a_kernel_that_was_timed_has_its_time_and_what_was_counted_of_it() {
        let time = Interval { median: 125.0, low: 124.0, high: 127.0, samples: 12 };
        let traffic = Traffic { bytes: 400_000_000, arrays: 400_000_000, peak: 4_000_000_000_000, l2: 1 };
        let kernel = KernelCost {
            name: "copy(float*)".into(),
            microseconds: Some(time),
            traffic: Some(traffic),
            ..KernelCost::default()
        };
        let cost = Cost::measured("cuda:0".into(), vec![kernel], vec!["A note.".into()]);
        let counters = Counters { warp_instructions: 7, ..Counters::default() };
        let counted = Kernel { name: "copy".into(), grid: [4, 1, 1], counters, ..Kernel::default() };
        let report = Arc::new(Report { kernels: vec![counted], ..Report::default() });
        let profile = of_times(&Measured { cost, report }, "k.cu", "cuda:0");
        let launch = &profile.launches[0];
        assert!((launch.get(Metric::Duration).unwrap() - 125e-6).abs() < 1e-12);
        assert_eq!((launch.get(Metric::Instructions), launch.shape.grid), (Some(7.0), Some([4, 1, 1])));
        let notes: Vec<&str> = profile.notes.iter().map(|note| note.text.as_str()).collect();
        assert_eq!(
            notes,
            ["`copy` moves at least 400 MB, 3.20 TB/s, 80% of the memory's 4.00 TB/s.", "A note."]
        );
    }
}
