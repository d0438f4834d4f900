//! What can go wrong with one try, and what follows from it: wait and send again, send again with something left out, or give up
//! and say what to do.

use std::time::Duration;

use super::reply::Told;

/// What went wrong with one try.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(super) enum Trouble {
    /// No connection, or it broke before an answer.
    #[error("no connection: {0}")]
    Connect(String),
    /// The connection broke in the middle of the answer, or it ended without its end.
    #[error("the answer broke off after {bytes} bytes ({why})")]
    Broken {
        /// Bytes of text that had come.
        bytes: usize,
        /// How it broke.
        why: String,
    },
    /// Nothing came for too long.
    #[error("nothing came for {} s", .0.as_secs_f64())]
    Idle(Duration),
    /// More came than an answer can have.
    #[error("the answer has more than {0} bytes and no end")]
    Endless(usize),
    /// An answer that is none of a chat.
    #[error("the answer is none of a chat: \"{0}\"")]
    Strange(String),
    /// The endpoint points elsewhere.
    #[error("the endpoint points to {0}")]
    Elsewhere(String),
    /// The endpoint refuses.
    #[error("{status}{}", if told.message.is_empty() { String::new() } else { format!(": {}", told.message) })]
    Refused {
        /// The status, or the one that stands for an error inside an answer of 200.
        status: u16,
        /// What it says.
        told: Told,
        /// How long it asks to wait.
        asked_delay: Option<Duration>,
    },
}

/// What of a request some endpoints don't take. What one of them refused is left out from then on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Quirks {
    pub(super) no_stream: bool,
    pub(super) no_stream_options: bool,
    pub(super) no_temperature: bool,
    pub(super) no_max_tokens: bool,
    /// The limit is called `max_completion_tokens`.
    pub(super) completion_tokens: bool,
    /// There is no role `system`; its text goes before the first of the user.
    pub(super) no_system: bool,
}

/// Words with which endpoints say that a parameter is wrong.
const REFUSES_PARAMETER: [&str; 17] = [
    "unsupported",
    "not supported",
    "does not support",
    "doesn't support",
    "unknown",
    "unrecognized",
    "unexpected",
    "invalid",
    "extra",
    "not permitted",
    "not allowed",
    "only the default",
    "instead",
    "too large",
    "at most",
    "must be",
    "can only",
];

/// Words with which endpoints say that the question is too long.
const TOO_LONG: [&str; 12] = [
    "context_length",
    "context length",
    "context window",
    "context size",
    "maximum context",
    "max context",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "reduce the length",
    "exceeds the available context",
    "larger than the maximum number of tokens",
];

/// Words of a limit that no waiting lifts.
const NO_MONEY: [&str; 5] = [
    "insufficient_quota",
    "exceeded your current quota",
    "billing",
    "credit balance",
    "insufficient credits",
];

impl Trouble {
    /// Whether sending the same again may help.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Connect(_) | Self::Broken { .. } | Self::Idle(_) => true,
            Self::Endless(_) | Self::Strange(_) | Self::Elsewhere(_) => false,
            Self::Refused { status, .. } => {
                let is_busy = matches!(status, 408 | 409 | 425 | 429) || (*status >= 500 && *status != 501);
                is_busy && !self.is_about_money()
            }
        }
    }

    fn told(&self) -> Option<(u16, &Told)> {
        match self {
            Self::Refused { status, told, .. } => Some((*status, told)),
            _ => None,
        }
    }

    /// All that is said, in small letters.
    fn words(&self) -> String {
        self.told()
            .map(|(_, told)| format!("{} {}", told.kind, told.message).to_lowercase())
            .unwrap_or_default()
    }

    pub(super) fn is_about_money(&self) -> bool {
        let words = self.words();
        self.told().is_some_and(|(status, _)| status == 402)
            || NO_MONEY.iter().any(|word| words.contains(word))
    }

    /// Whether the question is longer than the model can read.
    pub(super) fn is_too_long(&self) -> bool {
        let Some((status, _)) = self.told() else { return false };
        let words = self.words();
        status == 413
            || (matches!(status, 400 | 422 | 500) && TOO_LONG.iter().any(|word| words.contains(word)))
    }

    /// What to leave out so that the endpoint takes the request, if it refused a parameter; with its name.
    pub(super) fn quirk(&self, quirks: Quirks, sends_limit: bool) -> Option<(Quirks, &'static str)> {
        let (status, told) = self.told()?;
        if !matches!(status, 400 | 404 | 405 | 422 | 500 | 501) {
            return None;
        }
        let words = self.words();
        if self.is_too_long() {
            // A limit that is larger than the room left is counted as part of the question by some.
            let is_limit =
                sends_limit && ["completion", "max_tokens", "output"].iter().any(|word| words.contains(word));
            return is_limit.then_some((Quirks { no_max_tokens: true, ..quirks }, "the limit of tokens"));
        }
        let is_refused = REFUSES_PARAMETER.iter().any(|word| words.contains(word));
        let names = |name: &str| {
            told.parameter.as_deref() == Some(name)
                || (is_refused
                    && words.split(|one: char| !one.is_alphanumeric() && one != '_').any(|word| word == name))
        };
        if !quirks.no_stream_options && names("stream_options") {
            Some((Quirks { no_stream_options: true, ..quirks }, "`stream_options`"))
        } else if sends_limit
            && !quirks.completion_tokens
            && words.contains("max_completion_tokens")
            && names("max_tokens")
        {
            Some((
                Quirks { completion_tokens: true, ..quirks },
                "`max_tokens`, in its place `max_completion_tokens`",
            ))
        } else if sends_limit && (names("max_tokens") || names("max_completion_tokens")) {
            Some((Quirks { no_max_tokens: true, ..quirks }, "the limit of tokens"))
        } else if !quirks.no_temperature && names("temperature") {
            Some((Quirks { no_temperature: true, ..quirks }, "`temperature`"))
        } else if !quirks.no_stream && (names("stream") || (is_refused && words.contains("streaming"))) {
            Some((Quirks { no_stream: true, no_stream_options: true, ..quirks }, "`stream`"))
        } else if !quirks.no_system && is_refused && words.contains("system") && words.contains("role") {
            Some((Quirks { no_system: true, ..quirks }, "the role `system`"))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, kind: &str, message: &str) -> Trouble {
        let told = Told { message: message.to_owned(), kind: kind.to_owned(), ..Told::default() };
        Trouble::Refused { status, told, asked_delay: None }
    }

    #[test]
    fn refused_parameters_are_told_from_other_refusals() {
        let quirk = |status, message: &str| {
            refused(status, "", message).quirk(Quirks::default(), true).map(|(_, what)| what)
        };
        let cases = [
            // As OpenAI, vLLM, Mistral, llama.cpp and a chat template say it.
            (
                400,
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                Some("`max_tokens`, in its place `max_completion_tokens`"),
            ),
            (
                400,
                "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
                Some("`temperature`"),
            ),
            (
                422,
                "[{'type': 'extra_forbidden', 'loc': ['body', 'stream_options'], 'msg': 'Extra inputs are not permitted'}]",
                Some("`stream_options`"),
            ),
            (
                400,
                "max_tokens is too large: 16384. This model supports at most 4096 completion tokens.",
                Some("the limit of tokens"),
            ),
            (
                400,
                "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (1000 in the messages, 8000 in the completion).",
                Some("the limit of tokens"),
            ),
            (
                400,
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
                None,
            ),
            (400, "Streaming is not supported for this model", Some("`stream`")),
            (500, "System role not supported", Some("the role `system`")),
            (400, "Invalid request: the model `x` does not exist", None),
            (401, "Invalid temperature", None),
        ];
        for (status, message, expected) in cases {
            assert_eq!(quirk(status, message), expected, "{message}");
        }
    }

    #[test]
    fn only_what_passes_is_sent_again() {
        assert!(refused(429, "rate_limit_exceeded", "Rate limit reached").is_passing());
        assert!(!refused(429, "insufficient_quota", "You exceeded your current quota").is_passing());
        assert!(refused(529, "overloaded_error", "").is_passing());
        assert!(!refused(400, "", "").is_passing() && !refused(501, "", "").is_passing());
        assert!(Trouble::Connect(String::new()).is_passing());
        assert!(!Trouble::Endless(1).is_passing());
        assert!(refused(400, "context_length_exceeded", "").is_too_long());
        assert!(refused(413, "", "").is_too_long());
        assert!(!refused(429, "", "too many tokens per minute").is_too_long());
    }
}
