//! Places in source files.

/// A place in a source file, as `.loc` names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SourcePlace {
    /// Path as the PTX names it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 where none is named.
    pub column: u32,
    /// The place's function, where it was inlined: its mangled name.
    pub function: Option<String>,
    /// Where it was inlined: file, line, column.
    pub inlined_at: Option<(String, u32, u32)>,
}
