//! One body read as JSON-RPC 2.0: a request, a notification, a response, or what is wrong with it.
//!
//! The envelope is read without its parameters, so that a message whose parameters are broken, nested too deeply or of
//! the wrong type is still answered under its own id. Ids are kept as written: a client may use any number or string, and gets it back
//! byte for byte.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use tower_lsp::jsonrpc::{Error, ErrorCode};

/// A request's id as the client wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RawId(Box<str>);

impl RawId {
    /// The id of an answer to something that has none.
    pub fn null() -> Self {
        Self("null".into())
    }

    /// Takes what JSON-RPC allows: a string, a number or null.
    fn of(raw: &RawValue) -> Option<Self> {
        let text = raw.get().trim();
        let allowed =
            text == "null" || text.starts_with(['"', '-']) || text.starts_with(|c: char| c.is_ascii_digit());
        allowed.then(|| Self(text.into()))
    }

    /// The id in `$/cancelRequest`.
    pub fn of_value(value: &Value) -> Self {
        Self(value.to_string().into())
    }

    /// As JSON.
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

/// A body, read.
#[derive(Debug)]
pub enum Message {
    /// To be answered.
    Request {
        /// Its id.
        id: RawId,
        /// Its method.
        method: String,
        /// Its parameters.
        params: Option<Value>,
    },
    /// Never answered.
    Notification {
        /// Its method.
        method: String,
        /// Its parameters.
        params: Option<Value>,
    },
    /// The answer to a request of ours.
    Response {
        /// The id of our request; ours are numbers.
        id: i64,
        /// What came.
        outcome: Result<Value, Error>,
    },
    /// To be answered with an error.
    Invalid {
        /// Its id, or null where it can't be known.
        id: RawId,
        /// What is wrong.
        error: Error,
        /// Whether the body is no JSON at all, so that its length is in doubt.
        unreadable: bool,
    },
    /// Wrong, and not to be answered: a notification, or a response to nothing.
    Ignored(String),
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Tells a field that is null from one that is not there.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&'a RawValue>::deserialize(deserializer).map(Some)
}

/// Reads one body.
pub fn read(body: &[u8]) -> Message {
    let text = match std::str::from_utf8(body) {
        Ok(text) => text,
        Err(error) => return unreadable(format!("The message is not UTF-8: {error}.")),
    };
    if text.trim_start().starts_with('[') {
        // Asked before the envelope is: serde reads an array as a struct, field by field in the order of its declaration.
        return match serde_json::from_str::<&RawValue>(text) {
            Ok(_) => invalid(
                RawId::null(),
                "The message is an array; batches are not part of LSP. Send the messages one by one.",
            ),
            Err(error) => unreadable(format!("The message is not JSON: {error}.")),
        };
    }
    match serde_json::from_str::<Envelope<'_>>(text) {
        Ok(envelope) => read_envelope(&envelope),
        Err(error) if !error.is_data() => unreadable(format!("The message is not JSON: {error}.")),
        Err(error) => match serde_json::from_str::<&RawValue>(text) {
            Ok(_) => invalid(RawId::null(), format!("The message is no JSON-RPC: {error}.")),
            Err(error) => unreadable(format!("The message is not JSON: {error}.")),
        },
    }
}

fn read_envelope(envelope: &Envelope<'_>) -> Message {
    let id = match envelope.id.map(|raw| RawId::of(raw).ok_or(())) {
        Some(Err(())) => return invalid(RawId::null(), "An id is a string or a number."),
        Some(Ok(id)) => Some(id),
        None => None,
    };
    let version = envelope.jsonrpc.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    if version.as_deref() != Some("2.0") {
        return invalid(id.unwrap_or_else(RawId::null), "`jsonrpc` must be \"2.0\".");
    }
    match envelope.method.map(|raw| serde_json::from_str::<String>(raw.get())) {
        Some(Ok(method)) => with_method(id, method, envelope.params),
        Some(Err(_)) => invalid(id.unwrap_or_else(RawId::null), "`method` must be a string."),
        None if envelope.result.is_some() || envelope.error.is_some() => read_response(envelope),
        None => invalid(id.unwrap_or_else(RawId::null), "The message has no `method`."),
    }
}

fn with_method(id: Option<RawId>, method: String, params: Option<&RawValue>) -> Message {
    let params = match params.map(read_params).transpose() {
        Ok(params) => params,
        Err(error) => {
            let message = format!("The parameters of `{method}` can't be read: {error}.");
            return match id {
                Some(id) => Message::Invalid { id, error: Error::invalid_params(message), unreadable: false },
                None => Message::Ignored(message),
            };
        }
    };
    match id {
        Some(id) => Message::Request { id, method, params },
        None => Message::Notification { method, params },
    }
}

fn read_params(raw: &RawValue) -> serde_json::Result<Value> {
    serde_json::from_str(raw.get()).or_else(|error| match replace_lone_surrogates(raw.get()) {
        Some(repaired) => serde_json::from_str(&repaired),
        None => Err(error),
    })
}

/// Half of a surrogate pair as `\ud83d` is what a JavaScript client sends for half a character. Rust's strings can't hold
/// it, so U+FFFD stands for it, which has the same length in UTF-16. `None` if there is none.
fn replace_lone_surrogates(json: &str) -> Option<String> {
    let unit = |at: usize| {
        let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut repaired = String::with_capacity(json.len());
    let (mut kept, mut at, mut found) = (0, 0, false);
    while let Some(next) = memchr::memchr(b'\\', &json.as_bytes()[at..]) {
        at += next;
        let low = |at| unit(at).is_some_and(|unit| (0xDC00..0xE000).contains(&unit));
        match unit(at) {
            Some(0xD800..=0xDBFF) if low(at + 6) => at += 12,
            Some(0xD800..=0xDFFF) => {
                repaired.push_str(&json[kept..at]);
                repaired.push_str("\\ufffd");
                at += 6;
                (kept, found) = (at, true);
            }
            _ => at = (at + 2).min(json.len()),
        }
    }
    repaired.push_str(&json[kept..]);
    found.then_some(repaired)
}

fn read_response(envelope: &Envelope<'_>) -> Message {
    let Some(id) = envelope.id.and_then(|raw| raw.get().parse::<i64>().ok()) else {
        return Message::Ignored("A response under an id that is none of ours.".into());
    };
    let outcome = match (envelope.error, envelope.result) {
        (Some(error), _) if error.get() != "null" => Err(read_error(error)),
        (_, Some(result)) => read_params(result).map_err(|error| Error::invalid_params(error.to_string())),
        (_, None) => Ok(Value::Null),
    };
    Message::Response { id, outcome }
}

fn read_error(raw: &RawValue) -> Error {
    let value = read_params(raw).unwrap_or_default();
    Error {
        code: ErrorCode::from(value["code"].as_i64().unwrap_or(ErrorCode::InternalError.code())),
        message: value["message"].as_str().unwrap_or("The client gave no reason.").to_owned().into(),
        data: None,
    }
}

fn invalid(id: RawId, message: impl Into<String>) -> Message {
    let message = message.into().into();
    Message::Invalid {
        id,
        error: Error { code: ErrorCode::InvalidRequest, message, data: None },
        unreadable: false,
    }
}

fn unreadable(message: String) -> Message {
    let error = Error { code: ErrorCode::ParseError, message: message.into(), data: None };
    Message::Invalid { id: RawId::null(), error, unreadable: true }
}

/// A notification as JSON; `params` are JSON already.
pub fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}

/// A response as JSON.
pub fn response(id: &RawId, outcome: &Result<Value, Error>) -> String {
    let id = id.as_json();
    match outcome {
        Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
        Err(error) => {
            let error =
                serde_json::to_string(error).unwrap_or_else(|_| r#"{"code":-32603,"message":""}"#.into());
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message in a few words: `request 1 m`, `notification m`, `response 1`, `error null -32700`, `ignored`.
    fn summary(body: &[u8]) -> String {
        match read(body) {
            Message::Request { id, method, params } => {
                format!("request {} {method} {}", id.as_json(), params.unwrap_or("none".into()))
            }
            Message::Notification { method, .. } => format!("notification {method}"),
            Message::Response { id, outcome } => format!("response {id} {}", outcome.is_ok()),
            Message::Invalid { id, error, .. } => format!("error {} {}", id.as_json(), error.code.code()),
            Message::Ignored(_) => "ignored".into(),
        }
    }

    #[test]
    fn bodies_are_read_as_json_rpc_says() {
        let deep = |count: usize| format!("{}{}", "[".repeat(count), "]".repeat(count));
        let deep_params = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{}}}"#, deep(100_000));
        let deep_notification = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{}}}"#, deep(100_000));
        let deep_id = format!(r#"{{"jsonrpc":"2.0","id":{},"method":"m"}}"#, deep(100_000));
        let (deep_array, unclosed) = (deep(100_000), "[".repeat(100_000));
        let rows: &[(&str, &str)] = &[
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}"#, r#"request 1 m {"a":1}"#),
            (r#"{"jsonrpc":"2.0","id":"x\"y","method":"m"}"#, r#"request "x\"y" m "none""#),
            (r#"{"jsonrpc":"2.0","id":1.50,"method":"m"}"#, r#"request 1.50 m "none""#),
            (r#"{"jsonrpc":"2.0","id":1e400,"method":"m"}"#, r#"request 1e400 m "none""#),
            (
                r#"{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"m"}"#,
                r#"request 123456789012345678901234567890 m "none""#,
            ),
            (r#"{"jsonrpc":"2.0","id":null,"method":"m","params":null}"#, "request null m null"),
            (r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#, "error null -32600"),
            (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, "error null -32600"),
            (r#"{"jsonrpc":"2.0","id":3,"method":4}"#, "error 3 -32600"),
            (r#"{"jsonrpc":"2.0","id":3}"#, "error 3 -32600"),
            (r#"{"jsonrpc":"1.0","id":3,"method":"m"}"#, "error 3 -32600"),
            (r#"{"id":3,"method":"m"}"#, "error 3 -32600"),
            (r#"{"jsonrpc":"2.0","id":3,"id":4,"method":"m"}"#, "error null -32600"),
            (r#"{}"#, "error null -32600"),
            (r#"{"jsonrpc":"2.0","method":"m"}"#, "notification m"),
            (r#"{"jsonrpc":"2.0","id":3,"result":null}"#, "response 3 true"),
            (r#"{"jsonrpc":"2.0","id":3,"result":1,"error":null}"#, "response 3 true"),
            (r#"{"jsonrpc":"2.0","id":3,"error":{"code":"x","more":1}}"#, "response 3 false"),
            (r#"{"jsonrpc":"2.0","id":"x","result":1}"#, "ignored"),
            ("[]", "error null -32600"),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"m"}]"#, "error null -32600"),
            (r#"["2.0",7,"m"]"#, "error null -32600"),
            (r#" ["2.0",7,"m",{},null,null]"#, "error null -32600"),
            ("[1,2]", "error null -32600"),
            (r#"["2.0",null,null,null,1]"#, "error null -32600"),
            ("[1,", "error null -32700"),
            ("17", "error null -32600"),
            (r#""text""#, "error null -32600"),
            ("17 18", "error null -32700"),
            ("", "error null -32700"),
            ("{", "error null -32700"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m"}}"#, "error null -32700"),
            (&deep_params, "error 7 -32602"),
            (&deep_notification, "ignored"),
            (&deep_id, "error null -32600"),
            (&deep_array, "error null -32600"),
            (&unclosed, "error null -32700"),
        ];
        for (body, expected) in rows {
            assert_eq!(&summary(body.as_bytes()), expected, "{}", &body[..body.len().min(80)]);
        }
        assert_eq!(summary(b"\xff\xfe{}"), "error null -32700");
    }

    #[test]
    fn half_a_surrogate_pair_does_not_cost_the_text() {
        let body = br#"{"jsonrpc":"2.0","id":1,"method":"m","params":["a\ud83d","\ude00\\ud800","\ud83d\ude00","\\\ud800"]}"#;
        assert_eq!(
            summary(body),
            "request 1 m [\"a\u{fffd}\",\"\u{fffd}\\\\ud800\",\"\u{1F600}\",\"\\\\\u{fffd}\"]"
        );
    }

    #[test]
    fn a_response_keeps_the_id_as_written() {
        let Message::Request { id, .. } = read(br#"{"jsonrpc":"2.0","id": 1.50 ,"method":"m"}"#) else {
            panic!("a request")
        };
        assert_eq!(response(&id, &Ok(Value::Null)), r#"{"jsonrpc":"2.0","id":1.50,"result":null}"#);
    }
}
