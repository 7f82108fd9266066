//! The pen that writes HTML's text: white space, lines, quote marks, cells.
//!
//! White space collapses as in a browser; a line gets `> ` per open blockquote. Bounded: beyond its
//! cap it writes nothing and says so. Knows no elements.

/// Most empty lines in a row.
const EMPTY_LINES_MAX: usize = 2;

/// Text under construction.
#[derive(Debug)]
pub(super) struct Pen {
    out: String,
    bytes_max: usize,
    /// Something visible stands on the current line.
    line_has_text: bool,
    /// White space was seen and not written yet.
    space_due: bool,
    /// A cell ended and another began on this line.
    cell_due: bool,
    item_due: bool,
    /// Line ends in a row at the end of `out`.
    line_ends: usize,
    /// Open blockquotes.
    pub(super) quotes: usize,
    /// Something was not written for want of room.
    pub(super) is_full: bool,
}

impl Pen {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            out: String::new(),
            bytes_max,
            line_has_text: false,
            space_due: false,
            cell_due: false,
            item_due: false,
            line_ends: 0,
            quotes: 0,
            is_full: false,
        }
    }

    /// Bytes written so far.
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    /// What was written from `at` on.
    pub(super) fn since(&self, at: usize) -> &str {
        self.out.get(at..).unwrap_or_default()
    }

    /// The text, without blanks at its end.
    pub(super) fn finish(mut self) -> (String, bool) {
        self.out.truncate(self.out.trim_end().len());
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        (self.out, self.is_full)
    }

    /// Running text, white space collapsed.
    pub(super) fn text(&mut self, text: &str) {
        let is_blank = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{0C}' | '\u{A0}');
        let mut rest = text;
        while !rest.is_empty() {
            let words = rest.trim_start_matches(is_blank);
            self.space_due |= words.len() < rest.len();
            let end = words.find(is_blank).unwrap_or(words.len());
            if end > 0 {
                self.word(&words[..end]);
            }
            rest = &words[end..];
        }
    }

    /// Text of a `<pre>`: lines and blanks stay.
    pub(super) fn verbatim(&mut self, text: &str) {
        for (i, line) in text.split('\n').enumerate() {
            if i > 0 {
                self.line_end();
            }
            let line = line.trim_end_matches('\r');
            if !line.is_empty() {
                self.space_due = false;
                self.word(line);
            }
        }
    }

    /// A piece that is written as it stands, after due blanks and marks.
    pub(super) fn word(&mut self, word: &str) {
        if self.out.len() + word.len() + 2 * self.quotes.min(32) + 8 > self.bytes_max {
            self.is_full = true;
            return;
        }
        if self.line_has_text {
            if std::mem::take(&mut self.cell_due) {
                self.out.push_str(" | ");
            } else if self.space_due {
                self.out.push(' ');
            }
        } else {
            for _ in 0..self.quotes.min(32) {
                self.out.push_str("> ");
            }
            if std::mem::take(&mut self.item_due) {
                self.out.push_str("- ");
            }
            self.cell_due = false;
        }
        self.space_due = false;
        self.out.push_str(word);
        self.line_has_text = true;
        self.line_ends = 0;
    }

    /// A block begins or ends: what follows starts on a new line.
    pub(super) fn block(&mut self) {
        if self.line_has_text {
            self.line_end();
        }
        self.space_due = false;
    }

    /// `<br>`: a line end in any case.
    pub(super) fn line_end(&mut self) {
        self.space_due = false;
        self.cell_due = false;
        if self.line_ends <= EMPTY_LINES_MAX && !self.out.is_empty() {
            if self.out.len() < self.bytes_max {
                self.out.push('\n');
            }
            self.line_ends += 1;
        }
        self.line_has_text = false;
    }

    /// A list item begins.
    pub(super) fn item(&mut self) {
        self.block();
        self.item_due = true;
    }

    /// A table cell begins.
    pub(super) fn cell(&mut self) {
        self.space_due = false;
        self.cell_due = self.line_has_text;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_cells_and_quotes() {
        let mut pen = Pen::new(1000);
        pen.text("  a \n b");
        pen.cell();
        pen.text("c");
        pen.block();
        pen.quotes = 1;
        pen.item();
        pen.text("d");
        for _ in 0..9 {
            pen.line_end();
        }
        pen.text("e");
        assert_eq!(pen.finish(), ("a b | c\n> - d\n\n\n> e\n".to_owned(), false));
    }
}
