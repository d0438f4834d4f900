//! One file for each kind of request. A handler is: convert in, call, convert out; none waits for anything.

pub mod actions;
pub mod commands;
pub mod doctor;
pub mod heat;
pub mod hints;
pub mod hover;
pub mod jobs;
pub mod lenses;
pub mod rewrites;
pub mod runs;
pub mod state;
pub mod symbols;
