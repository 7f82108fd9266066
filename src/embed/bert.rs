//! The forward pass of BERT sentence models: token numbers → one vector of length 1 a text.
//!
//! Texts of a batch lie one behind the other without padding; products go over all of them,
//! attention over each alone. One thread: whoever has more batches has more threads. Measured
//! against candle in docs/adr/0021.

use serde::Deserialize;

use super::ModelError;
use super::activation::{gelu, normalise, softmax, to_unit};
use super::product::{View, multiply};
use super::weights::{Matrix, Weights};

/// Largest sizes of a model that is loaded.
const HIDDEN_MAX: usize = 4_096;
const LAYERS_MAX: usize = 64;

/// What `config.json` says.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Shape {
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    layer_norm_eps: f32,
    max_position_embeddings: usize,
    hidden_act: String,
    #[serde(default)]
    model_type: String,
    #[serde(default)]
    pad_token_id: usize,
    #[serde(default)]
    position_embedding_type: Option<String>,
}

impl Shape {
    pub(super) fn read(json: &[u8]) -> Result<Self, ModelError> {
        let shape: Self = serde_json::from_slice(json)
            .map_err(|e| ModelError::File(format!("config.json: {e}")))?;
        let wrong = |what: &str| Err(ModelError::File(format!("config.json: {what}")));
        if !matches!(shape.model_type.as_str(), "bert" | "xlm-roberta" | "roberta") {
            return wrong("model_type must be bert, roberta or xlm-roberta");
        }
        if shape.hidden_act != "gelu" {
            return wrong("hidden_act must be gelu");
        }
        if shape.position_embedding_type.as_deref().is_some_and(|kind| kind != "absolute") {
            return wrong("position_embedding_type must be absolute");
        }
        let heads = shape.num_attention_heads;
        if heads == 0 || !shape.hidden_size.is_multiple_of(heads) {
            return wrong("hidden_size must be a multiple of num_attention_heads");
        }
        if !(1..=HIDDEN_MAX).contains(&shape.hidden_size)
            || !(1..=HIDDEN_MAX * 4).contains(&shape.intermediate_size)
            || !(1..=LAYERS_MAX).contains(&shape.num_hidden_layers)
            || shape.max_position_embeddings <= shape.first_position()
        {
            return wrong("a size is out of range");
        }
        Ok(shape)
    }

    /// Positions of RoBERTa's family begin behind the number of the padding.
    fn first_position(&self) -> usize {
        if self.model_type == "bert" { 0 } else { self.pad_token_id.saturating_add(1) }
    }

    /// Tokens of one text at most.
    pub(super) fn tokens_max(&self) -> usize {
        self.max_position_embeddings - self.first_position()
    }

    /// Length of the vectors.
    pub(super) fn dimensions(&self) -> usize {
        self.hidden_size
    }
}

/// How the vectors of the tokens become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pooling {
    /// Their mean, marks included.
    Mean,
    /// The first one.
    First,
}

/// A matrix and what is added to its products.
pub(super) struct Linear {
    weight: Matrix,
    bias: Vec<f32>,
}

impl Linear {
    pub(super) fn load(
        file: &Weights<'_>,
        name: &str,
        out: usize,
        inner: usize,
    ) -> Result<Self, ModelError> {
        let weight = file.matrix(&format!("{name}.weight"), Some(out), Some(inner))?;
        Ok(Self { weight, bias: file.vector(&format!("{name}.bias"), out)? })
    }

    /// `out = input · weightᵀ + bias`, for `rows` rows.
    pub(super) fn apply(&self, rows: usize, input: &[f32], out: &mut Vec<f32>) {
        let (inner, columns) = (self.weight.columns, self.weight.rows);
        out.clear();
        for _ in 0..rows {
            out.extend_from_slice(&self.bias);
        }
        let left = View { values: input, row: inner, column: 1 };
        let right = View { values: &self.weight.values, row: 1, column: inner };
        multiply((rows, inner, columns), out, columns, (left, right), (true, 1.0));
    }
}

struct Norm {
    weight: Vec<f32>,
    bias: Vec<f32>,
}

impl Norm {
    fn load(file: &Weights<'_>, name: &str, length: usize) -> Result<Self, ModelError> {
        Ok(Self {
            weight: file.vector(&format!("{name}.weight"), length)?,
            bias: file.vector(&format!("{name}.bias"), length)?,
        })
    }

    fn apply(&self, rows: &mut [f32], epsilon: f32) {
        for row in rows.chunks_exact_mut(self.weight.len()) {
            normalise(row, &self.weight, &self.bias, epsilon);
        }
    }
}

struct Layer {
    /// Queries, keys and values in one product.
    attention: Linear,
    attention_out: Linear,
    attention_norm: Norm,
    inner: Linear,
    outer: Linear,
    outer_norm: Norm,
}

impl Layer {
    fn load(file: &Weights<'_>, at: usize, shape: &Shape) -> Result<Self, ModelError> {
        let (hidden, inner) = (shape.hidden_size, shape.intermediate_size);
        let name = |part: &str| format!("encoder.layer.{at}.{part}");
        let mut weight = Matrix { rows: 3 * hidden, columns: hidden, values: Vec::new() };
        let mut bias = Vec::new();
        for part in ["query", "key", "value"] {
            let one = name(&format!("attention.self.{part}"));
            let own = Linear::load(file, &one, hidden, hidden)?;
            weight.values.extend(own.weight.values);
            bias.extend(own.bias);
        }
        Ok(Self {
            attention: Linear { weight, bias },
            attention_out: Linear::load(file, &name("attention.output.dense"), hidden, hidden)?,
            attention_norm: Norm::load(file, &name("attention.output.LayerNorm"), hidden)?,
            inner: Linear::load(file, &name("intermediate.dense"), inner, hidden)?,
            outer: Linear::load(file, &name("output.dense"), hidden, inner)?,
            outer_norm: Norm::load(file, &name("output.LayerNorm"), hidden)?,
        })
    }
}

/// A loaded model.
pub(super) struct Bert {
    shape: Shape,
    pooling: Pooling,
    words: Matrix,
    /// Position and type 0 added up.
    positions: Matrix,
    /// What tells the second text of a pair from the first; nothing where types are not told apart.
    second: Option<Vec<f32>>,
    norm: Norm,
    layers: Vec<Layer>,
}

/// Memory of a forward pass, used again by the next one.
#[derive(Default)]
pub(super) struct Scratch {
    hidden: Vec<f32>,
    mixed: Vec<f32>,
    context: Vec<f32>,
    scores: Vec<f32>,
    inner: Vec<f32>,
    out: Vec<f32>,
}

impl Bert {
    pub(super) fn load(file: &[u8], shape: Shape, pooling: Pooling) -> Result<Self, ModelError> {
        let file = Weights::open(file)?;
        let hidden = shape.hidden_size;
        let words = file.matrix("embeddings.word_embeddings.weight", None, Some(hidden))?;
        let mut positions = file.matrix(
            "embeddings.position_embeddings.weight",
            Some(shape.max_position_embeddings),
            Some(hidden),
        )?;
        let types = file.matrix("embeddings.token_type_embeddings.weight", None, Some(hidden))?;
        let first = types.row(0).ok_or_else(|| ModelError::File("no token type".into()))?;
        for row in positions.values.chunks_exact_mut(hidden) {
            row.iter_mut().zip(first).for_each(|(value, more)| *value += more);
        }
        let second = types.row(1).map(|row| row.iter().zip(first).map(|(b, a)| b - a).collect());
        let norm = Norm::load(&file, "embeddings.LayerNorm", hidden)?;
        let layers = (0..shape.num_hidden_layers)
            .map(|at| Layer::load(&file, at, &shape))
            .collect::<Result<_, _>>()?;
        Ok(Self { shape, pooling, words, positions, second, norm, layers })
    }

    /// Different tokens it knows.
    pub(super) fn vocabulary(&self) -> usize {
        self.words.rows
    }

    /// One vector a text, in order. A text is 1 to [`Shape::tokens_max`] numbers.
    pub(super) fn forward(
        &self,
        texts: &[Vec<u32>],
        scratch: &mut Scratch,
    ) -> Result<Vec<Vec<f32>>, ModelError> {
        let hidden = self.shape.hidden_size;
        self.encode(texts.iter().map(|text| (text.as_slice(), text.len())), scratch)?;
        let mut vectors = Vec::with_capacity(texts.len());
        let mut at = 0;
        for text in texts {
            let own = &scratch.hidden[at * hidden..(at + text.len()) * hidden];
            let mut vector = match self.pooling {
                Pooling::First => own[..hidden].to_vec(),
                Pooling::Mean => mean(own, hidden),
            };
            if !to_unit(&mut vector) {
                return Err(ModelError::Text("a text that the model gives no vector"));
            }
            vectors.push(vector);
            at += text.len();
        }
        Ok(vectors)
    }

    /// The state of the first token of each pair of texts; the second text of a pair begins at the
    /// place that goes with it.
    pub(super) fn first_states(
        &self,
        pairs: &[(Vec<u32>, usize)],
        scratch: &mut Scratch,
    ) -> Result<Vec<Vec<f32>>, ModelError> {
        let hidden = self.shape.hidden_size;
        self.encode(pairs.iter().map(|(pair, second)| (pair.as_slice(), *second)), scratch)?;
        let mut at = 0;
        let states = pairs.iter().map(|(pair, _)| {
            let state = scratch.hidden[at * hidden..(at + 1) * hidden].to_vec();
            at += pair.len();
            state
        });
        Ok(states.collect())
    }

    /// The states of all tokens, in `scratch.hidden`. Each text comes with the place where its second
    /// part begins.
    fn encode<'t>(
        &self,
        texts: impl Iterator<Item = (&'t [u32], usize)>,
        scratch: &mut Scratch,
    ) -> Result<(), ModelError> {
        let hidden = self.shape.hidden_size;
        let lengths = self.embed(texts, scratch)?;
        let rows = scratch.hidden.len() / hidden;
        let epsilon = self.shape.layer_norm_eps;
        self.norm.apply(&mut scratch.hidden, epsilon);
        for layer in &self.layers {
            layer.attention.apply(rows, &scratch.hidden, &mut scratch.mixed);
            self.attend(&lengths, scratch);
            layer.attention_out.apply(rows, &scratch.context, &mut scratch.out);
            add(&mut scratch.hidden, &scratch.out);
            layer.attention_norm.apply(&mut scratch.hidden, epsilon);
            layer.inner.apply(rows, &scratch.hidden, &mut scratch.inner);
            gelu(&mut scratch.inner);
            layer.outer.apply(rows, &scratch.inner, &mut scratch.out);
            add(&mut scratch.hidden, &scratch.out);
            layer.outer_norm.apply(&mut scratch.hidden, epsilon);
        }
        Ok(())
    }

    /// Word, position and type added up; tells how long each text is.
    fn embed<'t>(
        &self,
        texts: impl Iterator<Item = (&'t [u32], usize)>,
        scratch: &mut Scratch,
    ) -> Result<Vec<usize>, ModelError> {
        let first = self.shape.first_position();
        scratch.hidden.clear();
        let mut lengths = Vec::new();
        for (text, second) in texts {
            if text.is_empty() || text.len() > self.shape.tokens_max() {
                return Err(ModelError::Text("a text of no token or too many"));
            }
            lengths.push(text.len());
            for (at, token) in text.iter().enumerate() {
                let word = self.words.row(*token as usize);
                let position = self.positions.row(first + at);
                let (Some(word), Some(position)) = (word, position) else {
                    return Err(ModelError::Text("a token that the model does not know"));
                };
                let begin = scratch.hidden.len();
                scratch.hidden.extend(word.iter().zip(position).map(|(w, p)| w + p));
                if at >= second
                    && let Some(more) = &self.second
                {
                    add(&mut scratch.hidden[begin..], more);
                }
            }
        }
        Ok(lengths)
    }

    /// Attention of every text over itself, head by head: `mixed` → `context`.
    fn attend(&self, lengths: &[usize], scratch: &mut Scratch) {
        let hidden = self.shape.hidden_size;
        let heads = self.shape.num_attention_heads;
        let size = hidden / heads;
        let row = 3 * hidden;
        let scale = 1.0 / (size as f32).sqrt();
        let Scratch { mixed, context, scores, .. } = scratch;
        context.clear();
        context.resize(mixed.len() / 3, 0.0);
        let mut at = 0;
        for &length in lengths {
            scores.resize(length * length, 0.0);
            for head in 0..heads {
                let part = |which: usize| &mixed[at * row + which * hidden + head * size..];
                let query = View { values: part(0), row, column: 1 };
                let key = View { values: part(1), row: 1, column: row };
                let value = View { values: part(2), row, column: 1 };
                multiply((length, size, length), scores, length, (query, key), (false, scale));
                scores[..length * length].chunks_exact_mut(length).for_each(softmax);
                let left = View { values: scores, row: length, column: 1 };
                let out = &mut context[at * hidden + head * size..];
                multiply((length, length, size), out, hidden, (left, value), (false, 1.0));
            }
            at += length;
        }
    }
}

fn add(to: &mut [f32], more: &[f32]) {
    to.iter_mut().zip(more).for_each(|(value, more)| *value += more);
}

fn mean(rows: &[f32], columns: usize) -> Vec<f32> {
    let mut sum = vec![0.0; columns];
    for row in rows.chunks_exact(columns) {
        add(&mut sum, row);
    }
    let count = (rows.len() / columns) as f32;
    sum.iter_mut().for_each(|value| *value /= count);
    sum
}
