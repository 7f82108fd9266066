//! Messages found, laid out for people: date, author and subject; folders, labels and the
//! identifier; a line of the text.

use console::measure_text_width;

use crate::search::{Hit, SearchResponse};

use super::count::counted;
use super::output::Output;
use super::safe;

/// Columns of the author.
const AUTHOR_WIDTH: usize = 24;
/// Columns before the author: the date and two blanks.
const INDENT: usize = 18;

/// A whole answer.
pub(super) fn answer(answer: &SearchResponse, out: Output) -> String {
    let mut text = String::new();
    for hit in &answer.hits {
        text.push_str(&hit_lines(hit, out));
        text.push('\n');
    }
    let (shown, total) = (answer.hits.len() as u64, answer.total);
    text.push_str(&match (shown, total) {
        (_, 0) => "nothing found".to_owned(),
        (shown, total) if shown == total => counted(total, "message"),
        (shown, total) => format!("{shown} of {}", counted(total, "message")),
    });
    text.push('\n');
    for note in &answer.notes {
        text.push_str(&out.faint(&format!("note: {}", safe::line(note))));
        text.push('\n');
    }
    text
}

fn hit_lines(hit: &Hit, out: Output) -> String {
    let author = if hit.from.name.is_empty() { &hit.from.address } else { &hit.from.name };
    let author = pad(&cut(&safe::line(author), AUTHOR_WIDTH), AUTHOR_WIDTH);
    let room =
        out.width.map_or(usize::MAX, |w| w.saturating_sub(INDENT + AUTHOR_WIDTH + 2).max(20));
    let subject = cut(&safe::line(hit.subject.as_deref().unwrap_or("(no subject)")), room);
    let mut text = format!("{}  {author}  {}\n", local(&hit.date), out.bold(&subject));
    let indent = " ".repeat(INDENT);
    text.push_str(&format!(
        "{indent}{}  {}\n",
        out.green(&chips(hit)),
        out.faint(&hit.message_id.to_string())
    ));
    let room = out.width.map_or(usize::MAX, |width| width.saturating_sub(INDENT).max(20));
    let snippet = snippet(&hit.snippet, hit.highlights.as_deref().unwrap_or(&[]), room, out);
    if !snippet.trim().is_empty() {
        text.push_str(&format!("{indent}{snippet}\n"));
    }
    text
}

fn chips(hit: &Hit) -> String {
    let mut chips: Vec<String> = hit
        .folders
        .iter()
        .chain(&hit.labels)
        .map(|name| format!("[{}]", safe::line(name)))
        .collect();
    match hit.attachments {
        0 => {}
        1 => chips.push("1 attachment".into()),
        many => chips.push(format!("{many} attachments")),
    }
    if hit.quarantined {
        chips.push("quarantined".into());
    }
    chips.join(" ")
}

/// The snippet with the words found marked: bold on a terminal, else between asterisks.
fn snippet(text: &str, highlights: &[(u32, u32)], room: usize, out: Output) -> String {
    // Replacement is character by character, so places stay right.
    let safe: Vec<char> = safe::line(text).chars().collect();
    let end = fitting(&safe, room);
    let mut marked = String::new();
    let mut at = 0;
    for (start, stop) in highlights {
        let (start, stop) = ((*start as usize).min(end), (*stop as usize).min(end));
        if start < at || start >= stop {
            continue;
        }
        marked.extend(&safe[at..start]);
        let word: String = safe[start..stop].iter().collect();
        if out.colour {
            marked.push_str(&out.bold(&word));
        } else {
            marked.push_str(&format!("*{word}*"));
        }
        at = stop;
    }
    marked.extend(&safe[at..end]);
    if end < safe.len() {
        marked.push('…');
    }
    marked
}

/// How many of the characters fit, with room for an ellipsis.
fn fitting(chars: &[char], room: usize) -> usize {
    let mut width = 0;
    let mut buffer = [0; 4];
    for (at, c) in chars.iter().enumerate() {
        width += measure_text_width(c.encode_utf8(&mut buffer));
        if width > room.saturating_sub(1) {
            return at;
        }
    }
    chars.len()
}

/// The text in at most `width` columns.
pub(super) fn cut(text: &str, width: usize) -> String {
    if measure_text_width(text) <= width {
        return text.to_owned();
    }
    let chars: Vec<char> = text.chars().collect();
    chars[..fitting(&chars, width)].iter().collect::<String>() + "…"
}

/// The text in at least `width` columns.
pub(super) fn pad(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(measure_text_width(text));
    format!("{text}{}", " ".repeat(missing))
}

/// A time of ours, short, in the zone of the person who looks.
pub(super) fn local(rfc3339: &str) -> String {
    rfc3339.parse::<jiff::Timestamp>().map_or_else(
        |_| safe::line(rfc3339),
        |time| time.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Output = Output { json: false, colour: false, width: None };

    #[test]
    fn words_found_are_marked_where_they_are() {
        assert_eq!(snippet("a\u{1b}b cap", &[(4, 7)], 80, PLAIN), "a\u{fffd}b *cap*");
        assert_eq!(snippet("one two three", &[(4, 7), (8, 13)], 8, PLAIN), "one *two*…");
        let colour = Output { colour: true, ..PLAIN };
        assert_eq!(snippet("a cap", &[(2, 5)], 80, colour), "a \u{1b}[1mcap\u{1b}[0m");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(cut("日本語のメール", 7), "日本語…");
        assert_eq!(pad("日本", 6), "日本  ");
        assert_eq!(cut("short", 7), "short");
    }
}
