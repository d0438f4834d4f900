//! Checks files with clang as the server does between keystrokes and prints what it says: for measuring.
//!
//! `cargo run -p stitch-verifier --example clang_files -- NVCC_ROOT FILE…`

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use stitch_session::CancellationToken;
use stitch_toolchain::discovery::{Search, find};
use stitch_toolchain::environment::Environment;
use stitch_verifier::architecture::Architecture;
use stitch_verifier::clang::{Clang, ClangRequest, check};

#[tokio::main]
#[allow(clippy::print_stdout, reason = "printing is what it is for")]
async fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let environment = Environment::of_this_process();
    let mut search = Search::new(environment.clone());
    search.configured = arguments.next().map(PathBuf::from);
    let cancel = CancellationToken::new();
    let (Some(toolkit), Some(clang)) = (find(&search).chosen, Clang::find(&environment, &cancel).await)
    else {
        return ExitCode::from(3);
    };
    for path in arguments.map(PathBuf::from) {
        let text = std::fs::read(&path)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default();
        let path = std::path::absolute(&path).unwrap_or(path);
        let request = ClangRequest {
            text: text.as_str().into(),
            flags: Vec::new(),
            directory: path.parent().map(PathBuf::from).unwrap_or_default(),
            toolkit: toolkit.clone(),
            architecture: Architecture::new(9, 0),
            path,
        };
        let begin = Instant::now();
        match check(&clang, &request, &cancel).await {
            Ok(report) => {
                println!(
                    "{}: {:.3} s, {} errors {:?}",
                    request.path.display(),
                    begin.elapsed().as_secs_f64(),
                    report.findings.len(),
                    report.note
                );
                for finding in report.findings {
                    println!("  `{}`: {}", &text[finding.span.range()], finding.message);
                }
            }
            Err(error) => println!("{}: {error}", request.path.display()),
        }
    }
    ExitCode::SUCCESS
}
