//! PyTorch code.

use std::path::PathBuf;

use stitch_profiles::python::Workspace;
use stitch_session::config::Config;
use stitch_verifier::torch::judge::Rule;
use stitch_verifier::torch::machine::Machine;
use stitch_verifier::torch::request::Request;
use stitch_verifier::torch::verify::{profiled, verify as verify_torch};
use tokio_util::sync::CancellationToken;

use super::{Failure, Here, Progress};
use crate::order::{Outcome, ProfileTorch, Settings, VerifyTorch};

impl Here {
    /// What runs PyTorch code on this machine.
    pub(super) async fn machine_for(&self, settings: &Settings, config: &Config) -> Result<Machine, Failure> {
        let search = self.search(settings.workspace.as_deref());
        let python = settings.python.as_deref();
        Ok(Machine::find(config, &search, &config.device, python, &self.executable).await?)
    }
}

/// Verifies PyTorch code.
pub(super) async fn verify(
    here: &Here,
    order: &VerifyTorch,
    progress: &Progress<'_>,
    cancel: &CancellationToken,
) -> Result<Outcome, Failure> {
    progress("looking for Python", None);
    let settings = &order.settings;
    let machine = here.machine_for(settings, &here.config(settings)).await?;
    let usual = machine.request(order.reference.clone(), order.candidate.clone());
    let [reference_name, candidate_name] = order.names.clone();
    let (tolerance, tolerance_name) = order.tolerance.clone();
    let request = Request {
        reference_name,
        candidate_name,
        rule: Rule { tolerance },
        tolerance_name,
        gradients: order.gradients,
        train: order.train,
        sanitizer: order.sanitizer,
        compile_baseline: order.compile_baseline,
        calls: order.calls,
        timing_seconds: order.timing_seconds.unwrap_or(usual.timing_seconds),
        time_limit: settings.time_limit,
        ..usual
    };
    let mut verdict = verify_torch(&request, progress, cancel).await?;
    verdict.device = here.named(&verdict.device);
    Ok(Outcome::Verdict { verdict: Box::new(verdict) })
}

/// Profiles PyTorch code.
pub(super) async fn profile(
    here: &Here,
    order: &ProfileTorch,
    progress: &Progress<'_>,
    cancel: &CancellationToken,
) -> Result<Outcome, Failure> {
    progress("looking for Python", None);
    let settings = &order.settings;
    let machine = here.machine_for(settings, &here.config(settings)).await?;
    let request = Request {
        time_limit: settings.time_limit,
        ..machine.request(order.subject.clone(), order.subject.clone())
    };
    let files: Vec<PathBuf> = vec![order.subject.path.clone()];
    let workspace = Workspace { folders: order.folders.clone(), files, ..Workspace::default() };
    let mut profile =
        profiled::profile(&order.name, &request, &workspace, order.fresh, progress, cancel).await?;
    profile.device.iter_mut().for_each(|name| *name = here.named(name));
    Ok(Outcome::Profile { profile: Box::new(profile) })
}
