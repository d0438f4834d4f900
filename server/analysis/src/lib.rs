//! Reads CUDA and PyTorch sources: documents, kernels, launches, modules, and the static rules.
//!
//! **Invariant:** no I/O. Text comes in, plain data goes out, in the byte offsets of that text.

mod analysis;
mod cuda;
mod decode;
mod language;
mod outline;
mod python;
mod reparse;
pub mod rewrites;
mod rules;
mod text;

pub use analysis::{Analysis, Analyzer, CutOff};
pub use cuda::{Assumed, Workspace, assume, words};
pub use decode::{Decoded, decode};
pub use language::Language;
pub use outline::{
    ArgumentFacts, Expression, Function, FunctionKind, Launch, LaunchBounds, Method, Module, ModulePart,
    Outline, Parameter, TemplateParameter,
};
pub use python::target;
pub use python::{Unit, UnitRole, UnknownSource};
pub use text::{Encoding, Position, Text};
