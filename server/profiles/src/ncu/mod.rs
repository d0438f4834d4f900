//! What Nsight Compute printed: its raw, details and source pages as CSV, mixed with whatever the profiled program printed.
//!
//! A page is told by its header row, wherever that stands. A value that is empty, `nan`, `inf` or `n/a` was not measured. Pages of one
//! session that came in several files are put together with [`Report::merge`].

mod details;
mod numbers;
mod raw;
mod records;
mod report;
mod select;
mod source;

pub use crate::kernel::kernel_name;
pub(crate) use records::bare_header;
pub use report::{NOT_PERMITTED, NcuError, Report, read};
pub use select::{Depth, Selection, Unanswered, available, select, unanswered};
