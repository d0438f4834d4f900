//! The model as an engine, against a scripted endpoint: what it is asked, what becomes of its answers, and what a run keeps of them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Mutex;
use std::time::Duration;

use expect_test::{Expect, expect};
use serde_json::json;
use stitch_agents::chat::{Chat, Endpoint, Key, Limits};
use stitch_agents::engine::{Brief, Engine, EngineError, Exchange, Feedback, Proposal, Tried, Watch};
use stitch_agents::llm::Llm;
use stitch_agents::{Plan, Task};
use stitch_findings::Span;
use stitch_tests::endpoint::{Answer, DONE, Endpoint as Server, Step, event, usage};
use tokio_util::sync::CancellationToken;

const CODE: &str = "#include <cstdio>\n\n__global__ void scale(float* p, int n) {\n    int i = threadIdx.x;\n    if (i < n) p[i] *= 2.0;\n}\n\nint main() { return 0; }\n";
const EDIT: &str = "A float literal.\n\n<<<<<<< SEARCH\n    if (i < n) p[i] *= 2.0;\n=======\n    if (i < n) p[i] *= 2.0f;\n>>>>>>> REPLACE\n";
const PLAN: &str =
    r#"{"summary": "Doubles.", "tasks": [{"title": "Use float literals", "scope": ["scale"]}]}"#;
const SECRET: &str = "sk-test-0123456789abcdef";

#[derive(Default)]
struct Kept {
    exchanges: Mutex<Vec<Exchange>>,
    streamed: Mutex<Vec<(String, usize)>>,
}

impl Watch for Kept {
    fn streaming(&self, role: &str, bytes: usize) {
        self.streamed.lock().unwrap().push((role.to_owned(), bytes));
    }

    fn exchanged(&self, exchange: &Exchange) {
        self.exchanges.lock().unwrap().push(exchange.clone());
    }
}

struct Bench {
    server: Server,
    llm: Llm,
    kept: Kept,
    cancel: CancellationToken,
}

impl Bench {
    fn new(answers: Vec<Answer>) -> Self {
        Self::with(answers, |_| {}, None)
    }

    fn with(answers: Vec<Answer>, change: impl FnOnce(&mut Endpoint), budget: Option<u64>) -> Self {
        let server = Server::with(answers).unwrap();
        let mut endpoint = Endpoint::new(&server.base(), Key::new(SECRET, "STITCHCUDA_API_KEY")).unwrap();
        endpoint.limits = Limits { retries: 1, first_delay: Duration::from_millis(1), ..Limits::default() };
        change(&mut endpoint);
        let llm = Llm::new(Chat::new(endpoint).unwrap(), budget).unwrap();
        Self { server, llm, kept: Kept::default(), cancel: CancellationToken::new() }
    }

    async fn code(&mut self, brief: &Brief) -> Result<Proposal, EngineError> {
        let task = Task {
            title: "Use float literals".to_owned(),
            scope: vec!["scale".to_owned()],
            ..Task::default()
        };
        self.llm.code(brief, &task, None, &self.kept, &self.cancel).await
    }

    async fn plan(&mut self) -> Result<Plan, EngineError> {
        self.llm.plan(&brief(), &self.kept, &self.cancel).await
    }

    /// What was asked and answered, a line an exchange.
    fn exchanges(&self) -> String {
        let exchanges = self.kept.exchanges.lock().unwrap();
        assert!(!serde_json::to_string(&*exchanges).unwrap().contains(SECRET));
        let mut text = String::new();
        for exchange in exchanges.iter() {
            let count = exchange.messages.len();
            let about = if exchange.tokens.estimated { "about " } else { "" };
            text += &format!(
                "{}: {count} messages, {about}{} tokens back",
                exchange.role, exchange.tokens.completion
            );
            for note in exchange.retries.iter().chain(&exchange.notes).chain(&exchange.error) {
                text += &format!("\n  {}", note.replace(&self.server.base(), "ADDRESS"));
            }
            text += "\n";
        }
        text
    }
}

fn brief() -> Brief {
    Brief {
        target: "scale.cu::scale".to_owned(),
        file: "scale.cu".to_owned(),
        reference: CODE.to_owned(),
        current: CODE.to_owned(),
        selection: Some(Span::new(CODE.find("__global__").unwrap(), CODE.find("\n\nint main").unwrap())),
        scope: vec!["scale".to_owned()],
        device: "sim:h200".to_owned(),
        profile: "| a measurement | 1 |".to_owned(),
        tried: vec![Tried { task: "Vector loads".to_owned(), outcome: "wrong: differs".to_owned() }],
        ..Brief::default()
    }
}

async fn check_code(answers: Vec<Answer>, expected: Expect) -> Bench {
    let mut bench = Bench::new(answers);
    let outcome = bench.code(&brief()).await;
    let outcome = match outcome {
        Ok(Proposal::Candidate { text, explanation }) => {
            assert_eq!(text, CODE.replace("2.0", "2.0f"));
            format!("candidate: {explanation}")
        }
        other => format!("{other:?}"),
    };
    expected.assert_eq(&format!("{outcome}\n{}", bench.exchanges()).replace(&bench.server.base(), "ADDRESS"));
    bench
}

#[tokio::test]
async fn a_plan_and_its_code() {
    let mut bench = Bench::new(vec![Answer::text(PLAN), Answer::text(EDIT), Answer::text(PLAN)]);
    let plan = bench.plan().await.unwrap();
    assert_eq!((plan.summary.as_str(), plan.tasks[0].title.as_str()), ("Doubles.", "Use float literals"));
    let proposal = bench.code(&brief()).await.unwrap();
    let Proposal::Candidate { text, explanation } = proposal else { panic!("{proposal:?}") };
    assert_eq!((text, explanation.as_str()), (CODE.replace("2.0", "2.0f"), "A float literal."));
    bench.llm.replan(&brief(), &plan, "nothing was better", &bench.kept, &bench.cancel).await.unwrap();
    assert_eq!(bench.llm.spent(), 3 * 110);
    expect![[r#"
        planner: 2 messages, 10 tokens back
        coder: 2 messages, 10 tokens back
        replanner: 2 messages, 10 tokens back
    "#]]
    .assert_eq(&bench.exchanges());
    let questions = bench.server.questions();
    assert!(
        questions[0].text().contains("3 | __global__ void scale"),
        "a plan is asked for with line numbers"
    );
    assert!(questions[1].text().contains("# The task: Use float literals"));
    assert!(questions[2].text().contains("It led no further: nothing was better"));
    let streamed = bench.kept.streamed.lock().unwrap();
    assert!(streamed.contains(&("planner".to_owned(), PLAN.len())), "{streamed:?}");
    assert!(streamed.windows(2).all(|pair| pair[0].0 != pair[1].0 || pair[0].1 <= pair[1].1), "{streamed:?}");
}

#[tokio::test]
async fn feedback_is_told() {
    let mut bench = Bench::new(vec![Answer::text(EDIT)]);
    let feedback = Feedback {
        candidate: CODE.replace("*= 2.0", "*= 3.0"),
        outcome: "wrong: copy 1 differs in 12 of 64 elements".to_owned(),
        ..Feedback::default()
    };
    let task = Task { title: "Use float literals".to_owned(), ..Task::default() };
    bench.llm.code(&brief(), &task, Some(&feedback), &bench.kept, &bench.cancel).await.unwrap();
    let asked = bench.server.questions()[0].text();
    assert!(asked.contains("It was not kept: wrong: copy 1 differs in 12 of 64 elements"), "{asked}");
    assert!(asked.contains("+    if (i < n) p[i] *= 3.0;"), "what it changed is shown as a diff: {asked}");
}

#[tokio::test]
async fn an_answer_that_can_not_be_used_is_repaired_once() {
    // An edit that fits nowhere, one outside of the selection, prose, nothing, a tool, a limit.
    let wrong = EDIT.replacen("p[i] *= 2.0;\n=", "p[i] = 2.0 * p[i];\n=", 1);
    let bench = check_code(vec![Answer::text(&wrong), Answer::text(EDIT)], expect![[r#"
        candidate: A float literal.
        coder: 2 messages, 10 tokens back
          The SEARCH text of block 1 does not occur in `scale.cu`. The nearest passage is at lines 5 to 5:
            if (i < n) p[i] *= 2.0;
        They differ first in line 5: the file has `if (i < n) p[i] *= 2.0;`, the SEARCH has `if (i < n) p[i] = 2.0 * p[i];`. Copy the lines exactly as they stand in the file.
        coder-repair: 4 messages, 10 tokens back
    "#]]).await;
    let repair = bench.server.questions()[1].text();
    assert!(repair.contains("does not occur in `scale.cu`. The nearest passage is"), "{repair}");
    let outside =
        "<<<<<<< SEARCH\nint main() { return 0; }\n=======\nint main() { return 1; }\n>>>>>>> REPLACE\n";
    check_code(vec![Answer::text(outside), Answer::text(EDIT)], expect![[r#"
        candidate: A float literal.
        coder: 2 messages, 10 tokens back
          The answer changes line 8, but only `scale` may be changed (new functions, includes and constants may be added between functions). Leave that line as it is.
        coder-repair: 4 messages, 10 tokens back
    "#]]).await;
    check_code(vec![Answer::text("Use float literals."), Answer::text(EDIT)], expect![[r#"
        candidate: A float literal.
        coder: 2 messages, 10 tokens back
          The answer holds no code: no SEARCH/REPLACE block and no code block. It begins with "Use float literals.".
        coder-repair: 4 messages, 10 tokens back
    "#]]).await;
    check_code(
        vec![Answer::text(""), Answer::text(EDIT)],
        expect![[r#"
        candidate: A float literal.
        coder: 2 messages, 10 tokens back
          The answer is empty.
        coder-repair: 4 messages, 10 tokens back
    "#]],
    )
    .await;
    let cut = event(&json!({ "content": &EDIT[..60] }), None)
        + &event(&json!({}), Some("length"))
        + &usage(9, 64)
        + DONE;
    check_code(vec![Answer::stream(cut.clone()), Answer::text(EDIT)], expect![[r#"
        candidate: A float literal.
        coder: 2 messages, 64 tokens back
          It was cut off after 64 tokens by the limit on its length. Answer more briefly, with SEARCH/REPLACE blocks for the changed lines only.
        coder-repair: 4 messages, 10 tokens back
    "#]]).await;
    // Not twice.
    check_code(vec![Answer::text(&wrong)], expect![[r#"
        Ok(Unusable { answer: "A float literal.\n\n<<<<<<< SEARCH\n    if (i < n) p[i] = 2.0 * p[i];\n=======\n    if (i < n) p[i] *= 2.0f;\n>>>>>>> REPLACE", reason: "The SEARCH text of block 1 does not occur in `scale.cu`. The nearest passage is at lines 5 to 5:\n    if (i < n) p[i] *= 2.0;\nThey differ first in line 5: the file has `if (i < n) p[i] *= 2.0;`, the SEARCH has `if (i < n) p[i] = 2.0 * p[i];`. Copy the lines exactly as they stand in the file." })
        coder: 2 messages, 10 tokens back
          The SEARCH text of block 1 does not occur in `scale.cu`. The nearest passage is at lines 5 to 5:
            if (i < n) p[i] *= 2.0;
        They differ first in line 5: the file has `if (i < n) p[i] *= 2.0;`, the SEARCH has `if (i < n) p[i] = 2.0 * p[i];`. Copy the lines exactly as they stand in the file.
        coder-repair: 4 messages, 10 tokens back
          The SEARCH text of block 1 does not occur in `scale.cu`. The nearest passage is at lines 5 to 5:
            if (i < n) p[i] *= 2.0;
        They differ first in line 5: the file has `if (i < n) p[i] *= 2.0;`, the SEARCH has `if (i < n) p[i] = 2.0 * p[i];`. Copy the lines exactly as they stand in the file.
    "#]]).await;
    check_code(vec![Answer::stream(cut)], expect![[r#"
        Ok(Unusable { answer: "A float literal.\n\n<<<<<<< SEARCH\n    if (i < n) p[i] *= 2.0;", reason: "The block that begins at line 3 of the answer has no `=======` line, so the answer is cut or malformed. A block is `<<<<<<< SEARCH`, the old lines, `=======`, the new lines, `>>>>>>> REPLACE`. Set `model.maxTokens` to more than the endpoint's own limit, or choose a model that needs fewer." })
        coder: 2 messages, 64 tokens back
          It was cut off after 64 tokens by the limit on its length. Answer more briefly, with SEARCH/REPLACE blocks for the changed lines only.
        coder-repair: 4 messages, 64 tokens back
          The block that begins at line 3 of the answer has no `=======` line, so the answer is cut or malformed. A block is `<<<<<<< SEARCH`, the old lines, `=======`, the new lines, `>>>>>>> REPLACE`.
    "#]]).await;
}

#[tokio::test]
async fn a_limit_that_is_said_but_was_not_reached_is_found_out() {
    let whole = event(&json!({ "content": EDIT }), None) + &event(&json!({}), Some("length")) + DONE;
    check_code(vec![Answer::stream(whole)], expect![[r#"
        candidate: A float literal.
        coder: 2 messages, about 29 tokens back
          It was cut off by the limit on its length. Answer more briefly, with SEARCH/REPLACE blocks for the changed lines only.
        coder-repair: 4 messages, about 29 tokens back
    "#]]).await;
}

#[tokio::test]
async fn what_is_no_answer_is_said() {
    let body = |name: &str| {
        let path =
            format!("{}/tests/cases/answers_not_to_the_letter/{name}.json", env!("CARGO_MANIFEST_DIR"));
        Answer::new(200, "application/json", std::fs::read(path).unwrap())
    };
    check_code(vec![body("thinking_cut")], expect![[r#"
        Ok(Unusable { answer: "", reason: "The answer was cut off while the model was still thinking, after 2048 tokens (`max_tokens`). Set `model.maxTokens` to more than the endpoint's own limit, or choose a model that needs fewer." })
        coder: 2 messages, 2048 tokens back
          The answer was cut off while the model was still thinking, after 2048 tokens (`max_tokens`). Set `model.maxTokens` to more than the endpoint's own limit, or choose a model that needs fewer.
    "#]]).await;
    check_code(
        vec![body("reasoning_field"), Answer::text(EDIT)],
        expect![[r#"
        candidate: A float literal.
        coder: 2 messages, about 1 tokens back
          The answer is empty: the model thought, and then said nothing.
        coder-repair: 4 messages, 10 tokens back
    "#]],
    )
    .await;
    check_code(
        vec![body("tool_call"), Answer::text(EDIT)],
        expect![[r#"
        candidate: A float literal.
        coder: 2 messages, about 0 tokens back
          The model called the tool `write_file`, but there are no tools. The answer is wanted as text.
        coder-repair: 4 messages, 10 tokens back
    "#]],
    )
    .await;
    check_code(vec![body("tool_call")], expect![[r#"
        Ok(Unusable { answer: "", reason: "The model called the tool `write_file`, but there are no tools. The answer is wanted as text." })
        coder: 2 messages, about 0 tokens back
          The model called the tool `write_file`, but there are no tools. The answer is wanted as text.
        coder-repair: 4 messages, about 0 tokens back
          The model called the tool `write_file`, but there are no tools. The answer is wanted as text.
    "#]]).await;
    let filtered =
        event(&json!({ "content": "A fl" }), None) + &event(&json!({}), Some("content_filter")) + DONE;
    check_code(vec![Answer::stream(filtered)], expect![[r#"
        Ok(Unusable { answer: "A fl", reason: "The endpoint's content filter held the answer back. Choose another model." })
        coder: 2 messages, about 1 tokens back
          The endpoint's content filter held the answer back. Choose another model.
    "#]]).await;
    let refusal = event(&json!({ "refusal": "I will not." }), None) + &event(&json!({}), Some("stop")) + DONE;
    check_code(
        vec![Answer::stream(refusal)],
        expect![[r#"
        Ok(Unusable { answer: "", reason: "The model refuses: \"I will not.\"" })
        coder: 2 messages, about 0 tokens back
          The model refuses: "I will not."
    "#]],
    )
    .await;
    check_code(
        vec![Answer::text("DECLINE: it is at the limit of the memory.")],
        expect![[r#"
        Ok(Declined { reason: "it is at the limit of the memory." })
        coder: 2 messages, 10 tokens back
    "#]],
    )
    .await;
    check_code(
        vec![Answer::text(&format!("<think>\nHm.\n</think>\n{EDIT}"))],
        expect![[r#"
        candidate: A float literal.
        coder: 2 messages, 10 tokens back
    "#]],
    )
    .await;
}

#[tokio::test]
async fn plans_are_repaired_once_too() {
    let mut bench = Bench::new(vec![Answer::text("Let me think about it."), Answer::text(PLAN)]);
    assert_eq!(bench.plan().await.unwrap().tasks.len(), 1);
    expect![[r#"
        planner: 2 messages, 10 tokens back
          The answer holds no plan: neither a JSON object with `tasks` nor a numbered list. It begins with "Let me think about it.". Answer with the JSON object alone.
        planner-repair: 4 messages, 10 tokens back
    "#]].assert_eq(&bench.exchanges());
    let mut bench = Bench::new(vec![Answer::text("Let me think about it.")]);
    let error = bench.plan().await.unwrap_err();
    expect![[r#"
        The planner got no answer from the model that can be used. The answer holds no plan: neither a JSON object with `tasks` nor a numbered list. It begins with "Let me think about it.". Answer with the JSON object alone. If it stays so, choose another model with `model.name`, or set `optimize.engine` to `builtin`.
    "#]].assert_eq(&format!("{error}\n"));
    // A plan that was cut keeps its first tasks.
    let cut =
        event(&json!({ "content": r#"{"summary": "s", "tasks": [{"title": "one"}, {"title": "tw"# }), None)
            + &event(&json!({}), Some("length"))
            + DONE;
    let mut bench = Bench::new(vec![Answer::stream(cut)]);
    let plan = bench.plan().await.unwrap();
    assert_eq!((plan.tasks.len(), plan.tasks[0].title.as_str()), (1, "one"));
    expect![[r#"
        planner: 2 messages, about 15 tokens back
          The plan was cut off: its first 1 tasks were complete and are kept.
    "#]]
    .assert_eq(&bench.exchanges());
}

#[tokio::test]
async fn a_question_that_is_too_long_is_asked_shorter() {
    let too_long =
        Answer::error(400, "context_length_exceeded", "This model's maximum context length is 8192 tokens");
    let bench = check_code(vec![too_long.clone(), Answer::text(EDIT)], expect![[r#"
        candidate: A float literal.
        coder: 2 messages, about 0 tokens back
          400: This model's maximum context length is 8192 tokens
        coder: 2 messages, 10 tokens back
          The question was too long for the model (400: This model's maximum context length is 8192 tokens); asked again without measurements and history.
    "#]]).await;
    let questions = bench.server.questions();
    assert!(questions[0].text().contains("a measurement") && questions[0].text().contains("Vector loads"));
    assert!(!questions[1].text().contains("a measurement") && !questions[1].text().contains("Vector loads"));
    assert!(questions[1].text().contains("__global__ void scale"));
    check_code(vec![too_long], expect![[r#"
        Err(Endpoint("The model can't read as much at once (400: This model's maximum context length is 8192 tokens), not even without measurements and history. Select fewer functions, or choose a model that reads more with `model.name`."))
        coder: 2 messages, about 0 tokens back
          400: This model's maximum context length is 8192 tokens
        coder: 2 messages, about 0 tokens back
          The question was too long for the model (400: This model's maximum context length is 8192 tokens); asked again without measurements and history.
          The model can't read as much at once (400: This model's maximum context length is 8192 tokens), not even without measurements and history. Select fewer functions, or choose a model that reads more with `model.name`.
    "#]]).await;
}

#[tokio::test]
async fn a_budget_is_kept() {
    // What the endpoint counts is what is spent.
    let spends = event(&json!({ "content": EDIT }), None)
        + &event(&json!({}), Some("stop"))
        + &usage(50_000, 1)
        + DONE;
    let mut bench = Bench::with(vec![Answer::stream(spends)], |_| {}, Some(50_000));
    bench.code(&brief()).await.unwrap();
    let error = bench.code(&brief()).await.unwrap_err();
    assert!(matches!(error, EngineError::Budget { budget: 50_000 }), "{error:?}");
    assert_eq!(bench.server.questions().len(), 1, "nothing is sent that can't be paid for");
    // So is what is left of a run's.
    let mut bench = Bench::new(vec![Answer::text(EDIT)]);
    let error = bench.code(&Brief { tokens_left: Some(10), ..brief() }).await.unwrap_err();
    assert!(matches!(error, EngineError::Budget { .. }), "{error:?}");
    // An answer that broke off was paid for.
    let cut = Answer::stream(event(&json!({ "content": "x".repeat(400) }), None));
    let mut bench = Bench::new(vec![cut, Answer::text(EDIT)]);
    bench.code(&brief()).await.unwrap();
    let tokens = bench.kept.exchanges.lock().unwrap()[0].tokens;
    assert!(tokens.estimated && tokens.completion == 110 && tokens.prompt > 600, "{tokens:?}");
    assert_eq!(bench.llm.spent(), tokens.prompt + tokens.completion);
    // Where the endpoint does not count, it is estimated.
    let uncounted = event(&json!({ "content": EDIT }), None) + &event(&json!({}), Some("stop")) + DONE;
    let mut bench = Bench::new(vec![Answer::stream(uncounted)]);
    bench.code(&brief()).await.unwrap();
    let tokens = bench.kept.exchanges.lock().unwrap()[0].tokens;
    assert!(
        tokens.estimated && tokens.prompt > 500 && tokens.completion == EDIT.len().div_ceil(4) as u64,
        "{tokens:?}"
    );
}

#[tokio::test]
async fn what_had_come_is_kept_when_it_is_cancelled() {
    let hangs = Answer::stream(event(&json!({ "content": "half of it" }), None)).then(Step::Hang);
    let mut bench = Bench::new(vec![hangs]);
    let cancel = bench.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(200)).await;
        cancel.cancel();
    });
    let error = bench.code(&brief()).await.unwrap_err();
    assert!(matches!(error, EngineError::Cancelled), "{error:?}");
    let exchanges = bench.kept.exchanges.lock().unwrap();
    assert_eq!(
        (exchanges[0].answer.as_str(), exchanges[0].error.as_deref()),
        ("half of it", Some("cancelled"))
    );
}

#[tokio::test]
async fn a_key_that_is_in_the_code_or_in_the_answer_is_not_kept() {
    let answer = format!("{EDIT}\nBy the way, your key is {SECRET}.");
    let mut bench = Bench::new(vec![Answer::text(&answer)]);
    let code = CODE.replace("cstdio>", &format!("cstdio> // {SECRET}"));
    let proposal = bench.code(&Brief { reference: code.clone(), current: code, ..brief() }).await.unwrap();
    assert!(bench.exchanges().contains("coder"), "which looks for the key in all that is kept");
    let Proposal::Candidate { explanation, .. } = proposal else { panic!("{proposal:?}") };
    assert!(explanation.ends_with("your key is [key]."), "{explanation}");
}

#[tokio::test]
async fn an_endpoint_that_fails_is_told_with_what_to_do() {
    check_code(vec![Answer::error(500, "server_error", "out of memory")], expect![[r#"
        Err(Endpoint("ADDRESS answered in 2 tries with 500: out of memory. The server fails; look into its log, or try again later."))
        coder: 2 messages, about 0 tokens back
          500: out of memory; sent again after 0.0 s
          ADDRESS answered in 2 tries with 500: out of memory. The server fails; look into its log, or try again later.
    "#]]).await;
}
