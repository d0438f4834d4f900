//! Rows of CSV between lines of anything else.
//!
//! Nsight Compute writes its CSV to the stream that the profiled program writes to as well. Its rows begin with a quote; what does not is
//! somebody's talk. A row may hold a line break inside quotes, so an open quote takes the next line in.

use std::io::{self, BufRead};

/// The longest line that is read; a raw page's header has about 100 KB.
const LONGEST: u64 = 8 << 20;

/// How many lines an open quote may take in.
const MOST_CONTINUED: usize = 32;

/// One line of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// A row of CSV.
    Row(Vec<String>),
    /// Anything else.
    Talk(String),
    /// A line that is longer than any row.
    TooLong,
}

/// Reads records from a stream.
pub(super) struct Records<R> {
    reader: R,
    /// A line that was read ahead.
    ahead: Option<String>,
    /// Set once a header without quotes was seen, since then rows have none either.
    bare: bool,
}

impl<R: BufRead> Records<R> {
    pub fn new(reader: R) -> Self {
        Self { reader, ahead: None, bare: false }
    }

    /// The next record, or `None` at the end.
    pub fn next(&mut self) -> io::Result<Option<Record>> {
        let Some(mut line) = self.line()? else { return Ok(None) };
        if line.len() as u64 >= LONGEST {
            return Ok(Some(Record::TooLong));
        }
        if let Some(at) = glued(&line) {
            // A program that does not end its last line: a page begins behind it.
            self.ahead = Some(line.split_off(at));
            return Ok(Some(Record::Talk(line)));
        }
        if !line.starts_with('"') {
            if !self.bare && bare_header(&line) {
                self.bare = true;
            }
            if !self.bare || line.starts_with("==") {
                return Ok(Some(Record::Talk(line)));
            }
            return Ok(Some(Record::Row(fields(&line))));
        }
        let mut continued = 0;
        while open_quote(&line) && continued < MOST_CONTINUED {
            match self.line()? {
                Some(next) if !next.starts_with('"') && !next.starts_with("==") => {
                    line.push('\n');
                    line.push_str(&next);
                    continued += 1;
                }
                other => {
                    self.ahead = other;
                    break;
                }
            }
        }
        Ok(Some(Record::Row(fields(&line))))
    }

    /// The next line without its end. What is no UTF-8 is replaced.
    fn line(&mut self) -> io::Result<Option<String>> {
        if let Some(line) = self.ahead.take() {
            return Ok(Some(line));
        }
        let mut bytes = Vec::new();
        let read = io::Read::take(&mut self.reader, LONGEST).read_until(b'\n', &mut bytes)?;
        if read == 0 {
            return Ok(None);
        }
        if bytes.len() as u64 == LONGEST && !bytes.ends_with(b"\n") {
            skip_line(&mut self.reader)?;
        }
        while matches!(bytes.last(), Some(b'\n' | b'\r')) {
            bytes.pop();
        }
        Ok(Some(String::from_utf8_lossy(&bytes).trim_start_matches('\u{feff}').to_owned()))
    }
}

/// Reads to the end of the line without keeping it.
fn skip_line(reader: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        let end = memchr(buffer);
        let length = end.map_or(buffer.len(), |at| at + 1);
        reader.consume(length);
        if end.is_some() {
            return Ok(());
        }
    }
}

fn memchr(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

/// Whether a line without quotes is a header, as a spreadsheet or a script writes it again.
pub(crate) fn bare_header(line: &str) -> bool {
    let mut columns = line.split(',').map(str::trim);
    columns.clone().any(|column| column == "Kernel Name")
        && columns.any(|column| column == "Context" || column == "Metric Name")
}

/// How the first rows of pages begin.
const FIRST: [&str; 4] =
    ["\"ID\",\"Process ID\"", "\"Kernel Name\",\"", "\"File Path\",", "\"Function Name\","];

/// Where a page begins in a line that begins with something else.
fn glued(line: &str) -> Option<usize> {
    let is_talk = !line.starts_with('"') && !line.starts_with("==");
    is_talk.then(|| FIRST.iter().filter_map(|first| line.find(first)).min()).flatten()
}

fn open_quote(line: &str) -> bool {
    line.bytes().filter(|byte| *byte == b'"').count() % 2 == 1
}

/// The fields of one row. A row that is no CSV gives the line itself.
fn fields(line: &str) -> Vec<String> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .buffer_capacity(line.len().clamp(64, 1 << 16))
        .from_reader(line.as_bytes());
    let mut record = csv::StringRecord::new();
    match reader.read_record(&mut record) {
        Ok(true) => record.iter().map(str::to_owned).collect(),
        _ => vec![line.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<Record> {
        let mut records = Records::new(text.as_bytes());
        std::iter::from_fn(|| records.next().unwrap()).collect()
    }

    #[test]
    fn rows_stand_between_talk_and_keep_their_commas_quotes_and_line_breaks() {
        let row = |fields: &[&str]| Record::Row(fields.iter().map(|field| (*field).to_owned()).collect());
        let talk = |line: &str| Record::Talk(line.to_owned());
        assert_eq!(
            all("loss=1, lr=2\r\n\"a\",\"f<1, 2>(\"\"x\"\")\"\r\n\"b\",\"one\ntwo\"\n==PROF== done\n"),
            [
                talk("loss=1, lr=2"),
                row(&["a", "f<1, 2>(\"x\")"]),
                row(&["b", "one\ntwo"]),
                talk("==PROF== done")
            ]
        );
    }

    #[test]
    fn a_page_behind_a_line_without_an_end_is_found() {
        let records = all("sum 4096\"ID\",\"Process ID\",\"Kernel Name\"\n\"0\",\"7\",\"k\"\n");
        let row = |fields: [&str; 3]| Record::Row(fields.map(str::to_owned).to_vec());
        assert_eq!(
            records,
            [Record::Talk("sum 4096".into()), row(["ID", "Process ID", "Kernel Name"]), row(["0", "7", "k"])]
        );
    }

    #[test]
    fn an_open_quote_does_not_swallow_the_rows_behind_it() {
        let records = all("\"the program said\n\"0\",\"1\"\n");
        assert_eq!(records.len(), 2);
        assert_eq!(records[1], Record::Row(vec!["0".into(), "1".into()]));
    }

    #[test]
    fn a_line_without_an_end_is_given_up() {
        let text = format!("\"{}\n\"0\",\"1\"\n", "x".repeat(LONGEST as usize + 10));
        let records = all(&text);
        assert_eq!(records, [Record::TooLong, Record::Row(vec!["0".into(), "1".into()])]);
    }
}
