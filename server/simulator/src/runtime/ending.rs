//! Ends a run in order when this process is asked to end.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn ask(_: libc::c_int) {
    ASKED.store(true, Ordering::Relaxed);
}

/// Set once this process gets SIGINT, SIGTERM or SIGHUP, which no longer end it by themselves: what [`serve`](super::serve)
/// looks at, so that the program and all that it started end too.
#[must_use]
pub fn cancelled_by_signals() -> &'static AtomicBool {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler only stores to an atomic, which is safe in a signal.
        unsafe { libc::signal(signal, ask as *const () as libc::sighandler_t) };
    }
    &ASKED
}
