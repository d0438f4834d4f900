//! The two processes of one verification, and the state that both are brought to.

use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::report::Report;
use crate::torch::builds::{Builds, Seen};
use crate::torch::host::{Child, ChildError, Filled, Load, Loaded, Role, Setting, Zygote};
use crate::torch::literal::literal;
use crate::torch::request::{Request, TorchError};
use crate::torch::simulated::Simulator;
use crate::torch::subject::{Callable, Case, Source, Subject};
use crate::torch::values::{Dtype, Tree};
use stitch_toolchain::process::Scratch;

/// One side: its zygote, and the folders that it writes.
pub(super) struct Side {
    zygote: Zygote,
    build: PathBuf,
    builds: Option<Arc<Builds>>,
    // Goes with everything in it, after the zygote.
    scratch: Scratch,
}

impl Side {
    /// Starts the zygote of a role.
    pub async fn start(
        request: &Request,
        role: Role,
        cancel: &CancellationToken,
    ) -> Result<Self, TorchError> {
        let system = |what: &str| {
            let what = what.to_owned();
            move |source| TorchError::System { what, source }
        };
        let scratch = Scratch::new("torch").map_err(system("a scratch folder could not be made"))?;
        let build = scratch.path().join("build");
        std::fs::create_dir_all(&build).map_err(system("a folder for extensions could not be made"))?;
        let setting = setting(request, role, &scratch, &build);
        let zygote = Zygote::start(&setting, role, cancel).await?;
        // On the simulator, extensions are programs of their own.
        let builds =
            request.simulation.is_none().then(|| setting.builds(request.cache.clone(), cancel)).map(Arc::new);
        Ok(Self { zygote, build, builds, scratch })
    }

    /// Starts a process of its own for one version, put into another program, with this side's folders: it finds there what was built. It forks nothing.
    pub async fn start_beside(
        &self,
        request: &Request,
        role: Role,
        wrap: crate::torch::host::Wrap,
        cancel: &CancellationToken,
    ) -> Result<Zygote, TorchError> {
        let mut setting = setting(request, role, &self.scratch, &self.build);
        setting.wrap = wrap;
        setting.forks = false;
        Ok(Zygote::start(&setting, role, cancel).await?)
    }

    /// The folder that its processes write.
    pub fn scratch(&self) -> &std::path::Path {
        self.scratch.path()
    }

    /// Forks a process that has loaded nothing.
    pub async fn child(&mut self) -> Result<Child, TorchError> {
        let mut child = self.zygote.child().await?;
        self.helped(&mut child);
        Ok(child)
    }

    /// Has a child of its role get its extensions as this side's children do.
    pub fn helped(&self, child: &mut Child) {
        if let Some(builds) = &self.builds {
            child.build_with(Arc::clone(builds));
        }
    }

    /// How extensions were built.
    pub fn builds(&self) -> Seen {
        self.builds.as_ref().map(|builds| builds.seen()).unwrap_or_default()
    }

    /// What is loaded, under a seed.
    pub fn load(&self, request: &Request, subject: &Subject, dtype: Option<Dtype>, seed: u64) -> Load {
        let mut load = Load::new(subject.clone(), seed);
        load.dtype = dtype;
        load.train = request.train;
        load.build = Some(self.build.clone());
        load.stands_for.clone_from(&request.stands_for);
        load.passes_for_gpu = request.simulation.is_some();
        load
    }

    /// Ends it and waits for that. What it wrote goes too.
    pub async fn end(self) {
        self.zygote.end().await;
    }
}

/// How the processes of a role are started.
fn setting<'a>(
    request: &'a Request,
    role: Role,
    scratch: &'a Scratch,
    build: &std::path::Path,
) -> Setting<'a> {
    let subject = request.subject(role);
    let mut setting = Setting::new(&request.python, scratch);
    setting.place = request.place;
    setting.build_folder = build.to_owned();
    setting.readable = readable(subject);
    setting.readable.extend(request.readable.iter().cloned());
    setting.readable.extend(request.stands_for.iter().filter_map(|path| path.parent()).map(PathBuf::from));
    setting.time_limit = request.time_limit;
    setting.memory_bytes = request.memory_bytes;
    setting.environment.clone_from(&request.environment);
    setting.wrap = request.wrap.clone();
    setting
}

/// A person's file, its folder, whose neighbours it may import, and files that it names.
fn readable(subject: &Subject) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = subject.path.parent().map(PathBuf::from).into_iter().collect();
    paths.push(subject.path.clone());
    for case in &subject.cases {
        if let Source::File { path } = &case.inputs {
            paths.push(path.clone());
        }
    }
    paths
}

/// A process of each role with the same thing loaded, in the same state.
pub(super) struct Pair {
    pub reference: Child,
    pub candidate: Child,
    /// The state as the reference was constructed; `None` for what has none.
    pub state: Option<Filled>,
    /// The type that parameters and inputs were turned into.
    pub dtype: Option<Dtype>,
    /// Which state each side has: its number, or nothing once a call has changed it.
    has: [Option<u64>; 2],
}

/// The number of the state as constructed.
pub(super) const CONSTRUCTED: u64 = 0;

/// The seed by which a state is moved off what was constructed.
fn moved(number: u64) -> Option<u64> {
    (number != CONSTRUCTED).then_some(number)
}

/// What opening a pair came to.
pub(super) enum Opened {
    /// Both are loaded.
    Pair(Box<Pair>),
    /// The candidate failed, which the report says.
    Failed,
}

/// Two sides with their zygotes.
pub(super) struct Sides {
    pub reference: Side,
    pub candidate: Side,
    /// Runs the candidate's extensions.
    pub simulator: Option<Arc<Simulator>>,
}

impl Sides {
    /// Starts both zygotes at once; they never meet.
    pub async fn start(
        request: &Request,
        simulator: Option<Arc<Simulator>>,
        cancel: &CancellationToken,
    ) -> Result<Self, TorchError> {
        let (reference, candidate) = tokio::join!(
            Side::start(request, Role::Reference, cancel),
            Side::start(request, Role::Candidate, cancel)
        );
        Ok(Self { reference: reference?, candidate: candidate?, simulator })
    }

    /// Loads both, and gives the candidate the reference's state. `seed` is the reference's; the candidate gets `other`.
    pub async fn open(
        &mut self,
        request: &Request,
        dtype: Option<Dtype>,
        [seed, other]: [u64; 2],
        report: &mut Report<'_>,
    ) -> Result<Opened, TorchError> {
        let mut reference = self.reference.child().await?;
        let mut candidate = self.candidate.child().await?;
        if let Some(simulator) = &self.simulator {
            candidate.assist(Arc::<Simulator>::clone(simulator));
        }
        let subject = with_init_case(&request.reference);
        let mut wanted = self.reference.load(request, &subject, dtype, seed);
        wanted.settings_script = Some(stitch_analysis::target::compose::settings_script());
        // What is wrong with the device, loading says.
        let (loaded, _) = tokio::join!(reference.load(&wanted), candidate.warm_up());
        let loaded = loaded.map_err(|error| TorchError::of_reference(" to load", error))?;
        report.runs_on(&loaded);
        let subject = self.candidate_for(request, &mut reference, seed).await?;
        let claimed = self.candidate.load(request, &subject, dtype, other);
        let got = match candidate.load(&claimed).await {
            Ok(got) => got,
            Err(error) => {
                report.failed(error, "")?;
                return Ok(Opened::Failed);
            }
        };
        report.loaded(&got);
        report.builds(&self.candidate.builds());
        let mut pair = Pair { reference, candidate, state: None, dtype, has: [Some(CONSTRUCTED), None] };
        if loaded.kind == "module" && !pair.take_state(&loaded, &got, report).await? {
            return Ok(Opened::Failed);
        }
        Ok(Opened::Pair(Box::new(pair)))
    }
}

impl Sides {
    /// The candidate, made with the arguments that the reference was made with: a candidate's file need not say them, and must not choose others.
    async fn candidate_for(
        &self,
        request: &Request,
        reference: &mut Child,
        seed: u64,
    ) -> Result<Subject, TorchError> {
        let mut subject = request.candidate.clone();
        let (Callable::Module { init: Some(_), .. }, Callable::Module { init, .. }) =
            (&request.reference.callable, &mut subject.callable)
        else {
            return Ok(subject);
        };
        match reference.draw_arguments(seed, request.reference.cases.len()).await {
            Ok(arguments) => {
                if let Some(text) = literal(&arguments.values.tree) {
                    *init = Some(Source::Expression { text });
                }
            }
            Err(ChildError::Cancelled) => return Err(TorchError::Cancelled),
            Err(error) if reference.is_gone() => {
                return Err(TorchError::of_reference(" to say its arguments", error));
            }
            // Something that has no text, such as a class: the candidate's file has to say it itself.
            Err(_) => {}
        }
        Ok(subject)
    }
}

/// A reference with one more case: what it is made with.
fn with_init_case(subject: &Subject) -> Subject {
    let mut subject = subject.clone();
    if let Callable::Module { init: Some(source), .. } = &subject.callable {
        subject.cases.push(Case { inputs: source.clone(), dtype: None });
    }
    subject
}

impl Pair {
    /// Reads the reference's state and gives it to the candidate. Whether it took it.
    async fn take_state(
        &mut self,
        reference: &Loaded,
        candidate: &Loaded,
        report: &mut Report<'_>,
    ) -> Result<bool, TorchError> {
        let state = self.reference.state().await;
        let state = state.map_err(|error| TorchError::of_reference(" to give its state", error))?;
        // A function in the place of a module without parameters does the same.
        if candidate.kind != "module" && reference.parameters.is_empty() && reference.buffers.is_empty() {
            self.has = [Some(CONSTRUCTED); 2];
            return Ok(true);
        }
        if let Err(error) = self.candidate.set_state(&state).await {
            report.failed(error, " given the reference's state")?;
            return Ok(false);
        }
        self.has = [Some(CONSTRUCTED); 2];
        report.parameters(&state.values);
        if !state.values.tensors.is_empty() {
            self.state = Some(state);
        }
        Ok(true)
    }

    /// Brings the candidate to a state: [`CONSTRUCTED`], or one that it comes to by this number.
    pub async fn bring_candidate(&mut self, number: u64) -> Result<(), ChildError> {
        if let Some(state) = self.state.as_ref().filter(|_| self.has[1] != Some(number)) {
            self.candidate.set_state_again(state, moved(number)).await?;
            self.has[1] = Some(number);
        }
        Ok(())
    }

    /// Brings the reference to it.
    pub async fn bring_reference(&mut self, number: u64) -> Result<(), ChildError> {
        if let Some(state) = self.state.as_ref().filter(|_| self.has[0] != Some(number)) {
            self.reference.set_state_again(state, moved(number)).await?;
            self.has[0] = Some(number);
        }
        Ok(())
    }

    /// A call of the reference has changed this much of its state.
    pub fn reference_changed(&mut self, after: &Filled) {
        if !is_empty(after) {
            self.has[0] = None;
        }
    }

    /// A call of the candidate has changed this much of its state.
    pub fn candidate_changed(&mut self, after: &Filled) {
        if !is_empty(after) {
            self.has[1] = None;
        }
    }

    /// Timed calls may have changed anything.
    pub fn forget(&mut self) {
        self.has = [None; 2];
    }
}

/// Whether nothing is in some values.
pub(super) fn is_empty(filled: &Filled) -> bool {
    match &filled.values.tree {
        Tree::Dict { items } => items.is_empty(),
        Tree::Tuple { items } | Tree::List { items } => items.is_empty(),
        Tree::None => true,
        _ => false,
    }
}
