//! The built-in models against reference vectors, and model files that are none.
//!
//! `assets/parity-minilm-l6-v2.json` holds twenty sentences in five languages and their vectors by
//! candle 0.11 from the original f32 weights.

use super::*;

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn vectors(model: &Model, role: Role, texts: &[&str]) -> Vec<Vec<f32>> {
    model.embed(role, texts).into_iter().map(|v| v.expect("a vector").values).collect()
}

#[test]
fn meaning_is_nearer_than_words() {
    for builtin in [Builtin::MinilmL6, Builtin::Static128] {
        let model = builtin.model().expect("loads");
        let query = vectors(&model, Role::Query, &["the heating is broken"]);
        let found = vectors(
            &model,
            Role::Passage,
            &["Our radiators have been cold since Friday.", "The broken record is on sale."],
        );
        let (near, far) = (cosine(&query[0], &found[0]), cosine(&query[0], &found[1]));
        assert!(near > far, "{builtin:?}: {near} {far}");
        for vector in query.iter().chain(&found) {
            assert_eq!(vector.len(), model.profile().dimensions as usize);
            assert!((cosine(vector, vector) - 1.0).abs() < 1e-5);
        }
    }
}

#[derive(serde::Deserialize)]
struct Reference {
    sentences: Vec<String>,
    ten_thousandths: Vec<Vec<f32>>,
}

#[test]
fn vectors_are_those_of_the_reference() {
    let reference = include_str!("../../assets/parity-minilm-l6-v2.json");
    let reference: Reference = serde_json::from_str(reference).expect("JSON");
    let model = Builtin::MinilmL6.model().expect("loads");
    let sentences: Vec<&str> = reference.sentences.iter().map(String::as_str).collect();
    assert_eq!(sentences.len(), 20);
    let together = vectors(&model, Role::Passage, &sentences);
    for ((sentence, own), wanted) in sentences.iter().zip(&together).zip(&reference.ten_thousandths)
    {
        let length = cosine(wanted, wanted).sqrt();
        let near = cosine(own, wanted) / length;
        assert!(near >= 0.998, "{near}: {sentence}");
        let alone = vectors(&model, Role::Passage, &[sentence]);
        assert!(cosine(&alone[0], own) > 0.999_99, "a batch changes nothing: {sentence}");
    }
}

#[test]
fn text_that_reads_like_a_mark_is_text() {
    let model = Builtin::MinilmL6.model().expect("loads");
    let found = vectors(&model, Role::Passage, &["[SEP] [PAD]", "sep pad"]);
    assert!(cosine(&found[0], &found[1]) > 0.5);
    let long = "word ".repeat(100_000);
    let cut = vectors(&model, Role::Passage, &[&long]);
    assert_eq!(cut[0].len(), 384);
    let none = Builtin::Static128.model().expect("loads").embed(Role::Query, &["", "\u{0}"]);
    assert!(none.iter().all(|vector| matches!(vector, Err(ModelError::Text(_)))), "{none:?}");
}

fn folder(change: impl Fn(&str, Vec<u8>) -> Vec<u8>) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("temp dir");
    let files: [(&str, &[u8]); 3] = [
        ("model.safetensors", include_bytes!("../../assets/static-128-int8/model.safetensors")),
        ("config.json", include_bytes!("../../assets/static-128-int8/config.json")),
        ("tokenizer.json", include_bytes!("../../assets/static-128-int8/tokenizer.json")),
    ];
    for (name, bytes) in files {
        std::fs::write(dir.path().join(name), change(name, bytes.to_vec())).expect("written");
    }
    dir
}

#[test]
fn a_model_in_a_folder_is_the_same_and_a_damaged_one_is_refused() {
    let whole = folder(|_, bytes| bytes);
    let model = Model::open(whole.path()).expect("opens");
    let builtin = Builtin::Static128.model().expect("loads");
    let text = ["the heating is broken"];
    assert_eq!(vectors(&model, Role::Query, &text), vectors(&builtin, Role::Query, &text));
    assert_ne!(model.profile().fingerprint(), builtin.profile().fingerprint());

    type Change = (&'static str, fn(Vec<u8>) -> Vec<u8>, &'static str);
    let changes: [Change; 7] = [
        ("model.safetensors", |bytes| bytes[..1_000].to_vec(), "no safetensors file"),
        ("model.safetensors", |_| Vec::new(), "no safetensors file"),
        (
            "model.safetensors",
            |mut bytes| {
                bytes[..8].copy_from_slice(&u64::MAX.to_le_bytes());
                bytes
            },
            "no safetensors file",
        ),
        ("config.json", |_| b"{".to_vec(), "config.json"),
        ("config.json", |_| br#"{"model_type": "gpt2"}"#.to_vec(), "config.json"),
        ("tokenizer.json", |_| b"[]".to_vec(), "tokenizer.json"),
        (
            "tokenizer.json",
            |_| include_bytes!("../../assets/minilm-l6-v2-int8/tokenizer.json").to_vec(),
            "do not belong together",
        ),
    ];
    for (file, change, told) in changes {
        let dir = folder(|name, bytes| if name == file { change(bytes) } else { bytes });
        let error = Model::open(dir.path()).expect_err("refused").to_string();
        assert!(error.contains(told), "{file}: {error}");
    }
    std::fs::remove_file(whole.path().join("config.json")).expect("removed");
    assert!(matches!(Model::open(whole.path()), Err(ModelError::Io { .. })));
}
