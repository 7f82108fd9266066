//! A model behind an address that speaks TLS: asked when the system trusts its certificate, and
//! not otherwise.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use postrider::embed::{Address, Allowance, Endpoint, Model, ModelError, Role};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

const CHILD: &str = "POSTRIDER_TLS_CHILD";

/// The child: asks the address it is told, trusting what `SSL_CERT_FILE` names.
#[test]
fn child_that_asks_when_told_to() {
    let Ok(url) = std::env::var(CHILD) else { return };
    let endpoint = Endpoint {
        addresses: vec![Address { url, model: "safe".into(), key: None }],
        dimensions: 2,
        wait: Duration::from_secs(10),
        at_once: 1,
        allowance: Allowance::default(),
        reference: None,
    };
    let model = Model::remote(endpoint, 512, String::new(), String::new()).expect("an address");
    match model.embed(Role::Query, &["a text"]).pop() {
        Some(Ok(vector)) => println!("vector {:.1} {:.1}", vector.values[0], vector.values[1]),
        Some(Err(ModelError::Remote(what))) => println!("fault {what}"),
        other => panic!("{other:?}"),
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(body["input"], json!(["a text"]));
    let answer = json!({ "data": [{ "index": 0, "embedding": [0.6, 0.8] }] });
    Ok(Response::new(Full::new(answer.to_string().into())))
}

async fn serve(certificate: rcgen::CertifiedKey<rcgen::KeyPair>) -> SocketAddr {
    let key = PrivateKeyDer::try_from(certificate.signing_key.serialize_der()).expect("a key");
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.cert.der().clone()], key)
        .expect("a certificate");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                // Whoever does not trust it goes away.
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let served = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service_fn(answer));
                let _ = served.await;
            });
        }
    });
    address
}

async fn ask(url: String, trusted: &Path) -> String {
    let trusted = trusted.to_owned();
    let output = tokio::task::spawn_blocking(move || {
        Command::new(std::env::current_exe().expect("own path"))
            .args(["--exact", "child_that_asks_when_told_to", "--nocapture"])
            .env(CHILD, url)
            .env("SSL_CERT_FILE", trusted)
            .env_remove("SSL_CERT_DIR")
            .output()
            .expect("runs")
    });
    String::from_utf8(output.await.expect("ends").stdout).expect("text")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_checked() {
    let dir = tempfile::tempdir().expect("temp dir");
    let made = |name: &str| {
        let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
        let certificate = certificate.expect("made");
        let path = dir.path().join(name);
        std::fs::write(&path, certificate.cert.pem()).expect("written");
        (certificate, path)
    };
    let ((right, trusted), (_, other)) = (made("right.pem"), made("other.pem"));
    let port = serve(right).await.port();
    let told = ask(format!("https://localhost:{port}/v1"), &trusted).await;
    assert!(told.contains("vector 0.6 0.8"), "{told}");
    let nothing = dir.path().join("nothing.pem");
    std::fs::write(&nothing, b"").expect("written");
    for (url, trusted) in [
        (format!("https://localhost:{port}/v1"), &nothing),
        (format!("https://localhost:{port}/v1"), &other),
        (format!("https://127.0.0.1:{port}/v1"), &trusted),
        (format!("http://localhost:{port}/v1"), &trusted),
    ] {
        let told = ask(url.clone(), trusted).await;
        assert!(told.contains("fault the model cannot be reached"), "{url}: {told}");
    }
}
