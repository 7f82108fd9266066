//! Models of tests.

use std::path::{Path, PathBuf};

/// The static model in a folder beside a data directory, with a prefix of its own: another space,
/// and as fast.
pub(crate) fn other_model(data_dir: &Path) -> PathBuf {
    let dir = data_dir.with_file_name("other-model");
    if !dir.exists() {
        std::fs::create_dir_all(&dir).expect("made");
        let assets = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("assets/static-128-int8");
        for name in ["model.safetensors", "config.json", "tokenizer.json"] {
            std::fs::copy(assets.join(name), dir.join(name)).expect("copied");
        }
        let prompts = r#"{"prompts": {"query": "a letter about ", "passage": "a letter: "}}"#;
        std::fs::write(dir.join("config_sentence_transformers.json"), prompts).expect("written");
    }
    dir
}
