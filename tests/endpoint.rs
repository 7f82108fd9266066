//! A model behind an address, against a server that answers as a script says: refusals, silence,
//! garbage, and recovery.

#[expect(dead_code, reason = "not all that other tests need is needed here")]
mod world;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use postrider::app::{EmbedOptions, Error, ImportOptions, Postrider};
use postrider::config::{Config, Embedding, EndpointSettings};
use postrider::embed::{Address, Allowance, Endpoint, Model, ModelError, Role, Vector};
use postrider::search::SearchRequest;
use postrider::search::request::{Capability, Mode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use world::{World, letter};

const DIMENSIONS: usize = 3;

/// How the next request is answered; the last entry goes on for ever.
#[derive(Debug, Clone)]
enum Step {
    /// As it should be.
    Right,
    /// This status, with this Retry-After.
    Status(u16, Option<&'static str>),
    /// This body.
    Body(&'static str),
    /// The first half of the vectors.
    Half,
    /// 400 when a text holds this word.
    Refuse(&'static str),
    /// Never.
    Silence,
}

#[derive(Clone)]
struct Server {
    address: SocketAddr,
    script: Arc<Mutex<Vec<Step>>>,
    asked: Arc<AtomicUsize>,
}

/// A vector that says whether a text is about heating.
fn vector(text: &str) -> Vec<f32> {
    let warm = ["heating", "boiler", "radiator"].iter().any(|word| text.contains(word));
    if warm { vec![3.0, 4.0, 0.0] } else { vec![0.0, 0.0, 2.0] }
}

async fn answer(server: Server, request: Request<Incoming>) -> Response<Full<Bytes>> {
    server.asked.fetch_add(1, Ordering::SeqCst);
    let step = {
        let mut script = server.script.lock().expect("held");
        if script.len() > 1 { script.remove(0) } else { script[0].clone() }
    };
    assert_eq!(request.uri().path(), "/v1/embeddings");
    let key = request.headers().get("authorization").map(|v| v.to_str().expect("text").to_owned());
    assert_eq!(key.as_deref(), Some("Bearer secret"));
    let body = request.into_body().collect().await.expect("a body").to_bytes();
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(body["model"], "warm");
    let texts: Vec<String> = body["input"]
        .as_array()
        .expect("texts")
        .iter()
        .map(|text| text.as_str().expect("text").to_owned())
        .collect();
    let data = |count: usize| -> Vec<Value> {
        // In another order than asked: the index tells which is which.
        let one = |(at, text): (usize, &String)| json!({"index": at, "embedding": vector(text)});
        texts.iter().enumerate().take(count).map(one).rev().collect()
    };
    let good = |count| Response::new(Full::new(json!({ "data": data(count) }).to_string().into()));
    let status = |code: u16| {
        Response::builder().status(code).body(Full::new(Bytes::from("{}"))).expect("a response")
    };
    match step {
        Step::Right => good(texts.len()),
        Step::Half => good(texts.len() / 2),
        Step::Body(body) => Response::new(Full::new(body.into())),
        Step::Refuse(word) if texts.iter().any(|text| text.contains(word)) => status(400),
        Step::Refuse(_) => good(texts.len()),
        Step::Status(code, pause) => {
            let mut response = status(code);
            if let Some(pause) = pause {
                response.headers_mut().insert("retry-after", pause.parse().expect("a header"));
            }
            response
        }
        Step::Silence => std::future::pending().await,
    }
}

async fn serve(script: Vec<Step>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let server = Server {
        address: listener.local_addr().expect("bound"),
        script: Arc::new(Mutex::new(script)),
        asked: Arc::default(),
    };
    let serving = server.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let server = serving.clone();
            let service = service_fn(move |request| {
                let server = server.clone();
                async move { Ok::<_, Infallible>(answer(server, request).await) }
            });
            let io = TokioIo::new(stream);
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(io, service));
        }
    });
    server
}

fn endpoint(urls: &[&str], dimensions: u32) -> Endpoint {
    let address = |url: &&str| Address {
        url: (*url).into(),
        model: "warm".into(),
        key: Some("secret".into()),
    };
    Endpoint {
        addresses: urls.iter().map(address).collect(),
        dimensions,
        wait: Duration::from_millis(400),
        at_once: 2,
        allowance: Allowance::default(),
        reference: None,
    }
}

fn model(address: SocketAddr, dimensions: u32) -> Arc<Model> {
    let endpoint = endpoint(&[&format!("http://{address}/v1/")], dimensions);
    Arc::new(Model::remote(endpoint, 512, String::new(), String::new()).expect("an address"))
}

type Vectors = Vec<Result<Vector, ModelError>>;

async fn embed(model: &Arc<Model>, role: Role, texts: &[&'static str]) -> Vectors {
    let (model, texts) = (Arc::clone(model), texts.to_vec());
    tokio::task::spawn_blocking(move || model.embed(role, &texts)).await.expect("ends")
}

fn fault(vectors: &Vectors) -> &'static str {
    match vectors.first() {
        Some(Err(ModelError::Remote(what))) => what,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn passing_faults_are_tried_again_and_lasting_ones_are_not() {
    let cases: [(Vec<Step>, usize, Option<&str>); 11] = [
        (vec![Step::Right], 1, None),
        (vec![Step::Status(429, Some("0")), Step::Right], 2, None),
        (vec![Step::Status(503, None), Step::Half, Step::Right], 3, None),
        (vec![Step::Status(500, None)], 3, Some("the model fails")),
        (vec![Step::Half], 3, Some("the model answers only a part")),
        (vec![Step::Silence], 3, Some("the model does not answer in time")),
        (vec![Step::Status(401, None)], 1, Some("the model refuses the key")),
        (vec![Step::Status(404, None)], 1, Some("there is no such model or address")),
        (vec![Step::Status(402, None)], 1, Some("the model refuses to answer")),
        // The batch, each half, and the probe: twice, as the first half already tells.
        (vec![Step::Status(400, None)], 5, Some("the model refuses whatever it is asked")),
        (vec![Step::Body("<html>")], 1, Some("the answer of the model is not understood")),
    ];
    for (script, asked, told) in cases {
        let server = serve(script.clone()).await;
        let model = model(server.address, DIMENSIONS as u32);
        let vectors = embed(&model, Role::Passage, &["the boiler", "a cat"]).await;
        match told {
            None => {
                let first = &vectors[0].as_ref().expect("a vector").values;
                assert!((first[0] - 0.6).abs() < 1e-6, "of length 1: {first:?}");
                assert!(model.may_be_asked());
            }
            Some(told) => {
                assert_eq!(fault(&vectors), told, "{script:?}");
                assert!(!model.may_be_asked(), "{script:?}");
            }
        }
        assert_eq!(server.asked.load(Ordering::SeqCst), asked, "{script:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_bad_text_does_not_lose_its_batch_and_vectors_that_are_none_are_refused() {
    let server = serve(vec![Step::Refuse("poison")]).await;
    let asked = model(server.address, DIMENSIONS as u32);
    let texts = ["the boiler", "a cat", "poison", "a dog", "radiators"];
    let vectors = embed(&asked, Role::Passage, &texts).await;
    let good: Vec<bool> = vectors.iter().map(Result::is_ok).collect();
    assert_eq!(good, [true, true, false, true, true]);
    assert!(matches!(vectors[2], Err(ModelError::Refused(_))));
    assert!(asked.may_be_asked(), "a text that is refused is no fault of the model");

    let other = embed(&model(server.address, 4), Role::Passage, &["a cat"]).await;
    assert_eq!(fault(&other), "the model gives vectors of another length");
    for (body, lasting) in [
        (r#"{"data": [{"index": 0, "embedding": [0, 0, 0]}]}"#, false),
        (r#"{"data": [{"index": 7, "embedding": [1, 0, 0]}]}"#, true),
        (r#"{"data": [{"index": 0, "embedding": [1, 0]}]}"#, true),
        (r#"{"data": [{"index": 0, "embedding": "AAAA"}]}"#, true),
    ] {
        let server = serve(vec![Step::Body(body)]).await;
        let vectors = embed(&model(server.address, 3), Role::Passage, &["a cat"]).await;
        match &vectors[0] {
            Err(ModelError::Remote(_)) => assert!(lasting, "{body}"),
            Err(ModelError::Refused(_)) => assert!(!lasting, "{body}"),
            other => panic!("{body}: {other:?}"),
        }
    }
    for url in ["ftp://127.0.0.1/v1", "nonsense", "http://"] {
        let refused = Model::remote(endpoint(&[url], 3), 512, String::new(), String::new());
        assert!(matches!(refused, Err(ModelError::File(_))), "{url}");
    }
}

async fn open(world: &World, address: SocketAddr) -> Postrider {
    let endpoint = EndpointSettings {
        url: format!("http://{address}/v1"),
        model: "warm".into(),
        dimensions: DIMENSIONS as u32,
        tokens_max: 512,
        query_prefix: String::new(),
        passage_prefix: String::new(),
        // Any variable that is set; its value would be the key.
        key_env: None,
        key_file: None,
        wait_ms: 400,
        requests_at_once: 2,
        texts_per_minute: None,
        texts_per_day: None,
        fallbacks: Vec::new(),
    };
    let config = Config {
        data_dir: world.data_dir(),
        time_zone: "UTC".into(),
        embedding: Embedding::Endpoint,
        embedding_endpoint: Some(endpoint),
        ..Config::default()
    };
    Postrider::open(config).await.expect("opens")
}

/// The same server without a key.
async fn serve_open(script: Vec<Step>) -> (SocketAddr, Server) {
    let server = serve(script).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let address = listener.local_addr().expect("bound");
    let serving = server.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let server = serving.clone();
            let service = service_fn(move |mut request: Request<Incoming>| {
                let server = server.clone();
                let key = "Bearer secret".parse().expect("a header");
                assert!(request.headers_mut().insert("authorization", key).is_none());
                async move { Ok::<_, Infallible>(answer(server, request).await) }
            });
            let io = TokioIo::new(stream);
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(io, service));
        }
    });
    (address, server)
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_go_by_words_while_the_model_does_not_answer() {
    let world = World::new();
    let (address, server) = serve_open(vec![Step::Right]).await;
    let postrider = open(&world, address).await;
    for subject in ["the boiler is off", "a cat for sale", "cold radiators"] {
        let path = world.file(&format!("{}.eml", subject.len()), &letter(subject));
        postrider.import("main", &[path], ImportOptions::default()).await.expect("imported");
    }
    let embedded =
        postrider.embed("main", EmbedOptions::default(), Arc::default()).await.expect("embeds");
    assert_eq!((embedded.computed, embedded.pending), (3, 0));
    let search = async |q: &str, mode, require_mode| {
        let q = q.into();
        let request = SearchRequest { q, mode, require_mode, ..SearchRequest::default() };
        postrider.search("main", &request).await
    };
    let found = search("heating cat", Mode::Semantic, true).await.expect("answers");
    assert_eq!(found.hits.len(), 3);
    assert!(found.hits[0].why[0] == "semantic:1.000" && found.hits[2].score < 0.001, "{found:?}");

    *server.script.lock().expect("held") = vec![Step::Status(500, None)];
    let before = server.asked.load(Ordering::SeqCst);
    let known = search("heating cat", Mode::Semantic, true).await.expect("answers");
    assert_eq!(known.hits, found.hits, "the vectors of the last queries are kept");
    assert_eq!(server.asked.load(Ordering::SeqCst), before);
    for _ in 0..3 {
        let found = search("radiators cat", Mode::Hybrid, false).await.expect("answers by words");
        let state = found.semantic.expect("told");
        assert_eq!(found.query.mode, Mode::Keyword);
        assert_eq!((state.capability, state.degraded), (Capability::Degraded, true));
        assert!((state.coverage - 1.0).abs() < 1e-9);
        let semantic =
            search("radiators cat", Mode::Semantic, false).await.expect("answers by words");
        assert_eq!(semantic.query.mode, Mode::Keyword);
        let refused = search("radiators cat", Mode::Hybrid, true).await;
        assert!(matches!(refused, Err(Error::Degraded)), "{refused:?}");
    }
    let asked = server.asked.load(Ordering::SeqCst) - before;
    assert_eq!(asked, 1, "it is left alone for a minute");
    let path = world.file("more.eml", &letter("more radiators"));
    postrider.import("main", &[path], ImportOptions::default()).await.expect("imported");
    let failed = postrider.embed("main", EmbedOptions::default(), Arc::default()).await;
    assert!(matches!(failed, Err(Error::Model(_))), "{failed:?}");

    *server.script.lock().expect("held") = vec![Step::Right];
    let embedded =
        postrider.embed("main", EmbedOptions::default(), Arc::default()).await.expect("embeds");
    assert_eq!((embedded.computed, embedded.pending), (1, 0));
    let found = search("radiators cat", Mode::Hybrid, true)
        .await
        .expect("the work of others says that it is back");
    let state = found.semantic.expect("told");
    assert_eq!((state.capability, state.degraded), (Capability::Available, false));
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_address_is_asked_while_those_before_fail() {
    let (first, second) =
        (serve(vec![Step::Status(500, None)]).await, serve(vec![Step::Right]).await);
    let urls = [format!("http://{}/v1", first.address), format!("http://{}/v1", second.address)];
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let remote = Model::remote(endpoint(&urls, 3), 512, String::new(), String::new());
    let model = Arc::new(remote.expect("addresses"));
    let asked = |server: &Server| server.asked.load(Ordering::SeqCst);
    for role in [Role::Passage, Role::Query, Role::Passage] {
        let vectors = embed(&model, role, &["the boiler"]).await;
        assert!(vectors[0].is_ok(), "{vectors:?}");
        assert!(model.may_be_asked());
    }
    assert_eq!((asked(&first), asked(&second)), (3, 3), "the first is left alone for a minute");
    *second.script.lock().expect("held") = vec![Step::Status(401, None)];
    let vectors = embed(&model, Role::Passage, &["the boiler"]).await;
    assert_eq!(fault(&vectors), "the model refuses the key");
    *first.script.lock().expect("held") = vec![Step::Right];
    let vectors = embed(&model, Role::Passage, &["the boiler"]).await;
    assert!(vectors[0].is_ok(), "when all are resting, all are asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_model_in_its_place_is_found_out() {
    let server = serve(vec![Step::Right]).await;
    let mut right = endpoint(&[&format!("http://{}/v1", server.address)], 3);
    // That of the probe, which is not about heating.
    right.reference = Some(vec![0.0, 0.0, 1.0]);
    let mut other = right.clone();
    other.reference = Some(vec![0.0, 0.6, 0.8]);
    let model = |endpoint| {
        Arc::new(Model::remote(endpoint, 512, String::new(), String::new()).expect("an address"))
    };
    let vectors = embed(&model(right), Role::Query, &["the boiler"]).await;
    assert_eq!(vectors.len(), 1);
    assert!((vectors[0].as_ref().expect("a vector").values[1] - 0.8).abs() < 1e-6);
    let vectors = embed(&model(other), Role::Query, &["the boiler"]).await;
    assert_eq!(fault(&vectors), "the model gives other vectors than those that are kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_is_too_long_is_cut_and_a_closing_waits_for_nobody() {
    let server = serve(vec![Step::Refuse("the end")]).await;
    let asked = model(server.address, 3);
    let long: &'static str = Box::leak((("radiators ".repeat(60)) + "the end").into_boxed_str());
    let vectors = embed(&asked, Role::Passage, &[long, "a cat"]).await;
    let cut: Vec<bool> = vectors.iter().map(|v| v.as_ref().expect("a vector").cut).collect();
    assert_eq!(cut, [true, false]);

    let server = serve(vec![Step::Silence]).await;
    let mut patient = endpoint(&[&format!("http://{}/v1", server.address)], 3);
    patient.wait = Duration::from_secs(600);
    let patient = Model::remote(patient, 512, String::new(), String::new());
    let patient = Arc::new(patient.expect("an address"));
    let asking = embed(&patient, Role::Passage, &["a cat"]);
    let closing = async {
        while server.asked.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        patient.close();
    };
    let (vectors, ()) = tokio::join!(asking, closing);
    assert_eq!(fault(&vectors), "the program is about to end");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_refused_is_asked_about_again_when_told_to() {
    let world = World::new();
    let (address, server) = serve_open(vec![Step::Refuse("poison")]).await;
    let postrider = open(&world, address).await;
    let mut paths = Vec::new();
    for n in 0..70 {
        let name = format!("{n}.eml");
        paths.push(world.file(&name, &letter(&format!("poison {n}"))));
    }
    paths.push(world.file("good.eml", &letter("a cat")));
    postrider.import("main", &paths, ImportOptions::default()).await.expect("imported");
    let embed = async |retry| {
        let options = EmbedOptions { retry, ..EmbedOptions::default() };
        postrider.embed("main", options, Arc::default()).await.expect("embeds")
    };
    let status = async || postrider.embed_status("main").await.expect("status").active;
    let first = embed(false).await;
    assert_eq!((first.computed, first.failed, first.pending), (71, 70, 0));
    let stands = status().await.expect("serves");
    assert_eq!((stands.embedded, stands.failed, stands.pending), (1, 70, 0));
    let again = embed(true).await;
    assert_eq!((again.computed, again.failed, again.kept), (70, 70, 0), "it still refuses");
    *server.script.lock().expect("held") = vec![Step::Right];
    assert_eq!(embed(false).await.computed, 0, "nobody told it to");
    let again = embed(true).await;
    assert_eq!((again.computed, again.failed, again.pending), (70, 0, 0), "all of them");
    let stands = status().await.expect("serves");
    assert_eq!((stands.embedded, stands.failed), (71, 0));
    postrider.close().await;
}
