//! Runs the candidate once under each tool of NVIDIA's compute-sanitizer, on the smallest of its inputs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use stitch_findings::{Answer, Code, Sanitized};
use stitch_session::CancellationToken;

use super::pair::Side;
use super::report::{Report, cut};
use super::secrets::Secrets;
use crate::torch::host::{Calling, ChildError, Filled, Needs, Role, Wrap};
use crate::torch::request::{Progress, Request, TorchError};
use crate::torch::values::Dtype;

/// The tools.
const TOOLS: [&str; 4] = ["memcheck", "initcheck", "racecheck", "synccheck"];
/// Reports that a tool prints.
const PRINTED: &str = "10";
/// How names of reports begin.
const LOG: &str = "compute-sanitizer";
/// Without it, torch keeps memory and hands out parts of it, so that an access past an array's end is one within a larger one.
const NO_CACHING: &str = "PYTORCH_NO_CUDA_MEMORY_CACHING";

/// The candidate, as it is called under a tool.
pub(super) struct Subject<'a> {
    pub inputs: &'a Filled,
    pub state: Option<&'a Filled>,
    pub dtype: Option<Dtype>,
}

/// Runs every tool, and accuses the candidate of what they find.
pub(super) async fn sanitize(
    request: &Request,
    program: &Path,
    subject: &Subject<'_>,
    report: &mut Report<'_>,
    secrets: &mut Secrets,
    progress: &Progress<'_>,
    cancel: &CancellationToken,
) -> Result<(), TorchError> {
    let began = Instant::now();
    for tool in TOOLS {
        progress(&format!("running compute-sanitizer, {tool}"), None);
        let (result, text) = under(request, program, tool, subject, secrets.draw(), cancel).await?;
        match (result, read(&text)) {
            (Err(ChildError::Cancelled), _) => return Err(TorchError::Cancelled),
            (_, Some((errors, first))) if errors > 0 => {
                let said = first.clone().unwrap_or_else(|| "no more was said".to_owned());
                let message =
                    format!("compute-sanitizer ({tool}) counts {errors} errors in the candidate: {said}.");
                let advice = "Build with `-lineinfo` for the line, and run `compute-sanitizer` yourself for all of them.";
                report.accuse(Code::VERIFY_SANITIZER, Answer::Wrong, message, advice);
                report.verdict.evidence.sanitizer.push(Sanitized { tool: tool.to_owned(), errors, first });
            }
            (Ok(()), Some((errors, first))) => {
                report.verdict.evidence.sanitizer.push(Sanitized { tool: tool.to_owned(), errors, first });
            }
            (Ok(()), None) => report.not_checked(format!("compute-sanitizer ({tool}) left no report.")),
            (Err(error), _) => {
                let reason = cut(&error.to_string());
                report.not_checked(format!(
                    "compute-sanitizer ({tool}) did not come to an end: {}.",
                    reason.trim_end_matches('.')
                ));
            }
        }
    }
    report.stage("sanitize", began.elapsed().as_secs_f64());
    Ok(())
}

/// Calls the candidate once in a process under a tool. What came of the call, and what the tool wrote.
async fn under(
    request: &Request,
    program: &Path,
    tool: &str,
    subject: &Subject<'_>,
    seed: u64,
    cancel: &CancellationToken,
) -> Result<(Result<(), ChildError>, String), TorchError> {
    let mut request = request.clone();
    request.environment.push((NO_CACHING.into(), "1".into()));
    let wrap = wrapped(request.wrap.clone(), program.to_owned(), tool);
    let mut side = Side::start_wrapped(&request, Role::Candidate, wrap, cancel).await?;
    let mut child = side.child().await?;
    let load = side.load(&request, &request.candidate, subject.dtype, seed);
    let calls = async {
        child.load(&load).await?;
        if let Some(state) = subject.state {
            child.set_state(state).await?;
        }
        child.call(subject.inputs, &Calling { seed: seed >> 1, grads: None, poison: false }).await?;
        Ok::<_, ChildError>(())
    };
    let result = calls.await;
    drop(child);
    // The tool writes its report when its program ends.
    let scratch = side.end().await;
    Ok((result, logs(scratch.path())))
}

/// Puts a program under the tool, and both into what it was put into before. Reports go into the scratch folder, the only one that may be written.
fn wrapped(wrap: Wrap, program: PathBuf, tool: &str) -> Wrap {
    let tool = tool.to_owned();
    Arc::new(move |needs: &Needs, scratch, end| {
        let mut needs = needs.clone();
        let flags = ["--tool", &tool, "--target-processes", "all", "--print-limit", PRINTED, "--log-file"];
        let mut arguments: Vec<OsString> = flags.map(OsString::from).into();
        arguments.push(scratch.path().join(format!("{LOG}-%p.log")).into());
        arguments.push(needs.program.clone().into());
        arguments.extend(std::mem::take(&mut needs.arguments));
        needs.readable.extend(program.parent().map(Path::to_owned));
        needs.program.clone_from(&program);
        needs.arguments = arguments;
        wrap(&needs, scratch, end)
    })
}

/// All reports in a folder.
fn logs(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(LOG) {
            text.push_str(&String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap_or_default()));
        }
    }
    text
}

/// The number of errors that reports count, and the first error with its place. `None` where no report came to its summary.
fn read(text: &str) -> Option<(u64, Option<String>)> {
    let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("=========")).collect();
    let count = |line: &&str| {
        let rest = line.trim().split_once("SUMMARY:")?.1.trim().to_owned();
        // A line of what was not printed repeats part of the number.
        let (number, what) = rest.split_once(' ')?;
        let errors = what.starts_with("error") && !what.contains("not printed");
        let hazards = what.starts_with("hazard");
        if errors || hazards { number.replace(',', "").parse::<u64>().ok() } else { None }
    };
    let counts: Vec<u64> = lines.iter().filter_map(count).collect();
    if counts.is_empty() {
        return None;
    }
    let is_title = |line: &str| {
        let text = line.trim_start_matches(' ');
        line.starts_with(' ')
            && !line.starts_with("  ")
            && !text.is_empty()
            && !text.contains("SUMMARY")
            && !text.starts_with("COMPUTE-SANITIZER")
    };
    let first = lines.iter().position(|line| is_title(line)).map(|at| {
        let title = lines[at].trim();
        let place = lines.get(at + 1).map(|line| line.trim()).filter(|line| line.starts_with("at "));
        cut(&format!("{title}{}", place.map(|place| format!(", {place}")).unwrap_or_default()))
    });
    Some((counts.iter().sum(), first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_counted_and_the_first_error_is_told() {
        let text = "========= COMPUTE-SANITIZER\nloading, 3 shards\n========= Invalid __global__ read of size 4 bytes\n=========     at f(float *)+0x180 in f.cu:57\n\
                    =========     by thread (0,0,0) in block (0,1,0)\n========= \n========= ERROR SUMMARY: 27 errors\n========= ERROR SUMMARY: 22 errors were not printed. Use --print-limit option to adjust the number of printed errors\n";
        assert_eq!(
            read(text),
            Some((
                27,
                Some("Invalid __global__ read of size 4 bytes, at f(float *)+0x180 in f.cu:57".into())
            ))
        );
        assert_eq!(read("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"), Some((0, None)));
        let race = "========= COMPUTE-SANITIZER\n========= Error: Race reported between Write access at k(float *)+0x90 in r.cu:7\n\
                    =========     and Read access at k(float *)+0xd0 in r.cu:9 [124 hazards]\n========= \n========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n";
        let (errors, first) = read(race).unwrap();
        assert_eq!((errors, first.unwrap().contains("r.cu:7")), (1, true));
        assert_eq!(read("========= COMPUTE-SANITIZER\n"), None);
        assert_eq!(read(""), None);
    }
}
