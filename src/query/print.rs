//! Tree → canonical text, through `Display`.
//!
//! Operator names are lower case, values in normal form, quotes only where needed (phrases always),
//! `OR` explicit, brackets only where the meaning needs them. Reading the text gives the same tree
//! again (spans aside), and printing that the same text; so it goes for every tree the parser
//! makes. A canonical text can be longer than what it was read from (A-labels, quotes), and then too
//! long to be read. Of a tree built by hand, a term that could not be typed is printed as a phrase.

use std::fmt::{self, Display, Formatter, Write};

use super::address::looks_like_domain;
use super::cursor::is_value_char;
use super::operators::Op;
use super::tree::{
    AddrMatch, Direction, Expr, Filter, Has, Place, Query, State, TextField, TextKind, TextLeaf,
    TypeMatch,
};
use super::values;

/// What stands around an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Around {
    /// Nothing.
    Root,
    /// A conjunction: alternatives bind tighter and need no brackets.
    And,
    /// An alternative.
    Or,
    /// A `-`.
    Not,
}

impl<D: Display> Display for Query<D> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.root.as_ref().map_or(Ok(()), |root| root.fmt(f))
    }
}

impl<D: Display> Display for Expr<D> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        expr(self, Around::Root, f)
    }
}

fn expr<D: Display>(it: &Expr<D>, around: Around, f: &mut Formatter<'_>) -> fmt::Result {
    let bare = match it {
        Expr::And(_) => around == Around::Root,
        Expr::Or(_) => matches!(around, Around::Root | Around::And),
        Expr::Not(_) => around != Around::Not,
        Expr::Text(_) | Expr::Filter(_) => true,
    };
    if !bare {
        f.write_char('(')?;
    }
    match it {
        Expr::And(children) => all(children, " ", Around::And, f)?,
        Expr::Or(children) => all(children, " OR ", Around::Or, f)?,
        Expr::Not(inner) => {
            f.write_char('-')?;
            expr(inner, Around::Not, f)?;
        }
        Expr::Text(leaf) => leaf.fmt(f)?,
        Expr::Filter(filter) => filter.fmt(f)?,
    }
    if bare { Ok(()) } else { f.write_char(')') }
}

fn all<D: Display>(
    children: &[Expr<D>],
    between: &str,
    around: Around,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    for (i, child) in children.iter().enumerate() {
        if i > 0 {
            f.write_str(between)?;
        }
        expr(child, around, f)?;
    }
    Ok(())
}

impl Display for TextLeaf {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.field == TextField::Subject {
            write!(f, "{}:", Op::Subject.name())?;
        }
        match &self.kind {
            TextKind::Term { text, prefix } if is_typable(text, *prefix, self.field) => {
                f.write_str(text)?;
                if *prefix { f.write_char('*') } else { Ok(()) }
            }
            TextKind::Term { text, .. } | TextKind::Phrase(text) => f.write_str(&quoted(text)),
            TextKind::Near { text, distance } => write!(f, "{}~{distance}", quoted(text)),
        }
    }
}

/// Whether a term, typed without quotes, would be read as this term.
fn is_typable(text: &str, prefix: bool, field: TextField) -> bool {
    let stars_hold = if prefix { text.chars().nth(1).is_some() } else { !text.ends_with('*') };
    let is_free = |text: &str| {
        let operator_like = text.split_once(':').is_some_and(|(name, _)| {
            let letters = |c: char| c.is_ascii_alphabetic() || c == '_';
            !name.is_empty() && (name.chars().all(letters) || Op::from_name(name).is_some())
        });
        !(operator_like || text.starts_with('-') || text == "OR" && !prefix)
    };
    !text.is_empty()
        && text.chars().all(is_value_char)
        && stars_hold
        && (field == TextField::Subject || is_free(text))
}

impl<D: Display> Display for Filter<D> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut write = |op: Op, text: &str| write!(f, "{}:{}", op.name(), value(text));
        match self {
            Self::From(who) => write(Op::From, &address(who)),
            Self::To(who) => write(Op::To, &address(who)),
            Self::Participant(who) => write(Op::Participant, &address(who)),
            Self::Cc(who) => write(Op::Cc, &address(who)),
            Self::Bcc(who) => write(Op::Bcc, &address(who)),
            Self::DeliveredTo(who) => write(Op::DeliveredTo, &address(who)),
            Self::Ref(reference) => write(Op::Ref, &reference.raw),
            Self::Label(label) => write(Op::Label, label),
            Self::Has(Has::Attachment) => write(Op::Has, "attachment"),
            Self::Has(Has::Link) => write(Op::Has, "link"),
            Self::Has(Has::Invite) => write(Op::Has, "invite"),
            Self::Filename(name) => write(Op::Filename, name),
            Self::Type(TypeMatch::Class(class)) => write(Op::Type, class.name()),
            Self::Type(TypeMatch::Mime(mime)) => write(Op::Type, mime),
            Self::Date(date) => date.fmt(f),
            Self::Direction(Direction::Inbound) => write(Op::In, "inbound"),
            Self::Direction(Direction::Outbound) => write(Op::In, "outbound"),
            Self::Place(Place::Anywhere) => write(Op::In, "anywhere"),
            Self::Place(Place::Junk) => write(Op::In, "junk"),
            Self::Place(Place::Trash) => write(Op::In, "trash"),
            Self::Thread(id) => write(Op::Thread, &id.to_string()),
            Self::Is(state) => write(Op::Is, state_name(*state)),
            Self::Category(category) => write(Op::Category, category),
            Self::List(list) => write(Op::List, list),
            Self::Larger(bytes) => write(Op::Larger, &values::size_text(*bytes)),
            Self::Smaller(bytes) => write(Op::Smaller, &values::size_text(*bytes)),
            Self::MessageId(id) => write(Op::Rfc822MsgId, id),
            Self::Folder(name) => write(Op::Folder, name),
            Self::Source(name) => write(Op::Source, name),
            Self::Lang(lang) => write(Op::Lang, lang.code()),
        }
    }
}

/// A domain keeps its `@` only where it would not be taken for one without.
fn address(who: &AddrMatch) -> String {
    match who {
        AddrMatch::Domain(domain) if !looks_like_domain(domain) => format!("@{domain}"),
        AddrMatch::Exact(text) | AddrMatch::Domain(text) | AddrMatch::Fuzzy(text) => text.clone(),
    }
}

fn state_name(state: State) -> &'static str {
    match state {
        State::Unread => "unread",
        State::Read => "read",
        State::NeedsReply => "needs_reply",
        State::Quarantined => "quarantined",
        State::Starred => "starred",
        State::Encrypted => "encrypted",
        State::Signed => "signed",
        State::List => "list",
    }
}

/// The value of an operator, in quotes where it must be.
pub(super) fn value(text: &str) -> String {
    if !text.is_empty() && text.chars().all(is_value_char) { text.to_owned() } else { quoted(text) }
}

/// The text in quotes, with `"` and `\` escaped.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}
