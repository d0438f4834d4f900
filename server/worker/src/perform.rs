//! Does what is ordered, with the functions that do it where nothing is ordered of elsewhere.

mod cuda;
pub mod failure;
mod torch;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stitch_agents::optimize::{CudaJudgement, Judgement, TorchJudgement, aim_python};
use stitch_session::config::{Config, Surroundings};
use stitch_toolchain::discovery::Search;
use stitch_toolchain::environment::Environment;
use stitch_verifier::measure::{Harnesses, Measurement};
use stitch_verifier::program;
use stitch_verifier::torch::find::Asked;
use tokio_util::sync::CancellationToken;

use crate::health;
use crate::order::{Judge, Judged, Look, Order, Outcome, Settings};
use failure::Failure;

/// Called with what is done now, and how much is done, from 0 to 1, where that is known.
pub type Progress<'a> = dyn Fn(&str, Option<f32>) + Send + Sync + 'a;

/// Where an order is done.
pub struct Here {
    /// What is configured on this machine.
    config: Arc<Config>,
    /// What this machine calls itself.
    machine: String,
    /// Our own program, for processes of the simulator and the sandbox.
    executable: PathBuf,
}

impl Here {
    /// This machine, which calls itself `machine`.
    ///
    /// # Errors
    /// This program does not know where it lies.
    pub fn new(machine: &str) -> std::io::Result<Self> {
        let settings = stitch_session::config::Settings::new(Surroundings::of_this_process(Vec::new()));
        let executable = std::env::current_exe()?;
        Ok(Self { config: settings.for_path(None), machine: machine.to_owned(), executable })
    }

    /// What holds for an order.
    fn config(&self, settings: &Settings) -> Arc<Config> {
        Arc::new(settings.over(&self.config))
    }

    /// Where to look for toolkits.
    fn search(&self, workspace: Option<&Path>) -> Search {
        Search {
            configured: self.config.nvcc.path.clone(),
            workspace: workspace.map(Path::to_owned),
            environment: Environment::of_this_process(),
        }
    }

    /// A device of this machine, as it is called elsewhere.
    fn named(&self, device: &str) -> String {
        format!("{device} on {}", self.machine)
    }

    /// Does what is ordered.
    ///
    /// # Errors
    /// Why nothing came of it, in sentences, and of what kind that is.
    pub async fn perform(
        &self,
        order: &Order,
        progress: &Progress<'_>,
        cancel: &CancellationToken,
    ) -> Result<Outcome, Failure> {
        match order {
            Order::Doctor => Ok(Outcome::Doctor { items: health::examine(&self.search(None)).await.items }),
            Order::Look(look) => self.look(look).await,
            Order::Verify(order) => cuda::verify(self, order, progress, cancel).await,
            Order::VerifyTorch(order) => torch::verify(self, order, progress, cancel).await,
            Order::Profile(order) => cuda::profile(self, order, progress, cancel).await,
            Order::ProfileTorch(order) => torch::profile(self, order, progress, cancel).await,
            Order::Judge(order) => self.judge(order, progress, cancel).await,
        }
    }

    async fn look(&self, look: &Look) -> Result<Outcome, Failure> {
        let config = self.config(&look.settings);
        if look.torch {
            let machine = self.machine_for(&look.settings, &config).await?;
            let device = self.named(machine.device());
            return Ok(Outcome::Looked { id: machine.device_id(), device });
        }
        let device = program::choose(&config.device).await.map_err(Failure::missing)?;
        Ok(Outcome::Looked { id: device.id(), device: self.named(&device.to_string()) })
    }

    async fn judge(
        &self,
        order: &Judge,
        progress: &Progress<'_>,
        cancel: &CancellationToken,
    ) -> Result<Outcome, Failure> {
        let settings = &order.settings;
        let config = self.config(settings);
        let (tolerance, precision) = (order.tolerance, order.precision);
        let judgement = match &order.target {
            Judged::Cuda { target, arguments, answers, scope } => {
                let mut builder = self.builder(settings, target, config).await?;
                builder.origin = Some(order.file.clone());
                let measurement = Measurement {
                    builder,
                    arguments: arguments.clone(),
                    answers: answers.clone(),
                    scope: scope.clone(),
                    tolerance,
                    time_limit: settings.time_limit,
                    executable: self.executable.clone(),
                    harnesses: Harnesses::default(),
                };
                let target = target.clone();
                Judgement::Cuda(Box::new(CudaJudgement { target, measurement, tolerance, precision }))
            }
            Judged::Torch { subject, name, train } => {
                let machine = self.machine_for(settings, &config).await?;
                let asked =
                    Asked { path: subject.path.clone(), name: Some(name.clone()), ..Asked::default() };
                let reference = order.question.files().first().map_or(&*subject.path, |file| file.as_path());
                let text = stitch_agents::optimize::read(reference).map_err(|error| {
                    Failure::usage(format!("{} could not be read: {error}.", reference.display()))
                })?;
                let denoted = match aim_python(&asked, &text, None) {
                    Ok(aim) => aim.denoted,
                    Err(why) => return Err(Failure::usage(why)),
                };
                let (subject, time_limit) = (subject.clone(), settings.time_limit);
                Judgement::Torch(Box::new(TorchJudgement {
                    machine,
                    subject,
                    denoted,
                    train: *train,
                    tolerance,
                    precision,
                    time_limit,
                }))
            }
        };
        let say = |message: &str| progress(message, None);
        let mut answered = order.question.put(&judgement, &say, cancel).await?;
        self.name_device(&mut answered);
        Ok(Outcome::Judged { answered })
    }

    /// Says of every number which machine's it is.
    fn name_device(&self, answered: &mut stitch_agents::optimize::Answered) {
        use stitch_agents::optimize::Answered;
        let name = |device: &mut String| *device = self.named(device);
        match answered {
            Answered::Baseline(baseline) => name(&mut baseline.cost.device),
            Answered::Profiled(profile) => profile.device.iter_mut().for_each(name),
            Answered::Verified(verdict) => name(&mut verdict.device),
            Answered::Evaluated(evaluated) => {
                evaluated.cost.iter_mut().for_each(|cost| name(&mut cost.device));
                evaluated.verdict.iter_mut().for_each(|verdict| name(&mut verdict.device));
            }
        }
    }
}
