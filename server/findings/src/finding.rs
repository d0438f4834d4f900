//! One thing worth telling a person or the Coder.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Code, Span};

/// How much a finding matters. Performance is information or a hint, never a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Does not compile, or computes wrong.
    Error,
    /// A likely defect.
    Warning,
    /// Costs time or memory, and is worth reading.
    Information,
    /// Minor.
    Hint,
}

/// One finding, at a place in one text. The store keeps which document that is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// What kind of finding.
    pub code: Code,
    /// How much it matters here; the code's own severity unless configured or overruled.
    pub severity: Severity,
    /// Where, in bytes of the text it was made from.
    pub span: Span,
    /// What was found, in one or two sentences, with the evidence (names, numbers).
    pub message: String,
    /// What to do about it, in one sentence.
    pub advice: Option<String>,
    /// The kernel or function concerned, by its name in the source.
    pub subject: Option<String>,
    /// Other places that explain this one.
    pub related: Vec<Related>,
}

impl Finding {
    /// A finding with the severity of its code, and nothing related.
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: code.info().severity,
            span,
            message: message.into(),
            advice: None,
            subject: None,
            related: Vec::new(),
        }
    }

    /// The same, with what to do.
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// The same, about the kernel or function `name`.
    pub fn about(mut self, name: impl Into<String>) -> Self {
        self.subject = Some(name.into());
        self
    }

    /// The same, with another place that explains it.
    pub fn relate(mut self, place: Place, message: impl Into<String>) -> Self {
        self.related.push(Related { place, message: message.into() });
        self
    }
}

/// A place that helps to understand a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Related {
    /// Where.
    pub place: Place,
    /// What is there.
    pub message: String,
}

/// A place in this text, or in another file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// In the same text as the finding.
    Here(Span),
    /// In another file, by line and column counted from zero; the column counts bytes.
    File {
        /// The file, absolute.
        path: PathBuf,
        /// Line, from zero.
        line: u32,
        /// Byte in the line, from zero.
        column: u32,
    },
}
