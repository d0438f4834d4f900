//! What an endpoint answers, read leniently: fields may be missing, null, of another type, or under another server's name.

use serde_json::Value;

/// Why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The model was done.
    Stop,
    /// The limit of tokens was reached.
    Length,
    /// The endpoint held it back.
    Filtered,
    /// The model wanted to call a tool.
    Tool,
    /// The endpoint failed.
    Failed,
}

impl Finish {
    /// What a word of the many servers means; words that are not known mean that the model was done.
    fn of(word: &str) -> Self {
        match word.to_ascii_lowercase().as_str() {
            "length" | "max_tokens" | "max_length" | "model_length" | "max_output_tokens" | "token_limit" => {
                Self::Length
            }
            "content_filter" | "safety" | "recitation" | "refusal" | "blocked" | "prohibited_content" => {
                Self::Filtered
            }
            "tool_calls" | "tool_call" | "tool_use" | "function_call" => Self::Tool,
            "error" | "engine_error" | "abort" | "timeout" => Self::Failed,
            _ => Self::Stop,
        }
    }
}

/// An answer, as far as it has come.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// What was answered.
    pub text: String,
    /// What the model thought, where the endpoint says it apart from the text.
    pub thinking: String,
    /// Why it ended; `None` where the endpoint did not say.
    pub finish: Option<Finish>,
    /// The same in the endpoint's word.
    pub finish_word: Option<String>,
    /// Tools that the model wanted to call.
    pub tools: Vec<String>,
    /// Why the model will not answer, where it says so apart from the text.
    pub refusal: String,
    /// Tokens of the question and of the answer, where the endpoint says both.
    pub usage: Option<(u64, u64)>,
    /// The model, as the endpoint calls it.
    pub model: Option<String>,
    /// What was unusual, each in a sentence.
    pub notes: Vec<String>,
}

/// An error that an endpoint tells in the body of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) message: String,
    /// `code` and `type`, in small letters.
    pub(super) kind: String,
    /// The parameter that it is about.
    pub(super) parameter: Option<String>,
    /// A status that the body states.
    pub(super) status: Option<u16>,
}

impl Reply {
    /// Bytes that have come.
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + self.thinking.len()
    }

    /// Takes in one event of a stream, or a whole answer; whether it was one.
    ///
    /// # Errors
    /// It is an error.
    pub(super) fn take(&mut self, event: &Value) -> Result<bool, Told> {
        let choices = event.get("choices").and_then(Value::as_array);
        if let Some(told) = Told::of(event)
            && (event.get("error").is_some_and(|error| !error.is_null()) || choices.is_none())
        {
            return Err(told);
        }
        if self.model.is_none() {
            self.model = text_at(event, "model").filter(|name| !name.is_empty());
        }
        let usages = [event.get("usage"), event.pointer("/x_groq/usage")];
        if let Some(usage) = usages.into_iter().flatten().find_map(usage) {
            self.usage = Some(usage);
        }
        for choice in choices.into_iter().flatten() {
            if choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0 {
                self.choice(choice);
            }
        }
        Ok(choices.is_some())
    }

    fn choice(&mut self, choice: &Value) {
        let delta = choice.get("delta").filter(|delta| delta.is_object());
        // Some servers repeat all of the text in the last event.
        let message = choice.get("message").filter(|_| self.bytes() == 0);
        for part in [delta, message].into_iter().flatten() {
            self.text.push_str(&content(part.get("content")));
            let thought = ["reasoning_content", "reasoning", "thinking"].iter().find_map(|name| {
                part.get(*name).map(|value| content(Some(value))).filter(|text| !text.is_empty())
            });
            self.thinking.push_str(&thought.unwrap_or_default());
            self.refusal.push_str(&text_at(part, "refusal").unwrap_or_default());
            let calls = part.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
            let names = calls
                .filter_map(|call| call.pointer("/function/name"))
                .chain(part.pointer("/function_call/name"));
            self.tools
                .extend(names.filter_map(Value::as_str).filter(|name| !name.is_empty()).map(str::to_owned));
        }
        if delta.is_none() && message.is_none() && self.bytes() == 0 {
            self.text.push_str(&content(choice.get("text")));
        }
        if let Some(word) = text_at(choice, "finish_reason").or_else(|| text_at(choice, "finishReason")) {
            self.finish = Some(Finish::of(&word));
            self.finish_word = Some(word);
        }
    }
}

fn text_at(value: &Value, name: &str) -> Option<String> {
    value.get(name).and_then(Value::as_str).map(str::to_owned)
}

/// Content as a text, as a list of parts, or as none.
fn content(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts
            .iter()
            .map(|part| match part {
                Value::String(text) => text.clone(),
                part => text_at(part, "text").unwrap_or_default(),
            })
            .collect(),
        Some(part @ Value::Object(_)) => text_at(part, "text").unwrap_or_default(),
        _ => String::new(),
    }
}

fn usage(value: &Value) -> Option<(u64, u64)> {
    let number = |names: [&str; 2]| names.iter().find_map(|name| value.get(*name).and_then(Value::as_u64));
    Some((number(["prompt_tokens", "input_tokens"])?, number(["completion_tokens", "output_tokens"])?))
}

impl Told {
    /// The error that a body tells, in the words of OpenAI, FastAPI, and others.
    pub(super) fn of(body: &Value) -> Option<Self> {
        let error = match body.get("error").filter(|error| !error.is_null()) {
            Some(Value::String(text)) => {
                return Some(Self { message: text.clone(), kind: String::new(), ..Self::default() });
            }
            Some(Value::Array(list)) => list.first()?,
            Some(error) => error,
            None => body,
        };
        let message = text_at(error, "message")
            .or_else(|| text_at(error, "detail"))
            .or_else(|| text_at(error, "msg"))
            .or_else(|| error.get("detail").filter(|detail| !detail.is_null()).map(Value::to_string))
            .or_else(|| body.get("error").filter(|error| !error.is_null()).map(Value::to_string))?;
        let words = ["code", "type", "status"].iter().filter_map(|name| text_at(error, name));
        let numbers = ["code", "status", "status_code"].iter();
        let status = numbers.filter_map(|name| error.get(*name)).find_map(|value| {
            let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
            u16::try_from(number).ok().filter(|status| (400..600).contains(status))
        });
        Some(Self {
            message,
            kind: words.collect::<Vec<_>>().join(" ").to_lowercase(),
            parameter: text_at(error, "param"),
            status,
        })
    }

    /// The status that stands for it, where it came inside an answer of 200.
    pub(super) fn status_inside(&self) -> u16 {
        let is = |words: &[&str]| words.iter().any(|word| self.kind.contains(word));
        self.status.unwrap_or(if is(&["rate_limit", "quota", "too_many"]) {
            429
        } else if is(&["auth", "api_key", "permission"]) {
            401
        } else if is(&["invalid", "context_length", "bad_request", "badrequest"]) {
            400
        } else if is(&["not_found", "notfound"]) {
            404
        } else {
            500
        })
    }
}
