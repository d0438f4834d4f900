//! A profile in a few lines, for whoever plans what to change: a model with a budget of tokens, or a person.
//!
//! It is written as pieces, each with its rank. What does not fit is cut, the least important first, and what was cut is said. What limits most comes
//! first: whether the device is idle, which kernels have the time, and of these what bounds them, by how much, and on which lines.

mod kernels;
mod limits;
mod program;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use limits::{Limit, limits, shares};

use crate::profile::Profile;

/// Bytes of code and English that make a token: about what the tokenizers of today's models make of such text. Every estimate here rests on it.
pub const BYTES_A_TOKEN: u64 = 4;

/// How many tokens so many bytes of text are, by estimate: [`BYTES_A_TOKEN`] bytes each, rounded up.
pub fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(BYTES_A_TOKEN)
}

/// What a piece is about, for the sentence that says what was cut: one and many of it.
type Kind = (&'static str, &'static str);

const HEAD: Kind = ("heading", "headings");
const ROW: Kind = ("kernel", "kernels");
const LIMIT: Kind = ("limit", "limits");
const LINE: Kind = ("line", "lines");
const NUMBER: Kind = ("number", "numbers");
const REMARK: Kind = ("remark", "remarks");

/// Some lines that stand or fall together.
struct Piece {
    kind: Kind,
    /// 0 is never cut; of the others the highest goes first, and of equal ones the last.
    rank: u32,
    text: String,
}

impl Piece {
    fn new(kind: Kind, rank: u32, text: impl Into<String>) -> Self {
        Self { kind, rank, text: text.into() }
    }
}

/// What a profile says, in at most `budget` tokens as [`tokens`] counts them. Its first line, which says how it was made, is never cut.
pub fn brief(profile: &Profile, budget: u64) -> String {
    let mut pieces = vec![Piece::new(HEAD, 0, head(profile))];
    pieces.extend(program::pieces(profile));
    pieces.extend(kernels::pieces(profile));
    for (at, note) in (0..).zip(&profile.notes) {
        pieces.push(Piece::new(REMARK, 60 + at, format!("Note: {}", note.text)));
    }
    for (at, not) in (0..).zip(&profile.way.not_taken) {
        pieces.push(Piece::new(REMARK, 80 + at, format!("Not by {}: {}", not.by, not.why)));
    }
    fit(pieces, budget)
}

fn head(profile: &Profile) -> String {
    let device = profile.device.as_ref().map(|device| format!(" on {device}")).unwrap_or_default();
    format!("Recorded{device} by {}.", profile.way.by)
}

/// Cuts until the text fits.
fn fit(mut pieces: Vec<Piece>, budget: u64) -> String {
    let mut cut: BTreeMap<Kind, u64> = BTreeMap::new();
    loop {
        let text = written(&pieces, &cut);
        let least = pieces
            .iter()
            .enumerate()
            .filter(|(_, piece)| piece.rank > 0)
            .max_by_key(|(at, piece)| (piece.rank, *at))
            .map(|(at, _)| at);
        match least {
            Some(at) if tokens(text.len()) > budget => {
                *cut.entry(pieces.remove(at).kind).or_default() += 1;
            }
            _ => return text,
        }
    }
}

fn written(pieces: &[Piece], cut: &BTreeMap<Kind, u64>) -> String {
    let mut lines: Vec<&str> = pieces.iter().map(|piece| piece.text.as_str()).collect();
    let said: Vec<String> =
        cut.iter().map(|((one, more), count)| crate::units::counted(*count, one, more)).collect();
    let said = format!("Left out for length: {}.", said.join(", "));
    if !cut.is_empty() {
        lines.push(&said);
    }
    lines.join("\n")
}
