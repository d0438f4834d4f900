//! Answers that are almost right, and are read all the same.

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use std::time::Duration;
use stitch_tests::endpoint::{Answer, DONE, event, usage};

use super::*;

#[tokio::test]
async fn a_stream_as_it_should_be() {
    let questions = check(
        vec![Answer::text("Hello, grüße 行列.")],
        expect![[r#"
        text "Hello, grüße 行列."
          finish "stop"
          tokens 100 + 10
    "#]],
    )
    .await;
    let [question] = &questions[..] else { panic!("{questions:?}") };
    assert_eq!(question.path, "/v1/chat/completions");
    assert_eq!(question.header("authorization"), Some(format!("Bearer {SECRET}").as_str()));
    assert_eq!(
        question.body,
        json!({
            "model": "m",
            "messages": [{ "role": "system", "content": "be brief" }, { "role": "user", "content": "hello" }],
            "stream": true,
            "stream_options": { "include_usage": true },
        })
    );
}

#[tokio::test]
async fn keep_alives_line_ends_and_cut_characters() {
    // Written in pieces that end inside a line, a value and a character.
    let body = include_bytes!("../cases/sse_keepalives/stream.bin");
    let reads: Value = serde_json::from_str(include_str!("../cases/sse_keepalives/reads.json")).unwrap();
    let sizes: Vec<usize> = reads["sizes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|size| usize::try_from(size.as_u64().unwrap()).unwrap())
        .collect();
    let pause = Duration::from_millis(15);
    check(
        vec![Answer::stream(&body[..]).in_pieces(&sizes, pause)],
        expect![[r#"
        text "__global__ void k(float* p) { /* größe 行列 */ }"
          finish "stop"
          tokens 7 + 9
    "#]],
    )
    .await;
    check(
        vec![Answer::stream(&body[..]).in_pieces(&sizes, pause).chunked()],
        expect![[r#"
        text "__global__ void k(float* p) { /* größe 行列 */ }"
          finish "stop"
          tokens 7 + 9
    "#]],
    )
    .await;
}

#[tokio::test]
async fn answers_not_to_the_letter() {
    // In the order of the folder: what each is, is in its name.
    let rows: [(&str, Expect); 7] = [
        (
            include_str!("../cases/answers_not_to_the_letter/eos_token.json"),
            expect![[r#"
            text "A"
              finish "eos_token"
        "#]],
        ),
        (
            include_str!("../cases/answers_not_to_the_letter/empty_finish.json"),
            expect![[r#"
            text "B"
              finish ""
        "#]],
        ),
        (
            include_str!("../cases/answers_not_to_the_letter/no_ids.json"),
            expect![[r#"
            text "C"
        "#]],
        ),
        (
            include_str!("../cases/answers_not_to_the_letter/parts.json"),
            expect![[r#"
            text "D1D2"
              finish "stop"
        "#]],
        ),
        (
            include_str!("../cases/answers_not_to_the_letter/thinking_cut.json"),
            expect![[r#"
            text ""
              thinking "First I would tile ```cuda\n__global__ void wrong(){}\n``` but"
              finish "length"
              tokens 5 + 2048
        "#]],
        ),
        (
            include_str!("../cases/answers_not_to_the_letter/reasoning_field.json"),
            expect![[r#"
            text ""
              thinking "E"
              finish "stop"
        "#]],
        ),
        (
            include_str!("../cases/answers_not_to_the_letter/tool_call.json"),
            expect![[r#"
            text ""
              finish "tool_call"
              tool write_file
        "#]],
        ),
    ];
    for (body, expected) in rows {
        check(vec![Answer::new(200, "application/json", body)], expected).await;
    }
}

#[tokio::test]
async fn streams_that_are_almost_right() {
    let rows: Vec<(String, Expect)> = vec![
        // Without the mark of the end.
        (part("a") + &end("stop"), expect![[r#"
            text "a"
              finish "stop"
        "#]]),
        // Without a reason, but with the mark.
        (part("a") + DONE, expect![[r#"
            text "a"
        "#]]),
        // No space after `data:`, and no empty line between events.
        ((part("a") + &part("b") + &end("stop")).replace("data: ", "data:").replace("\n\n", "\n"), expect![[r#"
            text "ab"
              finish "stop"
        "#]]),
        // Content and role that are null, and a delta that is missing.
        (
            event(&json!({ "role": "assistant", "content": null }), None)
                + "data: {\"choices\":[{\"index\":0,\"finish_reason\":null}]}\n\n"
                + &part("a")
                + &end("stop")
                + DONE,
            expect![[r#"
                text "a"
                  finish "stop"
            "#]],
        ),
        // Thinking under each of its names.
        (
            event(&json!({ "reasoning_content": "x" }), None)
                + &event(&json!({ "reasoning": "y", "content": "" }), None)
                + &event(&json!({ "thinking": "z" }), None)
                + &part("a")
                + &end("stop")
                + &usage(3, 4)
                + DONE,
            expect![[r#"
                text "a"
                  thinking "xyz"
                  finish "stop"
                  tokens 3 + 4
            "#]],
        ),
        // An event that is no JSON in the middle.
        (part("a") + "data: <oops>\n\n" + &part("b") + &end("stop") + DONE, expect![[r#"
            text "ab"
              finish "stop"
              note Events of the stream that are no JSON were passed over: 1.
        "#]]),
        // Two choices: the first counts.
        (
            "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"no\"}},{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n".to_owned()
                + &end("stop")
                + DONE,
            expect![[r#"
                text "a"
                  finish "stop"
            "#]],
        ),
        // All of the text again in the last event.
        (
            part("a")
                + "data: {\"choices\":[{\"index\":0,\"message\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n"
                + DONE,
            expect![[r#"
                text "a"
                  finish "stop"
            "#]],
        ),
        // Reasons of other servers.
        (part("a") + &end("max_tokens") + DONE, expect![[r#"
            text "a"
              finish "max_tokens"
        "#]]),
        (part("a") + &end("content_filter") + DONE, expect![[r#"
            text "a"
              finish "content_filter"
        "#]]),
        // Lines of JSON instead of events.
        ((part("a") + &end("stop")).replace("data: ", "").replace("\n\n", "\n"), expect![[r#"
            text "a"
              finish "stop"
        "#]]),
    ];
    for (body, expected) in rows {
        check(vec![Answer::stream(body)], expected).await;
    }
}

#[tokio::test]
async fn a_server_that_streams_nothing() {
    let answer = json!({ "model": "m", "choices": [{ "index": 0, "message": { "role": "assistant", "content": "a" }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 5, "completion_tokens": 6 } });
    check(
        vec![Answer::json(200, &answer)],
        expect![[r#"
        text "a"
          finish "stop"
          tokens 5 + 6
    "#]],
    )
    .await;
    // Over several lines, and said to be a stream.
    let pretty = serde_json::to_string_pretty(&answer).unwrap();
    check(
        vec![Answer::stream(pretty)],
        expect![[r#"
        text "a"
          finish "stop"
          tokens 5 + 6
    "#]],
    )
    .await;
}
