//! Answers and what is read off them: each file of `cases` is one, with what must come out at its end.

use std::path::Path;

use expect_test::{expect, expect_file};
use proptest::prelude::*;

use super::*;
use crate::edit::Scope;

/// The parts of a file of cases: `==== name value`, and the lines until the next.
struct Case {
    parts: Vec<(String, String)>,
}

impl Case {
    fn read(text: &str) -> Self {
        let mut parts: Vec<(String, String)> = Vec::new();
        for line in text.split_inclusive('\n') {
            match line.strip_prefix("==== ") {
                Some(head) => parts.push((head.trim().to_owned(), String::new())),
                None => parts.last_mut().unwrap().1.push_str(line),
            }
        }
        Self { parts }
    }

    fn part(&self, name: &str) -> Option<(&str, &str)> {
        self.parts.iter().find_map(|(head, text)| {
            let rest = head.strip_prefix(name)?;
            Some((rest.trim(), text.as_str()))
        })
    }

    fn outcome(&self) -> String {
        let (line_ends, answer) = self.part("answer").unwrap();
        let answer = if line_ends == "crlf" { answer.replace('\n', "\r\n") } else { answer.to_owned() };
        let heard = spoken(&answer);
        let Some((file, text)) = self.part("file") else { return plan_outcome(&heard.text) };
        let targets: Vec<_> = self
            .part("targets")
            .map(|(names, _)| names.split_whitespace().map(str::to_owned).collect())
            .unwrap_or_default();
        let source = Source { file, text, targets: &targets, scope: &Scope::everything() };
        match read_code(&heard.text, source) {
            Ok(Reading::Candidate { text: new, explanation, notes }) => {
                let mut outcome =
                    notes.iter().fold(String::new(), |outcome, note| outcome + "note: " + note + "\n");
                let diff = similar::TextDiff::from_lines(text, &new);
                outcome += &diff.unified_diff().context_radius(1).to_string();
                outcome += &format!(
                    "explanation: {explanation}
"
                );
                outcome
            }
            Ok(Reading::Declined { reason }) => format!("declined: {reason}\n"),
            Err(error) => format!("error: {error}\n"),
        }
    }
}

fn plan_outcome(answer: &str) -> String {
    match read_plan(answer) {
        Ok(reading) => {
            let notes =
                reading.notes.iter().fold(String::new(), |outcome, note| outcome + "note: " + note + "\n");
            format!("{notes}{}\n", serde_json::to_string_pretty(&reading.plan).unwrap())
        }
        Err(error) => format!("error: {error}\n"),
    }
}

/// Rewritten by `UPDATE_EXPECT=1`.
#[test]
fn each_case_comes_out_as_it_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/answer/cases");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 30, "{} cases", paths.len());
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let input = text.split_once("==== outcome\n").map_or(text.as_str(), |(input, _)| input);
        let outcome = Case::read(input).outcome();
        expect_file![path].assert_eq(&format!("{input}==== outcome\n{outcome}"));
    }
}

/// The answers that were collected from others' reports: which of several blocks is the code.
#[test]
fn the_block_that_is_the_code() {
    let reference = "__global__ void scale(float* p, int n) { p[threadIdx.x] *= 2.f; }\n";
    let read = |file: &str, answer: &str| {
        let heard = spoken(answer);
        let (text, targets) =
            if file.ends_with(".py") { ("import torch\n", "ModelNew") } else { (reference, "scale") };
        let targets = [targets.to_owned()];
        let source = Source { file, text, targets: &targets, scope: &Scope::everything() };
        match read_code(&heard.text, source) {
            Ok(Reading::Candidate { text, .. }) => text,
            Ok(other) => format!("{other:?}\n"),
            Err(error) => format!("error: {error}\n"),
        }
    };
    let thinking = include_str!("../../tests/cases/which_code_block/a_thinking.md");
    expect![[r#"
        __global__ void scale(float* p, int n) {
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          if (i < n) p[i] *= 2.f;
        }
    "#]]
    .assert_eq(&read("scale.cu", thinking));
    let no_open_tag = include_str!("../../tests/cases/which_code_block/b_no_open_tag.md");
    expect![[r#"
        __global__ void scale(float* p, int n) { if (threadIdx.x < n) p[threadIdx.x] *= 2.f; }
    "#]]
    .assert_eq(&read("scale.cu", no_open_tag));
    let inner_fence = include_str!("../../tests/cases/which_code_block/c_inner_fence.md");
    expect![[r#"
        import torch
        class ModelNew(torch.nn.Module):
            """Example:
            ```
            ModelNew()(x)
            ```
            """
            def forward(self, x):
                return x * 2
    "#]]
    .assert_eq(&read("model.py", inner_fence));
    let unclosed = include_str!("../../tests/cases/which_code_block/d_unclosed.md");
    expect![[r#"
        error: The answer is cut off: its code block, from line 1 of the answer on, is not complete. Answer with SEARCH/REPLACE blocks for the changed lines only, so that it fits.
    "#]].assert_eq(&read("scale.cu", unclosed));
    let tilde = include_str!("../../tests/cases/which_code_block/e_tilde_crlf.md");
    assert!(tilde.contains("\r\n"));
    expect![[r#"
        __global__ void scale(float* p, int n) { if (threadIdx.x < n) p[threadIdx.x] *= 2.f; }
    "#]]
    .assert_eq(&read("scale.cu", tilde));
}

#[test]
fn thinking_is_no_part_of_the_answer() {
    let cases = [
        ("<think>a</think>b", "b", "a", false),
        ("a</think>b", "b", "a", false),
        ("<think>never ends", "", "never ends", true),
        ("b\n<thinking>\nx\n</thinking>\nc", "b\n\nc", "x", false),
        ("if (a <think> b)", "if (a <think> b)", "", false),
        ("b<|im_end|>\n", "b", "", false),
        ("b\n```\n</s>", "b\n```", "", false),
        (
            "<|channel|>analysis<|message|>x<|end|><|start|>assistant<|channel|>final<|message|>b<|return|>",
            "b",
            "<|channel|>analysis<|message|>x<|end|><|start|>assistant",
            false,
        ),
    ];
    for (answer, text, thinking, is_cut) in cases {
        let heard = spoken(answer);
        assert_eq!(
            (heard.text.as_str(), heard.thinking.as_str(), heard.is_cut),
            (text, thinking, is_cut),
            "{answer}"
        );
    }
}

/// Whoever answers may mean ill; the time taken must not grow with the square of the length.
#[test]
fn no_answer_takes_long() {
    let much = |piece: &str| piece.repeat((64 << 10) / piece.len());
    let pieces = [
        "```\n",
        "```cuda\n",
        "```cuda\n/*\n```\n",
        "<think></think>\n",
        "<think>\n",
        "{",
        "[",
        "\"",
        "\",a",
        "{\"tasks\":[{",
        "1. a\n",
        "@@ -1 +1 @@\n",
        "<|a|>",
        "// ...\n",
        "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n",
        "__global__ void scale() {",
        "# ",
        "'",
        "\\u",
    ];
    let text = "__global__ void scale() {}\n";
    for piece in pieces {
        let start = std::time::Instant::now();
        for answer in [much(piece), format!("/*{}", much(piece)), format!("```cuda\n{}", much(piece))] {
            let heard = spoken(&answer);
            let _ = read_plan(&heard.text);
            let source = Source { file: "a.cu", text, targets: &[], scope: &Scope::everything() };
            let _ = read_code(&heard.text, source);
        }
        assert!(start.elapsed() < std::time::Duration::from_secs(20), "{piece:?}: {:?}", start.elapsed());
    }
}

proptest! {
    /// No answer makes it panic or go on for ever, and no error is without words.
    #[test]
    fn any_answer_is_read(answer in "(```cuda\n|```|<think>|</think>|\\{|\\}|\\[|\\]|\"|'|tasks|title|:|,|@@ -1 \\+1 @@\n|[-+ ]a\n|1\\. |\\\\|\\\\u12|é|\n|//|__global__ void scale\\(\\)|[a-z]{1,4}){0,40}") {
        let heard = spoken(&answer);
        if let Err(error) = read_plan(&heard.text) {
            prop_assert!(!error.to_string().is_empty());
        }
        let text = "__global__ void scale() {}\n";
        let source = Source { file: "a.cu", text, targets: &[], scope: &Scope::everything() };
        if let Err(error) = read_code(&heard.text, source) {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    /// JSON that is JSON is read as it is, and cut off anywhere it gives a part of itself.
    #[test]
    fn cut_json_gives_a_part(titles in prop::collection::vec("[a-z \"\\\\,:é\n]{1,12}", 1..4), at in 0usize..400) {
        let tasks: Vec<_> = titles.iter().map(|title| serde_json::json!({ "title": format!("t{title}") })).collect();
        let text = serde_json::json!({ "summary": "s", "tasks": tasks }).to_string();
        let whole = read_plan(&text).unwrap();
        prop_assert_eq!(whole.plan.tasks.len(), titles.len());
        let mut at = at % text.len();
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        if let Ok(part) = read_plan(&text[..at]) {
            prop_assert!(whole.plan.tasks.starts_with(&part.plan.tasks), "{:?}", part);
        }
    }
}
