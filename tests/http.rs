//! The HTTP door from outside: a server in this process, requests over its socket.

#[path = "world/door.rs"]
mod door;
mod world;

use std::net::SocketAddr;

use door::{Answer, get, send};
use postrider::app::Postrider;
use postrider::http::{Server, ServerFile};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use world::{SAMPLES_DISTINCT, SAMPLES_READ, World, letter, samples};

async fn post(address: SocketAddr, path: &str, body: &Value) -> Answer {
    send(address, "POST", path, &[], body.to_string()).await
}

async fn search(address: SocketAddr, q: &str) -> Value {
    let answer = post(address, "/v1/identities/main/search", &json!({ "q": q })).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

async fn admin(server: &Server, method: &str, path: &str, body: &Value) -> Answer {
    let authorization = format!("Bearer {}", server.token());
    let headers = [("authorization", authorization.as_str())];
    let body = if method == "GET" { String::new() } else { body.to_string() };
    send(server.address(), method, path, &headers, body).await
}

/// Runs a job to its end.
async fn job(server: &Server, path: &str, body: &Value) -> Value {
    let started = admin(server, "POST", path, body).await;
    assert_eq!(started.status, 202, "{started:?}");
    ended(server, started.json()["job_id"].as_str().expect("an id")).await
}

async fn ended(server: &Server, id: &str) -> Value {
    loop {
        let view = admin(server, "GET", &format!("/v1/admin/jobs/{id}"), &json!({})).await.json();
        if view["state"] != "running" {
            return view;
        }
        tokio::task::yield_now().await;
    }
}

/// A server whose mailbox `main` holds nothing.
async fn empty(world: &World) -> Server {
    let postrider = Postrider::open(world.config()).await.expect("opens");
    postrider.ensure_identity("main").await.expect("made");
    Server::start(postrider).await.expect("starts")
}

#[tokio::test(flavor = "multi_thread")]
async fn imports_as_a_job_and_finds_what_it_took_in() {
    let world = World::new();
    let server = world.serve().await;
    let import = json!({ "mailbox": "main", "paths": samples(), "labels": ["sample"] });
    let view = job(&server, "/v1/admin/import", &import).await;
    assert_eq!((&view["state"], &view["progress"]["kind"]), (&json!("done"), &json!("import")));
    let account = &view["account"];
    assert_eq!(account["read"], SAMPLES_READ);
    assert_eq!(account["stored"], SAMPLES_DISTINCT);
    assert_eq!(account["already_there"], SAMPLES_READ - SAMPLES_DISTINCT);
    assert_eq!(view["progress"]["bytes_done"], view["progress"]["bytes_total"]);

    let found = search(server.address(), "\"burn pot\"").await;
    assert_eq!(found["total"], 2, "{found}");
    assert_eq!(found["hits"][0]["labels"], json!(["sample"]));

    let again = job(&server, "/v1/admin/import", &import).await;
    assert_eq!(again["account"]["already_there"], SAMPLES_READ);

    let before = admin(&server, "GET", "/v1/admin/dump?mailbox=main", &json!({})).await;
    assert_eq!(before.header("content-type"), "text/plain; charset=utf-8");
    let rebuilt = job(&server, "/v1/admin/rebuild", &json!({ "all": true })).await;
    assert_eq!(rebuilt["rebuilt"][0]["messages"], SAMPLES_DISTINCT, "{rebuilt}");
    let after = admin(&server, "GET", "/v1/admin/dump?mailbox=main", &json!({})).await;
    assert!(!before.body.is_empty() && before.body == after.body);

    let status = admin(&server, "GET", "/v1/admin/status", &json!({})).await.json();
    assert_eq!(status["mailboxes"][0]["messages"], SAMPLES_DISTINCT);
    let own = json!({ "mailbox": "main", "addresses": ["office@hallowmere-heat.example"] });
    let configured = admin(&server, "POST", "/v1/admin/own-addresses", &own).await;
    assert_eq!(configured.json()["seq"], status["mailboxes"][0]["head_seq"].as_u64().unwrap() + 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_found_as_soon_as_it_is_acknowledged() {
    let world = World::new();
    let server = empty(&world).await;
    let at = server.address();
    for number in 0..5 {
        let subject = format!("arrival{number}");
        let path = "/v1/identities/main/messages?folder=Lists%2Frust&label=a&label=b&source=test";
        let answer = send(at, "POST", path, &[("content-type", "x/y")], letter(&subject)).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        assert_eq!(answer.json()["outcome"], "stored");
        assert_eq!(answer.json()["seq"], number + 1);
        let found = search(at, &subject).await;
        assert_eq!(found["hits"][0]["message_id"], answer.json()["message_id"]);
        assert_eq!(found["hits"][0]["folders"], json!(["Lists/rust"]));
        assert_eq!(found["hits"][0]["labels"], json!(["a", "b"]));
        assert_eq!(found["as_of_seq"], number + 1);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_is_an_outcome_of_its_own() {
    let world = World::new();
    let server = empty(&world).await;
    let at = server.address();
    let path = "/v1/identities/main/messages";
    let first = send(at, "POST", path, &[], letter("twice")).await.json();
    let second = send(at, "POST", path, &[], letter("twice")).await;
    let expected = json!({
        "outcome": "duplicate", "message_id": first["message_id"], "placed": false,
    });
    assert_eq!((second.status, second.json()), (200, expected));
    let placed = send(at, "POST", &format!("{path}?folder=Other"), &[], letter("twice")).await;
    assert_eq!((placed.status, &placed.json()["placed"]), (200, &json!(true)));
    assert_eq!(search(at, "twice").await["total"], 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn raw_bytes_come_back_as_they_went_in_and_only_for_saving() {
    let world = World::new();
    let server = empty(&world).await;
    let at = server.address();
    let mut raw = letter("round trip");
    raw.extend_from_slice(b"\x00\xff<script>alert(1)</script>\n.\r\n");
    let stored = send(at, "POST", "/v1/identities/main/messages", &[], raw.clone()).await.json();
    let id = stored["message_id"].as_str().expect("an id");
    let answer = get(at, &format!("/v1/identities/main/messages/{id}/raw")).await;
    assert_eq!(answer.body, raw);
    assert_eq!(answer.header("content-type"), "message/rfc822");
    assert_eq!(answer.header("content-disposition"), format!("attachment; filename=\"{id}.eml\""));
    assert_eq!(answer.header("x-content-type-options"), "nosniff");

    let shown = get(at, &format!("/v1/identities/main/messages/{id}")).await.json();
    assert_eq!(shown["subject"], "round trip");
    assert_eq!(shown["raw_bytes"], raw.len());
    let identity = shown["identity_id"].as_str().expect("an id");
    assert_eq!(get(at, &format!("/v1/identities/{identity}/messages/{id}")).await.json(), shown);
    server.stop().await;
}

/// Checks the envelope, and gives it.
fn refused(answer: &Answer, status: u16, code: &str) -> Value {
    let body = answer.json();
    let error = &body["error"];
    assert_eq!((answer.status, error["code"].as_str()), (status, Some(code)), "{body}");
    assert_eq!(error["request_id"], answer.header("request-id"));
    assert!(error["message"].as_str().is_some_and(|m| !m.is_empty()), "{body}");
    assert!(error["fix"].as_str().is_some_and(|m| !m.is_empty()), "{body}");
    assert!(error["retryable"].is_boolean() && error["details"].is_object(), "{body}");
    assert_eq!(body.as_object().map(serde_json::Map::len), Some(1));
    error.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_is_the_same_envelope() {
    let world = World::new();
    let server = empty(&world).await;
    let at = server.address();
    let searching = "/v1/identities/main/search";
    let message = "msg_01J9Z3K8V4QW7X2M5N6P8R0T1V";

    let error =
        refused(&post(at, searching, &json!({ "q": "frm:ada" })).await, 400, "invalid_query");
    assert_eq!(error["details"]["position"], 0);
    assert_eq!(error["details"]["found"], "frm:ada");
    assert_eq!(error["details"]["suggestion"], "from:ada");
    assert!(error["details"]["expected"].as_str().is_some());

    let wrong = json!({ "q": 1, "limit": 5, "nonsense": true });
    let error = refused(&post(at, searching, &wrong).await, 400, "invalid_request");
    assert_eq!(error["details"]["errors"][0]["path"], "nonsense");
    assert_eq!(error["details"]["errors"][1]["path"], "q");
    for limit in [0, 51] {
        let answer = post(at, searching, &json!({ "q": "a", "limit": limit })).await;
        let error = refused(&answer, 400, "invalid_request");
        assert_eq!(error["details"]["errors"][0]["path"], "limit");
    }
    let error = refused(
        &post(at, searching, &json!({ "q": "a", "snippet_chars": 9 })).await,
        400,
        "invalid_request",
    );
    assert_eq!(error["details"]["errors"][0]["path"], "snippet_chars");
    for body in ["{", "[]", ""] {
        refused(&send(at, "POST", searching, &[], body).await, 400, "invalid_request");
    }

    let unknown = "/v1/identities/nobody";
    let q = json!({ "q": "a" });
    refused(&post(at, &format!("{unknown}/search"), &q).await, 404, "identity_not_found");
    let answer = send(at, "POST", &format!("{unknown}/messages"), &[], letter("x")).await;
    refused(&answer, 404, "identity_not_found");
    let path = format!("/v1/identities/main/messages/{message}");
    refused(&get(at, &path).await, 404, "message_not_found");
    refused(&get(at, &format!("{path}/raw")).await, 404, "message_not_found");
    let answer = get(at, "/v1/identities/main/messages/msg_1").await;
    refused(&answer, 400, "invalid_request");
    refused(&get(at, "/v1/identities/%ff/messages/msg_1").await, 400, "invalid_request");

    let messages = "/v1/identities/main/messages";
    refused(&send(at, "POST", messages, &[], "").await, 400, "invalid_request");
    for parameters in ["label=Not+A+Label", "colour=1", "folder="] {
        let answer = send(at, "POST", &format!("{messages}?{parameters}"), &[], letter("x")).await;
        refused(&answer, 400, "invalid_request");
    }

    refused(&get(at, "/v1/nowhere").await, 404, "not_found");
    let answer = get(at, searching).await;
    refused(&answer, 405, "method_not_allowed");
    assert_eq!(answer.header("allow"), "POST");
    refused(&send(at, "DELETE", "/healthz", &[], "").await, 405, "method_not_allowed");

    let none = json!({});
    let answer = admin(&server, "GET", "/v1/admin/jobs/job_1", &none).await;
    refused(&answer, 404, "job_not_found");
    refused(&admin(&server, "POST", "/v1/admin/import", &none).await, 400, "invalid_request");
    let relative = json!({ "mailbox": "main", "paths": ["mail"] });
    let error = refused(
        &admin(&server, "POST", "/v1/admin/import", &relative).await,
        400,
        "invalid_request",
    );
    assert_eq!(error["details"]["errors"][0]["path"], "paths[0]");
    refused(&admin(&server, "POST", "/v1/admin/rebuild", &none).await, 400, "invalid_request");
    let answer = admin(&server, "GET", "/v1/admin/dump?mailbox=nobody", &none).await;
    refused(&answer, 404, "identity_not_found");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_that_cannot_begin_ends_as_a_failed_job() {
    let world = World::new();
    let server = world.serve().await;
    let import = json!({ "mailbox": "main", "paths": [world.data_dir().join("not-there")] });
    let view = job(&server, "/v1/admin/import", &import).await;
    assert_eq!(view["state"], "failed");
    assert_eq!(view["error"]["code"], "invalid_request");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_import_accounts_for_what_it_read() {
    let world = World::new();
    let mut mbox = Vec::new();
    for number in 0..2_000 {
        mbox.extend_from_slice(b"From ada@example.org Mon Mar  3 10:00:00 2025\n");
        mbox.extend(letter(&format!("number {number}")).into_iter().filter(|b| *b != b'\r'));
        mbox.push(b'\n');
    }
    let mbox = world.file("many.mbox", &mbox);
    let server = world.serve().await;
    let import = json!({ "mailbox": "main", "paths": [mbox] });
    let started = admin(&server, "POST", "/v1/admin/import", &import).await.json();
    let id = started["job_id"].as_str().expect("an id");
    let stop = admin(&server, "POST", &format!("/v1/admin/jobs/{id}/stop"), &json!({})).await;
    assert_eq!(stop.status, 200);
    let view = ended(&server, id).await;
    let account = &view["account"];
    assert_eq!(account["interrupted"], true, "{view}");
    assert_eq!(account["read"], account["stored"], "{view}");
    let found = search(server.address(), "number").await;
    assert_eq!(found["total"], account["stored"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_hosts_and_pages_are_denied() {
    let world = World::new();
    let mut config = world.config();
    config.host_names = vec!["mail.example".into()];
    let server = world.serve_with(config).await;
    let at = server.address();
    let own = at.to_string();
    for (host, status) in [
        (own.as_str(), 200),
        ("localhost:1", 200),
        ("mail.example", 200),
        ("[::1]:80", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
    ] {
        let answer = send(at, "GET", "/healthz", &[("host", host)], "").await;
        assert_eq!(answer.status, status, "{host}");
        if status == 403 {
            refused(&answer, 403, "host_denied");
        }
    }
    let twice = [("host", "localhost"), ("host", "localhost")];
    refused(&send(at, "GET", "/healthz", &twice, "").await, 403, "host_denied");
    for (origin, allowed) in
        [("http://localhost:3000", true), ("https://evil.example", false), ("null", false)]
    {
        let answer = send(at, "GET", "/healthz", &[("origin", origin)], "").await;
        assert_eq!(answer.status, if allowed { 200 } else { 403 }, "{origin}");
        assert_eq!(answer.header("access-control-allow-origin"), "");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_above_their_limit_are_refused() {
    let world = World::new();
    let mut config = world.config();
    config.message_bytes_max = 32 << 10;
    let postrider = Postrider::open(config).await.expect("opens");
    postrider.ensure_identity("main").await.expect("made");
    let server = Server::start(postrider).await.expect("starts");
    let at = server.address();
    let long = json!({ "q": "a".repeat(64 << 10) });
    let answer = post(at, "/v1/identities/main/search", &long).await;
    refused(&answer, 413, "payload_too_large");
    let mut message = letter("large");
    message.resize(32 << 10, b'x');
    let messages = "/v1/identities/main/messages";
    assert_eq!(send(at, "POST", messages, &[], message.clone()).await.status, 202);
    message.push(b'x');
    let error = refused(&send(at, "POST", messages, &[], message).await, 413, "payload_too_large");
    assert_eq!(error["details"]["limit_bytes"], 32 << 10);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn health_is_told_and_every_answer_has_an_identifier() {
    let world = World::new();
    let server = world.serve().await;
    let mut ids = Vec::new();
    for path in ["/healthz", "/readyz"] {
        let answer = get(server.address(), path).await;
        assert_eq!(
            (answer.status, answer.json()),
            (200, json!({ "writing": true, "semantic": "inactive" }))
        );
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert!(answer.header("request-id").starts_with("req_"));
        ids.push(answer.header("request-id").to_owned());
    }
    assert_ne!(ids[0], ids[1]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_token_of_server_json_opens_the_administration() {
    let world = World::new();
    let server = world.serve().await;
    let at = server.address();
    let file = ServerFile::read(&world.data_dir()).expect("written");
    assert_eq!((file.address, file.token.as_str()), (at, server.token()));
    for path in ["status", "jobs/job_1", "dump"] {
        let path = format!("/v1/admin/{path}");
        let answer = get(at, &path).await;
        refused(&answer, 401, "unauthenticated");
        assert_eq!(answer.header("www-authenticate"), "Bearer");
        let headers = [("authorization", "Bearer wrong")];
        refused(&send(at, "GET", &path, &headers, "").await, 401, "unauthenticated");
    }
    for path in ["import", "rebuild", "own-addresses", "jobs/job_1/stop"] {
        let answer = post(at, &format!("/v1/admin/{path}"), &json!({})).await;
        refused(&answer, 401, "unauthenticated");
    }
    let headers = [("authorization", "Bearer wrong")];
    refused(&send(at, "GET", "/healthz", &headers, "").await, 401, "unauthenticated");
    assert_eq!(admin(&server, "GET", "/v1/admin/status", &json!({})).await.status, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_server_leaves_a_directory_that_opens() {
    let world = World::new();
    let server = empty(&world).await;
    let at = server.address();
    let stored = send(at, "POST", "/v1/identities/main/messages", &[], letter("kept")).await.json();
    server.stop().await;
    assert!(ServerFile::read(&world.data_dir()).is_none());
    assert!(TcpStream::connect(at).await.is_err());
    let server = world.serve().await;
    let found = search(server.address(), "kept").await;
    assert_eq!(found["hits"][0]["message_id"], stored["message_id"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_under_way_when_the_server_stops_is_finished() {
    let world = World::new();
    let server = empty(&world).await;
    let at = server.address();
    let letter = letter("last");
    let mut stream = TcpStream::connect(at).await.expect("connects");
    let head = format!(
        "POST /v1/identities/main/messages HTTP/1.1\r\nHost: localhost\r\n\
         Content-Length: {}\r\nExpect: 100-continue\r\n\r\n",
        letter.len()
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut heard = Vec::new();
    // The handler waits for the body when it says this.
    while !heard.ends_with(b"100 Continue\r\n\r\n") {
        assert_ne!(stream.read_buf(&mut heard).await.expect("heard"), 0);
    }
    let stopping = tokio::spawn(server.stop());
    while TcpStream::connect(at).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(!stopping.is_finished(), "the server did not wait");
    stream.write_all(&letter).await.expect("sent");
    heard.clear();
    stream.read_to_end(&mut heard).await.expect("heard");
    assert!(heard.starts_with(b"HTTP/1.1 202"), "{}", String::from_utf8_lossy(&heard));
    stopping.await.expect("stopped");

    let server = world.serve().await;
    assert_eq!(search(server.address(), "last").await["total"], 1);
    server.stop().await;
}
