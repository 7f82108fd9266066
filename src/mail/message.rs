//! What reading one message yields: plain data, no behaviour beyond access.
//!
//! These types are the contract between mail reading and everything above it. They are never
//! stored as they stand: each store has its own payload structs, so that a change here cannot
//! alter bytes on disk.

use std::ops::Range;

use serde::Serialize;

/// SHA-256.
pub type Digest = [u8; 32];

/// What the caller knows about a message besides its bytes.
#[derive(Debug, Clone, Default)]
pub struct ReadHints {
    /// Time in the mbox separator line, unix ms.
    pub separator_ms: Option<i64>,
    /// Modification time of a Maildir file, unix ms.
    pub file_ms: Option<i64>,
    /// Time of arrival, unix ms, for mail that arrives live; `None` for archives.
    pub arrived_ms: Option<i64>,
}

/// One message, read. Texts are Unicode, addresses lower-cased with the domain as A-label.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Message {
    /// Length of the raw bytes.
    pub raw_bytes: u64,
    /// SHA-256 of the raw bytes.
    pub raw_digest: Digest,
    /// SHA-256 over subject, text, HTML and attachment digests, insensitive to transport (line
    /// ends, transfer encoding, trailing white space): equal for two copies of one message.
    pub content_digest: Digest,
    /// Message-ID in normal form without angle brackets; `{sha256}@synthetic.invalid` without one.
    pub message_id: String,
    /// The Message-ID was missing or unusable.
    pub message_id_synthetic: bool,
    /// Identifiers of In-Reply-To in normal form.
    pub in_reply_to: Vec<String>,
    /// Identifiers of the References header in normal form, oldest first, ≤ 200.
    pub references: Vec<String>,
    /// Subject as received, decoded, white space collapsed, ≤ 998 characters; empty without one.
    pub subject: String,
    /// Authors; usually one.
    pub from: Vec<Address>,
    /// Sender header.
    pub sender: Option<Address>,
    /// Where replies go.
    pub reply_to: Vec<Address>,
    /// To, ≤ 200.
    pub to: Vec<Address>,
    /// Cc, ≤ 200.
    pub cc: Vec<Address>,
    /// Bcc, ≤ 200.
    pub bcc: Vec<Address>,
    /// Delivered-To and X-Original-To, addresses only.
    pub delivered_to: Vec<String>,
    /// Date header, unix ms, when it can be believed.
    pub sent_ms: Option<i64>,
    /// When the mail was received, unix ms (in this order: separator, newest Received, file time, Date).
    pub received_ms: i64,
    /// min(sent, else received; received + 5 min), unix ms: the date of search, order and facets.
    pub date_ms: i64,
    /// List-Id, the identifier inside `<>` lower-cased, else derived from other list headers.
    pub list_id: Option<String>,
    /// Sort of mail.
    pub kind: Kind,
    /// The whole text, quotes and signature included, ≤ 512 KiB, line ends `\n`.
    pub text: String,
    /// The text was derived from HTML (there was no usable text/plain part).
    pub text_from_html: bool,
    /// Parts of `text` that the author wrote new: byte ranges on character boundaries, ascending,
    /// disjoint. The rest is quoted text, signature or original-message blocks.
    pub new_ranges: Vec<Range<u32>>,
    /// ISO 639-1 code of the language of the new text, when it could be told.
    pub language: Option<&'static str>,
    /// Attachments in order of appearance, inline resources included, nested messages too.
    pub attachments: Vec<Attachment>,
    /// Labels that the message itself carries (`X-Gmail-Labels`, `X-Keywords`, `Status`) are read
    /// by `sources`; these are states of the content.
    pub flags: Flags,
    /// What was wrong and how it was mended, in order of discovery, ≤ 64.
    pub defects: Vec<Defect>,
}

impl Message {
    /// The author's new text: quotes and signature cut, parts joined as they stand.
    #[must_use]
    pub fn new_text(&self) -> String {
        self.new_ranges.iter().map(|r| &self.text[r.start as usize..r.end as usize]).collect()
    }

    /// What [`Message::new_text`] leaves out.
    #[must_use]
    pub fn quoted_text(&self) -> String {
        let mut quoted = String::new();
        let mut at = 0;
        for range in &self.new_ranges {
            quoted.push_str(&self.text[at..range.start as usize]);
            at = range.end as usize;
        }
        quoted.push_str(&self.text[at..]);
        quoted
    }
}

/// A name and an address; either may be empty, not both.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Address {
    /// Display name, decoded, ≤ 256 characters.
    pub name: String,
    /// `local@domain` lower-cased, domain as A-label, dots of the local part kept.
    pub address: String,
}

/// Sort of mail, first match in this order of tests: dsn, mdn, list, automated, calendar, normal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// None of the others.
    #[default]
    Normal,
    /// Delivery status notification (RFC 3464) or an older bounce.
    Dsn,
    /// Message disposition notification (RFC 8098).
    Mdn,
    /// Came through a mailing list (RFC 2919 or `Precedence: list`).
    List,
    /// Auto-Submitted other than `no`, or a bulk precedence.
    Automated,
    /// Carries an invitation (text/calendar).
    Calendar,
}

/// One attachment, inline resource or nested message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Attachment {
    /// Decoded file name, ≤ 255 bytes, path parts removed; empty without one.
    pub filename: String,
    /// Declared type, lower case, without parameters.
    pub content_type: String,
    /// Type told by the first bytes, when they tell one.
    pub sniffed_type: Option<&'static str>,
    /// Decoded size in bytes.
    pub bytes: u64,
    /// SHA-256 of the decoded bytes.
    pub digest: Digest,
    /// Disposition-based fact: `Content-Disposition` is absent or `attachment` (not `inline`).
    pub by_disposition: bool,
    /// MIME-class-based fact: counts as an attachment for a person (no inline resource of
    /// multipart/related, no signature, no body alternative).
    pub by_mime_class: bool,
    /// Content-ID without angle brackets; empty without one.
    pub content_id: String,
    /// Text of a nested message (subject, sender, text), ≤ 256 KiB; empty for everything else.
    pub text: String,
}

/// States of the content, each a plain fact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Flags {
    /// OpenPGP or S/MIME encrypted; the body is not readable here.
    pub encrypted: bool,
    /// OpenPGP or S/MIME signed (not verified).
    pub signed: bool,
    /// HTML held hidden text, tag characters, bidi overrides or many zero-width characters.
    pub hidden_text: bool,
    /// A limit or damage cost part of the structure (depth 32, 500 parts, broken MIME).
    pub parse_degraded: bool,
    /// Text was cut at its cap.
    pub body_truncated: bool,
    /// Holds a link (http, https, ftp, mailto).
    pub has_link: bool,
    /// Holds a text/calendar part.
    pub has_invite: bool,
    /// Holds a TNEF part (winmail.dat), named but not opened.
    pub tnef: bool,
}

/// Something wrong in a message, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Defect {
    /// What kind.
    pub kind: DefectKind,
    /// Header name or part path (`1.2`); never content.
    pub place: String,
}

/// Kinds of defects; each is mended, none loses a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DefectKind {
    /// No header could be found at all.
    NoHeaders,
    /// Date header missing.
    DateMissing,
    /// Date header cannot be read, or cannot be believed.
    DateUnusable,
    /// No time could be found anywhere.
    Undated,
    /// Message-ID missing or unusable.
    MessageIdUnusable,
    /// Declared charset unknown or wrong; text was decoded by another.
    CharsetMended,
    /// Bytes that no charset explains were replaced.
    BytesReplaced,
    /// Transfer encoding damaged; what could be decoded was kept.
    EncodingDamaged,
    /// Multipart boundary missing or never closed.
    BoundaryDamaged,
    /// Nesting beyond 32 or more than 500 parts: the rest was kept as one attachment.
    StructureLimit,
    /// A text, list or name was cut at its cap.
    Truncated,
    /// An address could not be read and was kept as a name.
    AddressUnreadable,
    /// Reading failed by a fault of the program; the bytes were kept as text.
    Unreadable,
    /// NUL bytes, lone CR or other controls were removed from text.
    ControlsRemoved,
}
