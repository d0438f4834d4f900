//! Ends the process when the client is gone, whatever the rest of it does.
//!
//! A thread of its own, since every other thread may be stuck. It watches the standard streams and the client's process.
//! The first sign lets the server end by itself, in order; the process ends a moment later in any case. Children are killed
//! by their own supervisors when the server ends, and a process group left behind by a hard end dies with its pipes.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

/// How often it looks.
const PERIOD: Duration = Duration::from_millis(150);

/// From the first sign to the end of the process; two seconds are promised.
const GRACE: Duration = Duration::from_millis(1500);

/// What the watchdog looks at.
#[derive(Clone, Debug, Default)]
pub struct Watchdog {
    client: Arc<AtomicU32>,
    status: Arc<AtomicI32>,
}

impl Watchdog {
    /// The client's process, from `initialize`. One that can't be seen (another machine, a container) is not watched.
    pub fn watch(&self, process: u32) {
        if is_alive(process) {
            self.client.store(process, Ordering::SeqCst);
        }
    }

    /// With what status the process ends if it has to be ended.
    pub fn set_status(&self, status: u8) {
        self.status.store(status.into(), Ordering::SeqCst);
    }

    fn client_is_gone(&self) -> bool {
        let process = self.client.load(Ordering::SeqCst);
        process != 0 && !is_alive(process)
    }

    /// Cancels `gone` when the watched client's process is gone. For servers on other streams than the process' own.
    pub async fn run(self, gone: CancellationToken) {
        loop {
            tokio::time::sleep(PERIOD).await;
            if self.client_is_gone() {
                tracing::warn!("the client's process is gone");
                gone.cancel();
                return;
            }
        }
    }

    /// Watches the standard streams and the client on a thread, and ends the process a moment after a sign.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub fn guard_process(&self, gone: CancellationToken) -> std::io::Result<()> {
        let this = self.clone();
        let watch = move || {
            let mut first_sign = None;
            loop {
                std::thread::sleep(PERIOD);
                let output_closed = streams::output_is_closed();
                if output_closed || this.client_is_gone() {
                    gone.cancel();
                    first_sign.get_or_insert_with(Instant::now);
                }
                // What was written before the input was closed may still have to be read, so this alone cancels nothing.
                if gone.is_cancelled() || streams::input_is_closed() {
                    first_sign.get_or_insert_with(Instant::now);
                }
                if first_sign.is_some_and(|since| since.elapsed() > GRACE) {
                    std::process::exit(this.status.load(Ordering::SeqCst));
                }
            }
        };
        std::thread::Builder::new().name("watchdog".into()).stack_size(128 << 10).spawn(watch)?;
        Ok(())
    }
}

/// Whether a process runs; a zombie does not.
#[cfg(unix)]
fn is_alive(process: u32) -> bool {
    let Ok(id) = i32::try_from(process) else { return false };
    // Signal 0 only asks. "Not permitted" means that it is there.
    let there = nix::sys::signal::kill(nix::unistd::Pid::from_raw(id), None) != Err(nix::errno::Errno::ESRCH);
    there && !is_zombie(process)
}

/// The state follows the program's name, which may hold anything, in the last parentheses.
#[cfg(unix)]
fn is_zombie(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    matches!(state, Some('Z' | 'X'))
}

#[cfg(not(unix))]
fn is_alive(_: u32) -> bool {
    // The end of the input is the sign there.
    true
}

#[cfg(unix)]
mod streams {
    use std::os::fd::AsFd;

    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    /// Whether nobody can write to our input any more.
    pub fn input_is_closed() -> bool {
        hung_up(std::io::stdin().as_fd())
    }

    /// Whether nobody can read our output any more.
    pub fn output_is_closed() -> bool {
        hung_up(std::io::stdout().as_fd())
    }

    /// Asks for no event: the two that matter are always told. An interrupted call is asked again next time.
    fn hung_up(stream: std::os::fd::BorrowedFd<'_>) -> bool {
        let mut streams = [PollFd::new(stream, PollFlags::empty())];
        let told = poll(&mut streams, PollTimeout::ZERO).is_ok_and(|count| count > 0);
        let hung_up = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
        told && streams[0].revents().is_some_and(|events| events.intersects(hung_up))
    }
}

#[cfg(not(unix))]
mod streams {
    pub fn input_is_closed() -> bool {
        false
    }

    pub fn output_is_closed() -> bool {
        false
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_zombie_is_not_alive() {
        assert!(is_alive(std::process::id()));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while is_alive(child.id()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!is_alive(child.id()), "not waited for, so a zombie");
        child.wait().unwrap();
        assert!(!is_alive(child.id()));
    }
}
