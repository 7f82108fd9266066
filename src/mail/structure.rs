//! One entity → a flat list of its MIME parts (RFC 2046 §5.1), with where each body lies.
//!
//! A single pass over delimiter lines with a stack of open boundaries: linear, no recursion, depth 32
//! and 500 parts at most (what lies beyond is kept as one part). Unclosed, missing and misused
//! boundaries are mended. Bodies are slices; nothing is decoded, nested messages are not opened.

use memchr::memmem;

use super::header::{self, Headers, line_at};
use super::params::Parameterised;

/// Deepest nesting of multiparts.
pub(super) const DEPTH_MAX: usize = 32;
/// Most parts, multiparts included.
pub(super) const PARTS_MAX: usize = 500;

/// One part.
#[derive(Debug)]
pub(super) struct Part<'a> {
    pub(super) headers: Headers<'a>,
    /// `type/subtype` with parameters; the default type when none is given.
    pub(super) content_type: Parameterised,
    /// Disposition and file name; empty value when absent.
    pub(super) disposition: Parameterised,
    /// Body as sent.
    pub(super) body: &'a [u8],
    /// Index of the enclosing multipart.
    pub(super) parent: Option<usize>,
    /// 1-based place among its siblings.
    pub(super) nth: usize,
    /// A multipart whose parts follow it in the list.
    pub(super) is_container: bool,
    /// The rest of a structure beyond a limit.
    pub(super) is_remainder: bool,
}

/// All parts in order of appearance; the first is the entity itself.
#[derive(Debug, Default)]
pub(super) struct Tree<'a> {
    pub(super) parts: Vec<Part<'a>>,
    /// A boundary was missing, unclosed or misused.
    pub(super) boundary_damaged: bool,
    /// A limit was met.
    pub(super) limit_met: bool,
    /// Everything after the headers of the entity, as sent.
    pub(super) whole_body: &'a [u8],
}

impl Tree<'_> {
    /// Path of a part as in IMAP: `1.2`; the root is `0`.
    pub(super) fn path(&self, index: usize) -> String {
        let mut numbers = Vec::new();
        let mut at = index;
        while let Some(parent) = self.parts[at].parent {
            numbers.push(self.parts[at].nth.to_string());
            at = parent;
        }
        if numbers.is_empty() {
            return "0".to_owned();
        }
        numbers.reverse();
        numbers.join(".")
    }
}

/// An open multipart.
struct Frame {
    boundary: Vec<u8>,
    part: usize,
    children: usize,
    /// The closing delimiter was seen (outermost frame only; others are popped).
    closed: bool,
}

/// Reads the structure of the entity `bytes`, whose headers were split at `body_from`.
pub(super) fn walk<'a>(bytes: &'a [u8], headers: Headers<'a>, body_from: usize) -> Tree<'a> {
    let root = part_of(headers, None, 1, false);
    let boundary = root.content_type.value.starts_with("multipart/").then(|| {
        let declared =
            root.content_type.param("boundary").map(|b| b.trim_end().as_bytes().to_vec());
        match declared.filter(|b| !b.is_empty() && occurs(&bytes[body_from..], b)) {
            Some(boundary) => (boundary, false),
            None => (guess(&bytes[body_from..]).unwrap_or_default(), true),
        }
    });
    let mut walk = Walk { bytes, tree: Tree::default(), stack: Vec::new() };
    walk.tree.parts.push(root);
    if let Some((boundary, damaged)) = boundary {
        walk.tree.boundary_damaged |= damaged;
        if !boundary.is_empty() {
            walk.open(0, boundary);
            walk.run(body_from);
        }
    }
    walk.tree.whole_body = &bytes[body_from..];
    if !walk.tree.parts[0].is_container {
        walk.tree.parts[0].body = walk.tree.whole_body;
    }
    walk.tree
}

struct Walk<'a> {
    bytes: &'a [u8],
    tree: Tree<'a>,
    stack: Vec<Frame>,
}

/// A delimiter line that was found.
struct Delimiter {
    /// Start of the line.
    start: usize,
    /// Start of the next line.
    next: usize,
    /// Which open multipart it belongs to.
    level: usize,
    is_close: bool,
}

impl<'a> Walk<'a> {
    fn open(&mut self, part: usize, boundary: Vec<u8>) {
        self.tree.parts[part].is_container = true;
        self.stack.push(Frame { boundary, part, children: 0, closed: false });
    }

    fn run(&mut self, from: usize) {
        let mut at = from;
        // The part whose body is being read, and where it began; none in a preamble or epilogue.
        let mut current: Option<(usize, usize)> = None;
        let finder = memmem::Finder::new(b"\n--");
        while let Some(found) = self.next_delimiter(at, &finder) {
            self.end(current.take(), found.start);
            if found.level + 1 < self.stack.len() {
                self.tree.boundary_damaged = true;
                while self.stack.len() > found.level + 1 {
                    self.close_top();
                }
            }
            at = found.next;
            if found.is_close {
                if found.level == 0 {
                    self.stack[0].closed = true;
                } else {
                    self.close_top();
                }
                continue;
            }
            if self.tree.parts.len() >= PARTS_MAX {
                self.remainder(found.start);
                return;
            }
            (at, current) = self.start_part(found.level, found.next);
        }
        self.end(current, self.bytes.len());
        self.tree.boundary_damaged |= self.stack.iter().any(|f| !f.closed);
        while !self.stack.is_empty() {
            self.close_top();
        }
    }

    /// Reads the headers of a part that starts at `from`; returns where to go on, and the part if
    /// it has a body of its own.
    fn start_part(&mut self, level: usize, from: usize) -> (usize, Option<(usize, usize)>) {
        let frame = &mut self.stack[level];
        frame.children += 1;
        frame.closed = false;
        let (parent, nth) = (frame.part, frame.children);
        let stack = &self.stack;
        let (headers, body_from) =
            header::split(self.bytes, from, false, |line| match_line(stack, line).is_some());
        let in_digest = self.tree.parts[parent].content_type.value == "multipart/digest";
        let part = part_of(headers, Some(parent), nth, in_digest);
        let boundary =
            part.content_type.param("boundary").map(|b| b.trim_end().as_bytes().to_vec());
        let boundary =
            boundary.filter(|b| !b.is_empty() && part.content_type.value.starts_with("multipart/"));
        let index = self.tree.parts.len();
        self.tree.parts.push(part);
        match boundary {
            Some(boundary) if self.stack.len() < DEPTH_MAX => {
                self.open(index, boundary);
                // Until a delimiter comes this is the preamble; kept in case none ever does.
                (body_from, Some((index, body_from)))
            }
            deep => {
                if deep.is_some() {
                    self.tree.limit_met = true;
                    self.tree.parts[index].is_remainder = true;
                }
                (body_from, Some((index, body_from)))
            }
        }
    }

    /// Ends the body of `current` at the delimiter line that starts at `stop`.
    fn end(&mut self, current: Option<(usize, usize)>, stop: usize) {
        if let Some((part, from)) = current {
            let body = &self.bytes[from.min(stop)..stop];
            // The line end before a delimiter belongs to the delimiter (RFC 2046 §5.1.1).
            let body = if stop < self.bytes.len() {
                body.strip_suffix(b"\n").unwrap_or(body)
            } else {
                body
            };
            self.tree.parts[part].body = body.strip_suffix(b"\r").unwrap_or(body);
        }
    }

    /// Leaves the innermost multipart; one without any part becomes a plain part.
    fn close_top(&mut self) {
        if let Some(frame) = self.stack.pop()
            && frame.children == 0
        {
            self.tree.parts[frame.part].is_container = false;
            self.tree.boundary_damaged = true;
        }
    }

    fn remainder(&mut self, from: usize) {
        self.tree.limit_met = true;
        let (parent, nth) =
            self.stack.first().map_or((None, 1), |f| (Some(f.part), f.children + 1));
        let mut part = part_of(Headers::default(), parent, nth, false);
        part.content_type = Parameterised::read(b"application/octet-stream");
        part.body = &self.bytes[from..];
        part.is_remainder = true;
        self.tree.parts.push(part);
    }

    fn next_delimiter(&self, from: usize, finder: &memmem::Finder<'_>) -> Option<Delimiter> {
        let mut start = from;
        loop {
            if self.bytes[start..].starts_with(b"--") {
                let (line, next) = line_at(self.bytes, start);
                if let Some((level, is_close)) = match_line(&self.stack, line) {
                    return Some(Delimiter { start, next, level, is_close });
                }
            }
            start += finder.find(&self.bytes[start..])? + 1;
        }
    }
}

/// Which open boundary a line beginning with `--` belongs to, innermost first.
fn match_line(stack: &[Frame], line: &[u8]) -> Option<(usize, bool)> {
    let rest = line.get(2..)?;
    stack.iter().enumerate().rev().find_map(|(level, frame)| {
        let tail = rest.strip_prefix(frame.boundary.as_slice())?;
        let (tail, is_close) = match tail.strip_prefix(b"--") {
            Some(tail) => (tail, true),
            None => (tail, false),
        };
        // Blanks may follow, and whatever comes after them is no part of the delimiter.
        tail.first().is_none_or(u8::is_ascii_whitespace).then_some((level, is_close))
    })
}

fn part_of<'a>(
    headers: Headers<'a>,
    parent: Option<usize>,
    nth: usize,
    in_digest: bool,
) -> Part<'a> {
    let mut content_type = headers.get("Content-Type").map(Parameterised::read).unwrap_or_default();
    // RFC 2046 §5.1.5: parts of a digest are messages; RFC 2045 §5.2: everything else is text.
    let default = if in_digest { "message/rfc822" } else { "text/plain" };
    match content_type.value.split_once('/') {
        Some((kind, sub)) if !kind.is_empty() && !sub.is_empty() => {}
        _ => {
            content_type.value = if content_type.value.starts_with("multipart") {
                "multipart/mixed"
            } else {
                default
            }
            .to_owned();
        }
    }
    let disposition =
        headers.get("Content-Disposition").map(Parameterised::read).unwrap_or_default();
    Part {
        headers,
        content_type,
        disposition,
        body: &[],
        parent,
        nth,
        is_container: false,
        is_remainder: false,
    }
}

/// Does `--boundary` stand at the start of some line?
fn occurs(body: &[u8], boundary: &[u8]) -> bool {
    let mut needle = Vec::with_capacity(boundary.len() + 3);
    needle.extend_from_slice(b"\n--");
    needle.extend_from_slice(boundary);
    body.starts_with(&needle[1..]) || memmem::find(body, &needle).is_some()
}

/// The boundary of a multipart that does not tell it, or tells a wrong one: the first line
/// beginning with `--` that a field follows, within the first 64 KiB.
fn guess(body: &[u8]) -> Option<Vec<u8>> {
    let body = &body[..body.len().min(64 * 1024)];
    let mut at = 0;
    while at < body.len() {
        let (line, next) = line_at(body, at);
        if let Some(boundary) = line.strip_prefix(b"--") {
            let boundary = boundary.trim_ascii_end();
            let after = line_at(body, next).0;
            let field = after.len() > 8 && after[..8].eq_ignore_ascii_case(b"content-");
            if !boundary.is_empty() && field {
                return Some(boundary.to_vec());
            }
        }
        at = next;
    }
    None
}

#[cfg(test)]
#[path = "structure_test.rs"]
mod structure_test;
