//! Which parts of a text its author wrote new (digest §1.9, quote stripping).
//!
//! Marks in HTML come first; else the earliest announcement of quoted mail cuts, unless `>` lines
//! follow it, in which case only those go and replies between them stay. Then `>` lines, OpenPGP
//! armour, signature, list footer. Text is never changed, only ranged; one pass over lines.

use std::ops::Range;

use super::quote_mark::{self as mark, Separator};
use super::sign_off;

/// How far up a signature may begin, in non-blank lines.
const SIGNATURE_LINES_MAX: usize = 15;
/// How far up a mobile signature may stand.
const MOBILE_LINES_MAX: usize = 5;
/// How far up a list footer may begin.
const FOOTER_LINES_MAX: usize = 10;

/// Ranges of `text` that are new: whole lines, ascending, disjoint.
///
/// `cuts` are quoted ranges known from HTML. `may_be_empty` tells that earlier parts of the message
/// hold its new text: then nothing is restored when nothing remains.
pub(super) fn new_ranges(
    text: &str,
    cuts: &[Range<usize>],
    may_be_empty: bool,
) -> Vec<Range<usize>> {
    let mut cutter = Cutter::new(text);
    cutter.armour();
    cutter.scrubbed();
    if cuts.is_empty() {
        cutter.announced();
    } else {
        cutter.marked(cuts);
    }
    cutter.quoted_lines();
    cutter.signature();
    if !cutter.says_anything() && !may_be_empty {
        cutter.restore();
    }
    cutter.ranges()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Kept,
    Dropped,
    /// OpenPGP armour: dropped for good.
    Armour,
}

struct Cutter<'a> {
    lines: Vec<&'a str>,
    states: Vec<State>,
    /// First line of a forwarded message.
    forward_from: Option<usize>,
}

impl<'a> Cutter<'a> {
    fn new(text: &'a str) -> Self {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let states = vec![State::Kept; lines.len()];
        Self { lines, states, forward_from: None }
    }

    fn drop_lines(&mut self, lines: Range<usize>) {
        for state in &mut self.states[lines] {
            if *state == State::Kept {
                *state = State::Dropped;
            }
        }
    }

    /// `-----BEGIN PGP …-----` to its end; of a signed text only the frame.
    fn armour(&mut self) {
        let mut at = 0;
        while at < self.lines.len() {
            let Some(kind) = self.lines[at].strip_prefix("-----BEGIN PGP ") else {
                at += 1;
                continue;
            };
            let signed = kind.starts_with("SIGNED MESSAGE");
            while at < self.lines.len() {
                let line = self.lines[at].trim();
                self.states[at] = State::Armour;
                at += 1;
                if (signed && line.is_empty()) || line.starts_with("-----END PGP ") {
                    break;
                }
            }
        }
    }

    /// What Mailman's archiver puts in place of an attachment: nobody wrote that.
    fn scrubbed(&mut self) {
        let mut at = 0;
        while at < self.lines.len() {
            let from = at;
            at += 1;
            if sign_off::scrub_note(self.lines[from]) {
                while at < self.lines.len() && sign_off::scrub_field(self.lines[at]) {
                    at += 1;
                }
                self.drop_lines(from..at);
            }
        }
    }

    /// Marks known from HTML: their lines go, and the attribution just above them.
    fn marked(&mut self, cuts: &[Range<usize>]) {
        let mut start = 0;
        let mut cut = 0;
        for i in 0..self.lines.len() {
            let end = start + self.lines[i].len();
            while cut < cuts.len() && cuts[cut].end <= start {
                cut += 1;
            }
            let Some(range) = cuts.get(cut) else { break };
            // A line belongs to a cut when its text begins inside.
            if range.start <= start && self.states[i] == State::Kept {
                if i > 0 && self.states[i - 1] == State::Kept {
                    self.attribution_above(i);
                }
                if self.forward_from.is_none()
                    && mark::separator(self.lines[i]) == Some(Separator::Forward)
                {
                    self.forward_from = Some(i);
                }
                self.states[i] = State::Dropped;
            }
            start = end;
        }
    }

    fn attribution_above(&mut self, below: usize) {
        let mut last = below;
        while last > 0 && below - last < 2 && self.lines[last - 1].trim().is_empty() {
            last -= 1;
        }
        for first in (last.saturating_sub(3)..last).rev() {
            if mark::attribution(&self.lines[first..last]).is_some_and(|a| a.lines == last - first)
            {
                self.drop_lines(first..below);
                return;
            }
        }
    }

    /// The earliest announcement of quoted mail.
    fn announced(&mut self) {
        let mut said_something = false;
        let mut at = 0;
        while at < self.lines.len() {
            let line = self.lines[at];
            if self.states[at] != State::Kept || line.trim().is_empty() || mark::quoted(line) {
                at += 1;
                continue;
            }
            let (length, is_sure) = if let Some(kind) = mark::separator(line) {
                if kind == Separator::Forward {
                    self.forward_from.get_or_insert(at);
                }
                (1, true)
            } else if line.len() < 200
                && mark::header_block(&self.lines[at..self.lines.len().min(at + 7)])
            {
                (1, true)
            } else if let Some(found) =
                mark::attribution(&self.lines[at..self.lines.len().min(at + 3)])
            {
                // At the very top nothing would remain above it.
                (found.lines, found.is_sure && said_something)
            } else {
                said_something = true;
                at += 1;
                continue;
            };
            let after = at + length;
            let next = (after..self.lines.len().min(after + 3))
                .find(|&i| !self.lines[i].trim().is_empty());
            if next.is_some_and(|i| mark::quoted(self.lines[i])) {
                self.drop_lines(at..after);
                at = after;
            } else if is_sure {
                let above = (0..at).rev().find(|&i| !self.lines[i].trim().is_empty());
                let from = above.filter(|&i| sign_off::rule(self.lines[i])).unwrap_or(at);
                self.drop_lines(from..self.lines.len());
                return;
            } else {
                said_something = true;
                at = after;
            }
        }
    }

    fn quoted_lines(&mut self) {
        for (line, state) in self.lines.iter().zip(&mut self.states) {
            if *state == State::Kept && mark::quoted(line) {
                *state = State::Dropped;
            }
        }
    }

    /// Signature, mobile signature and list footer at the end of what is kept.
    fn signature(&mut self) {
        let tail: Vec<usize> = (0..self.lines.len())
            .rev()
            .filter(|&i| self.states[i] == State::Kept && !self.lines[i].trim().is_empty())
            .take(SIGNATURE_LINES_MAX)
            .collect();
        let delimiter = tail.iter().rev().find(|&&i| sign_off::signature(self.lines[i])).copied();
        let footer = tail
            .iter()
            .take(FOOTER_LINES_MAX)
            .enumerate()
            .rev()
            .find(|&(n, &i)| {
                sign_off::rule(self.lines[i])
                    && tail[..n].iter().rev().take(2).any(|&j| sign_off::list_footer(self.lines[j]))
            })
            .map(|(_, &i)| i);
        let mobile = tail
            .iter()
            .take(MOBILE_LINES_MAX)
            .rev()
            .find(|&&i| sign_off::mobile_signature(self.lines[i]))
            .copied();
        if let Some(from) = [delimiter, footer, mobile].into_iter().flatten().min() {
            self.drop_lines(from..self.lines.len());
        }
    }

    fn says_anything(&self) -> bool {
        self.lines
            .iter()
            .zip(&self.states)
            .any(|(l, s)| *s == State::Kept && l.chars().any(char::is_alphanumeric))
    }

    /// Nothing new remains: the forwarded text if there is one, else all but the signature, else all.
    fn restore(&mut self) {
        let from = self.forward_from.unwrap_or(0);
        let keep = |states: &mut Vec<State>| {
            for state in &mut states[from..] {
                if *state == State::Dropped {
                    *state = State::Kept;
                }
            }
        };
        keep(&mut self.states);
        if self.forward_from.is_none() {
            self.signature();
            if !self.says_anything() {
                keep(&mut self.states);
            }
        }
    }

    fn ranges(&self) -> Vec<Range<usize>> {
        let mut out: Vec<Range<usize>> = Vec::new();
        let mut start = 0;
        for (line, state) in self.lines.iter().zip(&self.states) {
            let end = start + line.len();
            if *state == State::Kept {
                match out.last_mut() {
                    Some(last) if last.end == start => last.end = end,
                    _ => out.push(start..end),
                }
            }
            start = end;
        }
        out
    }
}

#[cfg(test)]
#[path = "quote_test.rs"]
mod quote_test;
