//! The state that the editor's status line shows, and the troubles that were said already.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use tower_lsp::ls_types::MessageType;

use crate::notices::{Health, Notices, Status};

/// The status as it was last said.
#[derive(Debug, Default)]
pub struct StatusLine {
    state: Mutex<(Status, HashSet<String>)>,
}

impl StatusLine {
    /// The status as it is.
    pub fn now(&self) -> Status {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// Changes the status; it is sent if it differs.
    pub fn update(&self, notices: &Notices, change: impl FnOnce(&mut Status)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = state.0.clone();
        change(&mut state.0);
        if state.0 != before {
            notices.status(state.0.clone());
        }
    }

    /// The tools can't do what was wanted. It is shown as a status, and as a message once in a session.
    pub fn trouble(&self, notices: &Notices, message: &str) {
        self.update(notices, |status| {
            status.health = Health::Warning;
            status.message = Some(message.to_owned());
        });
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.1.insert(message.to_owned()) {
            notices.show(MessageType::WARNING, format!("StitchCUDA: {message}"));
        }
    }

    /// Says something in the log, once in a session.
    pub fn say_once(&self, notices: &Notices, message: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.1.insert(message.to_owned()) {
            notices.info(message);
        }
    }

    /// The tools did what was wanted.
    pub fn well(&self, notices: &Notices) {
        self.update(notices, |status| {
            status.health = Health::Ok;
            status.message = None;
        });
    }
}
