//! Names of the operators, and which name a mistyped one was meant to be.

/// An operator of the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    From,
    To,
    Participant,
    Subject,
    Ref,
    Label,
    Has,
    Filename,
    Type,
    After,
    Before,
    NewerThan,
    OlderThan,
    In,
    Thread,
    Is,
    Category,
    Cc,
    Bcc,
    DeliveredTo,
    List,
    Size,
    Larger,
    Smaller,
    Rfc822MsgId,
    Folder,
    Source,
    Lang,
}

/// What stands where an operator name was not known. A test keeps it in step with [`Op::ALL`].
pub(super) const EXPECTED_NAME: &str = "operator name (from, to, participant, subject, ref, \
    label, has, filename, type, after, before, newer_than, older_than, in, thread, is, category, \
    cc, bcc, deliveredto, list, size, larger, smaller, rfc822msgid, folder, source, lang) or \
    quoted text";

impl Op {
    /// Every operator, in the order of [`EXPECTED_NAME`].
    pub(super) const ALL: [Self; 28] = [
        Self::From,
        Self::To,
        Self::Participant,
        Self::Subject,
        Self::Ref,
        Self::Label,
        Self::Has,
        Self::Filename,
        Self::Type,
        Self::After,
        Self::Before,
        Self::NewerThan,
        Self::OlderThan,
        Self::In,
        Self::Thread,
        Self::Is,
        Self::Category,
        Self::Cc,
        Self::Bcc,
        Self::DeliveredTo,
        Self::List,
        Self::Size,
        Self::Larger,
        Self::Smaller,
        Self::Rfc822MsgId,
        Self::Folder,
        Self::Source,
        Self::Lang,
    ];

    /// The name, lower case.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::From => "from",
            Self::To => "to",
            Self::Participant => "participant",
            Self::Subject => "subject",
            Self::Ref => "ref",
            Self::Label => "label",
            Self::Has => "has",
            Self::Filename => "filename",
            Self::Type => "type",
            Self::After => "after",
            Self::Before => "before",
            Self::NewerThan => "newer_than",
            Self::OlderThan => "older_than",
            Self::In => "in",
            Self::Thread => "thread",
            Self::Is => "is",
            Self::Category => "category",
            Self::Cc => "cc",
            Self::Bcc => "bcc",
            Self::DeliveredTo => "deliveredto",
            Self::List => "list",
            Self::Size => "size",
            Self::Larger => "larger",
            Self::Smaller => "smaller",
            Self::Rfc822MsgId => "rfc822msgid",
            Self::Folder => "folder",
            Self::Source => "source",
            Self::Lang => "lang",
        }
    }

    /// The operator of a name; case does not matter.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.name().eq_ignore_ascii_case(name))
    }
}

/// Names that people bring along from other mail programs. `name` is lower case.
pub(super) fn synonym(name: &str) -> Option<Op> {
    Some(match name {
        "sender" | "author" => Op::From,
        "recipient" => Op::To,
        "with" | "involves" => Op::Participant,
        "title" => Op::Subject,
        "reference" => Op::Ref,
        "tag" | "keyword" => Op::Label,
        "attachment" | "file" => Op::Filename,
        "since" | "newer" => Op::After,
        "until" | "older" => Op::Before,
        "msgid" | "messageid" | "message_id" => Op::Rfc822MsgId,
        "delivered_to" => Op::DeliveredTo,
        "larger_than" | "bigger" => Op::Larger,
        "smaller_than" => Op::Smaller,
        "listid" | "list_id" => Op::List,
        "mailbox" => Op::Folder,
        "language" => Op::Lang,
        _ => return None,
    })
}

/// Beginnings of ordinary text that look like an operator: reply prefixes and address schemes.
/// `name` is lower case.
pub(super) fn is_literal(name: &str) -> bool {
    matches!(
        name,
        "re" | "fw"
            | "fwd"
            | "aw"
            | "wg"
            | "sv"
            | "tr"
            | "http"
            | "https"
            | "ftp"
            | "mailto"
            | "tel"
            | "urn"
            | "note"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expectation_lists_every_operator() {
        let names: Vec<_> = Op::ALL.iter().map(|op| op.name()).collect();
        let expected = format!("operator name ({}) or quoted text", names.join(", "));
        assert_eq!(EXPECTED_NAME, expected);
    }

    #[test]
    fn names_are_found_without_regard_to_case() {
        for op in Op::ALL {
            assert_eq!(Op::from_name(op.name()), Some(op));
            assert_eq!(Op::from_name(&op.name().to_ascii_uppercase()), Some(op));
        }
        assert_eq!(Op::from_name("header"), None);
        assert_eq!(Op::from_name(""), None);
    }
}
