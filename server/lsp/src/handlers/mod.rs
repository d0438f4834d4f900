//! One file for each kind of request. A handler is: convert in, call, convert out; none waits for anything.

pub mod actions;
pub mod commands;
pub mod hints;
pub mod hover;
pub mod lenses;
pub mod rewrites;
pub mod symbols;
