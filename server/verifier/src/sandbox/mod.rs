//! The sandbox in which candidates run: what others wrote, and nobody has read.
//!
//! A job sees the system read-only, what it is given read-only, and one scratch folder; no home folder, no network, no other
//! process, no variable that it was not given. What it uses is limited. What of this a machine allows differs: there may be
//! `bwrap`, or namespaces for users, or for root, or none of these (containers). [`Sandbox::probe`] tries, the best first; Landlock,
//! seccomp and limits come on top of each. What is active is seen from inside ([`Active`]), and said with what is missing.
//!
//! ```text
//! our process -> supervisor (see the room toolchain) -> outer.rs: watches, reports
//!                                                         -> bwrap | namespaces.rs -> inner.rs: first process inside, reaps
//!                                                                                       -> restrict.rs -> the program
//! ```
//!
//! The stages are our own executable, by the subcommand [`SUBCOMMAND`]. Each end ties to the one before by a signal at its death.

// Elsewhere policies can be written, and none can be run.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

mod active;
#[cfg(target_os = "linux")]
mod bubblewrap;
#[cfg(target_os = "linux")]
mod cgroup;
mod error;
mod gpu;
#[cfg(target_os = "linux")]
mod inner;
#[cfg(target_os = "linux")]
mod landlock;
mod layout;
mod look;
mod message;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod outer;
mod policy;
mod probe;
#[cfg(target_os = "linux")]
mod restrict;
mod run;
#[cfg(target_os = "linux")]
mod seccomp;
#[cfg(target_os = "linux")]
mod tree;

use std::path::{Path, PathBuf};

use stitch_toolchain::process::Scratch;

pub use active::{Active, Layer, Missing};
pub use error::SandboxError;
pub use gpu::{GpuProof, prove};
pub use look::{Seen, look};
pub use message::{Isolation, Plan};
pub use policy::{DEFAULT_CPU, DEFAULT_MEMORY, DEFAULT_OPEN_FILES, DEFAULT_TASKS, Policy};
pub use probe::Attempt;
pub use run::{Ran, Wrapped};

/// The subcommand of our own program that is a stage of the sandbox.
pub const SUBCOMMAND: &str = "sandbox-exec";

/// How jobs are run on this machine.
#[derive(Clone, Debug)]
pub struct Sandbox {
    executable: PathBuf,
    plan: Plan,
    #[cfg(target_os = "linux")]
    groups: Option<cgroup::Groups>,
    known: Active,
    active: Active,
}

impl Sandbox {
    /// What the job of the probe had active: what every job on this machine can expect.
    pub fn active(&self) -> &Active {
        &self.active
    }

    /// How it is made.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// A job, to be run in the sandbox with its scratch folder. The folder's limit is the job's.
    ///
    /// # Errors
    /// The policy can't be: the program or a path is not there, or would show the home folder.
    pub fn wrap(&self, policy: Policy, scratch: &Scratch) -> Result<Wrapped, SandboxError> {
        Wrapped::new(self, policy, scratch)
    }

    /// Runs a kernel inside, on the first GPU.
    pub async fn prove_gpu(&self) -> GpuProof {
        probe::prove_gpu(self).await
    }
}

/// Whether a path is a home folder, or one that holds a home folder: a job is never shown such a one.
pub fn shows_home(path: &Path) -> bool {
    layout::shows_home(path, &homes()).unwrap_or(false)
}

/// Whether this process was started as a stage of the sandbox. It is asked first thing in `main`: if so, [`stage`] takes over.
pub fn is_stage() -> bool {
    std::env::var_os(message::VARIABLE).is_some()
}

/// Does the work of a stage, which the environment describes, and never returns.
pub fn stage() -> ! {
    #[cfg(target_os = "linux")]
    {
        let text = std::env::var(message::VARIABLE).unwrap_or_default();
        // SAFETY: this process has one thread.
        unsafe { std::env::remove_var(message::VARIABLE) };
        match serde_json::from_str::<message::Order>(&text) {
            Ok(order) if order.messages.is_some() => inner::run(&order),
            Ok(order) => outer::run(order),
            Err(_) => {}
        }
    }
    std::process::exit(127)
}

/// The person's home folders: by the environment, and by the list of users.
fn homes() -> Vec<PathBuf> {
    let user = nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten();
    let mut homes: Vec<_> = std::env::var_os("HOME").map(PathBuf::from).into_iter().collect();
    homes.extend(user.map(|user| user.dir));
    // A user without one has the root, or a place that is not there.
    homes.retain(|home| home.is_absolute() && home != Path::new("/") && home.is_dir());
    homes.dedup();
    homes
}
