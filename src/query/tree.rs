//! The typed tree of a query: what a text means once it has been understood.
//!
//! Everything here is plain data. Text leaves keep their text as it was typed; cutting it into
//! words belongs to the text index. Values of filters are already in normal form. A tree is built
//! by [`parse`](super::parse()), or by another dialect through [`Expr::and`], [`Expr::or`] and
//! [`Expr::negate`], which keep it flat. Nothing here reads a clock, a zone or a mailbox.

use jiff::civil;

use super::languages::Lang;
use crate::attachment_class::AttachmentClass;
use crate::ids::ThreadId;

/// A query. `D` is what a date filter holds: as written ([`DateFilter`]) after parsing, bounds in
/// UTC milliseconds ([`ResolvedDate`](super::dates::ResolvedDate)) after
/// [`resolve`](super::dates::resolve).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query<D = DateFilter> {
    /// `None` for an empty text, which means every message.
    pub root: Option<Expr<D>>,
    /// Length of the text the tree was read from, in characters; 0 for a tree built by hand.
    pub source_chars: u32,
}

/// A condition on a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr<D = DateFilter> {
    /// All hold; at least two children, none of them an `And`.
    And(Vec<Self>),
    /// One holds; at least two children, none of them an `Or`.
    Or(Vec<Self>),
    /// The inner one does not hold, be it false or unknown (a message without a category satisfies
    /// `-category:x`). Never directly around another `Not`.
    Not(Box<Self>),
    /// Words to look for.
    Text(TextLeaf),
    /// A fact about the message.
    Filter(Filter<D>),
}

/// Words to look for, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextLeaf {
    /// What to look for.
    pub kind: TextKind,
    /// Where to look.
    pub field: TextField,
    /// The place in the query text, operator name included.
    pub span: Span,
}

/// How the text of a leaf is to be matched. Texts are as typed and never blank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextKind {
    /// One unquoted token. The analyser may still cut it into several words (`well-known`), which
    /// then stand together.
    Term {
        /// The token, without the `*` of a prefix.
        text: String,
        /// Words beginning with the token match too; the token then has at least two characters.
        prefix: bool,
    },
    /// Words next to each other, in this order. Escapes are resolved.
    Phrase(String),
    /// Words within a distance of each other: `"late delivery"~5`.
    Near {
        /// The quoted text. Escapes are resolved.
        text: String,
        /// How many places the words may be moved in all, 1 to [`NEAR_DISTANCE_MAX`]; `~0` is read
        /// as a phrase.
        distance: u32,
    },
}

impl TextKind {
    /// The text as typed, without quotes, `*` or `~n`.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Term { text, .. } | Self::Phrase(text) | Self::Near { text, .. } => text,
        }
    }
}

/// Greatest distance of [`TextKind::Near`].
pub const NEAR_DISTANCE_MAX: u32 = 100;

/// Fields a text leaf looks in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextField {
    /// Every text field.
    Any,
    /// The subject alone (`subject:`).
    Subject,
}

/// A half-open range of characters (not bytes) of the query text, 0-based.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// First character.
    pub start: u32,
    /// The one after the last.
    pub end: u32,
}

/// A fact about a message; one variant for each operator, except `subject:` (a text leaf) and the
/// four date operators, which share [`Filter::Date`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter<D = DateFilter> {
    /// `from:` an author.
    From(AddrMatch),
    /// `to:` a recipient: To, Cc, Bcc or where it was delivered to.
    To(AddrMatch),
    /// `participant:` an author or recipient.
    Participant(AddrMatch),
    /// `cc:` in Cc.
    Cc(AddrMatch),
    /// `bcc:` in Bcc.
    Bcc(AddrMatch),
    /// `deliveredto:` Delivered-To or X-Original-To.
    DeliveredTo(AddrMatch),
    /// `ref:` an extracted reference.
    Ref(RefMatch),
    /// `label:` of the form `^[a-z0-9][a-z0-9_:-]{0,63}$`.
    Label(String),
    /// `has:`
    Has(Has),
    /// `filename:` part of the name of an attachment; folded with [`fold_name`](super::fold_name).
    Filename(String),
    /// `type:` of an attachment.
    Type(TypeMatch),
    /// `after:`, `before:`, `newer_than:`, `older_than:`
    Date(D),
    /// `in:inbound`, `in:outbound`
    Direction(Direction),
    /// `in:anywhere`, `in:junk`, `in:trash`
    Place(Place),
    /// `thread:`
    Thread(ThreadId),
    /// `is:`
    Is(State),
    /// `category:` as spelled in [`ParseOptions::categories`](super::ParseOptions).
    Category(String),
    /// `list:` the List-Id or a part of it; lower case, without angle brackets.
    List(String),
    /// `larger:n`, `size:n`: the raw message has at least so many bytes.
    Larger(u64),
    /// `smaller:n`: the raw message has fewer bytes.
    Smaller(u64),
    /// `rfc822msgid:` the Message-ID without angle brackets, domain part lower case.
    MessageId(String),
    /// `folder:` the whole name; folded with [`fold_name`](super::fold_name).
    Folder(String),
    /// `source:` the whole name of the source the message was imported from; folded likewise.
    Source(String),
    /// `lang:` of the new text.
    Lang(Lang),
}

/// How an address is to be matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddrMatch {
    /// The whole address: lower case, domain as A-label.
    Exact(String),
    /// The domain or a subdomain of it: the address ends in `@d` or `.d`. Lower case, A-labels,
    /// no `@`.
    Domain(String),
    /// A part of the name or of the address: lower case, white space collapsed.
    Fuzzy(String),
}

/// A reference looked for. Both forms are candidates, together with what the enabled reference
/// normalisers make of `raw`; a match on any satisfies the filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefMatch {
    /// As typed, trimmed.
    pub raw: String,
    /// Upper case, without white space, dots and hyphens; never empty.
    pub fallback: String,
}

/// What a message has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Has {
    /// At least one attachment that is not inline.
    Attachment,
    /// A link.
    Link,
    /// An invitation (text/calendar).
    Invite,
}

/// The type of an attachment: its sniffed type, else its declared one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeMatch {
    /// One of the classes.
    Class(AttachmentClass),
    /// Exactly this MIME type: lower case, no parameters.
    Mime(String),
}

/// Who wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Somebody else.
    Inbound,
    /// The owner of the mailbox.
    Outbound,
}

/// A part of the mailbox that a search leaves out unless it is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// True of every message; named positively it lets junk and trash in.
    Anywhere,
    /// In a junk folder (`in:spam` says the same).
    Junk,
    /// In a trash folder.
    Trash,
}

/// State of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Not read.
    Unread,
    /// Read.
    Read,
    /// Inbound, triage says an answer is due, and none was sent.
    NeedsReply,
    /// Quarantined; matches nothing for a caller who may not see such mail.
    Quarantined,
    /// Starred.
    Starred,
    /// Encrypted.
    Encrypted,
    /// Signed (not verified).
    Signed,
    /// Came through a mailing list.
    List,
}

/// A date filter as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DateFilter {
    /// At or after.
    After(DateBound),
    /// Before.
    Before(DateBound),
    /// At or after now less the duration.
    NewerThan(RelDuration),
    /// Before now less the duration.
    OlderThan(RelDuration),
}

/// A point in time as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DateBound {
    /// The start of this day in the zone of the reader; years 0 to 9999.
    Day(civil::Date),
    /// Unix milliseconds, rounded up (exact for both bounds, since messages have whole ones).
    Instant(i64),
}

/// A duration back from now, within the bounds of its unit ([`DurUnit::n_max`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RelDuration {
    /// How many, from 1.
    pub n: u32,
    /// Of what.
    pub unit: DurUnit,
}

/// Unit of a [`RelDuration`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DurUnit {
    /// Exactly 3,600 seconds.
    Hour,
    /// Calendar day.
    Day,
    /// Seven calendar days.
    Week,
    /// Calendar month (`m` is never a minute).
    Month,
    /// Calendar year.
    Year,
}

impl DurUnit {
    /// Greatest `n` with this unit: about ten years each.
    #[must_use]
    pub const fn n_max(self) -> u32 {
        match self {
            Self::Hour => 87_600,
            Self::Day => 3_650,
            Self::Week => 520,
            Self::Month => 120,
            Self::Year => 10,
        }
    }
}

impl<D> Expr<D> {
    /// All of these; conjunctions among them are opened. `None` of none, the child itself of one.
    #[must_use]
    pub fn and(children: Vec<Self>) -> Option<Self> {
        let mut flat = Vec::with_capacity(children.len());
        for child in children {
            match child {
                Self::And(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        if flat.len() > 1 { Some(Self::And(flat)) } else { flat.pop() }
    }

    /// One of these; alternatives among them are opened. `None` of none, the child itself of one.
    #[must_use]
    pub fn or(children: Vec<Self>) -> Option<Self> {
        let mut flat = Vec::with_capacity(children.len());
        for child in children {
            match child {
                Self::Or(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        if flat.len() > 1 { Some(Self::Or(flat)) } else { flat.pop() }
    }

    /// Not this; a second negation cancels the first.
    #[must_use]
    pub fn negate(self) -> Self {
        match self {
            Self::Not(inner) => *inner,
            other => Self::Not(Box::new(other)),
        }
    }
}
