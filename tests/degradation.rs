//! What a hybrid search answers while its models do and do not: every row of the table of Pylota
//! Mail search §9.7, over HTTP, each answer a snapshot.

#[expect(dead_code, reason = "not all that other tests need is needed here")]
#[path = "world/door.rs"]
mod door;
#[expect(dead_code, reason = "not all that other tests need is needed here")]
mod world;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use door::{get, send};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use postrider::app::{EmbedOptions, ImportOptions, Postrider};
use postrider::config::{Config, Embedding, NeverEmbed, Rerank, RerankForm, RerankSettings};
use postrider::http::Server;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use world::{World, letter};

/// An embedding model and a reranker, each of which may be broken.
#[derive(Debug, Default)]
struct Models {
    embedding_broken: AtomicBool,
    reranker_broken: AtomicBool,
    judged: AtomicUsize,
}

const WARM: [&str; 3] = ["heating", "boiler", "radiator"];

fn is_warm(text: &str) -> bool {
    WARM.iter().any(|word| text.contains(word))
}

async fn answer(models: Arc<Models>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.expect("a body").to_bytes();
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    let texts = |name: &str| -> Vec<String> {
        let texts = body[name].as_array().expect("texts").iter();
        texts.map(|text| text.as_str().expect("text").to_owned()).collect()
    };
    let broken = |broken: &AtomicBool| broken.load(Ordering::SeqCst);
    // Likes radiators best, whatever the words.
    let likes = |text: &String| if text.contains("radiators") { 0.9 } else { 0.1 };
    let answer = match path.as_str() {
        "/v1/embeddings" if !broken(&models.embedding_broken) => {
            let one = |(at, text): (usize, &String)| {
                let vector = if is_warm(text) { [3.0, 4.0, 0.0] } else { [0.0, 0.0, 2.0] };
                json!({ "index": at, "embedding": vector })
            };
            let data: Vec<Value> = texts("input").iter().enumerate().map(one).collect();
            Some(json!({ "data": data }))
        }
        "/v1/rerank" if !broken(&models.reranker_broken) => {
            let documents = texts("documents");
            models.judged.fetch_add(documents.len(), Ordering::SeqCst);
            let one = |(at, text): (usize, &String)| json!({ "index": at, "relevance_score": likes(text) });
            let results: Vec<Value> = documents.iter().enumerate().map(one).rev().collect();
            Some(json!({ "results": results }))
        }
        "/rerank" if !broken(&models.reranker_broken) => {
            let texts = texts("texts");
            models.judged.fetch_add(texts.len(), Ordering::SeqCst);
            // Logits.
            let one = |(at, text): (usize, &String)| json!({ "index": at, "score": if likes(text) > 0.5 { 3.0 } else { -3.0 } });
            Some(Value::Array(texts.iter().enumerate().map(one).collect()))
        }
        _ => None,
    };
    match answer {
        Some(answer) => Response::new(Full::new(answer.to_string().into())),
        None => Response::builder().status(500).body(Full::default()).expect("a response"),
    }
}

async fn serve(models: &Arc<Models>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let address = listener.local_addr().expect("bound");
    let models = Arc::clone(models);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let models = Arc::clone(&models);
            let service = service_fn(move |request| {
                let models = Arc::clone(&models);
                async move { Ok::<_, Infallible>(answer(models, request).await) }
            });
            let io = TokioIo::new(stream);
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(io, service));
        }
    });
    address
}

fn reranker(url: String, style: RerankForm) -> RerankSettings {
    let model = "picky".into();
    RerankSettings { url, model, style, key_env: None, key_file: None, wait_ms: 1_500 }
}

fn settings(world: &World, models: SocketAddr) -> Config {
    let endpoint = format!("url = \"http://{models}/v1\"\nmodel = \"warm\"\ndimensions = 3");
    Config {
        embedding: Embedding::Endpoint,
        embedding_endpoint: Some(toml::from_str(&endpoint).expect("settings")),
        rerank: Rerank::Endpoint,
        rerank_endpoint: Some(reranker(format!("http://{models}/v1"), RerankForm::Jina)),
        ..world.config()
    }
}

/// A server with five letters and their vectors.
async fn with_letters(world: &World, config: Config) -> Server {
    let postrider = Postrider::open(config).await.expect("opens");
    let subjects =
        ["the boiler is off", "a cat for sale", "cold radiators", "boiler cat", "a dog for sale"];
    for (n, subject) in subjects.iter().enumerate() {
        let path = world.file(&format!("{n}.eml"), &letter(subject));
        let options = ImportOptions::default();
        postrider.import("main", &[path], options).await.expect("imported");
    }
    let options = EmbedOptions::default();
    let done = postrider.embed("main", options, Arc::default()).await.expect("embeds");
    assert_eq!(done.pending, 0);
    Server::start(postrider).await.expect("starts")
}

/// A whole answer, without what differs from run to run.
async fn ask(server: &Server, q: &str, more: Value) -> Value {
    let mut request = json!({ "q": q, "limit": 5 });
    for (name, value) in more.as_object().expect("an object") {
        request[name] = value.clone();
    }
    let path = "/v1/identities/main/search";
    let answer = send(server.address(), "POST", path, &[], request.to_string()).await;
    let mut body = answer.json();
    if let Some(hits) = body["hits"].as_array_mut() {
        for hit in hits {
            for id in ["message_id", "thread_id", "identity_id"] {
                hit[id] = json!("…");
            }
        }
    }
    if let Some(error) = body.get_mut("error") {
        error["request_id"] = json!("…");
    }
    body["as_of_seq"] = json!("…");
    json!({ "status": answer.status, "body": body })
}

fn snapshot(row: &str, answer: &Value) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_snapshot_path("../snapshots/degradation");
    settings.bind(|| insta::assert_json_snapshot!(row.replace(' ', "_"), answer));
}

fn subjects(answer: &Value) -> Vec<&str> {
    let hits = answer["body"]["hits"].as_array().expect("hits").iter();
    hits.map(|hit| hit["subject"].as_str().expect("a subject")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_row_of_the_table() {
    let world = World::new();
    let models = Arc::new(Models::default());
    let address = serve(&models).await;
    let server = with_letters(&world, settings(&world, address)).await;
    let set = |which: &AtomicBool, broken| which.store(broken, Ordering::SeqCst);

    let whole = ask(&server, "boiler cat", json!({})).await;
    snapshot("both models answer", &whole);
    let plain = ask(&server, "boiler cat", json!({ "rerank": false })).await;
    snapshot("no reranking is asked for", &plain);
    assert_ne!(subjects(&whole), subjects(&plain), "the reranker has its own taste");

    set(&models.reranker_broken, true);
    let fused = ask(&server, "boiler cat", json!({})).await;
    snapshot("the reranker fails", &fused);
    assert_eq!(fused["body"]["hits"], plain["body"]["hits"], "the fusion alone");
    set(&models.embedding_broken, true);
    let words = ask(&server, "cat boiler", json!({})).await;
    snapshot("both fail", &words);
    let ready = get(server.address(), "/readyz").await;
    assert_eq!((ready.status, &ready.json()["semantic"]), (200, &json!("degraded")), "no worse");
    let gauge = String::from_utf8(get(server.address(), "/metrics").await.body.into());
    let gauge = gauge.expect("text");
    assert!(gauge.contains("postrider_semantic{state=\"degraded\"} 1"), "{gauge}");
    assert!(gauge.contains("postrider_semantic{state=\"available\"} 0"), "{gauge}");
    let keyword = ask(&server, "cat boiler", json!({ "mode": "keyword" })).await;
    assert_eq!(words["body"]["hits"], keyword["body"]["hits"], "the words alone");
    snapshot(
        "the embedding fails and is required",
        &ask(&server, "cat boiler", json!({ "require_mode": true })).await,
    );
    snapshot(
        "the embedding fails in mode semantic",
        &ask(&server, "cat boiler", json!({ "mode": "semantic" })).await,
    );
    server.stop().await;

    // The minute of each has not passed, but that of a new process has not begun.
    set(&models.reranker_broken, false);
    let server = world.serve_with(settings(&world, address)).await;
    let judged = models.judged.load(Ordering::SeqCst);
    snapshot("the embedding fails", &ask(&server, "cat boiler", json!({})).await);
    assert_eq!(models.judged.load(Ordering::SeqCst), judged, "words are not judged");
    server.stop().await;

    set(&models.embedding_broken, false);
    let none = Config { rerank: Rerank::Off, ..settings(&world, address) };
    let server = world.serve_with(none).await;
    let fused = ask(&server, "boiler cat", json!({})).await;
    snapshot("there is no reranker", &fused);
    assert_eq!(fused["body"]["hits"], plain["body"]["hits"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_model_may_have_is_not_judged_either() {
    let world = World::new();
    let models = Arc::new(Models::default());
    let address = serve(&models).await;
    let mut config = settings(&world, address);
    config.rerank_endpoint = Some(reranker(format!("http://{address}"), RerankForm::Tei));
    config.never_embed = NeverEmbed { labels: vec!["private".into()], ..NeverEmbed::default() };
    let server = with_letters(&world, config).await;
    let found = ask(&server, "boiler", json!({})).await;
    assert_eq!(subjects(&found)[0], "cold radiators", "logits are understood: {found}");
    let count = models.judged.load(Ordering::SeqCst);
    let q = "subject:\"boiler cat\"";
    let request = json!({ "query": q, "add": ["private"] }).to_string();
    let path = "/v1/identities/main/labels";
    let labelled = send(server.address(), "POST", path, &[], request).await;
    assert_eq!(labelled.status, 200, "{:?}", labelled.json());
    let after = ask(&server, "boiler", json!({})).await;
    let judged = models.judged.load(Ordering::SeqCst) - count;
    assert_eq!(after["body"]["rerank"]["judged"], json!(judged));
    assert_eq!(judged, count - 1, "one less than before");
    let hits = after["body"]["hits"].as_array().expect("hits");
    let private = hits.iter().find(|hit| hit["subject"] == "boiler cat").expect("words find it");
    assert_eq!(private.get("why"), None, "no model has seen it");
    server.stop().await;
}
