//! Whether two programs gave the same answer: what they printed, and the arrays that they made.
//!
//! An error is relative, for an absolute one says nothing where the right values are tiny: an answer of zeros lies within 1e-2
//! of a softmax. NaN is no number: it equals NaN and nothing else. What is compared keeps its order, and comparing nothing is
//! told apart from finding no difference.
//!
//! Pure: texts and bytes come in, plain data goes out.

mod align;
mod array;
mod bytes;
mod element;
mod number;
mod text;
mod token;

use serde::{Deserialize, Serialize};

pub use array::{ArrayComparison, Worst, compare_arrays};
pub use bytes::{BytesComparison, Interpretation, Types, Why, compare_bytes, interpret};
pub use element::ElementType;
pub use number::{relative_error, same_number};
pub use text::{Exclusion, Reason, TextComparison, compare_text};

/// One place where the candidate's answer is another than the reference's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Where: `line 3`, `element 17`.
    pub place: String,
    /// What the reference has there.
    pub expected: String,
    /// What the candidate has there.
    pub got: String,
    /// The difference over the larger of the two, where both are finite numbers.
    pub relative: Option<f64>,
}
