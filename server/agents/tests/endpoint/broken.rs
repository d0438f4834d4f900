//! Answers that have no end, or the wrong one, and questions that are cancelled.

use std::time::{Duration, Instant};

use expect_test::expect;
use stitch_agents::chat::Limits;
use stitch_tests::endpoint::{Answer, Step};

use super::*;

#[tokio::test]
async fn an_answer_without_its_end_is_asked_for_again() {
    let cut = Answer::stream(part("half of it"));
    check(
        vec![cut.clone(), Answer::text("all of it")],
        expect![[r#"
        text "all of it"
          finish "stop"
          tokens 100 + 10
          note the answer broke off after 10 bytes (its end is missing); sent again after _ s
    "#]],
    )
    .await;
    // Each time.
    check(vec![cut], expect![[r#"
        endpoint: ADDRESS could not be asked in 3 tries: the answer broke off after 10 bytes (its end is missing). Check the server and what is between it and this machine; try again later.
          so far "half of it"
          note the answer broke off after 10 bytes (its end is missing); sent again after _ s
          note the answer broke off after 10 bytes (its end is missing); sent again after _ s
    "#]]).await;
    // A connection that breaks between two chunks.
    let broken = Answer::stream(part("half")).chunked();
    check(vec![broken, Answer::text("all")], expect![[r#"
        text "all"
          finish "stop"
          tokens 100 + 10
          note the answer broke off after 4 bytes (unexpected EOF during chunk size line); sent again after _ s
    "#]]).await;
    // Nothing at all.
    check(
        vec![Answer::stream(""), Answer::text("all")],
        expect![[r#"
        text "all"
          finish "stop"
          tokens 100 + 10
          note the answer broke off after 0 bytes (it is empty); sent again after _ s
    "#]],
    )
    .await;
    // JSON that is cut.
    check(vec![Answer::new(200, "application/json", "{\"choices\": [{\"mess")], expect![[r#"
        endpoint: ADDRESS could not be asked in 3 tries: the answer broke off after 0 bytes (its end is missing). Check the server and what is between it and this machine; try again later.
          note the answer broke off after 0 bytes (its end is missing); sent again after _ s
          note the answer broke off after 0 bytes (its end is missing); sent again after _ s
    "#]]).await;
}

#[tokio::test]
async fn a_server_that_says_nothing_more_is_left() {
    let start = Instant::now();
    let hangs = Answer::stream(part("half")).then(Step::Hang);
    check(
        vec![hangs, Answer::text("all")],
        expect![[r#"
        text "all"
          finish "stop"
          tokens 100 + 10
          note nothing came for 0.4 s; sent again after _ s
    "#]],
    )
    .await;
    // After the end there is nothing to wait for.
    let hangs = Answer::stream(part("all") + &end("stop")).then(Step::Hang);
    check(
        vec![hangs],
        expect![[r#"
        text "all"
          finish "stop"
    "#]],
    )
    .await;
    // Keep-alives are a sign of life, but not for ever.
    let alive = Answer::stream(": ping\n\n").then(Step::Flood(b": ping\n\n".to_vec()));
    check(vec![alive], expect![[r#"
        endpoint: ADDRESS could not be asked: the answer has more than 65536 bytes and no end. Set `model.maxTokens`, or choose another model.
    "#]]).await;
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[tokio::test]
async fn an_answer_without_end_is_cut() {
    let endless = Answer::stream(part("a")).then(Step::Flood(part("and so on ").into_bytes()));
    let server = Server::with(vec![endless]).unwrap();
    let asked = ask(endpoint(&server.base())).await;
    let said = told(&Asked { reply: Default::default(), ..asked }, &server.base());
    expect![[r#"
        endpoint: ADDRESS could not be asked: the answer has more than 65536 bytes and no end. Set `model.maxTokens`, or choose another model.
    "#]].assert_eq(&said);
    assert!(server.left(Duration::from_secs(5)).is_some());
}

#[tokio::test]
async fn one_question_does_not_take_for_ever() {
    let slow = |_: &Received, _: usize| {
        let piece = || Step::Send(part("a").into_bytes());
        (0..200).fold(Answer::stream(""), |answer, _| {
            answer.then(piece()).then(Step::Wait(Duration::from_millis(20)))
        })
    };
    let server = Server::start(slow).unwrap();
    let mut endpoint = endpoint(&server.base());
    endpoint.limits.total = Duration::from_millis(300);
    let asked = ask(endpoint).await;
    assert!(!asked.reply.text.is_empty() && asked.took < Duration::from_secs(2), "{asked:?}");
    let said = told(&Asked { reply: Default::default(), ..asked }, &server.base());
    expect![[r#"
        endpoint: ADDRESS did not answer within 0.3 s. Raise `model.timeLimitSeconds`, or choose a faster model.
    "#]]
    .assert_eq(&said);
}

#[tokio::test]
async fn cancelling_ends_it_at_once_wherever_it_is() {
    let good = part("half of it");
    let stages: Vec<(&str, Answer)> = vec![
        ("in the stream", Answer::stream(good.clone()).then(Step::Hang)),
        ("in a flood", Answer::stream(good).then(Step::Flood(b": ping\n\n".to_vec()))),
        ("before an answer", Answer::default()),
        ("between two tries", Answer::error(503, "busy", "busy").header("Retry-After", "3600")),
    ];
    for (stage, answer) in stages {
        let is_silent = stage == "before an answer";
        let server = Server::start(move |_, _| {
            if is_silent {
                std::thread::sleep(Duration::from_millis(400));
            }
            answer.clone()
        });
        let server = server.unwrap();
        let mut endpoint = endpoint(&server.base());
        endpoint.limits =
            Limits { bytes: usize::MAX, longest_asked_delay: Duration::from_secs(30), ..Limits::default() };
        let chat = Chat::new(endpoint).unwrap();
        let cancel = CancellationToken::new();
        let asking = async {
            let messages = [Message::new("user", "hello")];
            let asked = chat.ask(&messages, &|_| {}, &cancel).await;
            (asked, Instant::now())
        };
        let cancelling = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            cancel.cancel();
            Instant::now()
        };
        let ((asked, ended), cancelled) = tokio::join!(asking, cancelling);
        assert!(matches!(asked.failure, Some(Failure::Final(EngineError::Cancelled))), "{stage}: {asked:?}");
        assert!(ended - cancelled < Duration::from_millis(100), "{stage}: {:?}", ended - cancelled);
        if stage.starts_with("in ") {
            assert_eq!(asked.reply.text, "half of it", "{stage}: what had come is kept");
            // The connection is closed while the server waits, or writes.
            let left =
                tokio::task::spawn_blocking(move || server.left(Duration::from_secs(2))).await.unwrap();
            assert!(left.is_some(), "{stage}: the connection stays open");
        }
    }
}
