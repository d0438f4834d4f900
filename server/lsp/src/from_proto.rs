//! What clients send about documents, read leniently and turned into our own terms.
//!
//! These three notifications carry the text itself: refusing one for a detail (a version that is null, a URI with a space, a
//! column past 2³¹) would leave the server with another text than the editor's, for good.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use stitch_analysis::{Encoding, Position, Text};
use stitch_findings::Span;
use tower_lsp::ls_types;

/// `textDocument/didOpen`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Opened {
    /// The document.
    pub text_document: OpenedDocument,
}

/// A document with its text.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenedDocument {
    /// As the client spells it.
    pub uri: String,
    /// The editor's name for the language.
    #[serde(default)]
    pub language_id: String,
    /// Its version, where the client counts them.
    #[serde(default, deserialize_with = "version")]
    pub version: Option<i32>,
    /// All of it.
    pub text: String,
}

/// `textDocument/didChange`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Changed {
    /// Which.
    pub text_document: Versioned,
    /// The changes, each made to the result of the one before.
    pub content_changes: Vec<Change>,
}

/// A document by name and version.
#[derive(Debug, Deserialize)]
pub struct Versioned {
    /// As the client spells it.
    pub uri: String,
    /// The version after the change.
    #[serde(default, deserialize_with = "version")]
    pub version: Option<i32>,
}

/// One change: of a range, or of all.
#[derive(Debug, Deserialize)]
pub struct Change {
    /// What is replaced; everything if there is none.
    #[serde(default)]
    pub range: Option<Range>,
    /// By what.
    pub text: String,
}

/// `textDocument/didClose`, and whatever else only names a document.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Named {
    /// Which.
    pub text_document: Versioned,
}

/// A range as a client gives it.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Range {
    start: Point,
    end: Point,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct Point {
    #[serde(deserialize_with = "clamped")]
    line: u32,
    #[serde(deserialize_with = "clamped")]
    character: u32,
}

/// A version that is no number in range is as good as none.
fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i32>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(value.as_i64().and_then(|version| i32::try_from(version).ok()))
}

/// Positions beyond all bounds are clamped, as LSP asks for those past a line.
fn clamped<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let number = f64::deserialize(deserializer)?;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates, which is the point"
    )]
    Ok(number as u32)
}

/// The bytes of a range; a reversed one is turned round.
pub fn span(range: Range, text: &Text, encoding: Encoding) -> Span {
    let offset =
        |point: Point| text.offset(Position { line: point.line, character: point.character }, encoding);
    let (start, end) = (offset(range.start), offset(range.end));
    Span::new(start.min(end), start.max(end))
}

/// The byte at a position.
pub fn offset(position: ls_types::Position, text: &Text, encoding: Encoding) -> usize {
    text.offset(Position { line: position.line, character: position.character }, encoding)
}

/// The bytes of a range in a request.
pub fn request_span(range: ls_types::Range, text: &Text, encoding: Encoding) -> Span {
    let (start, end) = (offset(range.start, text, encoding), offset(range.end, text, encoding));
    Span::new(start.min(end), start.max(end))
}
