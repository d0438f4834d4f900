//! An answer without what is not part of it: thinking that some servers leave in the text, and control tokens behind it.

/// Words that open thinking in the text, as tags.
const TAGS: [&str; 5] = ["think", "thinking", "thought", "reasoning", "reflection"];
/// So many pieces of thinking are taken out.
const MOST_PIECES: usize = 64;
/// Where the answer begins in the format of gpt-oss, when a server passes it on unread.
const FINAL_CHANNEL: &str = "<|channel|>final<|message|>";

/// An answer, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spoken {
    /// What was answered.
    pub text: String,
    /// What was thought.
    pub thinking: String,
    /// Whether it ends inside the thinking, so that there is no answer, or only a part.
    pub is_cut: bool,
}

/// Takes thinking and control tokens out of an answer.
pub fn spoken(answer: &str) -> Spoken {
    let mut spoken = Spoken::default();
    let answer = answer.trim_start_matches('\u{feff}');
    let mut rest = match answer.rfind(FINAL_CHANNEL) {
        Some(at) => {
            spoken.thinking.push_str(&answer[..at]);
            &answer[at + FINAL_CHANNEL.len()..]
        }
        None => answer,
    };
    // A chat template may have put the opening tag into the prompt, so that only the closing one is seen.
    let first_open = opening(rest).map(|(at, _, _)| at);
    if let Some((at, length)) = last_closing(rest)
        && first_open.is_none_or(|open| open > at)
    {
        spoken.thinking.push_str(rest[..at].trim());
        rest = &rest[at + length..];
    }
    for _ in 0..MOST_PIECES {
        let Some((at, length, tag)) = opening(rest) else { break };
        spoken.text.push_str(&rest[..at]);
        let inside = &rest[at + length..];
        let close = format!("</{tag}>");
        match inside.find(&close) {
            Some(end) => {
                spoken.thinking.push_str(inside[..end].trim());
                rest = &inside[end + close.len()..];
            }
            None => {
                spoken.thinking.push_str(inside.trim());
                spoken.is_cut = true;
                rest = "";
            }
        }
    }
    spoken.text.push_str(rest);
    spoken.text = without_control_tokens(spoken.text.trim()).to_owned();
    spoken
}

/// The first tag that opens thinking, at the beginning of a line: where, how long, which.
fn opening(text: &str) -> Option<(usize, usize, &'static str)> {
    let found = TAGS.iter().filter_map(|tag| {
        let open = format!("<{tag}>");
        let at = text.match_indices(&open).find(|(at, _)| begins_line(text, *at))?.0;
        Some((at, open.len(), *tag))
    });
    found.min()
}

fn begins_line(text: &str, at: usize) -> bool {
    text[..at].rsplit('\n').next().unwrap_or_default().trim().is_empty()
}

/// The last tag that closes thinking, alone on its line or at its end.
fn last_closing(text: &str) -> Option<(usize, usize)> {
    let found = TAGS.iter().filter_map(|tag| {
        let close = format!("</{tag}>");
        text.rfind(&close).map(|at| (at, close.len()))
    });
    found.max()
}

/// The text without tokens like `<|im_end|>` and `</s>` at its end.
fn without_control_tokens(mut text: &str) -> &str {
    loop {
        let before = text;
        text = text.trim_end();
        text = text.strip_suffix("</s>").or_else(|| text.strip_suffix("<eos>")).unwrap_or(text);
        for (open, close) in [("<|", "|>"), ("<\u{ff5c}", "\u{ff5c}>")] {
            if let Some(inside) = text.strip_suffix(close)
                && let Some(at) = inside.rfind(open)
                && inside[at + open.len()..].chars().all(|one| one.is_alphanumeric() || "_▁-".contains(one))
            {
                text = &text[..at];
            }
        }
        if text == before {
            return text;
        }
    }
}
