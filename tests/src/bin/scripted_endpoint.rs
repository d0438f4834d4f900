//! The scripted endpoint for tests that are not written in Rust.
//!
//! `scripted_endpoint ANSWERS.json`, with a list of texts that are the answers in turn, prints the endpoint's base address in a line, and a line
//! of JSON for each question once it was answered. It ends with its standard input.

use std::io::Read;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use stitch_tests::endpoint::{Answer, Endpoint};

fn main() -> Result<()> {
    let path = std::env::args().nth(1).context("usage: scripted_endpoint ANSWERS.json")?;
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let answers: Vec<String> =
        serde_json::from_str(&text).with_context(|| format!("{path} is no list of texts"))?;
    let endpoint = Endpoint::with(answers.iter().map(|answer| Answer::text(answer)).collect())?;
    println!("{}", endpoint.base());
    std::thread::spawn(|| {
        // Nothing is read: what counts is the end.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let mut told = 0;
    loop {
        endpoint.wait_for_questions(told + 1, Duration::from_secs(3600));
        for question in endpoint.questions().iter().skip(told) {
            println!(
                "{}",
                json!({"authorization": question.header("authorization"), "text": question.text()})
            );
            told += 1;
        }
    }
}
