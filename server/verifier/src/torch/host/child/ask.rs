//! One request and its answer, and all the ways in which there is none.

use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::super::assist::Conversation;
use super::super::channel::NoLine;
use super::super::error::{ChildError, How};
use super::super::filled::{Filled, check};
use super::super::memory::Memory;
use super::super::messages::{Reply, WireError};
use super::super::output;
use super::super::region::available;
use super::super::slots::Slot;
use super::super::zygote::random;
use super::Child;
use crate::torch::values::Values;

/// The longest answer in bytes. A batch's probed elements are the most: 1000 calls of 100 elements of 8 bytes, in hexadecimal digits.
const LONGEST_LINE: usize = 4 << 20;
/// No value of a call is larger than this, in bytes.
const MOST_BYTES: u64 = 256 << 30;
/// How long the zygote has to say how a child ended whose channel is closed.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long killing one may take: the system gives gigabytes back page by page, on a busy machine in seconds.
const KILL_PATIENCE: Duration = Duration::from_secs(20);
/// How long what a dead child printed may take to come.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How much of what it printed is shown with its end, in bytes.
const SHOWN: usize = 4096;

/// An answer that says yes.
pub(super) struct Answer {
    pub(super) reply: Reply,
    /// From the request to the answer.
    pub(super) wall: Duration,
}

/// Why the waiting ended.
enum Outcome {
    Line(Result<Vec<u8>, NoLine>),
    Ended(How),
    TimedOut,
    Flooded,
    Cancelled,
}

impl Child {
    /// Sends a request, with values that are written into regions first, and waits for its answer.
    pub(super) async fn ask(
        &mut self,
        stage: &str,
        mut request: Value,
        values: &[(Slot, &Filled)],
    ) -> Result<Answer, ChildError> {
        if self.is_gone {
            return Err(ChildError::Ended { how: How::Earlier, words: String::new() });
        }
        if self.channel.has_unasked() {
            return self.heed(Err("it spoke before it was asked".to_owned()));
        }
        for (slot, filled) in values {
            let region = self.slots.with_room(*slot, filled.bytes.len() as u64).map_err(here)?;
            region.write(&filled.bytes).map_err(here)?;
            tokio::task::yield_now().await;
        }
        // An answer names its request, so that none can be given in advance.
        let id = format!("{:016x}", random() as u64);
        let descriptors = self.slots.descriptors();
        request["id"] = Value::from(id.clone());
        request["fds"] = Value::from(descriptors.len());
        request["regions"] = self.slots.told();
        let line = request.to_string();
        let began = Instant::now();
        let helpers = self.helpers.clone();
        let exchange = async {
            let mut conversation = Conversation::default();
            self.channel.send(&line, &descriptors).await.map_err(|_| NoLine::Closed)?;
            loop {
                let line = self.channel.receive(LONGEST_LINE).await?;
                if !helpers.answer(&mut conversation, &mut self.channel, &line).await? {
                    return Ok(line);
                }
            }
        };
        let outcome = tokio::select! {
            biased;
            // Whoever has printed too much may answer that nobody reads it any more.
            () = self.output.flooded() => Outcome::Flooded,
            line = exchange => Outcome::Line(line),
            () = self.cancel.cancelled() => Outcome::Cancelled,
            how = self.link.ledger.ended(self.number) => Outcome::Ended(how),
            () = tokio::time::sleep(self.time_limit) => Outcome::TimedOut,
        };
        let wall = began.elapsed();
        self.slots.sent();
        match outcome {
            Outcome::Line(Ok(line)) => {
                let reply = parse(&line, &id);
                let reply = self.heed(reply)?;
                if reply.ok { Ok(Answer { reply, wall }) } else { Err(self.refused(stage, reply).await) }
            }
            other => Err(self.no_answer(stage, other).await),
        }
    }

    /// Asks for the bytes of values that it has announced. Gives them and how long they took to come.
    pub(super) async fn fetch(
        &mut self,
        what: &str,
        values: Values,
    ) -> Result<(Filled, Duration), ChildError> {
        self.accept(what, &values)?;
        if values.bytes == 0 {
            return Ok((Filled { values, bytes: Memory::default() }, Duration::ZERO));
        }
        self.check_memory(Slot::Out, what, values.bytes)?;
        self.fetch_into(Slot::Out, what, values).await
    }

    /// The same, through the region of a purpose, where the child has the bytes afterwards.
    pub(super) async fn fetch_into(
        &mut self,
        slot: Slot,
        what: &str,
        values: Values,
    ) -> Result<(Filled, Duration), ChildError> {
        let region = self.slots.with_room(slot, values.bytes).map_err(here)?.clone();
        let request = serde_json::json!({ "do": "put", "what": what, "to": slot.name() });
        let answer = self.ask("passing values on", request, &[]).await?;
        let bytes = region.read(values.bytes).await.map_err(here)?;
        let mut filled = Filled { values, bytes };
        filled.clear_gaps();
        Ok((filled, answer.wall))
    }

    /// Whether this machine has the memory for values: once in a region, if there is none of the size, and once here.
    pub(super) fn check_memory(&self, slot: Slot, what: &str, bytes: u64) -> Result<(), ChildError> {
        let (free, needed) = (available(), bytes.saturating_add(self.slots.lacks(slot, bytes)));
        if needed <= free {
            return Ok(());
        }
        let (size, free) = (bytes / 1_000_000, free / 1_000_000);
        let what =
            format!("{what} of {size} MB do not fit into this machine's memory, of which {free} MB are free");
        Err(ChildError::TooLarge { bytes, what })
    }

    /// Whether values that were announced can be.
    pub(super) fn accept(&mut self, what: &str, values: &Values) -> Result<(), ChildError> {
        self.heed(check(values).map_err(|error| error.0))?;
        if values.bytes > MOST_BYTES {
            return self.heed(Err(format!("{what} of {} GB", values.bytes / 1_000_000_000)));
        }
        Ok(())
    }

    /// A part of an answer. One that is not there counts as `null`.
    pub(super) fn part<T: DeserializeOwned>(
        &mut self,
        answer: &mut Answer,
        name: &str,
    ) -> Result<T, ChildError> {
        let value = answer.reply.rest.remove(name).unwrap_or(Value::Null);
        self.heed(serde_json::from_value(value).map_err(|error| format!("`{name}`: {error}")))
    }

    /// What makes no sense ends the child: what it says next would be worth no more.
    pub(super) fn heed<T>(&mut self, what: Result<T, String>) -> Result<T, ChildError> {
        what.map_err(|what| {
            self.is_gone = true;
            self.link.kill(self.number);
            ChildError::Malformed { what }
        })
    }

    async fn refused(&mut self, stage: &str, reply: Reply) -> ChildError {
        let Some(error) = reply.error else {
            return match self.heed::<()>(Err("a refusal without a reason".to_owned())) {
                Err(error) => error,
                Ok(()) => ChildError::Malformed { what: String::new() },
            };
        };
        let WireError { stage: said, kind, message, frames, text, class, device } = error;
        let stage = if said.is_empty() { stage.to_owned() } else { said };
        match class.as_str() {
            "memory" => ChildError::OutOfMemory { stage, device, message },
            "gpu" => {
                // Its CUDA context is lost, and nothing but an end gives it back.
                self.finish().await;
                ChildError::Gpu { stage, message, frames }
            }
            _ => ChildError::Python { stage, kind, message, frames, text },
        }
    }

    async fn no_answer(&mut self, stage: &str, outcome: Outcome) -> ChildError {
        let how = match outcome {
            Outcome::Line(Err(NoLine::TooLong(limit))) => {
                self.finish().await;
                return ChildError::Malformed { what: format!("a line of more than {limit} bytes") };
            }
            Outcome::Cancelled => {
                self.finish().await;
                return ChildError::Cancelled;
            }
            Outcome::TimedOut => {
                self.finish().await;
                let (stage, limit) = (stage.to_owned(), self.time_limit);
                return ChildError::TimedOut { stage, limit, words: self.words() };
            }
            Outcome::Flooded => {
                self.finish().await;
                How::Flooded(output::MOST)
            }
            Outcome::Ended(how) => {
                self.is_gone = true;
                how
            }
            Outcome::Line(_) => {
                match tokio::time::timeout(PATIENCE, self.link.ledger.ended(self.number)).await {
                    Ok(how) => {
                        self.is_gone = true;
                        how
                    }
                    Err(_) => {
                        self.finish().await;
                        How::ClosedChannel
                    }
                }
            }
        };
        let _ = tokio::time::timeout(LAST_WORDS, self.output.closed()).await;
        ChildError::Ended { how, words: self.words() }
    }

    /// Ends it, and waits until it is gone. A zygote that does not obey goes too.
    async fn finish(&mut self) {
        self.is_gone = true;
        self.link.kill(self.number);
        if tokio::time::timeout(KILL_PATIENCE, self.link.ledger.ended(self.number)).await.is_err() {
            self.link.end.cancel();
        }
    }

    /// The end of what it printed.
    fn words(&self) -> String {
        let text = self.output.text();
        let mut begin = text.len().saturating_sub(SHOWN);
        while !text.is_char_boundary(begin) {
            begin += 1;
        }
        text.get(begin..).unwrap_or_default().to_owned()
    }
}

fn here(error: std::io::Error) -> ChildError {
    ChildError::Here { what: format!("memory that is shared with a process could not be had: {error}") }
}

fn parse(line: &[u8], id: &str) -> Result<Reply, String> {
    let mut reply: Reply = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    match reply.rest.remove("id") {
        Some(Value::String(said)) if said == id => Ok(reply),
        _ => Err("an answer to something that was not asked".to_owned()),
    }
}

/// Bytes of hexadecimal digits.
pub(super) fn hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pair = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(*high)? * 16 + digit(*low)?).ok(),
        _ => None,
    };
    text.as_bytes().chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_must_name_its_request() {
        assert!(parse(br#"{"id":"a","ok":true,"x":1}"#, "a").is_ok());
        for line in
            [&br#"{"id":"b","ok":true}"#[..], br#"{"ok":true}"#, b"[]", b"", b"\xff", br#"{"id":"a"}"#]
        {
            assert!(parse(line, "a").is_err());
        }
    }

    #[test]
    fn digits_are_read() {
        assert_eq!(hex("00fF10"), Some(vec![0, 255, 16]));
        assert_eq!(hex(""), Some(vec![]));
        assert_eq!((hex("0"), hex("0g"), hex("é")), (None, None, None));
    }
}
