//! The models that come with the program (`assets/`): loaded on first use, once for the process.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::ModelError;
use super::model::{Advice, Files, Model};

/// A model that comes with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Builtin {
    /// all-MiniLM-L6-v2, weights as signed bytes: 384 dimensions, 256 tokens, English.
    MinilmL6,
    /// A static table distilled from it: 128 dimensions; thousands of times faster, less exact.
    Static128,
}

/// What the model was trained on (its card): 512 positions exist, 256 tokens were used.
const MINILM_TOKENS_MAX: usize = 256;

impl Builtin {
    /// The loaded model.
    ///
    /// # Errors
    /// [`ModelError::File`] when the program was built with a damaged file.
    pub fn model(self) -> Result<Arc<Model>, ModelError> {
        static MINILM: OnceLock<Arc<Model>> = OnceLock::new();
        static STATIC: OnceLock<Arc<Model>> = OnceLock::new();
        let slot = match self {
            Self::MinilmL6 => &MINILM,
            Self::Static128 => &STATIC,
        };
        if let Some(model) = slot.get() {
            return Ok(Arc::clone(model));
        }
        let loaded = Arc::new(self.load()?);
        Ok(Arc::clone(slot.get_or_init(|| loaded)))
    }

    fn load(self) -> Result<Model, ModelError> {
        let (name, files, tokens_max) = match self {
            Self::MinilmL6 => (
                "all-MiniLM-L6-v2-int8",
                Files {
                    weights: include_bytes!("../../assets/minilm-l6-v2-int8/model.safetensors"),
                    config: include_bytes!("../../assets/minilm-l6-v2-int8/config.json"),
                    tokenizer: include_bytes!("../../assets/minilm-l6-v2-int8/tokenizer.json"),
                },
                Some(MINILM_TOKENS_MAX),
            ),
            Self::Static128 => (
                "static-128-int8",
                Files {
                    weights: include_bytes!("../../assets/static-128-int8/model.safetensors"),
                    config: include_bytes!("../../assets/static-128-int8/config.json"),
                    tokenizer: include_bytes!("../../assets/static-128-int8/tokenizer.json"),
                },
                None,
            ),
        };
        Model::load("builtin", name, files, Advice { tokens_max, ..Advice::default() })
    }
}
