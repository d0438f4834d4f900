//! What this machine allows: found by trying, the best way first.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use stitch_toolchain::environment::Environment;
use stitch_toolchain::process::Scratch;
use tokio_util::sync::CancellationToken;

use super::{Active, GpuProof, Isolation, Plan, Policy, Ran, SUBCOMMAND, Sandbox, SandboxError, Seen, homes};

/// How long a probe may run. It takes some ten milliseconds; the first use of a GPU takes seconds.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// What a look around may use.
const MEMORY: u64 = 1 << 30;

/// One way that was tried.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The way.
    pub plan: Plan,
    /// The sandbox, or why it can't be had in this way.
    pub sandbox: Result<Sandbox, String>,
}

impl Sandbox {
    /// The best sandbox that this machine allows. `executable` is our own program, of which [`SUBCOMMAND`] is a subcommand.
    /// What was found is remembered for the life of the process.
    ///
    /// # Errors
    /// Not even a program without any protection could be run: the executable is not there, or nothing can be written.
    pub async fn probe(executable: &Path) -> Result<Self, SandboxError> {
        static KNOWN: Mutex<Vec<Sandbox>> = Mutex::new(Vec::new());
        let known = || KNOWN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(sandbox) = known().iter().find(|sandbox| sandbox.executable == executable) {
            return Ok(sandbox.clone());
        }
        let mut reasons = Active::default();
        let mut last = None;
        for plan in plans() {
            match Self::with_plan(executable, plan.clone()).await {
                Ok(mut sandbox) => {
                    // What was tried before and would have been no better is no loss.
                    if !plan.is_full() || !sandbox.active.is_tight() {
                        sandbox.known.merge(reasons.clone());
                        sandbox.active.merge(reasons);
                    }
                    known().push(sandbox.clone());
                    return Ok(sandbox);
                }
                Err(error) => {
                    // Why less than everything can't be had either, says the same again.
                    if plan.is_full() {
                        reasons.lack(plan.isolation.to_string(), reason(&plan.isolation, &error));
                    }
                    last = Some(error);
                }
            }
        }
        Err(last.unwrap_or_else(|| SandboxError::NotMade {
            program: executable.to_owned(),
            what: "looking for a way".into(),
            why: "there is none".into(),
        }))
    }

    /// The best sandbox in which the first GPU works. Where it works in none, or there is no GPU, it is [`Sandbox::probe`]'s.
    ///
    /// # Errors
    /// As [`Sandbox::probe`].
    pub async fn probe_for_gpu(executable: &Path) -> Result<Self, SandboxError> {
        static KNOWN: Mutex<Vec<Sandbox>> = Mutex::new(Vec::new());
        let known = || KNOWN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(sandbox) = known().iter().find(|sandbox| sandbox.executable == executable) {
            return Ok(sandbox.clone());
        }
        let best = Self::probe(executable).await?;
        let GpuProof::Fails(why) = best.prove_gpu().await else {
            known().push(best.clone());
            return Ok(best);
        };
        for attempt in Self::attempts(executable).await {
            let Ok(mut sandbox) = attempt.sandbox else { continue };
            if matches!(sandbox.prove_gpu().await, GpuProof::Works(_)) {
                let closed = format!("a GPU does not work in there: {why}");
                sandbox.known.lack(best.plan.isolation.to_string(), &closed);
                sandbox.active.lack(best.plan.isolation.to_string(), closed);
                known().push(sandbox.clone());
                return Ok(sandbox);
            }
        }
        Ok(best)
    }

    /// A sandbox made in one way, whether or not a better one can be had.
    ///
    /// # Errors
    /// This machine does not allow it.
    pub async fn with_plan(executable: &Path, plan: Plan) -> Result<Self, SandboxError> {
        let mut sandbox = Self::untried(executable, plan).await;
        let (ran, seen) = sandbox.look().await?;
        sandbox.active = ran.active;
        if seen.opens_sockets && !sandbox.active.hides_network() {
            sandbox.known.lack("a closed network", "a socket could be opened inside");
        }
        if seen.lists_home {
            sandbox.known.lack("a hidden home folder", "it could be listed inside");
        }
        if seen.writes_system {
            sandbox.known.lack("a read-only system", "a file could be written into it inside");
        }
        sandbox.active.merge(sandbox.known.clone());
        Ok(sandbox)
    }

    /// Tries every way. For those who want to see all.
    pub async fn attempts(executable: &Path) -> Vec<Attempt> {
        let mut attempts = Vec::new();
        for plan in plans() {
            let tried = Self::with_plan(executable, plan.clone()).await;
            let sandbox = tried.map_err(|error| reason(&plan.isolation, &error));
            attempts.push(Attempt { plan, sandbox });
        }
        attempts
    }

    async fn untried(executable: &Path, plan: Plan) -> Self {
        let mut known = Active::default();
        #[cfg(target_os = "linux")]
        let groups = match tokio::task::spawn_blocking(super::cgroup::Groups::find).await {
            Ok(Ok(groups)) => Some(groups),
            Ok(Err(why)) => {
                known.lack("cgroup limits", why);
                None
            }
            Err(error) => {
                known.lack("cgroup limits", error);
                None
            }
        };
        #[cfg(not(target_os = "linux"))]
        known.lack("everything", "only Linux has what it takes");
        Self {
            executable: executable.to_owned(),
            plan,
            #[cfg(target_os = "linux")]
            groups,
            active: known.clone(),
            known,
        }
    }

    /// Looks around inside.
    async fn look(&self) -> Result<(Ran, Seen), SandboxError> {
        let mut arguments: Vec<OsString> = vec![SUBCOMMAND.into(), "--look".into()];
        arguments.extend(homes().into_iter().next().map(OsString::from));
        let ran = self.run_own(arguments, |policy| policy.memory(MEMORY)).await?;
        let failed = |why: String| SandboxError::NotMade {
            program: self.executable.clone(),
            what: "looking around inside".into(),
            why,
        };
        let text = ran.finished.stdout_text();
        let seen: Seen = serde_json::from_str(text.trim()).map_err(|error| {
            failed(format!("{error}: {} {}", ran.finished.status, ran.finished.stderr_text().trim()))
        })?;
        if !seen.writes_scratch {
            return Err(failed("the scratch folder can't be written there".into()));
        }
        Ok((ran, seen))
    }

    async fn run_own(
        &self,
        arguments: Vec<OsString>,
        more: impl FnOnce(Policy) -> Policy,
    ) -> Result<Ran, SandboxError> {
        let scratch = Scratch::new("sandbox").map_err(|error| SandboxError::NotMade {
            program: self.executable.clone(),
            what: "making a scratch folder".into(),
            why: error.to_string(),
        })?;
        let mut policy = Policy::new(&self.executable).args(arguments);
        if let Some(libraries) = std::env::var_os("LD_LIBRARY_PATH") {
            policy = policy.env("LD_LIBRARY_PATH", libraries);
        }
        let job = self.wrap(more(policy), &scratch)?.time_limit(TIME_LIMIT);
        job.run(&CancellationToken::new()).await
    }
}

pub(super) async fn prove_gpu(sandbox: &Sandbox) -> GpuProof {
    // The driver's library may lie outside the system; once it was loaded here, its folder is known.
    crate::device::devices().await;
    let ran = sandbox.run_own(vec![SUBCOMMAND.into(), "--probe-gpu".into()], Policy::gpu).await;
    match ran {
        Ok(ran) => serde_json::from_str(ran.finished.stdout_text().trim()).unwrap_or_else(|_| {
            GpuProof::Fails(format!(
                "the probe ended with {} {}",
                ran.finished.status,
                ran.finished.stderr_text().trim()
            ))
        }),
        Err(error) => GpuProof::Fails(error.to_string().trim_end_matches('.').to_owned()),
    }
}

/// The ways, the best first.
fn plans() -> Vec<Plan> {
    let bubblewrap = find("bwrap").map(Isolation::Bubblewrap);
    let root = nix::unistd::geteuid().is_root();
    let ours = |mounts| {
        let of_root = root.then_some(Isolation::Root { mounts });
        std::iter::once(Isolation::User { mounts }).chain(of_root)
    };
    let full: Vec<_> = bubblewrap.into_iter().chain(ours(true)).collect();
    let fresh = full.iter().cloned().map(Plan::with);
    let masked = full.iter().cloned().map(|isolation| Plan { fresh_proc: false, ..Plan::with(isolation) });
    fresh.chain(masked).chain(ours(false).chain([Isolation::None]).map(Plan::with)).collect()
}

/// Settings of a kernel that forbid namespaces to users, and the value that does.
const SETTINGS: &[(&str, &str, &str)] = &[
    (
        "kernel.apparmor_restrict_unprivileged_userns",
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
    ),
    ("kernel.unprivileged_userns_clone", "/proc/sys/kernel/unprivileged_userns_clone", "0"),
    ("user.max_user_namespaces", "/proc/sys/user/max_user_namespaces", "0"),
];

/// Why a way is closed, and what opens it.
fn reason(isolation: &Isolation, error: &SandboxError) -> String {
    let said = match error {
        SandboxError::NotMade { what, why, .. } => format!("{what}: {why}"),
        error => error.to_string().trim_end_matches('.').to_owned(),
    };
    let closed = SETTINGS
        .iter()
        .find(|(_, path, value)| fs::read_to_string(path).is_ok_and(|text| text.trim() == *value));
    match (isolation, closed) {
        (Isolation::None, _) => said,
        (Isolation::Root { .. }, _) => format!(
            "{said}; root lacks CAP_SYS_ADMIN here, or something forbids it: a container has it with `--cap-add SYS_ADMIN`"
        ),
        (_, Some((name, _, value))) => {
            format!("{said}; user namespaces are disabled by {name} = {value}")
        }
        (_, None) if is_filtered() => format!(
            "{said}; a filter on system calls is active here, as containers have it: `--security-opt seccomp=unconfined` lifts it"
        ),
        (_, None) => said,
    }
}

/// Whether this process itself runs under a seccomp filter.
fn is_filtered() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().filter_map(|line| line.strip_prefix("Seccomp:")).any(|mode| mode.trim() == "2")
}

impl Sandbox {
    /// What a person can do for a better sandbox; `None` where nothing is lacking that `bwrap` would bring.
    pub fn remedy(&self) -> Option<String> {
        if self.active.is_tight() && self.active.has(super::Layer::Files) {
            return None;
        }
        let advice = if find("bwrap").is_some() {
            "Allow user namespaces, or run StitchCUDA where they are allowed; the text says what forbids them."
        } else {
            "Install bubblewrap (Debian, Ubuntu: `apt install bubblewrap`; Fedora: `dnf install bubblewrap`), or allow user namespaces; the text says what forbids them."
        };
        Some(advice.to_owned())
    }
}

fn find(name: &str) -> Option<PathBuf> {
    Environment::of_this_process().find_program(name)
}
