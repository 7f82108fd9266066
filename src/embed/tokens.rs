//! Text → token numbers, as the model's own `tokenizer.json` says.

use tokenizers::{Tokenizer, TruncationDirection, TruncationParams, TruncationStrategy};

use super::ModelError;

/// Characters of one text that a tokeniser is given; models read far less.
const CHARS_MAX: usize = 32_768;

/// A tokeniser that cuts what is too long.
pub(super) struct Tokens {
    tokenizer: Tokenizer,
    with_special: bool,
}

impl Tokens {
    /// From the text of a `tokenizer.json`; `special`: with the marks that the model wants around a
    /// text.
    pub(super) fn read(json: &[u8], tokens_max: usize, special: bool) -> Result<Self, ModelError> {
        Self::cutting(json, tokens_max, special, TruncationStrategy::LongestFirst)
    }

    /// For pairs: only the second text is cut.
    pub(super) fn read_for_pairs(json: &[u8], tokens_max: usize) -> Result<Self, ModelError> {
        Self::cutting(json, tokens_max, true, TruncationStrategy::OnlySecond)
    }

    fn cutting(
        json: &[u8],
        tokens_max: usize,
        special: bool,
        strategy: TruncationStrategy,
    ) -> Result<Self, ModelError> {
        let wrong = |e: tokenizers::Error| ModelError::File(format!("tokenizer.json: {e}"));
        let mut tokenizer = Tokenizer::from_bytes(json).map_err(wrong)?;
        tokenizer.with_padding(None);
        tokenizer
            .with_truncation(Some(TruncationParams {
                direction: TruncationDirection::Right,
                max_length: tokens_max,
                strategy,
                stride: 0,
            }))
            .map_err(wrong)?;
        // What stands in mail is text, also when it reads `[SEP]`.
        tokenizer.set_encode_special_tokens(true);
        Ok(Self { tokenizer, with_special: special })
    }

    /// How many different tokens there are.
    pub(super) fn count(&self) -> usize {
        self.tokenizer.get_vocab_size(true)
    }

    /// The number of a token, if there is one.
    pub(super) fn number(&self, token: &str) -> Option<u32> {
        self.tokenizer.token_to_id(token)
    }

    /// Numbers of the tokens of two texts as one, of which only the second is cut when it is too long,
    /// and where the second part begins for a model that tells them apart.
    pub(super) fn of_pair(
        &self,
        first: &str,
        second: &str,
    ) -> Result<(Vec<u32>, usize), ModelError> {
        let cut = |text: &str| text.char_indices().nth(CHARS_MAX).map_or(text.len(), |(at, _)| at);
        let (mut first, second) = (&first[..cut(first)], &second[..cut(second)]);
        let encoding = loop {
            match self.tokenizer.encode_fast((first, second), true) {
                Ok(encoding) => break encoding,
                // The first leaves no room for the second.
                Err(_) if !first.is_empty() => {
                    first = &first[..first.floor_char_boundary(first.len() / 2)];
                }
                Err(_) => {
                    let what = "a pair of texts that the tokeniser refuses";
                    return Err(ModelError::Text(what));
                }
            }
        };
        let ids = encoding.get_ids().to_vec();
        let begins = encoding.get_type_ids().iter().position(|kind| *kind == 1);
        let begins = begins.unwrap_or(ids.len());
        Ok((ids, begins))
    }

    /// Numbers of the tokens of a text, and whether it was cut.
    pub(super) fn of(&self, text: &str) -> Result<(Vec<u32>, bool), ModelError> {
        let end = text.char_indices().nth(CHARS_MAX).map_or(text.len(), |(at, _)| at);
        let encoding = self
            .tokenizer
            .encode_fast(&text[..end], self.with_special)
            .map_err(|_| ModelError::Text("a text that the tokeniser refuses"))?;
        let cut = end < text.len() || !encoding.get_overflowing().is_empty();
        Ok((encoding.get_ids().to_vec(), cut))
    }
}
