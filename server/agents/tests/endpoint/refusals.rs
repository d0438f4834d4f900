//! What an endpoint refuses, and what follows: another try, another form, or words that say what to do.

use std::time::Duration;

use expect_test::expect;
use serde_json::json;
use stitch_tests::endpoint::{Answer, DONE};

use super::*;

#[tokio::test]
async fn errors_inside_a_good_status() {
    let good = || Answer::text("all");
    // As a whole answer, in a stream, as an event, as a text, and with a status of its own.
    let overloaded = json!({ "error": { "message": "overloaded", "type": "overloaded_error" } });
    check(
        vec![Answer::json(200, &overloaded), good()],
        expect![[r#"
        text "all"
          finish "stop"
          tokens 100 + 10
          note 500: overloaded; sent again after _ s
    "#]],
    )
    .await;
    check(
        vec![Answer::stream(part("ha") + &format!("data: {overloaded}\n\n")), good()],
        expect![[r#"
        text "all"
          finish "stop"
          tokens 100 + 10
          note 500: overloaded; sent again after _ s
    "#]],
    )
    .await;
    check(
        vec![Answer::stream("event: error\ndata: no room\n\n"), good()],
        expect![[r#"
        text "all"
          finish "stop"
          tokens 100 + 10
          note 500: no room; sent again after _ s
    "#]],
    )
    .await;
    check(
        vec![Answer::json(200, &json!({ "error": "model is loading" })), good()],
        expect![[r#"
        text "all"
          finish "stop"
          tokens 100 + 10
          note 500: model is loading; sent again after _ s
    "#]],
    )
    .await;
    let refused = json!({ "error": { "message": "no such parameter", "code": 400 } });
    check(vec![Answer::json(200, &refused)], expect![[r#"
        endpoint: ADDRESS answered with 400: no such parameter. The server does not take what StitchCUDA sends; choose another server or model.
    "#]]).await;
    check(
        vec![Answer::stream(part("ha") + &end("error") + DONE), good()],
        expect![[r#"
        text "all"
          finish "stop"
          tokens 100 + 10
          note the answer broke off after 2 bytes (the endpoint ended it with `error`); sent again after _ s
    "#]],
    )
    .await;
}

#[tokio::test]
async fn what_passes_is_asked_again() {
    let busy = |status| Answer::error(status, "busy", "try later");
    for status in [408, 409, 429, 500, 502, 503, 504, 529] {
        let server = Server::with(vec![busy(status), Answer::text("all")]).unwrap();
        let asked = ask(endpoint(&server.base())).await;
        assert_eq!((asked.reply.text.as_str(), asked.retries.len()), ("all", 1), "{status}: {asked:?}");
    }
    let answers =
        vec![busy(503), busy(502), Answer::new(500, "text/html", "<html><title>Bad luck</title></html>")];
    check(answers, expect![[r#"
        endpoint: ADDRESS answered in 3 tries with 500: Bad luck. The server fails; look into its log, or try again later.
          note 503: try later; sent again after _ s
          note 502: try later; sent again after _ s
    "#]]).await;
    check(vec![Answer::error(429, "insufficient_quota", "You exceeded your current quota")], expect![[r#"
        endpoint: ADDRESS answered with 429: You exceeded your current quota. Its limit is used up: raise it with the provider, or choose another endpoint.
    "#]])
        .await;
}

#[tokio::test]
async fn what_an_endpoint_asks_to_wait_is_waited() {
    let busy =
        |name: &str, value: &str| Answer::error(429, "rate_limit_exceeded", "slow down").header(name, value);
    let rows = [
        (busy("retry-after-ms", "30"), 30),
        (busy("Retry-After", "0.03"), 30),
        // More than is waited for anyone.
        (busy("Retry-After", "3600"), 60),
        (
            busy("Retry-After", "Sun, 06 Nov 1994 08:49:40 GMT")
                .header("Date", "Sun, 06 Nov 1994 08:49:37 GMT"),
            60,
        ),
        (busy("Retry-After", "Sun, 06 Nov 1994 08:49:37 GMT"), 0),
    ];
    for (answer, least) in rows {
        let server = Server::with(vec![answer, Answer::text("all")]).unwrap();
        let asked = ask(endpoint(&server.base())).await;
        assert_eq!(asked.reply.text, "all");
        assert!(asked.took >= Duration::from_millis(least), "{asked:?}");
        assert!(asked.retries[0].contains("429: slow down"), "{asked:?}");
    }
    check(
        vec![busy("Retry-After", "3600"), Answer::text("all")],
        expect![[r#"
        text "all"
          finish "stop"
          tokens 100 + 10
          note 429: slow down; asked for 3600 s, sent again after _ s
    "#]],
    )
    .await;
}

#[tokio::test]
async fn no_one_there() {
    // A port that was just free.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let base = format!("http://{free}/v1");
    expect![[r#"
        endpoint: ADDRESS could not be asked in 3 tries: no connection: Connection refused (os error 111). Start the server, or set `model.endpoint` to where it listens.
          note no connection: Connection refused (os error 111); sent again after _ s
          note no connection: Connection refused (os error 111); sent again after _ s
    "#]].assert_eq(&told(&ask(endpoint(&base)).await, &base));
    // A connection that is closed before there is an answer.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let asked = ask(endpoint(&base)).await;
    assert_eq!(asked.retries.len(), 2, "{asked:?}");
}

#[tokio::test]
async fn keys_models_and_addresses_that_are_wrong() {
    let echo = format!("Incorrect API key provided: {SECRET} (and {}***)", &SECRET[..14]);
    check(vec![Answer::error(401, "invalid_api_key", &echo)], expect![[r#"
        missing: ADDRESS does not accept the key in STITCHCUDA_API_KEY (401: Incorrect API key provided: [key] (and [key])). Put a valid one there, or set `model.endpoint` to the endpoint that it is for.
    "#]]).await;
    check(vec![Answer::error(403, "forbidden", "not for you")], expect![[r#"
        endpoint: ADDRESS answered with 403: not for you. The key may not use the model `m`: choose another with `model.name`, or ask for access.
    "#]]).await;
    check(
        vec![Answer::new(302, "text/plain", "").header("Location", "https://example.com/login")],
        expect![[r#"
            endpoint: ADDRESS could not be asked: the endpoint points to https://example.com/login. Set `model.endpoint` to where it really is.
        "#]],
    )
    .await;
    check(
        vec![Answer::new(200, "text/html", "<html><head><title>Sign in</title></head></html>")],
        expect![[r#"
            endpoint: ADDRESS could not be asked: the answer is none of a chat: "Sign in". Set `model.endpoint` to the base address of an OpenAI-compatible endpoint.
        "#]],
    )
    .await;
    check(vec![Answer::json(200, &json!({ "hello": "world" }))], expect![[r#"
        endpoint: ADDRESS could not be asked: the answer is none of a chat: "JSON without `choices`". Set `model.endpoint` to the base address of an OpenAI-compatible endpoint.
    "#]]).await;
    // No such model.
    let server = Server::start(|received, _| match received.method.as_str() {
        "GET" => Answer::models(&["a", "b"]),
        _ => Answer::error(404, "model_not_found", "The model `m` does not exist"),
    });
    let server = server.unwrap();
    expect![[r#"
        missing: ADDRESS has no model `m` (404: The model `m` does not exist). It has `a`, `b`. Set `model.name` to one of them.
    "#]].assert_eq(&told(&ask(endpoint(&server.base())).await, &server.base()));
    // No version in the address.
    let server = Server::start(|_, _| Answer::new(404, "text/html", "<h1>Not Found</h1>")).unwrap();
    let base = server.base().replace("/v1", "");
    expect![[r#"
        missing: There is no OpenAI-compatible endpoint at ADDRESS (404: Not Found). Set `model.endpoint` to its base address; most end with a version: ADDRESS/v1.
    "#]].assert_eq(&told(&ask(endpoint(&base)).await, &base));
    // No key, where one is wanted.
    let server = Server::with(vec![Answer::error(401, "unauthorized", "missing bearer token")]).unwrap();
    let mut keyless = Endpoint::new(&server.base(), None).unwrap();
    keyless.model = Some("m".to_owned());
    expect![[r#"
        missing: ADDRESS asks for a key (401: missing bearer token). Put one into the variable `STITCHCUDA_API_KEY` (or `OPENAI_API_KEY`), or into the editor's secret store; never into a file.
    "#]].assert_eq(&told(&ask(keyless).await, &server.base()));
    assert!(server.questions()[0].header("authorization").is_none());
}

#[tokio::test]
async fn the_only_model_is_asked_and_several_are_listed() {
    let questions = check_with(
        vec![Answer::text("all")],
        |endpoint| endpoint.model = None,
        expect![[r#"
            text "all"
              finish "stop"
              tokens 100 + 10
        "#]],
    )
    .await;
    assert_eq!(questions[0].body["model"], "m");
    for models in [Answer::models(&["a", "b"]), Answer::models(&[]), Answer::new(404, "text/plain", "no")] {
        let server = Server::start(move |_, _| models.clone()).unwrap();
        let mut endpoint = endpoint(&server.base());
        endpoint.model = None;
        let said = told(&ask(endpoint).await, &server.base());
        assert!(said.starts_with("missing: `model.name` is not set, and ADDRESS "), "{said}");
    }
}

#[tokio::test]
async fn parameters_that_an_endpoint_does_not_know_are_left_out_for_good() {
    let refuse = |received: &Received, _: usize| {
        let refused = |what: &str| Answer::error(400, "invalid_request_error", what);
        let has = |name: &str| received.body.get(name).is_some();
        if has("stream_options") {
            refused("Unrecognized request argument supplied: stream_options")
        } else if has("max_tokens") {
            refused(
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            )
        } else if has("temperature") {
            refused("Unsupported value: 'temperature' does not support 0.2 with this model.")
        } else if received.body["messages"][0]["role"] == "system" {
            refused("System role not supported")
        } else if received.body["stream"] == true {
            refused("Streaming is not supported here")
        } else {
            Answer::json(
                200,
                &json!({ "choices": [{ "message": { "content": "all" }, "finish_reason": "stop" }] }),
            )
        }
    };
    let server = Server::start(refuse).unwrap();
    let mut endpoint = endpoint(&server.base());
    endpoint.temperature = Some(0.2);
    endpoint.max_tokens = Some(64);
    let chat = Chat::new(endpoint).unwrap();
    let messages = [Message::new("system", "be brief"), Message::new("user", "hello")];
    let asked = chat.ask(&messages, &|_| {}, &CancellationToken::new()).await;
    expect![[r#"
        text "all"
          finish "stop"
          note 400: Unrecognized request argument supplied: stream_options; sent again without `stream_options`
          note 400: Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.; sent again without `max_tokens`, in its place `max_completion_tokens`
          note 400: Unsupported value: 'temperature' does not support 0.2 with this model.; sent again without `temperature`
          note 400: System role not supported; sent again without the role `system`
          note 400: Streaming is not supported here; sent again without `stream`
    "#]].assert_eq(&told(&asked, &server.base()));
    let last = server.questions().pop().unwrap().body;
    assert_eq!(
        last,
        json!({ "model": "m", "stream": false, "max_completion_tokens": 64,
        "messages": [{ "role": "user", "content": "be brief\n\nhello" }] })
    );
    // The next question does not begin from the start.
    let asked = chat.ask(&messages, &|_| {}, &CancellationToken::new()).await;
    assert_eq!((asked.reply.text.as_str(), asked.retries.len()), ("all", 0));
}

#[tokio::test]
async fn a_question_that_is_too_long_is_said_to_be() {
    for (status, code, message) in [
        (400, "context_length_exceeded", "This model's maximum context length is 8192 tokens"),
        (413, "too_large", "Payload too large"),
        (500, "server_error", "the request exceeds the available context size"),
    ] {
        let server = Server::with(vec![Answer::error(status, code, message)]).unwrap();
        let asked = ask(endpoint(&server.base())).await;
        assert!(matches!(asked.failure, Some(Failure::TooLong(_))), "{message}: {asked:?}");
    }
}

#[test]
fn a_key_is_in_no_debug_output() {
    let endpoint = endpoint("http://127.0.0.1:1/v1");
    assert!(!format!("{endpoint:?}").contains(SECRET));
    assert!(!format!("{:?}", Endpoint::new("http://x/v1", Key::new(SECRET, "k"))).contains(SECRET));
}

/// Runs itself again in a process whose environment names a proxy, for variables are read once and belong to a whole process.
#[tokio::test]
async fn proxies_are_for_what_is_elsewhere() {
    const PROXIED: &str = "STITCHCUDA_TEST_PROXIED";
    if std::env::var_os(PROXIED).is_none() {
        let proxy = Server::with(vec![Answer::text("by proxy")]).unwrap();
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "refusals::proxies_are_for_what_is_elsewhere"])
            .env(PROXIED, "1")
            .env("http_proxy", proxy.base().trim_end_matches("/v1"))
            .env_remove("no_proxy")
            .env_remove("NO_PROXY")
            .status();
        assert!(status.unwrap().success());
        let [asked] = &proxy.questions()[..] else { panic!("{:?}", proxy.received()) };
        assert_eq!(asked.path, "http://model.example/v1/chat/completions");
        return;
    }
    let local = Server::with(vec![Answer::text("at home")]).unwrap();
    assert_eq!(ask(endpoint(&local.base())).await.reply.text, "at home");
    assert_eq!(ask(endpoint("http://model.example/v1")).await.reply.text, "by proxy");
}
