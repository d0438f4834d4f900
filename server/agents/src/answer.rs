//! Reads what a model answered, however it wrote it: a plan as JSON or as a list; code as edits, as a diff, as a whole file or as a
//! single function. What can't be read is said in words from which a model can do better.

mod blocks;
mod code;
mod diff;
mod functions;
mod json;
mod list;
mod plan;
mod spoken;

pub use code::{CodeError, Reading, Source, read_code};
pub use plan::{PlanError, PlanReading, read_plan};
pub use spoken::{Spoken, spoken};

/// What a model that will not do it begins with, in small letters.
const REFUSALS: [&str; 12] = [
    "i'm sorry",
    "i am sorry",
    "sorry, ",
    "i can't ",
    "i cannot ",
    "i can not ",
    "i'm unable",
    "i am unable",
    "i'm not able",
    "i won't",
    "as an ai",
    "unfortunately, i ",
];

/// The first sentence of an answer that refuses, if it does.
fn refusal(text: &str) -> Option<String> {
    let plain = text.trim().replace('\u{2019}', "'");
    let start: String = plain.chars().take(40).collect::<String>().to_lowercase();
    REFUSALS.iter().any(|refusal| start.starts_with(refusal)).then(|| first_words(&plain))
}

/// The first sentence, or as much of it as fits a message.
fn first_words(text: &str) -> String {
    const LONGEST: usize = 200;
    let line = text.trim().lines().next().unwrap_or_default();
    let sentence = line.split_inclusive(". ").next().unwrap_or_default().trim();
    let mut words: String = sentence.chars().take(LONGEST).collect();
    if sentence.chars().nth(LONGEST).is_some() {
        words.push('…');
    }
    words
}

#[cfg(test)]
mod tests;
