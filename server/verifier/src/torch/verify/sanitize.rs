//! Runs the candidate once under each tool of NVIDIA's compute-sanitizer, on the smallest of its inputs.
//!
//! What was learned of the tool (compute-sanitizer 13.5, its manual and its binaries): it puts a library into each program that is started, so the
//! code runs in the process that was started and not in a fork of it; it talks to that library over TCP unless told to use a Unix socket, and
//! the sandbox has no TCP; it writes its summary when the program has ended by itself, so nobody is killed before; its error count takes in calls of
//! CUDA's API that failed, such as those by which torch asks what there is. An extension is found in the folder where the candidate built it.
//!
//! A tool that counts errors in the reference too accuses nobody, nor one that found them in the kernels of a library.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use stitch_findings::{Answer, Code, Sanitized};
use stitch_session::CancellationToken;

use super::gpu::Gpu;
use super::pair::{Side, Sides};
use super::report::{Report, cut};
use super::secrets::Secrets;
use crate::torch::host::{Calling, ChildError, Filled, Needs, Role, Wrap};
use crate::torch::request::{Progress, Request, TorchError};
use crate::torch::values::Dtype;

/// The tools, each with options of its own. A failed call of CUDA's API is no error of a kernel: a launch that was refused is found without.
const TOOLS: [(&str, &[&str]); 4] = [
    ("memcheck", &["--report-api-errors", "no"]),
    ("initcheck", &[]),
    ("racecheck", &[]),
    ("synccheck", &[]),
];
/// Reports that a tool prints.
const PRINTED: &str = "10";
/// How names of reports begin.
const LOG: &str = "compute-sanitizer";
/// Variables: without the first, torch keeps memory and hands out parts of it, so that an access past an array's end is one within a larger
/// one; the second has the tool talk over a Unix socket ("Environment Variables" of its manual).
const VARIABLES: [(&str, &str); 2] =
    [("PYTORCH_NO_CUDA_MEMORY_CACHING", "1"), ("NV_COMPUTE_SANITIZER_LOCAL_CONNECTION_OVERRIDE", "uds")];
/// How long one request may take under a tool, which makes kernels up to a hundred times slower.
const LIMIT: Duration = Duration::from_secs(180);
/// How long a program may take to end, with the tool's summary.
const END: Duration = Duration::from_secs(30);
/// Parts of the names of kernels of libraries, whose warp-level tricks and unread padding these tools take for errors.
const LIBRARIES: [&str; 12] = [
    "at::native",
    "at::cuda",
    "c10::",
    "cub::",
    "thrust::",
    "cutlass",
    "cublas",
    "cudnn",
    "xmma",
    "nvjet",
    "cufft",
    "cusolver",
];

/// The candidate, as it is called under a tool.
pub(super) struct Subject<'a> {
    pub inputs: &'a Filled,
    pub state: Option<&'a Filled>,
    pub dtype: Option<Dtype>,
}

/// What looks at candidates.
pub(super) struct Look<'a, 'r> {
    pub request: &'a Request,
    pub program: &'a Path,
    pub report: &'a mut Report<'r>,
    pub secrets: &'a mut Secrets,
    pub progress: &'a Progress<'a>,
    pub cancel: &'a CancellationToken,
    pub gpu: &'a Gpu,
}

impl Look<'_, '_> {
    /// Runs every tool, and accuses the candidate of what they find.
    ///
    /// # Errors
    /// The job was cancelled, or the device can't be had. Everything else that goes wrong is a reason why something was not looked at.
    pub async fn at(&mut self, sides: &Sides, subject: &Subject<'_>) -> Result<(), TorchError> {
        let began = Instant::now();
        for (tool, options) in TOOLS {
            (self.progress)(&format!("running compute-sanitizer, {tool}"), None);
            let tool = Tool { name: tool, options };
            let (result, text) = self.under(&tool, Role::Candidate, &sides.candidate, subject).await?;
            match (result, read(&text)) {
                (Err(ChildError::Cancelled), _) => return Err(TorchError::Cancelled),
                (_, Some(found)) if found.errors > 0 => self.judge(&tool, sides, subject, found).await?,
                (Ok(()), Some(found)) => self.tell(&tool, found),
                (Ok(()), None) => {
                    let said = problem(&text).map(|said| format!(": {said}")).unwrap_or_default();
                    self.not_checked(&tool, &format!("left no report{said}"));
                }
                (Err(error), _) => {
                    let reason = problem(&text).unwrap_or_else(|| cut(&error.to_string()));
                    self.not_checked(&tool, &format!("did not come to an end: {reason}"));
                }
            }
        }
        self.report.stage("sanitize", began.elapsed().as_secs_f64());
        Ok(())
    }

    /// Errors were counted. Whether they are the candidate's own is asked of the reference.
    async fn judge(
        &mut self,
        tool: &Tool,
        sides: &Sides,
        subject: &Subject<'_>,
        found: Found,
    ) -> Result<(), TorchError> {
        let Found { errors, first, in_libraries } = &found;
        let said = first.clone().unwrap_or_else(|| "no more was said".to_owned());
        if *in_libraries && tool.name != "memcheck" {
            let what = format!(
                "counts {errors} errors, all that it shows in kernels of libraries, the first: {said}"
            );
            self.not_checked(tool, &what);
            return Ok(());
        }
        (self.progress)(&format!("running compute-sanitizer, {}, on the reference", tool.name), None);
        let (result, text) = self.under(tool, Role::Reference, &sides.reference, subject).await?;
        match (result, read(&text)) {
            (Err(ChildError::Cancelled), _) => return Err(TorchError::Cancelled),
            (Ok(()), Some(own)) if own.errors == 0 => {
                let message = format!(
                    "compute-sanitizer ({}) counts {errors} errors in the candidate: {said}.",
                    tool.name
                );
                let advice = "Build with `-lineinfo` for the line, and run `compute-sanitizer` yourself for all of them.";
                self.report.accuse(Code::VERIFY_SANITIZER, Answer::Wrong, message, advice);
                self.tell(tool, found);
            }
            (_, own) => {
                let own = own.map_or("is not known".to_owned(), |own| format!("is {}", own.errors));
                let what = format!(
                    "counts {errors} errors, the first: {said}; their number in the reference {own}, so that nothing follows"
                );
                self.not_checked(tool, &what);
            }
        }
        Ok(())
    }

    fn tell(&mut self, tool: &Tool, found: Found) {
        let (errors, first) = (found.errors, found.first);
        self.report.verdict.evidence.sanitizer.push(Sanitized { tool: tool.name.to_owned(), errors, first });
    }

    fn not_checked(&mut self, tool: &Tool, what: &str) {
        let what = what.trim_end_matches('.');
        self.report.not_checked(format!("compute-sanitizer ({}) {what}.", tool.name));
    }

    /// Calls a version once in a process under a tool. What came of the call, and what the tool wrote.
    async fn under(
        &mut self,
        tool: &Tool,
        role: Role,
        side: &Side,
        subject: &Subject<'_>,
    ) -> Result<(Result<(), ChildError>, String), TorchError> {
        let seed = self.secrets.draw() >> 1;
        let mut request = self.request.clone();
        request.environment.extend(VARIABLES.map(|(name, value)| (name.into(), value.into())));
        request.time_limit = request.time_limit.min(LIMIT);
        let wrap = wrapped(request.wrap.clone(), self.program.to_owned(), tool, role);
        let started = side.start_beside(&request, role, wrap, self.cancel).await;
        let (mut zygote, load) = match started {
            Ok(zygote) => (zygote, side.load(&request, request.subject(role), subject.dtype, seed)),
            Err(TorchError::Cancelled) => return Err(TorchError::Cancelled),
            Err(error) => {
                return Ok((
                    Err(ChildError::Here { what: error.to_string() }),
                    logs(side.scratch(), tool, role),
                ));
            }
        };
        let result = match zygote.child().await {
            Ok(mut child) => {
                side.helped(&mut child);
                let shared = self.gpu.share().await?;
                let calls = async {
                    child.load(&load).await?;
                    if let Some(state) = subject.state {
                        child.set_state(state).await?;
                    }
                    child.call(subject.inputs, &Calling { seed, ..Calling::default() }).await?;
                    Ok::<_, ChildError>(())
                };
                let result = calls.await;
                drop(shared);
                child.leave();
                result
            }
            Err(error) => Err(ChildError::Here { what: error.to_string() }),
        };
        // The tool writes its report when its program ends.
        zygote.end_by_itself(END).await;
        Ok((result, logs(side.scratch(), tool, role)))
    }
}

/// A tool.
struct Tool {
    name: &'static str,
    options: &'static [&'static str],
}

impl Tool {
    /// How the names of its reports on a version begin.
    fn log(&self, role: Role) -> String {
        format!("{LOG}-{}-{}", self.name, role.word())
    }
}

/// Puts a program under the tool, and both into what it was put into before. Reports go into the scratch folder, the only one that may be written.
fn wrapped(wrap: Wrap, program: PathBuf, tool: &Tool, role: Role) -> Wrap {
    let log = tool.log(role);
    // Our own limits hold, not the tool's ten seconds for a program to begin.
    let flags = ["--tool", tool.name, "--print-limit", PRINTED, "--launch-timeout", "0"];
    let flags: Vec<OsString> = flags.iter().chain(tool.options).map(OsString::from).collect();
    Arc::new(move |needs: &Needs, scratch, end| {
        let mut needs = needs.clone();
        let mut arguments = flags.clone();
        arguments.push("--log-file".into());
        arguments.push(scratch.path().join(format!("{log}-%p.log")).into());
        arguments.push(needs.program.clone().into());
        arguments.extend(std::mem::take(&mut needs.arguments));
        // Its libraries lie beside it, or beside what a link in a `bin` leads to.
        let real = program.canonicalize().unwrap_or_else(|_| program.clone());
        needs
            .readable
            .extend([&program, &real].into_iter().filter_map(|path| path.parent()).map(Path::to_owned));
        needs.program = real;
        needs.arguments = arguments;
        wrap(&needs, scratch, end)
    })
}

/// All reports of a tool on a version in a folder.
fn logs(folder: &Path, tool: &Tool, role: Role) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&tool.log(role)) {
            text.push_str(&String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap_or_default()));
        }
    }
    text
}

/// What a tool says of itself in the place of a report.
fn problem(text: &str) -> Option<String> {
    let said = |line: &str| {
        let line = line.strip_prefix("=========")?.trim();
        let is_problem = ["Error", "Internal Sanitizer Error", "Warning", "Unable"]
            .iter()
            .any(|word| line.starts_with(word));
        is_problem.then(|| cut(line))
    };
    text.lines().find_map(said)
}

/// What a report counts.
#[derive(Debug, PartialEq)]
struct Found {
    errors: u64,
    /// The first error with its place.
    first: Option<String>,
    /// Whether every place that is shown lies in a library's kernel.
    in_libraries: bool,
}

/// The number of errors that reports count. `None` where no report came to its summary, or the tool says that it lost track of something.
fn read(text: &str) -> Option<Found> {
    if text.contains("Internal Sanitizer Error") {
        return None;
    }
    let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("=========")).collect();
    let counts: Vec<u64> = lines.iter().filter_map(|line| count(line)).collect();
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
    let places: Vec<&&str> = lines
        .iter()
        .filter(|line| line.trim().starts_with("at ") || is_title(line) && line.contains(" at "))
        .collect();
    let is_of_library = |line: &&&str| LIBRARIES.iter().any(|name| line.contains(name));
    let in_libraries = !places.is_empty() && places.iter().all(is_of_library);
    Some(Found { errors: counts.iter().sum(), first, in_libraries })
}

/// The errors that a line sums up: `ERROR SUMMARY: 27 errors`, `RACECHECK SUMMARY: 3 hazards displayed (1 error, 2 warnings)`. A line of what was not
/// printed repeats part of the number.
fn count(line: &str) -> Option<u64> {
    let rest = line.trim().split_once("SUMMARY:")?.1.trim();
    let number = |text: &str| text.replace(',', "").parse::<u64>().ok();
    let (first, what) = rest.split_once(' ')?;
    if what.contains("not printed") {
        return None;
    }
    if what.starts_with("error") {
        return number(first);
    }
    if what.starts_with("hazard") {
        let inside = what.split_once('(').and_then(|(_, inside)| number(inside.split(' ').next()?));
        return inside.or_else(|| number(first));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_counted_and_the_first_error_is_told() {
        let text = "========= COMPUTE-SANITIZER\nloading, 3 shards\n========= Invalid __global__ read of size 4 bytes\n=========     at f(float *)+0x180 in f.cu:57\n\
                    =========     by thread (0,0,0) in block (0,1,0)\n========= \n========= ERROR SUMMARY: 27 errors\n========= ERROR SUMMARY: 22 errors were not printed. Use --print-limit option to adjust the number of printed errors\n";
        let first =
            Some("Invalid __global__ read of size 4 bytes, at f(float *)+0x180 in f.cu:57".to_owned());
        assert_eq!(read(text), Some(Found { errors: 27, first, in_libraries: false }));
        let none = Found { errors: 0, first: None, in_libraries: false };
        assert_eq!(read("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"), Some(none));
        let race = "========= COMPUTE-SANITIZER\n========= Error: Race reported between Write access at k(float *)+0x90 in r.cu:7\n\
                    =========     and Read access at k(float *)+0xd0 in r.cu:9 [124 hazards]\n========= \n========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n";
        let found = read(race).unwrap();
        assert_eq!(
            (found.errors, found.first.unwrap().contains("r.cu:7"), found.in_libraries),
            (1, true, false)
        );
        assert_eq!(count(" RACECHECK SUMMARY: 1,204 hazards displayed (0 errors, 1,204 warnings)"), Some(0));
        assert_eq!(read("========= COMPUTE-SANITIZER\n"), None);
        assert_eq!(read(""), None);
    }

    #[test]
    fn what_a_tool_says_of_itself_is_no_report() {
        let lost = "========= COMPUTE-SANITIZER\n========= Internal Sanitizer Error: The Sanitizer encountered an error while launching f and didn't track the launch.\n\
                    ========= ERROR SUMMARY: 0 errors\n";
        assert_eq!(read(lost), None);
        assert!(problem(lost).unwrap().contains("didn't track"));
        // As version 13.5 prints it where there is no driver.
        let nothing = "========= COMPUTE-SANITIZER\n========= Error: process didn't terminate successfully\n========= Error: Target application terminated before first instrumented API call\n";
        assert_eq!((read(nothing), problem(nothing).is_some()), (None, true));
    }

    #[test]
    fn errors_in_kernels_of_libraries_are_told_apart() {
        let of = |kernel: &str| {
            let text = format!(
                "========= COMPUTE-SANITIZER\n========= Uninitialized __global__ memory read of size 16 bytes\n=========     at {kernel}+0x40\n========= ERROR SUMMARY: 1 error\n"
            );
            read(&text).unwrap().in_libraries
        };
        assert!(of("void at::native::vectorized_elementwise_kernel<4, float>(int)"));
        assert!(of("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32"));
        assert!(!of("my_kernel(float *)"));
    }
}
