//! A resolved query → what Tantivy scores and which messages the catalog lets through.
//!
//! Each condition at the root is one of three. Text alone is scored. Filters alone become a
//! bitmap. A mixture becomes a bitmap too: its words choose messages but do not rank them. A
//! negated word needs something positive beside it to be given to Tantivy; else, and for phrases, it
//! is taken off the bitmap. Words without a letter or digit cannot be found and are left out with a note.

use std::sync::Arc;

use roaring::RoaringBitmap;

use super::filter;
use super::request::SearchError;
use super::visibility::{Reach, visible};
use crate::projections::catalog::bitmaps::Facet;
use crate::projections::text::query::{Pattern, Scope, TextQuery};
use crate::projections::view::View;
use crate::query::dates::{ResolvedDate, ResolvedQuery};
use crate::query::leaves::{Composition, named, positive_text};
use crate::query::tree::{Expr, TextField, TextKind, TextLeaf};

type Node = Expr<ResolvedDate>;

/// A compiled query.
pub(super) struct Plan {
    /// What is scored; `None` when nothing is.
    pub(super) text: Option<TextQuery>,
    /// Messages that may be hits.
    pub(super) filter: Arc<RoaringBitmap>,
    /// Words that must not stand in a hit, where `text` sees to it.
    pub(super) excluded: Vec<TextQuery>,
    /// Positive words and phrases in the query's order, for snippets.
    pub(super) patterns: Vec<Pattern>,
    /// What was left out and why.
    pub(super) notes: Vec<String>,
}

pub(super) fn pattern(leaf: &TextLeaf) -> Option<Pattern> {
    match &leaf.kind {
        TextKind::Term { text, prefix } => Pattern::new(text, *prefix, 0),
        TextKind::Phrase(text) => Pattern::new(text, false, 0).map(|mut pattern| {
            // In quotes a word is meant as it is written.
            pattern.word = None;
            pattern
        }),
        TextKind::Near { text, distance } => Pattern::new(text, false, *distance),
    }
}

struct Compiler<'v> {
    view: &'v View,
    languages: Vec<String>,
    notes: Vec<String>,
}

/// Compiles a query for a view.
pub(super) fn compile(
    view: &View,
    query: &ResolvedQuery,
    reach: Reach,
) -> Result<Plan, SearchError> {
    let names = named(query);
    let shown = visible(&view.catalog, &names, reach)?;
    let mut languages = view.catalog.languages()?.to_vec();
    if !languages.iter().any(|code| code == "en") {
        // Short texts whose language could not be told count as English.
        languages.push("en".to_owned());
    }
    let mut compiler = Compiler { view, languages, notes: Vec::new() };
    let mut filter = shown;
    let mut scored = Vec::new();
    let (mut unwanted, mut excluded): (Vec<TextQuery>, Vec<TextQuery>) = Default::default();
    let mut left_out = 0;
    for conjunct in query.conjuncts() {
        let Some(conjunct) = compiler.prune(conjunct) else {
            left_out += 1;
            continue;
        };
        match (&conjunct, conjunct.composition()) {
            (Node::Not(inner), Composition::Text) => match compiler.unwanted(inner) {
                Some(text) => unwanted.push(text),
                None => filter -= compiler.messages(inner)?,
            },
            (_, Composition::Text) => match compiler.text(&conjunct) {
                Some(text) => scored.push(text),
                None => filter &= compiler.messages(&conjunct)?,
            },
            _ => filter &= compiler.messages(&conjunct)?,
        }
    }
    if left_out > 0 && left_out == query.conjuncts().len() {
        filter.clear();
    }
    let text = if scored.is_empty() {
        for text in unwanted {
            filter -= view.text.all(&text)?;
        }
        None
    } else {
        // Nearness knows nothing of words: what must not stand in a hit is taken from it.
        excluded.extend(unwanted.iter().cloned());
        Some(TextQuery::all_of(scored, unwanted))
    };
    let patterns = positive_text(query).into_iter().filter_map(pattern).collect();
    Ok(Plan { text, filter: Arc::new(filter), excluded, patterns, notes: compiler.notes })
}

impl Plan {
    /// Messages that a search by meaning may find.
    pub(super) fn reachable(&self, view: &View) -> Result<Arc<RoaringBitmap>, SearchError> {
        if self.excluded.is_empty() {
            return Ok(Arc::clone(&self.filter));
        }
        let mut reachable = self.filter.as_ref().clone();
        for text in &self.excluded {
            reachable -= view.text.all(text)?;
        }
        Ok(Arc::new(reachable))
    }
}

impl Compiler<'_> {
    /// The expression without words that hold no letter or digit; `None` when nothing is left.
    fn prune(&mut self, expr: &Node) -> Option<Node> {
        match expr {
            Node::And(children) => {
                Node::and(children.iter().filter_map(|c| self.prune(c)).collect())
            }
            Node::Or(children) => Node::or(children.iter().filter_map(|c| self.prune(c)).collect()),
            Node::Not(inner) => self.prune(inner).map(Node::negate),
            Node::Text(leaf) if pattern(leaf).is_none() => {
                let at = leaf.span.start;
                self.notes.push(format!(
                    "the word at position {at} holds no letter or digit and was left out"
                ));
                None
            }
            other => Some(other.clone()),
        }
    }

    /// The query for an expression of text leaves; `None` when only negations stand in a place
    /// where Tantivy wants something positive.
    fn text(&self, expr: &Node) -> Option<TextQuery> {
        match expr {
            Node::Text(leaf) => self.leaf(leaf),
            Node::Or(children) => {
                children.iter().map(|c| self.text(c)).collect::<Option<_>>().map(TextQuery::any_of)
            }
            Node::And(children) => {
                let mut parts = Vec::new();
                let mut but_not = Vec::new();
                for child in children {
                    match child {
                        Node::Not(inner) => but_not.push(self.unwanted(inner)?),
                        other => parts.push(self.text(other)?),
                    }
                }
                (!parts.is_empty()).then(|| TextQuery::all_of(parts, but_not))
            }
            Node::Not(_) | Node::Filter(_) => None,
        }
    }

    /// The query for an expression that must not match. Tantivy 0.27 walks an excluded phrase past
    /// its end (an assertion of its phrase scorer), so only single words are left to it.
    fn unwanted(&self, expr: &Node) -> Option<TextQuery> {
        match expr {
            Node::Text(leaf) if pattern(leaf)?.tokens.len() == 1 => self.leaf(leaf),
            Node::Or(children) => children
                .iter()
                .map(|c| self.unwanted(c))
                .collect::<Option<_>>()
                .map(TextQuery::any_of),
            _ => None,
        }
    }

    fn leaf(&self, leaf: &TextLeaf) -> Option<TextQuery> {
        let scope = match leaf.field {
            TextField::Any => Scope::Anywhere,
            TextField::Subject => Scope::Subject,
        };
        Some(self.view.text.pattern(&pattern(leaf)?, scope, &self.languages))
    }

    /// Messages that satisfy any expression, before visibility.
    fn messages(&self, expr: &Node) -> Result<RoaringBitmap, SearchError> {
        Ok(match expr {
            Node::And(children) => {
                let mut joined: Option<RoaringBitmap> = None;
                for child in children {
                    let found = self.messages(child)?;
                    joined = Some(match joined {
                        Some(so_far) => so_far & found,
                        None => found,
                    });
                }
                joined.unwrap_or_default()
            }
            Node::Or(children) => {
                let mut joined = RoaringBitmap::new();
                for child in children {
                    joined |= self.messages(child)?;
                }
                joined
            }
            Node::Not(inner) => {
                self.view.catalog.with(Facet::All, b"")?.as_ref() - self.messages(inner)?
            }
            Node::Text(leaf) => match self.leaf(leaf) {
                Some(text) => self.view.text.all(&text)?,
                None => RoaringBitmap::new(),
            },
            Node::Filter(filter) => filter::messages(self.view, filter)?,
        })
    }
}
