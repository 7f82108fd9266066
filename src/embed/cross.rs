//! A cross-encoder: a query and a text go through a model together, and one number says how well
//! the text answers. BERT's own head (`pooler`, `classifier`) and RoBERTa's (`classifier.dense`,
//! `classifier.out_proj`), as transformers writes them for one label.

use std::path::Path;
use std::time::Instant;

use super::ModelError;
use super::bert::{Bert, Linear, Pooling, Scratch, Shape};
use super::model::{fits, read};
use super::tokens::Tokens;
use super::weights::Weights;

/// Tokens of a pair at most, whatever the model could read (Pylota Mail search §9: 512).
const TOKENS_MAX: usize = 512;

/// A loaded cross-encoder.
pub(super) struct Cross {
    tokens: Tokens,
    bert: Bert,
    dense: Linear,
    out: Linear,
}

impl Cross {
    /// From a folder with `model.safetensors`, `config.json` and `tokenizer.json`.
    pub(super) fn open(dir: &Path) -> Result<Self, ModelError> {
        let weights = read(dir, "model.safetensors")?;
        let shape = Shape::read(&read(dir, "config.json")?)?;
        let hidden = shape.dimensions();
        let tokens_max = shape.tokens_max().min(TOKENS_MAX);
        let tokens = Tokens::read_for_pairs(&read(dir, "tokenizer.json")?, tokens_max)?;
        let file = Weights::open(&weights)?;
        let dense = if file.has("pooler.dense.weight") {
            Some(Linear::load(&file, "pooler.dense", hidden, hidden)?)
        } else {
            None
        };
        let file = file.unprefixed();
        let (dense, out) = match dense {
            Some(dense) if file.has("classifier.weight") => {
                (dense, Linear::load(&file, "classifier", 1, hidden)?)
            }
            _ => (
                Linear::load(&file, "classifier.dense", hidden, hidden)?,
                Linear::load(&file, "classifier.out_proj", 1, hidden)?,
            ),
        };
        let bert = Bert::load(&weights, shape, Pooling::First)?;
        fits(&tokens, bert.vocabulary())?;
        Ok(Self { tokens, bert, dense, out })
    }

    /// How well each text answers the query: any number, higher is better.
    /// Ends between two texts when it is too late.
    pub(super) fn scores(
        &self,
        query: &str,
        texts: &[&str],
        until: Instant,
    ) -> Result<Vec<f32>, ModelError> {
        let mut scratch = Scratch::default();
        let (mut dense, mut out) = (Vec::new(), Vec::new());
        let mut scores = Vec::with_capacity(texts.len());
        for text in texts {
            if Instant::now() > until {
                return Err(ModelError::Remote("the reranker is too slow for this machine"));
            }
            let pair = self.tokens.of_pair(query, text)?;
            let states = self.bert.first_states(&[pair], &mut scratch)?;
            let state = states.first().map(Vec::as_slice).unwrap_or_default();
            self.dense.apply(1, state, &mut dense);
            dense.iter_mut().for_each(|value| *value = value.tanh());
            self.out.apply(1, &dense, &mut out);
            let score = out.first().copied().unwrap_or(f32::NAN);
            if !score.is_finite() {
                return Err(ModelError::Text("a text that the model cannot judge"));
            }
            scores.push(score);
        }
        Ok(scores)
    }
}

/// A logit as a probability.
pub(super) fn probability(logit: f32) -> f64 {
    1.0 / (1.0 + f64::from(-logit).exp())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn late() -> Instant {
        Instant::now() + Duration::from_secs(600)
    }

    #[derive(serde::Deserialize)]
    struct Expected {
        query: String,
        text: String,
        logit: f32,
    }

    #[test]
    fn logits_are_those_of_transformers() {
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models");
        for name in ["tiny-bert-cross-encoder", "tiny-xlmr-cross-encoder"] {
            let dir = models.join(name);
            let cross = Cross::open(&dir).expect("loads");
            let expected = std::fs::read(dir.join("expected.json")).expect("reads");
            let expected: Vec<Expected> = serde_json::from_slice(&expected).expect("JSON");
            assert!(expected.len() >= 8);
            for Expected { query, text, logit } in &expected {
                let own = cross.scores(query, &[text], late()).expect("a score")[0];
                assert!((own - logit).abs() < 2e-5, "{name}: {own} {logit} for {query:?} {text:?}");
            }
            let long = "which boiler was repaired by the plumber ".repeat(40);
            assert_eq!(cross.scores(&long, &["the boiler"], late()).expect("cut").len(), 1);
            let past =
                cross.scores(&long, &["the boiler"], Instant::now() - Duration::from_secs(1));
            assert!(matches!(past, Err(ModelError::Remote(_))), "{past:?}");
        }
    }

    #[test]
    fn files_that_are_no_cross_encoder_are_refused() {
        let models = Path::new(env!("CARGO_MANIFEST_DIR"));
        for name in ["assets/minilm-l6-v2-int8", "assets/static-128-int8", "assets"] {
            assert!(Cross::open(&models.join(name)).is_err(), "{name}");
        }
    }
}
