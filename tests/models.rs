//! Models taken into the data directory: what works is copied, what does not is refused.

#[expect(dead_code, reason = "not all that other tests need is needed here")]
mod world;

use std::path::{Path, PathBuf};

use postrider::app::{Error, ModelKind, add_model, models};
use postrider::config::Config;
use world::World;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn config(world: &World) -> Config {
    Config { data_dir: world.data_dir(), ..Config::default() }
}

/// A copy of the static model that may be spoilt.
fn copy(world: &World, name: &str) -> PathBuf {
    let dir = world.data_dir().with_file_name(name);
    std::fs::create_dir_all(&dir).expect("made");
    for file in ["model.safetensors", "config.json", "tokenizer.json"] {
        let from = root().join("assets/static-128-int8").join(file);
        std::fs::copy(from, dir.join(file)).expect("copied");
    }
    dir
}

fn refusal(config: &Config, dir: &Path, name: Option<&str>) -> String {
    match add_model(config, dir, name) {
        Err(Error::Model(what)) => what,
        Err(Error::Invalid { path, message }) => format!("{path} {message}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_works_is_taken_in() {
    let world = World::new();
    let config = config(&world);
    assert_eq!(models(&config).expect("lists"), []);
    let added = add_model(&config, &copy(&world, "small"), None).expect("added");
    assert_eq!((added.name.as_str(), added.kind), ("small", ModelKind::Embedding));
    assert_eq!((added.dimensions, added.tokens_max, added.parity), (Some(128), Some(512), false));
    assert_eq!(added.folder, world.data_dir().join("models/small"));
    let judge = root().join("tests/models/tiny-bert-cross-encoder");
    let judge = add_model(&config, &judge, Some("judge")).expect("added");
    assert_eq!((judge.kind, judge.dimensions), (ModelKind::Reranker, None));
    assert_eq!(models(&config).expect("lists"), [judge, added]);
}

#[test]
fn what_does_not_work_is_refused_and_leaves_nothing() {
    let world = World::new();
    let config = config(&world);
    let good = copy(&world, "good");
    add_model(&config, &good, None).expect("added");
    assert!(refusal(&config, &good, None).contains("is taken by a model"));
    for name in ["", "a/b", "..", ".hidden", "a b", "ä"] {
        assert!(refusal(&config, &good, Some(name)).starts_with("name must be 1 to 64"), "{name}");
    }
    let none = refusal(&config, &world.data_dir().with_file_name("none"), None);
    assert!(none.starts_with("dir must be a folder with model.safetensors"), "{none}");

    let cut = copy(&world, "cut");
    let weights = std::fs::read(cut.join("model.safetensors")).expect("reads");
    std::fs::write(cut.join("model.safetensors"), &weights[..weights.len() / 2]).expect("written");
    assert!(refusal(&config, &cut, None).contains("no safetensors file"));

    let foreign = copy(&world, "foreign");
    let tokenizer = root().join("tests/models/tiny-bert-cross-encoder/tokenizer.json");
    std::fs::copy(tokenizer, foreign.join("tokenizer.json")).expect("copied");
    assert!(refusal(&config, &foreign, None).contains("may not belong together"));

    let other = copy(&world, "other");
    let mut vector = vec![0.0; 128];
    vector[3] = 1.0;
    let parity = serde_json::json!([{ "text": "a text", "vector": vector }]).to_string();
    std::fs::write(other.join("parity.json"), parity).expect("written");
    assert!(refusal(&config, &other, None).contains("is not met"));

    let names: Vec<String> =
        models(&config).expect("lists").into_iter().map(|model| model.name).collect();
    assert_eq!(names, ["good"]);
    let left = std::fs::read_dir(world.data_dir().join("models")).expect("reads").count();
    assert_eq!(left, 1);
}
