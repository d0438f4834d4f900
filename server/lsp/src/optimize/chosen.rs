//! What a person chose to have optimised, and what judges its candidates.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stitch_agents::optimize::{
    Aim, CudaJudgement, ElsewhereJudgement, Judgement, PythonAim, TorchJudgement, aim, aim_python,
};
use stitch_analysis::{Analysis, Language};
use stitch_findings::Span;
use stitch_session::config::{Config, Precision};
use stitch_session::jobs::{Context, JobError};
use stitch_verifier::declared::Declared;
use stitch_verifier::harness::Answers;
use stitch_verifier::measure::{Harnesses, Measurement};
use stitch_verifier::program::{self, Builder, Program, Target};
use stitch_verifier::torch::find::Asked;
use stitch_verifier::torch::machine::Machine;
use stitch_worker::client::Elsewhere;
use stitch_worker::judge::{self, Carrier};
use stitch_worker::order::{Judged, Settings};

use crate::documents::Document;
use crate::session::Session;
use crate::toolkit;

/// What was chosen.
pub enum Chosen {
    /// A CUDA program or kernel.
    Cuda(Aim),
    /// A PyTorch module or function.
    Python(Box<PythonAim>),
}

impl Chosen {
    /// The functions and classes that may be changed.
    pub fn scope(&self) -> &[String] {
        match self {
            Self::Cuda(aim) => &aim.scope,
            Self::Python(aim) => &aim.scope,
        }
    }

    /// The kernel that is run by itself.
    pub fn kernel(&self) -> Option<String> {
        match self {
            Self::Cuda(aim) => aim.kernel.clone(),
            Self::Python(_) => None,
        }
    }

    /// The same in another text of its file.
    ///
    /// # Errors
    /// It is not there.
    pub fn in_text(self, text: &str) -> Result<Self, String> {
        match self {
            Self::Cuda(_) => Ok(self),
            Self::Python(aim) => {
                let name = aim.scope.first().cloned();
                let asked = Asked { path: aim.subject.path, name, ..Asked::default() };
                aim_python(&asked, text, None).map(|aim| Self::Python(Box::new(aim)))
            }
        }
    }

    /// What stands behind the file's name in the target's; `None` for a whole program.
    pub fn name(&self) -> Option<String> {
        match self {
            Self::Cuda(aim) => aim.kernel.clone(),
            Self::Python(aim) => aim.scope.first().cloned(),
        }
    }
}

/// What a document can be optimised or verified as: what is selected, or without a selection the one thing that there is.
///
/// # Errors
/// Why it can't, in a few words for a menu.
pub fn target(session: &Session, document: &Document, selection: Option<Span>) -> Result<Chosen, String> {
    if !session.configuration.is_trusted() {
        return Err("the workspace is not trusted, and candidates are run".to_owned());
    }
    let path = document.path.clone().ok_or("the document is no file of this machine")?;
    let text = document.text.to_source();
    match document.to_analyse() {
        Some(Language::Cuda) => {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let folder = path.parent().map(PathBuf::from).unwrap_or_default();
            let program = Program { name, sources: vec![path], folder, ..Program::default() };
            let aim = aim(&Target::Program(Box::new(program)), &text, selection);
            aim.map(Chosen::Cuda).map_err(|error| error.to_string())
        }
        Some(Language::Python) => {
            let asked = Asked { path, ..Asked::default() };
            aim_python(&asked, &text, selection).map(|aim| Chosen::Python(Box::new(aim)))
        }
        None => Err("only CUDA and Python files can be optimised".to_owned()),
    }
}

/// What judges candidates on this machine, and what the person declared in the file.
pub struct Judging {
    by: By,
    /// What the person declared.
    pub declared: Declared,
}

enum By {
    Cuda(Box<Builder>),
    Python(Box<Machine>),
    Elsewhere(Box<There>),
}

/// What judges on another machine.
struct There {
    elsewhere: Elsewhere,
    device: judge::Device,
    settings: Settings,
    file: PathBuf,
}

impl Judging {
    /// Looks for what judges candidates of `chosen`.
    ///
    /// # Errors
    /// Something is missing, or what was declared can't be read.
    pub async fn prepare(
        session: &Arc<Session>,
        path: &Path,
        text: &str,
        chosen: &Chosen,
        config: &Arc<Config>,
        context: &Context,
    ) -> Result<Self, JobError> {
        let workspace = session.configuration.project_of(path);
        if let Some(elsewhere) = session.machines.of(config) {
            let there = There::prepare(elsewhere, path, chosen, (config, workspace), context).await?;
            // The status can name the machine now.
            crate::configuration::tell_status(session).await;
            let declared = declared(text, chosen)?;
            return Ok(Self { by: By::Elsewhere(Box::new(there)), declared });
        }
        match chosen {
            Chosen::Cuda(_) => {
                let toolkit =
                    toolkit::find(session, config, workspace.as_deref()).await.map_err(JobError::Failed)?;
                let device = program::choose(&config.device).await.map_err(JobError::failed)?;
                let mut builder = Builder::prepare(device, toolkit, config.clone(), workspace)
                    .await
                    .map_err(JobError::Failed)?;
                builder.origin = Some(path.to_owned());
                Ok(Self { by: By::Cuda(Box::new(builder)), declared: declared(text, chosen)? })
            }
            Chosen::Python(_) => {
                let search = session.search(config, workspace);
                let executable = std::env::current_exe().map_err(JobError::failed)?;
                let device = Machine::timed(&config.device);
                let machine = Machine::find(config, &search, &device, None, &executable)
                    .await
                    .map_err(JobError::failed)?;
                Ok(Self { by: By::Python(Box::new(machine)), declared: declared(text, chosen)? })
            }
        }
    }

    /// The device's short name, as a person types it.
    pub fn device_id(&self) -> String {
        match &self.by {
            By::Cuda(builder) => builder.device.id(),
            By::Python(machine) => machine.device_id(),
            By::Elsewhere(there) => there.device.id.clone(),
        }
    }

    /// The device as it is shown: its short name, and of another machine's that machine.
    pub fn device(&self) -> String {
        match &self.by {
            By::Elsewhere(there) => there.device.name.clone(),
            _ => self.device_id(),
        }
    }

    /// The judgement of candidates for `chosen`.
    ///
    /// # Errors
    /// This program does not know where it lies.
    pub fn judgement(self, chosen: Chosen, time_limit: Duration) -> std::io::Result<Judgement> {
        let Declared { tolerance, precision, .. } = self.declared;
        Ok(match (self.by, chosen) {
            (By::Cuda(builder), Chosen::Cuda(aim)) => Judgement::Cuda(Box::new(CudaJudgement {
                target: aim.target,
                measurement: Measurement {
                    builder: *builder,
                    arguments: Vec::new(),
                    answers: Answers::default(),
                    scope: aim.scope,
                    tolerance,
                    time_limit,
                    executable: std::env::current_exe()?,
                    harnesses: Harnesses::default(),
                },
                tolerance,
                precision,
            })),
            (By::Python(machine), Chosen::Python(aim)) => Judgement::Torch(Box::new(TorchJudgement {
                machine: *machine,
                subject: aim.subject,
                denoted: aim.denoted,
                train: None,
                tolerance,
                precision,
                time_limit,
            })),
            (By::Elsewhere(there), chosen) => there.judgement(chosen, tolerance, precision),
            _ => return Err(std::io::Error::other("what judges is not what was looked for")),
        })
    }
}

/// What the person declared in the file.
fn declared(text: &str, chosen: &Chosen) -> Result<Declared, JobError> {
    let Chosen::Cuda(aim) = chosen else { return Declared::of(text, None).map_err(JobError::failed) };
    let analysis = Analysis::of(Language::Cuda, text);
    let is_aim = |name: &String| aim.kernel.as_ref() == Some(name);
    let kernel = analysis.outline().kernels().find(|kernel| is_aim(&kernel.qualified_name));
    Declared::of(text, kernel).map_err(JobError::failed)
}

impl There {
    /// Asks the machine for its device.
    async fn prepare(
        elsewhere: Elsewhere,
        path: &Path,
        chosen: &Chosen,
        (config, workspace): (&Config, Option<PathBuf>),
        context: &Context,
    ) -> Result<Self, JobError> {
        let (device, torch) = match chosen {
            Chosen::Cuda(_) => (config.device.clone(), false),
            Chosen::Python(_) => (Machine::timed(&config.device), true),
        };
        let settings = crate::elsewhere::settings(config, device, workspace, crate::optimize::RUN_LIMIT);
        let progress = |message: &str, share: Option<f32>| context.progress(message, share);
        let looked = judge::look(&elsewhere, &settings, torch, &progress, context.cancellation()).await;
        let device = looked.map_err(crate::elsewhere::of_job)?;
        Ok(Self { elsewhere, device, settings, file: path.to_owned() })
    }

    fn judgement(self, chosen: Chosen, tolerance: Option<f64>, precision: Option<Precision>) -> Judgement {
        let (target, denoted) = match chosen {
            Chosen::Cuda(aim) => {
                let (target, scope) = (aim.target, aim.scope);
                let (arguments, answers) = (Vec::new(), Answers::default());
                (Judged::Cuda { target, arguments, answers, scope }, None)
            }
            Chosen::Python(aim) => {
                let name = aim.denoted.title();
                (Judged::Torch { subject: aim.subject, name, train: None }, Some(aim.denoted))
            }
        };
        let Self { elsewhere, device, settings, file } = self;
        let carrier = Carrier { elsewhere, settings, file, target, tolerance, precision };
        let (carrier, device) = (Arc::new(carrier), device.name);
        Judgement::Elsewhere(Box::new(ElsewhereJudgement { carrier, device, precision, denoted }))
    }
}
