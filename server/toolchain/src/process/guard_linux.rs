//! A running program on Linux: the supervisor between it and us (see `supervisor.rs`), and the socket to it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use super::guard::{Order, stdio};
use super::supervisor;

/// This executable, also when the file was replaced since.
const OWN_IMAGE: &str = "/proc/self/exe";
/// Within this time a new supervisor says that it is there; it takes milliseconds.
const READY_WITHIN: Duration = Duration::from_secs(20);

/// Set once it is seen that starting this executable anew makes no supervisor (a C library without arguments for
/// initialisers, a library loaded by another program, an explicit `ld.so`).
static MUST_FORK: AtomicBool = AtomicBool::new(!cfg!(target_env = "gnu"));
/// While the socket for a supervisor may be inherited, no other program is started.
static INHERITABLE: Mutex<()> = Mutex::new(());

/// A program under its supervisor. Dropping it closes the socket, on which the supervisor kills everything.
pub(super) struct Guard {
    child: Child,
    control: UnixStream,
}

impl Guard {
    /// Starts the program.
    pub(super) async fn spawn(order: &Order<'_>) -> io::Result<Self> {
        if !MUST_FORK.load(Ordering::Relaxed) {
            if let Some(guard) = Self::spawn_image(order).await? {
                return Ok(guard);
            }
            tracing::info!(
                "This executable can't be started as a supervisor; programs are started by forking."
            );
            MUST_FORK.store(true, Ordering::Relaxed);
        }
        Self::spawn_fork(order)
    }

    /// Starts this executable anew as the supervisor. `None` if that made no supervisor.
    async fn spawn_image(order: &Order<'_>) -> io::Result<Option<Self>> {
        let (control, theirs) = pair()?;
        let mut command = Command::new(OWN_IMAGE);
        command.arg0(OsStr::from_bytes(supervisor::NAME.to_bytes())).arg(theirs.as_raw_fd().to_string());
        command.arg(order.largest_file.unwrap_or(0).to_string()).arg(supervisor::SHELL);
        command.arg(std::path::absolute(order.path)?).args(order.arguments);
        command.env_clear();
        for (name, value) in &order.variables {
            let mut prefixed = vec![supervisor::VARIABLE_PREFIX];
            prefixed.extend_from_slice(name.as_bytes());
            command.env(OsString::from_vec(prefixed), value);
        }
        if let Some(own) = std::env::var_os("LD_LIBRARY_PATH") {
            command.env("LD_LIBRARY_PATH", own);
        }
        stdio(&mut command, order);
        let child = {
            let _alone = INHERITABLE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            inherit(theirs.as_raw_fd(), true)?;
            let child = command.spawn();
            inherit(theirs.as_raw_fd(), false)?;
            child
        };
        drop(theirs);
        let child = match child {
            Ok(child) => child,
            // Without /proc. Other errors (no folder, too many processes) would be the same when forking.
            Err(_) if !Path::new(OWN_IMAGE).exists() => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut guard = Self { child, control };
        match tokio::time::timeout(READY_WITHIN, guard.message()).await {
            Ok(Some((supervisor::READY, _))) => Ok(Some(guard)),
            _ => {
                // It runs something else; that must end before the program is started in another way.
                let _ = guard.child.kill().await;
                Ok(None)
            }
        }
    }

    /// Forks, and forks again in the child.
    fn spawn_fork(order: &Order<'_>) -> io::Result<Self> {
        let (control, theirs) = pair()?;
        let mut command = order.command();
        let (descriptor, largest_file) = (theirs.as_raw_fd(), order.largest_file);
        // SAFETY: `split` makes system calls only, and runs in the forked child, which has one thread.
        unsafe { command.pre_exec(move || supervisor::split(descriptor, largest_file)) };
        let _alone = INHERITABLE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let child = command.spawn()?;
        Ok(Self { child, control })
    }

    pub(super) fn pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take())
    }

    /// Waits for the program itself to end. `None` if its supervisor was killed.
    ///
    /// # Errors
    /// If the program could not be executed.
    pub(super) async fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        loop {
            match self.message().await {
                Some((supervisor::FAILED, error)) => return Err(io::Error::from_raw_os_error(error)),
                Some((supervisor::ENDED, status)) => return Ok(Some(ExitStatus::from_raw(status))),
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    async fn message(&mut self) -> Option<(u8, i32)> {
        let mut bytes = [0_u8; 5];
        self.control.read_exact(&mut bytes).await.ok()?;
        let [what, a, b, c, d] = bytes;
        Some((what, i32::from_ne_bytes([a, b, c, d])))
    }

    /// Asks everything to end (SIGTERM); what has not after the grace is killed.
    pub(super) async fn terminate(&mut self) {
        // If the supervisor is gone there is nobody to tell, and nothing to do.
        let _ = self.control.write_all(&[supervisor::TERMINATE]).await;
    }

    /// Waits until nothing of the job is left. Returns whether that was within the time that killing may take.
    pub(super) async fn gone(&mut self) -> bool {
        let limit = Duration::from_millis(supervisor::GRACE_MILLISECONDS as u64) + Duration::from_secs(3);
        tokio::time::timeout(limit, self.child.wait()).await.is_ok()
    }
}

fn pair() -> io::Result<(UnixStream, StdStream)> {
    let (ours, theirs) = StdStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, theirs))
}

/// Lets a descriptor be inherited by the programs that are started, or not.
fn inherit(descriptor: RawFd, inherited: bool) -> io::Result<()> {
    let flags = if inherited { 0 } else { libc::FD_CLOEXEC };
    // The reference keeps the function that runs before `main` from being left out by the linker.
    #[cfg(target_env = "gnu")]
    std::hint::black_box(&supervisor::ENTRY);
    // SAFETY: sets a flag of a descriptor that the caller owns.
    let done = unsafe { libc::fcntl(descriptor, libc::F_SETFD, flags) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a shell script to its end, started in each of the two ways.
    async fn both_ways(script: &str) -> Vec<(Option<i32>, String)> {
        let arguments = ["-c", script].map(OsString::from);
        let order = Order {
            path: Path::new("/bin/sh"),
            arguments: &arguments,
            variables: vec![("A".into(), "1".into()), ("LD_PRELOAD".into(), "/no/such/library".into())],
            folder: Some(Path::new("/")),
            with_stdin: false,
            largest_file: Some(1_000_000),
        };
        let mut results = Vec::new();
        for guard in [Guard::spawn_image(&order).await.unwrap(), Some(Guard::spawn_fork(&order).unwrap())] {
            let mut guard = guard.expect("the test binary is a supervisor too");
            let (_, out, _err) = guard.pipes();
            let mut text = String::new();
            let status = guard.ended().await.unwrap().unwrap();
            assert!(guard.gone().await);
            out.unwrap().read_to_string(&mut text).await.unwrap();
            results.push((status.code(), text));
        }
        results
    }

    #[tokio::test]
    async fn a_program_sees_no_difference_between_the_ways_it_is_started() {
        let script = "pwd; echo $A; ulimit -f; cut -d ' ' -f 5 /proc/$$/stat | grep -c \"^$$\\$\"; \
                      ls /proc/self/fd; setsid sleep 100 & exit 7";
        let results = both_ways(script).await;
        assert_eq!(results[0], results[1]);
        assert_eq!(results[0].0, Some(7));
        assert!(
            results[0].1.starts_with("/\n1\n") && results[0].1.ends_with("\n1\n0\n1\n2\n3\n"),
            "{}",
            results[0].1
        );
    }
}
