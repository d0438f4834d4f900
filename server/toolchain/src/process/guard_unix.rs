//! A running program on a unix without subreapers: its process group only.
//!
//! What leaves the group (`setsid`) is not found, and if this process is killed nobody kills the group: only Linux has
//! what that takes. StitchCUDA's programs are compilers and profilers of Linux; elsewhere a compile check at most runs.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use super::guard::Order;

const GRACE: Duration = Duration::from_secs(2);

/// A program in its own process group. Dropping it kills the group.
pub(super) struct Guard {
    child: Child,
    group: Option<Pid>,
    terminating: bool,
}

impl Guard {
    pub(super) async fn spawn(order: &Order<'_>) -> io::Result<Self> {
        let child = order.command().process_group(0).spawn()?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        Ok(Self { child, group, terminating: false })
    }

    pub(super) fn pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take())
    }

    pub(super) async fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.child.wait().await?;
        if !self.terminating {
            self.signal(Signal::SIGKILL);
        }
        Ok(Some(status))
    }

    pub(super) async fn terminate(&mut self) {
        self.terminating = true;
        self.signal(Signal::SIGTERM);
    }

    pub(super) async fn gone(&mut self) -> bool {
        let ended = tokio::time::timeout(GRACE, self.child.wait()).await.is_ok();
        self.signal(Signal::SIGKILL);
        ended || tokio::time::timeout(GRACE, self.child.wait()).await.is_ok()
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // An empty group is what is wanted.
            let _ = killpg(group, signal);
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}
