//! Standard output: one writer, colours only where a person sees them.

use std::io::{self, BufWriter, IsTerminal as _, Write};

use serde::Serialize;

use super::failure::Failure;
use super::safe::{self, SafeWriter};

/// How to write.
#[derive(Debug, Clone, Copy)]
pub(super) struct Output {
    /// JSON was asked for.
    pub(super) json: bool,
    /// Colours may be used.
    pub(super) colour: bool,
    /// Columns of the terminal, if it is one.
    pub(super) width: Option<usize>,
}

impl Output {
    /// As the command line and the surroundings say.
    pub(super) fn new(json: bool) -> Self {
        let terminal = io::stdout().is_terminal();
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let width = terminal.then(|| usize::from(console::Term::stdout().size().1).max(40));
        Self { json, colour: terminal && !set("NO_COLOR") && !dumb, width }
    }

    /// Whether the words that were found can be marked.
    pub(super) fn marks(self) -> bool {
        self.colour && !self.json
    }

    /// Writes text; what people wrote must have gone through [`safe`].
    pub(super) fn text(self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    }

    /// Writes a value as JSON: laid out for people on a terminal, else in one line.
    pub(super) fn value(self, value: &impl Serialize) -> Result<(), Failure> {
        let text = if self.width.is_some() {
            serde_json::to_string_pretty(value)
        } else {
            serde_json::to_string(value)
        }
        .map_err(io::Error::from)?;
        self.text(&(safe::json(&text) + "\n"))
    }

    /// A writer for much, or for bytes: as they are, except to a terminal.
    pub(super) fn writer(self) -> Box<dyn Write + Send> {
        let out = BufWriter::with_capacity(1 << 16, io::stdout());
        if self.width.is_some() { Box::new(SafeWriter(out)) } else { Box::new(out) }
    }

    /// Bold, where colours are.
    pub(super) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Faint, where colours are.
    pub(super) fn faint(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Coloured, where colours are.
    pub(super) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}
