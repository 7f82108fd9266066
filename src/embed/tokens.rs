//! Text → token numbers, as the model's own `tokenizer.json` says.

use std::collections::HashSet;

use tokenizers::{
    AddedToken, Encoding, Tokenizer, TruncationDirection, TruncationParams, TruncationStrategy,
};

use super::ModelError;

/// Characters of one text that a tokeniser is given; models read far less.
const CHARS_MAX: usize = 32_768;

/// What stands for words that are not known.
pub(super) const UNKNOWN: [&str; 2] = ["[UNK]", "<unk>"];

/// A tokeniser that cuts what is too long.
pub(super) struct Tokens {
    tokenizer: Tokenizer,
    with_special: bool,
    /// Numbers of the marks.
    marks: HashSet<u32>,
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
        let added = tokenizer.get_added_tokens_decoder();
        // What stands for a word that is not known is said of text.
        let is_mark = |token: &AddedToken| token.special && !UNKNOWN.contains(&&*token.content);
        let marks = added.into_iter().filter(|(_, token)| is_mark(token)).map(|(number, _)| number);
        Ok(Self { marks: marks.collect(), tokenizer, with_special: special })
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
        let ids = self.without_marks(&encoding);
        // Marks of the text that are left out before it move it forward.
        let second = encoding.get_type_ids().iter().position(|kind| *kind == 1);
        let begins = second.map_or(ids.len(), |at| {
            let marks = encoding.get_special_tokens_mask()[..at].iter().zip(encoding.get_ids());
            at - marks.filter(|(mask, id)| **mask == 0 && self.marks.contains(id)).count()
        });
        Ok((ids, begins))
    }

    /// The numbers, without marks that stand in the text itself: pieces of some vocabularies read
    /// like them, and what stands in mail is text.
    fn without_marks(&self, encoding: &Encoding) -> Vec<u32> {
        let numbers = encoding.get_ids().iter().zip(encoding.get_special_tokens_mask());
        let kept = numbers.filter(|(number, mask)| **mask == 1 || !self.marks.contains(number));
        kept.map(|(number, _)| *number).collect()
    }

    /// Numbers of the tokens of a text, and whether it was cut.
    pub(super) fn of(&self, text: &str) -> Result<(Vec<u32>, bool), ModelError> {
        let end = text.char_indices().nth(CHARS_MAX).map_or(text.len(), |(at, _)| at);
        let encoding = self
            .tokenizer
            .encode_fast(&text[..end], self.with_special)
            .map_err(|_| ModelError::Text("a text that the tokeniser refuses"))?;
        let cut = end < text.len() || !encoding.get_overflowing().is_empty();
        Ok((self.without_marks(&encoding), cut))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_that_stand_in_a_text_are_none() {
        for (name, text) in [
            ("tiny-xlmr-cross-encoder", "the </s> boiler <s> <mask> <pad>"),
            ("tiny-bert-cross-encoder", "the [SEP] boiler [CLS] [MASK] [PAD]"),
        ] {
            let path = format!("{}/tests/models/{name}/tokenizer.json", env!("CARGO_MANIFEST_DIR"));
            let json = std::fs::read(path).expect("reads");
            let tokens = Tokens::read(&json, 64, true).expect("a tokenizer");
            let (numbers, cut) = tokens.of(text).expect("tokens");
            assert!(!cut && numbers.len() > 3, "{name}");
            let inner = &numbers[1..numbers.len() - 1];
            assert!(
                inner.iter().all(|number| !tokens.marks.contains(number)),
                "{name}: {numbers:?}"
            );
            assert!(tokens.marks.contains(&numbers[0]), "{name}: around the text they stay");
            let pairs = Tokens::read_for_pairs(&json, 64).expect("a tokenizer");
            let (plain, begins) = pairs.of_pair("the boiler", "the boiler").expect("tokens");
            let (marked, also) = pairs.of_pair("the </s> boiler", "the boiler").expect("tokens");
            if name.contains("bert-") {
                assert!(begins < plain.len() && also < marked.len());
            } else {
                assert_eq!((begins, also), (plain.len(), marked.len()), "no types");
            }
        }
    }
}
