//! Query text → typed tree, and back to canonical text.
//!
//! [`parse`] reads the language of `docs/query.md` (the *native* dialect; other dialects build the
//! same [`tree`] themselves), printing a [`Query`] writes it canonically, [`resolve`] turns its dates
//! into instants. Pure functions over text: no clock, no mailbox, no index, and no cutting of text
//! into words, which is the analyser's.

mod address;
mod cursor;
mod date_values;
pub mod dates;
pub mod error;
pub mod languages;
pub mod leaves;
mod operators;
pub mod parse;
mod print;
mod suggest;
pub mod tree;
mod values;

#[cfg(test)]
mod dates_test;
#[cfg(test)]
mod docs_test;
#[cfg(test)]
mod errors_test;
#[cfg(test)]
mod parse_test;
#[cfg(test)]
mod property_test;

use unicode_normalization::UnicodeNormalization;

pub use crate::attachment_class::AttachmentClass;
pub use dates::{DateRange, ResolvedDate, ResolvedQuery, resolve};
pub use error::{Fault, QueryError};
pub use languages::Lang;
pub use parse::parse;
pub use tree::{Expr, Filter, Query, TextField, TextKind, TextLeaf};

/// What the parser must be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseOptions {
    /// The values of `category:`, at most 20; compared without regard to case.
    pub categories: Vec<String>,
}

/// The categories of a tenant that has not set its own.
pub const CATEGORIES_DEFAULT: [&str; 12] = [
    "customer_request",
    "vendor",
    "billing",
    "legal_compliance",
    "verification",
    "notification",
    "newsletter",
    "marketing",
    "auto_reply",
    "personal",
    "spam",
    "other",
];

impl Default for ParseOptions {
    fn default() -> Self {
        Self { categories: CATEGORIES_DEFAULT.map(String::from).to_vec() }
    }
}

/// Bound on the rounds of [`fold_name`], for the case that Unicode grows a cycle.
const FOLD_ROUNDS_MAX: usize = 4;

/// The form in which names of files, folders and sources are compared: compatibility-composed
/// (NFKC) and lower case. Folding twice changes nothing.
#[must_use]
pub fn fold_name(name: &str) -> String {
    let mut folded = name.nfkc().flat_map(char::to_lowercase).nfkc().collect::<String>();
    // Lower case can undo composition and composition lower case; two rounds settle what occurs.
    for _ in 0..FOLD_ROUNDS_MAX {
        let again = folded.nfkc().flat_map(char::to_lowercase).nfkc().collect::<String>();
        if again == folded {
            break;
        }
        folded = again;
    }
    folded
}
