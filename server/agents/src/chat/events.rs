//! Cleans the body of an answer, so that what comes out is a stream of events of one JSON value each.
//!
//! Gone are keep-alives (comments, empty events, `data: : keepalive`), other fields, either kind of line end, bytes that end inside a
//! character, and events that are no JSON (they are counted). A server that answers plain JSON although a stream was asked for
//! looks as if it had sent one event.

use serde_json::{Value, json};

/// The end of a stream, as OpenAI marks it.
const DONE: &[u8] = b"[DONE]";

/// Larger values are not looked for in an event that goes on.
const LARGEST_EVENT: usize = 64 << 10;

/// Reads a body piece by piece.
#[derive(Debug, Default)]
pub(super) struct Cleaner {
    form: Form,
    /// What is not a whole line yet; for plain JSON, all of it.
    rest: Vec<u8>,
    /// The last byte was a carriage return, so a line feed belongs to it.
    is_after_return: bool,
    data: Vec<u8>,
    kind: String,
    pub(super) seen: Seen,
}

/// What a body turned out to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// The end was marked.
    pub(super) is_done: bool,
    /// It was JSON without events.
    pub(super) is_plain: bool,
    /// Events that were JSON.
    pub(super) events: usize,
    /// Events that were not.
    pub(super) odd: usize,
    /// It was JSON that is not complete.
    pub(super) is_cut: bool,
    /// How it begins, where it is neither events nor JSON.
    pub(super) other: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Form {
    #[default]
    Unknown,
    Events,
    Plain,
}

impl Cleaner {
    /// The clean events that `bytes` complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.rest.extend_from_slice(bytes);
        if self.form == Form::Unknown {
            let bare = self.rest.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&self.rest).trim_ascii_start();
            self.form = match bare.first() {
                // Part of a byte order mark.
                None | Some(0xef) if bare.len() < 3 => return Vec::new(),
                Some(b'{' | b'[' | b'<') => Form::Plain,
                _ => Form::Events,
            };
            self.rest = bare.to_vec();
        }
        let mut clean = Vec::new();
        if self.form == Form::Events {
            let rest = std::mem::take(&mut self.rest);
            let mut start = 0;
            for (at, byte) in rest.iter().enumerate() {
                let is_second_half = *byte == b'\n' && self.is_after_return && at == start;
                self.is_after_return = *byte == b'\r';
                if is_second_half {
                    start = at + 1;
                } else if matches!(byte, b'\n' | b'\r') {
                    self.line(&rest[start..at], &mut clean);
                    start = at + 1;
                }
            }
            self.rest = rest[start..].to_vec();
        }
        clean
    }

    /// What the end of the body completes.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let rest = std::mem::take(&mut self.rest);
        let mut clean = Vec::new();
        if self.form == Form::Plain {
            self.seen.is_plain = true;
            if !self.values(&rest, &mut clean) {
                self.seen.is_cut = !rest.starts_with(b"<");
                self.seen.other = Some(beginning(&rest)).filter(|_| !self.seen.is_cut);
            }
        } else {
            self.line(&rest, &mut clean);
            self.dispatch(&mut clean);
        }
        clean
    }

    fn line(&mut self, line: &[u8], clean: &mut Vec<u8>) {
        if line.is_empty() {
            return self.dispatch(clean);
        }
        if line.starts_with(b"{") {
            // A value without `data:` before it.
            self.dispatch(clean);
            self.data = line.to_vec();
            return self.dispatch(clean);
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"data" => {
                // Servers that put no empty line between two events.
                if (1..LARGEST_EVENT).contains(&self.data.len())
                    && serde_json::from_slice::<serde::de::IgnoredAny>(&self.data).is_ok()
                {
                    self.dispatch(clean);
                }
                if !self.data.is_empty() {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => self.kind = String::from_utf8_lossy(value).into_owned(),
            // `error: …` instead of an event.
            b"error" => {
                self.kind = "error".to_owned();
                self.data.extend_from_slice(value);
            }
            _ => {}
        }
    }

    fn dispatch(&mut self, clean: &mut Vec<u8>) {
        let data = std::mem::take(&mut self.data);
        let kind = std::mem::take(&mut self.kind);
        let data = data.trim_ascii();
        if data.is_empty() || data.starts_with(b":") || self.seen.is_done {
            return;
        }
        if data == DONE {
            self.seen.is_done = true;
            clean.extend_from_slice(b"data: [DONE]\n\n");
        } else if kind == "error" {
            let text = String::from_utf8_lossy(data).into_owned();
            let value = serde_json::from_slice(data).unwrap_or(json!({ "message": text }));
            let value = if value.get("error").is_some() { value } else { json!({ "error": value }) };
            self.emit(&value, clean);
        } else if !self.values(data, clean) {
            self.seen.odd += 1;
        }
    }

    /// Emits the JSON values in `data`; whether there is nothing else in it.
    fn values(&mut self, data: &[u8], clean: &mut Vec<u8>) -> bool {
        let read: Result<Vec<Value>, _> = serde_json::Deserializer::from_slice(data).into_iter().collect();
        let Ok(values) = read else { return false };
        for value in &values {
            match value {
                Value::Array(list) => list.iter().for_each(|value| self.emit(value, clean)),
                value => self.emit(value, clean),
            }
        }
        true
    }

    fn emit(&mut self, value: &Value, clean: &mut Vec<u8>) {
        self.seen.events += 1;
        clean.extend_from_slice(b"data: ");
        clean.extend_from_slice(value.to_string().as_bytes());
        clean.extend_from_slice(b"\n\n");
    }
}

/// The beginning of something that was not expected, in a line: the title of a page.
pub(super) fn beginning(bytes: &[u8]) -> String {
    const LONGEST: usize = 200;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(64 << 10)]).into_owned();
    let lower = text.to_ascii_lowercase();
    let title = lower.find("<title>").and_then(|at| {
        let end = lower[at..].find("</title>")?;
        Some(text[at + "<title>".len()..at + end].trim().to_owned())
    });
    let words =
        title.unwrap_or_else(|| if text.trim_start().starts_with('<') { without_tags(&text) } else { text });
    words.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(LONGEST).collect()
}

fn without_tags(page: &str) -> String {
    page.split('<')
        .map(|part| part.split_once('>').map_or(part, |(_, text)| text))
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The clean events of a body that is read in pieces of `size` bytes.
    fn cleaned(body: &[u8], size: usize) -> (Vec<String>, Seen) {
        let mut cleaner = Cleaner::default();
        let mut clean = Vec::new();
        body.chunks(size).for_each(|piece| clean.extend(cleaner.push(piece)));
        clean.extend(cleaner.finish());
        let text = String::from_utf8(clean).unwrap();
        let events =
            text.split_terminator("\n\n").map(|event| event.strip_prefix("data: ").unwrap().to_owned());
        (events.collect(), cleaner.seen)
    }

    #[test]
    fn however_it_is_cut_the_events_are_the_same() {
        let cases: &[(&str, &[&str])] = &[
            (
                ": ping\r\n\r\ndata: {\"a\":\"gr\u{fc}\u{df}\"}\r\n\r\ndata:{\"b\":1}\n\ndata: [DONE]\n\n",
                &["{\"a\":\"gr\u{fc}\u{df}\"}", "{\"b\":1}", "[DONE]"],
            ),
            ("\u{feff}data: {\"a\":1}\r\rdata: {\"b\":2}", &["{\"a\":1}", "{\"b\":2}"]),
            ("data: {\"a\":1}\ndata: {\"b\":2}\n\n", &["{\"a\":1}", "{\"b\":2}"]),
            ("data: {\"a\":\ndata: 1}\n\n", &["{\"a\":1}"]),
            ("event: ping\ndata:\n\ndata: : keepalive\n\ndata: ok\n\ndata: {}\n\n", &["{}"]),
            ("event: error\ndata: no room\n\n", &["{\"error\":{\"message\":\"no room\"}}"]),
            ("event: error\ndata: {\"error\":{\"message\":\"x\"}}\n\n", &["{\"error\":{\"message\":\"x\"}}"]),
            ("error: {\"message\":\"x\"}\n\n", &["{\"error\":{\"message\":\"x\"}}"]),
            ("\n\n{\n  \"choices\": []\n}\n", &["{\"choices\":[]}"]),
            ("{\"a\":1}\n{\"b\":2}\n", &["{\"a\":1}", "{\"b\":2}"]),
            ("data: [DONE]\n\ndata: {\"late\":1}\n\n", &["[DONE]"]),
            ("", &[]),
            ("\r\n", &[]),
        ];
        for (body, expected) in cases {
            for size in [1, 2, 3, 7, 4096] {
                assert_eq!(cleaned(body.as_bytes(), size).0, *expected, "{body:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn what_it_was_is_remembered() {
        let (_, seen) = cleaned(b"data: ok\n\ndata: {}\n\ndata: [DONE]\n\n", 5);
        assert_eq!(seen, Seen { is_done: true, events: 1, odd: 1, ..Seen::default() });
        let (_, seen) = cleaned(b"<html><head><title>Sign in\n please</title>", 5);
        assert_eq!(seen.other.as_deref(), Some("Sign in please"));
        assert!(cleaned(b"{\"choices\": [", 5).1.is_cut);
        assert!(cleaned(b"{}", 5).1.is_plain);
    }
}
