//! Compiles files as the server does and prints the reports: for measuring on code that is not ours.
//!
//! `cargo run -p stitch-verifier --example compile_files -- NVCC_ROOT FILE…`

use std::path::PathBuf;
use std::process::ExitCode;

use stitch_analysis::Language;
use stitch_session::CancellationToken;
use stitch_toolchain::discovery::{Search, find};
use stitch_toolchain::environment::Environment;
use stitch_verifier::compile::{CompileRequest, compile};

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let mut search = Search::new(Environment::of_this_process());
    search.configured = arguments.next().map(PathBuf::from);
    let Some(toolkit) = find(&search).chosen else { return ExitCode::from(3) };
    let cache = std::env::var_os("STITCH_CACHE")
        .map(|folder| stitch_session::cache::Cache::open(Some(folder.as_ref()), 1 << 30));
    for path in arguments.map(PathBuf::from) {
        let Some(language) = Language::of_path(&path) else { continue };
        let text = std::fs::read(&path)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default();
        let request = CompileRequest {
            workspace: std::env::current_dir().ok(),
            cache: cache.clone(),
            ..CompileRequest::new(&path, text, language, toolkit.clone())
        };
        print(&path, compile(&request, &CancellationToken::new()).await);
    }
    ExitCode::SUCCESS
}

#[allow(clippy::print_stdout, reason = "printing is what it is for")]
fn print(
    path: &std::path::Path,
    result: Result<stitch_verifier::compile::CompileReport, stitch_verifier::compile::Trouble>,
) {
    let report = match result {
        Ok(report) => report,
        Err(trouble) => return println!("{}: TROUBLE {trouble}", path.display()),
    };
    let cached = if report.from_cache { " (kept)" } else { "" };
    println!(
        "{}: {:.2} s{cached}, {} kernels",
        path.display(),
        report.wall.as_secs_f64(),
        report.kernels.len()
    );
    for file in &report.files {
        for finding in &file.findings {
            let line = file.text[..finding.span.start].matches('\n').count() + 1;
            let text: String = file.text[finding.span.range()].chars().take(40).collect();
            println!(
                "  {}:{line} {} `{text}`: {}",
                file.path.display(),
                finding.code,
                finding.message.replace('\n', " ")
            );
            for related in &finding.related {
                println!("      {:?} {}", related.place, related.message);
            }
        }
    }
    for kernel in &report.kernels {
        let occupancy = kernel
            .occupancy
            .as_ref()
            .map_or("-".to_owned(), |o| format!("{:.0}% {}", o.ratio() * 100.0, o.reason()));
        let place = kernel.place.as_ref().map_or("NO PLACE", |_| "placed");
        println!(
            "  {} {} {place}: {:?} registers, {}+{:?} smem, {} stack, {}/{} spill, block {} ({}), {occupancy}",
            kernel.name,
            kernel.architecture,
            kernel.registers,
            kernel.shared,
            kernel.dynamic_shared,
            kernel.stack,
            kernel.spill_stores,
            kernel.spill_loads,
            kernel.block,
            kernel.block_from
        );
    }
    for note in &report.notes {
        println!("  note: {note}");
    }
}
