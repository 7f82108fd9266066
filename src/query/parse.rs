//! Text → tree, by recursive descent over characters (Unicode scalar values).
//!
//! ```text
//! query       = ws , [ and_expr ] , ws , EOF ;
//! and_expr    = or_expr , { ws1 , or_expr } ;              (* side by side: all must hold *)
//! or_expr     = unary , { ws1 , "OR" , ws1 , unary } ;     (* binds tighter than side by side *)
//! unary       = [ "-" ] , primary ;                        (* no space after "-" *)
//! primary     = group | operator | phrase | term ;
//! group       = "(" , ws , and_expr , ws , ")" ;
//! operator    = op_name , ":" , op_value ;                 (* no space around ":" *)
//! op_value    = phrase | value ;                           (* subject: also takes prefix, near *)
//! phrase      = quoted , [ "~" , digit , { digit } ] ;     (* "~n": words within a distance *)
//! quoted      = '"' , { quoted_char } , '"' ;              (* not blank *)
//! quoted_char = "\" , ( '"' | "\" ) | char - '"' ;         (* other "\" stand for themselves *)
//! term        = ( value_char - "-" ) , { value_char } , [ "*" ] ;   (* "*": prefix *)
//! value       = value_char , { value_char } ;
//! value_char  = char - ( whitespace | '"' | "(" | ")" ) ;
//! op_name     = one of operators::Op, case does not matter ;
//! ws          = { whitespace } ;   ws1 = whitespace , ws ;
//! ```
//!
//! What the rules do not show:
//! * `OR` is the operator when upper case and alone; `or` is a word.
//! * `name:` of letters and underscores that is no operator is an error, not a term: a mistyped
//!   operator would otherwise silently search for other things. `10:30` is a term.
//! * Two parts that touch (`a"b"`) are an error, as the rules demand white space there.
//! * The limits are [`QUERY_CHARS_MAX`], [`LEAVES_MAX`] and [`DEPTH_MAX`].
//!
//! The parser never panics; time and memory grow with the length of the text, which is bounded
//! before anything else happens.

use std::borrow::Cow;

use super::ParseOptions;
use super::cursor::{Cursor, is_value_char, offset};
use super::error::{FOUND_CHARS_MAX, Fault, QueryError};
use super::operators::{EXPECTED_NAME, Op};
use super::tree::{Expr, NEAR_DISTANCE_MAX, Query, Span, TextField, TextKind, TextLeaf};
use super::{print, suggest, values};

/// Greatest length of a query, in characters.
pub const QUERY_CHARS_MAX: usize = 1_024;
/// Greatest number of terms, phrases and operators together.
pub const LEAVES_MAX: usize = 32;
/// How deep groups may be nested.
pub const DEPTH_MAX: usize = 8;

const EXPECTED_SHORTER: &str = "shorter query (max 1024 characters, 32 terms, depth 8)";
const EXPECTED_DISTANCE: &str = "distance as ~<n> (0 to 100)";

/// Reads a query. An empty or blank text is the query for every message.
///
/// # Errors
///
/// [`QueryError`] with place, expectation and, where one is known, remedy.
pub fn parse(q: &str, options: &ParseOptions) -> Result<Query, QueryError> {
    // One more than allowed is enough to tell, and leaves something to show as found.
    let chars: Vec<char> = q.chars().take(QUERY_CHARS_MAX + FOUND_CHARS_MAX).collect();
    let mut parser = Parser { cursor: Cursor { chars, at: 0 }, leaves: 0, depth: 0, options };
    if parser.cursor.chars.len() > QUERY_CHARS_MAX {
        return Err(parser.refusal(Fault::TooLarge, QUERY_CHARS_MAX, EXPECTED_SHORTER));
    }
    parser.query()
}

struct Parser<'a> {
    cursor: Cursor,
    leaves: usize,
    depth: usize,
    options: &'a ParseOptions,
}

impl Parser<'_> {
    /// `query = ws , [ and_expr ] , ws , EOF ;`
    fn query(&mut self) -> Result<Query, QueryError> {
        self.cursor.skip_ws();
        let root = if self.cursor.peek().is_some() { Some(self.and_expr()?) } else { None };
        self.cursor.skip_ws();
        if self.cursor.peek().is_some() {
            // `and_expr` stops early only before a closing bracket.
            return Err(self.refusal(Fault::Bracket, self.cursor.at, "term"));
        }
        Ok(Query { root, source_chars: offset(self.cursor.chars.len()) })
    }

    /// `and_expr = or_expr , { ws1 , or_expr } ;`
    fn and_expr(&mut self) -> Result<Expr, QueryError> {
        let mut operands = vec![self.or_expr()?];
        while self.gap()? {
            operands.push(self.or_expr()?);
        }
        Expr::and(operands).ok_or_else(|| self.no_term())
    }

    /// `or_expr = unary , { ws1 , "OR" , ws1 , unary } ;`
    fn or_expr(&mut self) -> Result<Expr, QueryError> {
        let mut operands = vec![self.unary()?];
        loop {
            let before = self.cursor.at;
            if !(self.gap()? && self.at_or()) {
                self.cursor.at = before;
                return Expr::or(operands).ok_or_else(|| self.no_term());
            }
            self.cursor.at += "OR".len();
            self.cursor.skip_ws();
            operands.push(self.unary()?);
        }
    }

    /// `unary = [ "-" ] , primary ;`
    fn unary(&mut self) -> Result<Expr, QueryError> {
        if self.cursor.peek() == Some('-') {
            self.cursor.at += 1;
            return Ok(self.primary()?.negate());
        }
        self.primary()
    }

    /// `primary = group | operator | phrase | term ;`
    fn primary(&mut self) -> Result<Expr, QueryError> {
        match self.cursor.peek() {
            Some('(') => return self.group(),
            None | Some(')' | '-') => return Err(self.no_term()),
            Some(c) if c.is_whitespace() || self.at_or() => return Err(self.no_term()),
            Some(_) => {}
        }
        self.leaves += 1;
        if self.leaves > LEAVES_MAX {
            return Err(self.refusal(Fault::TooLarge, self.cursor.at, EXPECTED_SHORTER));
        }
        let start = self.cursor.at;
        if self.cursor.peek() == Some('"') {
            let kind = self.phrase()?;
            return Ok(self.text(kind, TextField::Any, start));
        }
        if let Some(op) = self.op_name()? {
            return self.op_value(op, start);
        }
        let kind = self.term(start)?;
        Ok(self.text(kind, TextField::Any, start))
    }

    /// `group = "(" , ws , and_expr , ws , ")" ;`
    fn group(&mut self) -> Result<Expr, QueryError> {
        if self.depth == DEPTH_MAX {
            return Err(self.refusal(Fault::TooLarge, self.cursor.at, EXPECTED_SHORTER));
        }
        self.depth += 1;
        self.cursor.at += 1;
        self.cursor.skip_ws();
        let inner = self.and_expr()?;
        self.cursor.skip_ws();
        if self.cursor.peek() != Some(')') {
            return Err(self.refusal(Fault::Bracket, self.cursor.at, "')'"));
        }
        self.cursor.at += 1;
        self.depth -= 1;
        Ok(inner)
    }

    /// `op_name , ":"` of `operator`; `None` when the token is a term.
    fn op_name(&mut self) -> Result<Option<Op>, QueryError> {
        let name_end =
            self.cursor.end_of(self.cursor.at, |c| c.is_ascii_alphanumeric() || c == '_');
        if name_end == self.cursor.at || self.cursor.chars.get(name_end) != Some(&':') {
            return Ok(None);
        }
        let name = self.cursor.slice(self.cursor.at, name_end);
        if let Some(op) = Op::from_name(&name) {
            self.cursor.at = name_end + 1;
            return Ok(Some(op));
        }
        if name.contains(|c: char| c.is_ascii_digit()) {
            return Ok(None);
        }
        let value = self.cursor.raw_value(name_end + 1);
        let mut error = self.refusal(Fault::UnknownOperator, self.cursor.at, EXPECTED_NAME);
        error.suggestion = suggest::operator(&name, &value);
        Err(error)
    }

    /// `op_value = phrase | value ;`
    fn op_value(&mut self, op: Op, start: usize) -> Result<Expr, QueryError> {
        let value_start = self.cursor.at;
        match self.cursor.peek() {
            Some(c) if is_value_char(c) || c == '"' => {}
            _ => return Err(self.empty_value(op, value_start)),
        }
        if op == Op::Subject {
            let kind = match self.cursor.peek() {
                Some('"') => self.phrase().map_err(|error| match error.fault {
                    Fault::NoTerm => self.empty_value(op, value_start),
                    _ => error,
                })?,
                _ => self.term(start)?,
            };
            return Ok(self.text(kind, TextField::Subject, start));
        }
        let text = if self.cursor.peek() == Some('"') { self.quoted()? } else { self.value() };
        values::filter(op, text.trim(), self.options).map(Expr::Filter).map_err(|refused| {
            QueryError {
                fault: refused.fault,
                position: offset(value_start),
                expected: refused.expected,
                found: Some(
                    self.cursor
                        .slice(value_start, self.cursor.at.min(value_start + FOUND_CHARS_MAX)),
                ),
                suggestion: refused.suggestion,
            }
        })
    }

    /// `phrase = quoted , [ "~" , digit , { digit } ] ;`
    fn phrase(&mut self) -> Result<TextKind, QueryError> {
        let open = self.cursor.at;
        let text = self.quoted()?;
        if text.trim().is_empty() {
            return Err(self.refusal(Fault::NoTerm, open, "term"));
        }
        if self.cursor.peek() != Some('~') {
            return Ok(TextKind::Phrase(text));
        }
        let digits_start = self.cursor.at + 1;
        let digits_end = self.cursor.end_of(digits_start, |c| c.is_ascii_digit());
        let distance = self.cursor.slice(digits_start, digits_end).parse::<u32>().ok();
        match distance {
            Some(0) => {
                self.cursor.at = digits_end;
                Ok(TextKind::Phrase(text))
            }
            Some(distance) if distance <= NEAR_DISTANCE_MAX => {
                self.cursor.at = digits_end;
                Ok(TextKind::Near { text, distance })
            }
            _ => {
                let mut error =
                    self.refusal(Fault::BadDistance, self.cursor.at + 1, EXPECTED_DISTANCE);
                if digits_end > digits_start {
                    error.suggestion = Some(NEAR_DISTANCE_MAX.to_string());
                }
                Err(error)
            }
        }
    }

    /// `quoted = '"' , { quoted_char } , '"' ;` with escapes resolved.
    fn quoted(&mut self) -> Result<String, QueryError> {
        let open = self.cursor.at;
        let mut text = String::new();
        let mut at = open + 1;
        while let Some(&c) = self.cursor.chars.get(at) {
            match (c, self.cursor.chars.get(at + 1)) {
                ('"', _) => {
                    self.cursor.at = at + 1;
                    return Ok(text);
                }
                ('\\', Some(&escaped @ ('"' | '\\'))) => {
                    text.push(escaped);
                    at += 2;
                }
                _ => {
                    text.push(c);
                    at += 1;
                }
            }
        }
        let mut error = self.refusal(Fault::OpenQuote, open, "closing '\"'");
        // The whole rest belongs to the quote, white space included.
        error.found =
            Some(self.cursor.slice(open, self.cursor.chars.len().min(open + FOUND_CHARS_MAX)));
        error.suggestion = suggest::quoted(&text);
        Err(error)
    }

    /// `term = ( value_char - "-" ) , { value_char } , [ "*" ] ;` The caller has seen to the first
    /// character; after `subject:` a `-` may lead.
    fn term(&mut self, start: usize) -> Result<TextKind, QueryError> {
        let term_start = self.cursor.at;
        let mut text = self.value();
        let prefix = text.ends_with('*');
        if prefix {
            text.pop();
            if text.chars().nth(1).is_none() {
                let mut error = self.refusal(
                    Fault::ShortPrefix,
                    term_start,
                    "at least 2 characters before '*'",
                );
                if !text.is_empty() {
                    error.suggestion = Some(self.cursor.slice(start, self.cursor.at - 1));
                }
                return Err(error);
            }
        }
        Ok(TextKind::Term { text, prefix })
    }

    /// `value = value_char , { value_char } ;`
    fn value(&mut self) -> String {
        let start = self.cursor.at;
        self.cursor.at = self.cursor.end_of(start, is_value_char);
        self.cursor.slice(start, self.cursor.at)
    }

    /// `ws1` between two parts: true when another part follows, false at the end of the text or of
    /// the group; an error when two parts touch.
    fn gap(&mut self) -> Result<bool, QueryError> {
        let end = self.cursor.at;
        self.cursor.skip_ws();
        match self.cursor.peek() {
            None | Some(')') => Ok(false),
            Some(_) if self.cursor.at > end => Ok(true),
            Some(_) => {
                let mut error = self.refusal(Fault::NoSpace, end, "space");
                error.suggestion = self.touching(end);
                Err(error)
            }
        }
    }

    /// Whether the operator `OR` stands here alone.
    fn at_or(&self) -> bool {
        self.cursor.chars.get(self.cursor.at..).is_some_and(|rest| rest.starts_with(&['O', 'R']))
            && self
                .cursor
                .chars
                .get(self.cursor.at + 2)
                .is_none_or(|&c| c.is_whitespace() || c == ')')
    }

    fn text(&self, kind: TextKind, field: TextField, start: usize) -> Expr {
        let span = Span { start: offset(start), end: offset(self.cursor.at) };
        Expr::Text(TextLeaf { kind, field, span })
    }

    fn refusal(
        &self,
        fault: Fault,
        position: usize,
        expected: impl Into<Cow<'static, str>>,
    ) -> QueryError {
        QueryError {
            fault,
            position: offset(position),
            expected: expected.into(),
            found: self.cursor.found(position),
            suggestion: None,
        }
    }

    fn no_term(&self) -> QueryError {
        self.refusal(Fault::NoTerm, self.cursor.at, "term")
    }

    fn empty_value(&self, op: Op, position: usize) -> QueryError {
        let mut error = self.refusal(Fault::EmptyValue, position, "operator value");
        let name = op.name();
        error.suggestion = if self.cursor.chars.get(position) == Some(&'(') {
            Some(format!("({name}:a OR {name}:b)"))
        } else {
            let next_start = self.cursor.end_of(position, char::is_whitespace);
            let next = self.cursor.raw_value(next_start);
            let moved = next_start > position && !next.is_empty();
            if moved { suggest::bounded(format!("{name}:{next}")) } else { None }
        };
        error
    }

    /// The remedy for a token that a quote or bracket touches: one quoted text. A leading `-` and
    /// operator name stay outside.
    fn touching(&self, end: usize) -> Option<String> {
        let before = self.cursor.chars.get(..end)?;
        let start = before.iter().rposition(|&c| !is_value_char(c)).map_or(0, |at| at + 1);
        if start == end {
            return None;
        }
        let token = self.cursor.slice(start, self.cursor.end_of(end, |c| !c.is_whitespace()));
        let (sign, token) = token.strip_prefix('-').map_or(("", &*token), |rest| ("-", rest));
        let (op, text) = match token.split_once(':') {
            Some((name, rest)) if Op::from_name(name).is_some() => (format!("{name}:"), rest),
            _ => (String::new(), token),
        };
        suggest::bounded(format!("{sign}{op}{}", print::quoted(text)))
    }
}
