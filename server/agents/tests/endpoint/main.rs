//! An endpoint that misbehaves, and what comes of it. Each row is one kind of misbehaviour, with what a person or the run is told.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use expect_test::Expect;
use serde_json::json;
use stitch_agents::chat::{Asked, Chat, Endpoint, Failure, Key, Limits, Message};
use stitch_agents::engine::EngineError;
use stitch_tests::endpoint::{Answer, Endpoint as Server, Received, event};
use tokio_util::sync::CancellationToken;

mod broken;
mod refusals;
mod streams;

const SECRET: &str = "sk-test-0123456789abcdef";

fn limits() -> Limits {
    Limits {
        total: Duration::from_secs(20),
        connect: Duration::from_secs(5),
        idle: Duration::from_millis(400),
        after_end: Duration::from_millis(200),
        bytes: 64 << 10,
        retries: 2,
        first_delay: Duration::from_millis(1),
        longest_delay: Duration::from_millis(4),
        longest_asked_delay: Duration::from_millis(60),
    }
}

fn endpoint(base: &str) -> Endpoint {
    let mut endpoint = Endpoint::new(base, Key::new(SECRET, "STITCHCUDA_API_KEY")).unwrap();
    endpoint.model = Some("m".to_owned());
    endpoint.limits = limits();
    endpoint
}

async fn ask(endpoint: Endpoint) -> Asked {
    let messages = [Message::new("system", "be brief"), Message::new("user", "hello")];
    Chat::new(endpoint).unwrap().ask(&messages, &|_| {}, &CancellationToken::new()).await
}

/// What became of a question, in words; the address and times that differ from run to run are blanked.
fn told(asked: &Asked, address: &str) -> String {
    let reply = &asked.reply;
    let mut text = match &asked.failure {
        None => format!("text {:?}", reply.text),
        Some(Failure::TooLong(said)) => format!("too long: {said}"),
        Some(Failure::Final(EngineError::Missing(said))) => format!("missing: {said}"),
        Some(Failure::Final(EngineError::Endpoint(said))) => format!("endpoint: {said}"),
        Some(Failure::Final(other)) => format!("{other:?}"),
    };
    if asked.failure.is_some() && !reply.text.is_empty() {
        text += &format!("\n  so far {:?}", reply.text);
    }
    if !reply.thinking.is_empty() {
        text += &format!("\n  thinking {:?}", reply.thinking);
    }
    if let Some(word) = &reply.finish_word {
        text += &format!("\n  finish {word:?}");
    }
    if let Some((prompt, completion)) = reply.usage {
        text += &format!("\n  tokens {prompt} + {completion}");
    }
    for tool in &reply.tools {
        text += &format!("\n  tool {tool}");
    }
    for note in reply.notes.iter().chain(&asked.retries) {
        text += &format!("\n  note {note}");
    }
    let text = text.replace(address, "ADDRESS");
    let mut blanked = String::new();
    for (index, part) in text.split("again after ").enumerate() {
        let rest = part.trim_start_matches(|one: char| index > 0 && (one.is_ascii_digit() || one == '.'));
        blanked += if index > 0 { "again after _" } else { "" };
        blanked += rest;
    }
    assert!(!blanked.contains(SECRET), "the key is shown: {blanked}");
    blanked + "\n"
}

async fn check_with(
    answers: Vec<Answer>,
    change: impl FnOnce(&mut Endpoint),
    expected: Expect,
) -> Vec<Received> {
    let server = Server::with(answers).unwrap();
    let mut endpoint = endpoint(&server.base());
    change(&mut endpoint);
    expected.assert_eq(&told(&ask(endpoint).await, &server.base()));
    server.questions()
}

async fn check(answers: Vec<Answer>, expected: Expect) -> Vec<Received> {
    check_with(answers, |_| {}, expected).await
}

fn part(text: &str) -> String {
    event(&json!({ "content": text }), None)
}

fn end(word: &str) -> String {
    event(&json!({}), Some(word))
}
