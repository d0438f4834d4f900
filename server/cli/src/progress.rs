//! What a long command does now, on standard error.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use stitch_session::CancellationToken;
use stitch_session::jobs::{Context, JobError, Jobs, Request};

/// A command that is done sooner shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// A spinner on a terminal, which appears once the work has taken a second. Elsewhere nothing.
#[derive(Clone, Debug)]
pub struct Spinner {
    bar: ProgressBar,
}

impl Spinner {
    /// Starts to count the second.
    pub fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        let shown = bar.clone();
        tokio::spawn(async move {
            tokio::time::sleep(PATIENCE).await;
            // Nothing is drawn before the first tick.
            if !shown.is_finished() {
                shown.enable_steady_tick(Duration::from_millis(100));
            }
        });
        Self { bar }
    }

    /// Says what is done now.
    pub fn say(&self, message: &str) {
        self.bar.set_message(message.to_owned());
    }

    /// Prints something without disturbing it.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Runs a job to its end, tells what it says, and goes away.
    ///
    /// # Errors
    /// As the job ends.
    pub async fn watch<T, Running>(
        self,
        jobs: &Jobs,
        request: Request,
        work: impl FnOnce(Telling) -> Running + Send + 'static,
    ) -> Result<T, JobError>
    where
        T: Send + 'static,
        Running: Future<Output = Result<T, JobError>> + Send + 'static,
    {
        let spinner = self.clone();
        let handle = jobs.start(request, move |context| work(Telling { context, spinner }));
        let result = handle.wait().await;
        self.clear();
        result
    }

    /// Takes it away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// A job that tells a person, and whoever else listens, what it does.
#[derive(Debug)]
pub struct Telling {
    context: Context,
    spinner: Spinner,
}

impl Telling {
    /// Says what is done now, and how much of it is done.
    pub fn say(&self, message: &str, share: Option<f32>) {
        self.spinner.say(message);
        self.context.progress(message, share);
    }

    /// Ends the job's work when it is cancelled.
    pub fn cancellation(&self) -> &CancellationToken {
        self.context.cancellation()
    }
}
