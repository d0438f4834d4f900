//! `stitchcuda lsp`: the language server on the standard streams.

use std::process::ExitCode;

use stitch_lsp::Options;

/// Arguments of `lsp`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Accepted, since many clients pass it; the standard streams are the only transport
    #[arg(long)]
    stdio: bool,
}

/// Serves until the client is gone.
pub fn run(_: &Arguments) -> ExitCode {
    // Warnings and errors only: editors show each line of standard error as an error. The rest goes to the client.
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .init();
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    let output = match output() {
        Ok(output) => output,
        Err(error) => return failed(&error),
    };
    let options = Options::of_this_process(Vec::new());
    let served = runtime.block_on(stitch_lsp::serve(tokio::io::stdin(), output, options));
    // A read of standard input can't be ended; waiting for it would outlive the client.
    runtime.shutdown_background();
    match served {
        Ok(status) => ExitCode::from(status),
        Err(error) => failed(&error),
    }
}

/// Standard output without the line buffer of the library, which would cut each message in two.
#[cfg(unix)]
fn output() -> std::io::Result<std::fs::File> {
    use std::os::fd::AsFd;
    Ok(std::io::stdout().as_fd().try_clone_to_owned()?.into())
}

/// Standard output.
#[cfg(not(unix))]
fn output() -> std::io::Result<std::io::Stdout> {
    Ok(std::io::stdout())
}

fn failed(error: &std::io::Error) -> ExitCode {
    anstream::eprintln!("error: the language server could not start: {error}");
    ExitCode::from(1)
}
