//! What StitchCUDA knows about a piece of code, and where: findings, measurements, the anchors that keep them on
//! their line while a person types, and the store that holds them by producer.
//!
//! Findings are the currency of the whole project: the same [`Finding`] goes to the Problems panel, to the terminal,
//! to the Coder's prompt and to the training data. So this crate knows no editor, no compiler and no profiler.
//!
//! **Invariant:** no I/O, no LSP types, no clock.

mod anchor;
mod call;
mod code;
mod evidence;
mod finding;
mod link;
mod measurement;
mod nest;
mod store;
mod text;
mod verdict;

pub use anchor::{Anchor, AnchorState, Scope};
pub use call::{Argument, VerifiedCall};
pub use code::{CODES, Code, CodeInfo, Producer};
pub use evidence::{
    Accuracy, Degenerate, Evidence, Making, Memory, Parameters, Sanitized, Speedup, Stage, Times, Tried,
    Versions,
};
pub use finding::{Finding, Place, Related, Severity};
pub use measurement::{Measurement, Provenance, Quantity, Unit};
pub use nest::Nest;
pub use store::{Anchored, Batch, DocumentId, Store};
pub use text::{Edit, ReadText, Span};
pub use verdict::{Answer, Compared, Inputs, LeftOut, Verdict, verdict_schema};
