//! HTML → text, hidden content removed (digest §1.9).
//!
//! A stream of html5ever tokens and our own short stack of open elements: linear in the input, bounded
//! depth, no tree, no recursion, so that hostile nesting costs nothing (docs/adr/0015). Never runs,
//! fetches or resolves anything. Where mailers mark quoted mail, the places are reported as cuts.

use std::cell::RefCell;
use std::ops::Range;

use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use html5ever::{LocalName, tendril::StrTendril};

use super::html_element::Sort;
use super::html_quote::{attribute, cuts_rest, is_cut, merged};
use super::html_sheet::{SHEET_BYTES_MAX, Sheet};
use super::html_style::{self, Look};
use super::html_text::Pen;
use super::invisible::{self, Seen};

/// Most HTML that is read, bytes; the rest is left out.
pub(super) const INPUT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most text that is written, bytes.
const TEXT_BYTES_MAX: usize = 512 * 1024;
/// Deepest nesting that is followed; deeper elements inherit from this depth.
const DEPTH_MAX: usize = 256;
/// Longest link that is written out, bytes.
const URL_BYTES_MAX: usize = 2048;
/// Most cut marks kept.
const CUTS_MAX: usize = 256;

/// What HTML says to a reader.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rendered {
    /// Visible text, line ends `\n`.
    pub text: String,
    /// Byte ranges of `text` that mailers marked as quoted mail, ascending, disjoint.
    pub cuts: Vec<Range<usize>>,
    /// Text was hidden from the reader (and left out), or invisible characters stood in the text.
    pub hidden_text: bool,
    /// Holds a link (http, https, ftp, mailto).
    pub has_link: bool,
    /// Input or text was cut at its cap.
    pub truncated: bool,
}

/// Renders HTML as text. Never fails; linear time.
#[must_use]
pub fn to_text(html: &str) -> Rendered {
    let mut end = html.len().min(INPUT_BYTES_MAX);
    while !html.is_char_boundary(end) {
        end -= 1;
    }
    let cut = end < html.len();
    let html = &html[..end];
    // White is the page's colour only where nothing paints another one.
    let painted = mentions(html.as_bytes(), b"bgcolor") || mentions(html.as_bytes(), b"background");
    let page = Look::on((!painted).then_some(0xFF_FF_FF));
    let mut state = render(html, State::new(page, Sheet::default()));
    if state.rules_late {
        // Rules count for what stands before them, too.
        let sheet = std::mem::take(&mut state.sheet);
        state = render(html, State { sheet_is_whole: true, ..State::new(page, sheet) });
    }
    let mut rendered = state.finish();
    rendered.truncated |= cut;
    rendered
}

fn render(html: &str, state: State) -> State {
    let tokenizer = Tokenizer::new(Renderer(RefCell::new(state)), TokenizerOpts::default());
    let queue = BufferQueue::default();
    queue.push_back(StrTendril::from_slice(html));
    let _ = tokenizer.feed(&queue);
    tokenizer.end();
    tokenizer.sink.0.into_inner()
}

/// Does `word` (which starts with a `b`) occur, in any letter case?
fn mentions(html: &[u8], word: &[u8]) -> bool {
    memchr::memchr2_iter(b'b', b'B', html)
        .any(|i| html.get(i..i + word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word)))
}

/// An open element.
struct Element {
    name: LocalName,
    sort: Sort,
    look: Look,
    hidden: bool,
    /// Where the text of a cut mark began.
    cut_from: Option<usize>,
    link: Option<(String, usize)>,
}

struct State {
    page: Look,
    sheet: Sheet,
    /// The sheet was read before; style elements are passed over.
    sheet_is_whole: bool,
    /// Rules were found after text.
    rules_late: bool,
    /// The open style element is for every medium, and its text so far.
    style_applies: bool,
    style_text: String,
    style_bytes: usize,
    pen: Pen,
    stack: Vec<Element>,
    /// Elements opened beyond the depth that is followed.
    too_deep: usize,
    /// Inside an element whose text is never shown (`style`, `script`, `title`, …).
    mute: Option<LocalName>,
    pre: usize,
    /// Open `<p>`.
    paragraphs: usize,
    seen: Seen,
    hidden_text: bool,
    has_link: bool,
    cuts: Vec<Range<usize>>,
    /// From here to the end everything is quoted.
    cut_rest: Option<usize>,
}

struct Renderer(RefCell<State>);

impl TokenSink for Renderer {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut state = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => return state.start(&tag),
            Token::TagToken(tag) => state.end(&tag.name),
            Token::CharacterTokens(text) => state.characters(&text),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

impl State {
    fn new(page: Look, sheet: Sheet) -> Self {
        Self {
            page,
            sheet,
            sheet_is_whole: false,
            rules_late: false,
            style_applies: false,
            style_text: String::new(),
            style_bytes: 0,
            pen: Pen::new(TEXT_BYTES_MAX),
            stack: Vec::with_capacity(16),
            too_deep: 0,
            mute: None,
            pre: 0,
            paragraphs: 0,
            seen: Seen::default(),
            hidden_text: false,
            has_link: false,
            cuts: Vec::new(),
            cut_rest: None,
        }
    }

    fn finish(mut self) -> Rendered {
        self.pop_to(0);
        let (text, truncated) = self.pen.finish();
        let mut cuts = self.cuts;
        cuts.extend(self.cut_rest.map(|from| from..text.len()));
        Rendered {
            cuts: merged(cuts, text.len()),
            text,
            hidden_text: self.hidden_text || self.seen.is_hiding(),
            has_link: self.has_link,
            truncated,
        }
    }

    fn look(&self) -> (Look, bool) {
        self.stack.last().map_or((self.page, false), |e| (e.look, e.hidden))
    }

    fn characters(&mut self, text: &str) {
        if let Some(mute) = &self.mute {
            if &**mute == "style" && self.style_applies {
                let room = SHEET_BYTES_MAX.saturating_sub(self.style_bytes);
                let text = &text[..text.floor_char_boundary(room)];
                self.style_text.push_str(text);
                self.style_bytes += text.len();
            }
            return;
        }
        let (look, hidden) = self.look();
        if hidden || look.is_invisible() {
            let mut ignored = Seen::default();
            self.hidden_text |= !invisible::strip(text, &mut ignored).trim().is_empty();
            return;
        }
        let text = invisible::strip(text, &mut self.seen);
        if self.pre > 0 {
            self.pen.verbatim(&text);
        } else {
            self.pen.text(&text);
        }
    }

    fn start(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let name: &str = &tag.name;
        if self.mute.is_some() {
            return TokenSinkResult::Continue;
        }
        match name {
            "script" => return self.silence(tag, RawKind::ScriptData),
            "style" => {
                let medium = attribute(tag, "media").unwrap_or("all").trim();
                self.style_applies = !self.sheet_is_whole
                    && ["", "all", "screen"].iter().any(|m| medium.eq_ignore_ascii_case(m));
                return self.silence(tag, RawKind::Rawtext);
            }
            "noembed" | "noframes" | "iframe" | "xmp" => {
                return self.silence(tag, RawKind::Rawtext);
            }
            "title" => return self.silence(tag, RawKind::Rcdata),
            "template" => {
                self.mute = Some(tag.name.clone());
                return TokenSinkResult::Continue;
            }
            "plaintext" => return TokenSinkResult::Plaintext,
            _ => {}
        }
        let sort = Sort::of(name);
        self.close_implied(sort);
        if sort.is_block() {
            self.pen.block();
        }
        let (parent, parent_hidden) = self.look();
        let attributes = tag.attrs.iter().map(|a| (&*a.name.local, &*a.value));
        let (look, hides) = html_style::read(parent, &self.sheet, name, attributes);
        let hidden = parent_hidden || hides;
        match name {
            "br" if !hidden => self.pen.line_end(),
            "li" if !hidden => self.pen.item(),
            "td" | "th" if !hidden => self.pen.cell(),
            "img" if !hidden => self.image(tag),
            _ => {}
        }
        if cuts_rest(name, tag) {
            self.cut_rest.get_or_insert(self.pen.len());
        }
        if matches!(sort, Sort::Void | Sort::Rule) {
            return TokenSinkResult::Continue;
        }
        if self.stack.len() >= DEPTH_MAX {
            self.too_deep += 1;
            return TokenSinkResult::Continue;
        }
        match name {
            "blockquote" if !hidden => self.pen.quotes += 1,
            "pre" => self.pre += 1,
            _ => {}
        }
        let cut_from = is_cut(name, tag).then(|| self.pen.len());
        let link = (name == "a" && !hidden).then(|| self.link(tag)).flatten();
        self.paragraphs += usize::from(sort == Sort::Paragraph);
        self.stack.push(Element { name: tag.name.clone(), sort, look, hidden, cut_from, link });
        if name == "textarea" {
            return TokenSinkResult::RawData(RawKind::Rcdata);
        }
        TokenSinkResult::Continue
    }

    fn silence(&mut self, tag: &Tag, kind: RawKind) -> TokenSinkResult<()> {
        self.mute = Some(tag.name.clone());
        TokenSinkResult::RawData(kind)
    }

    fn end(&mut self, tag: &LocalName) {
        if let Some(mute) = &self.mute {
            if mute == tag {
                self.mute = None;
                let rules = std::mem::take(&mut self.style_text);
                self.rules_late |= self.sheet.read(&rules) && self.pen.len() > 0;
            }
            return;
        }
        let name: &str = tag;
        if self.too_deep > 0 && !matches!(name, "body" | "html") {
            self.too_deep -= 1;
            return;
        }
        if (name == "p" && self.paragraphs == 0) || name == "br" {
            self.pen.block();
            return;
        }
        // A stray end tag inside a cell does not close what surrounds the table.
        let sort = Sort::of(name);
        let crosses_cells = matches!(sort, Sort::Cell | Sort::Row | Sort::Table | Sort::Frame);
        for (i, element) in self.stack.iter().enumerate().rev() {
            if element.name == *tag {
                self.pop_to(i);
                return;
            }
            if !crosses_cells && matches!(element.sort, Sort::Cell | Sort::Table) {
                return;
            }
        }
    }

    /// Ends what the start of `sort` ends without a tag.
    fn close_implied(&mut self, sort: Sort) {
        let Some(ended) = sort.ends() else { return };
        if ended == Sort::Paragraph && self.paragraphs == 0 {
            return;
        }
        for (i, element) in self.stack.iter().enumerate().rev() {
            if element.sort == ended {
                self.pop_to(i);
                return;
            }
            if element.sort.stops(ended) {
                return;
            }
        }
    }

    fn pop_to(&mut self, depth: usize) {
        while self.stack.len() > depth {
            let Some(element) = self.stack.pop() else { return };
            let name: &str = &element.name;
            self.paragraphs -= usize::from(element.sort == Sort::Paragraph);
            if element.sort.is_block() {
                self.pen.block();
            }
            match name {
                "blockquote" if !element.hidden => {
                    self.pen.quotes = self.pen.quotes.saturating_sub(1);
                }
                "pre" => self.pre = self.pre.saturating_sub(1),
                _ => {}
            }
            if let Some((url, from)) = element.link {
                self.end_link(&url, from);
            }
            if let Some(from) = element.cut_from
                && self.cuts.len() < CUTS_MAX
            {
                self.cuts.push(from..self.pen.len());
            }
        }
    }

    /// A picture is seen whatever the size and colour of text.
    fn image(&mut self, tag: &Tag) {
        let alt = attribute(tag, "alt")
            .map(|a| invisible::strip(a.trim(), &mut self.seen).into_owned())
            .unwrap_or_default();
        if !alt.is_empty() && alt.len() <= URL_BYTES_MAX {
            let alt = alt.split_whitespace().collect::<Vec<_>>().join(" ");
            self.pen.word(&format!("[image: {alt}]"));
        }
    }

    /// The target of a link that is worth showing, and where its text begins.
    fn link(&mut self, tag: &Tag) -> Option<(String, usize)> {
        let url = attribute(tag, "href")?.trim();
        let scheme = url.split(':').next()?;
        let known =
            ["http", "https", "ftp", "mailto"].iter().any(|s| scheme.eq_ignore_ascii_case(s));
        if !known {
            return None;
        }
        self.has_link = true;
        (url.len() <= URL_BYTES_MAX && !url.contains(char::is_whitespace))
            .then(|| (url.to_owned(), self.pen.len()))
    }

    fn end_link(&mut self, url: &str, from: usize) {
        let shown = self.pen.since(from).trim();
        let bare = |s: &str| {
            let s = s.trim_end_matches('/');
            ["http://", "https://", "mailto:", "ftp://"]
                .iter()
                .find_map(|p| s.strip_prefix(p))
                .unwrap_or(s)
                .to_ascii_lowercase()
        };
        // A long text is no address: spares comparing it again for each link around it.
        let is_long = shown.len() > URL_BYTES_MAX;
        if !shown.is_empty() && (is_long || bare(shown) != bare(url)) {
            self.pen.text(" ");
            self.pen.word(&format!("({url})"));
        }
    }
}

#[cfg(test)]
#[path = "html_test.rs"]
mod html_test;
