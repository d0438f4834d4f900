//! Who in a file asks for CUDA's last error, and whether anybody checks errors at all.

use std::collections::HashMap;

use super::{Inner, Piece};
use crate::rules::checks::is_checker;

/// Functions of the runtime that return the last error.
pub const ASKING: &[&str] =
    &["cudaGetLastError", "cudaPeekAtLastError", "hipGetLastError", "hipPeekAtLastError"];

impl Inner {
    /// Who asks for errors, through any number of calls, each name looked at once.
    pub(super) fn resolve_checks(&mut self, pieces: &[&Piece]) {
        let mut users: HashMap<&str, Vec<&str>> = HashMap::new();
        for (name, used) in pieces.iter().flat_map(|piece| &piece.uses) {
            for used in used {
                users.entry(used).or_default().push(name);
            }
        }
        let mut open: Vec<&str> = ASKING.to_vec();
        while let Some(name) = open.pop() {
            for user in users.get(name).into_iter().flatten() {
                if self.asking.insert((*user).to_owned()) {
                    open.push(user);
                }
            }
        }
        self.checks =
            pieces.iter().any(|piece| piece.wraps_calls) || users.keys().any(|used| is_about_errors(used));
        for (name, used) in pieces.iter().flat_map(|piece| &piece.uses) {
            if self.asking.contains(name) {
                self.asked_after.extend(used.iter().cloned());
            }
        }
    }
}

/// Whether a function or a macro of this name has to do with errors: `gpuErrchk`, `cudaGetErrorString`.
fn is_about_errors(name: &str) -> bool {
    ASKING.contains(&name) || is_checker(&name.to_ascii_lowercase())
}
