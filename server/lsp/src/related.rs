//! Places in other files that explain a finding: their columns, as the client counts them.
//!
//! The compiler's are bytes of the text that it read. They are counted anew when its report comes in, with that text at hand;
//! from then on they are the client's, and no publish has to read files.

use std::collections::HashMap;
use std::path::PathBuf;

use stitch_analysis::{Encoding, Text};
use stitch_findings::Place;
use stitch_verifier::compile::FileReport;
use stitch_verifier::includes;

/// Makes the columns of places in other files count units of `encoding`. Reads files that no report has the text of; a column in
/// one that can't be read stays as it is.
pub fn count_as_client(files: &mut [FileReport], encoding: Encoding) {
    if encoding == Encoding::Utf8 {
        return;
    }
    let known = |file: &FileReport| (file.path.clone(), Some(Text::new(&file.text)));
    let mut texts: HashMap<PathBuf, Option<Text>> = HashMap::new();
    if files.iter().flat_map(|file| &file.findings).any(|finding| !finding.related.is_empty()) {
        texts.extend(files.iter().map(known));
    }
    let findings = files.iter_mut().flat_map(|file| &mut file.findings);
    for related in findings.flat_map(|finding| &mut finding.related) {
        let Place::File { path, line, column } = &mut related.place else { continue };
        // The start of a line needs no text.
        if *column == 0 {
            continue;
        }
        let read = || includes::read(path).map(|text| Text::new(&text));
        if let Some(text) = texts.entry(path.clone()).or_insert_with(read) {
            *column = text.column(*line, *column, encoding);
        }
    }
}
