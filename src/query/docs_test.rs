//! Every example of `docs/query.md` is what the page says it is.

use super::*;

const PAGE: &str = include_str!("../../docs/query.md");

fn read(q: &str) -> Result<Query, QueryError> {
    parse(q, &ParseOptions::default())
}

/// The part of the page under a heading, up to the next of its level.
fn section(heading: &str) -> &'static str {
    let start = PAGE.find(heading).unwrap_or_else(|| panic!("no heading {heading}"));
    let body = &PAGE[start + heading.len()..];
    body.find("\n## ").map_or(body, |end| &body[..end])
}

/// The cells of each row of the tables in a part of the page, heads left out.
fn rows(part: &str) -> Vec<Vec<&str>> {
    let lines: Vec<&str> = part.lines().collect();
    let mut rows = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let is_head = lines.get(i + 1).is_some_and(|next| next.starts_with("|---"));
        if line.starts_with('|') && !line.starts_with("|---") && !is_head {
            rows.push(line.trim_matches('|').split(" | ").map(str::trim).collect());
        }
    }
    rows
}

/// The text of a cell that is code.
fn code(cell: &str) -> &str {
    cell.strip_prefix('`')
        .and_then(|rest| rest.strip_suffix('`'))
        .unwrap_or_else(|| panic!("not code: {cell}"))
}

#[test]
fn examples_are_read() {
    let words = rows(section("\n## Words"));
    let operators = rows(section("\n## Operators"));
    assert!(words.len() >= 9 && operators.len() >= 40, "{} {}", words.len(), operators.len());
    let blocks: Vec<&str> = PAGE.split("```query\n").skip(1).collect();
    assert!(!blocks.is_empty());
    let examples = words
        .iter()
        .map(|row| code(row[0]))
        .chain(operators.iter().map(|row| code(row[1])))
        .chain(blocks.iter().map(|block| block.lines().next().unwrap_or_default()));
    for example in examples {
        read(example).unwrap_or_else(|error| panic!("{example}: {error}"));
    }
}

#[test]
fn every_operator_has_an_example_of_its_own() {
    let operators = rows(section("\n## Operators"));
    for op in operators::Op::ALL {
        let name = format!("`{}:`", op.name());
        let row = operators.iter().find(|row| row[0].trim_start_matches('|').trim() == name);
        let row = row.unwrap_or_else(|| panic!("{name} is missing"));
        assert!(code(row[1]).starts_with(&format!("{}:", op.name())), "{row:?}");
    }
}

#[test]
fn refusals_are_refused_where_the_page_says() {
    let refusals = rows(section("\n## Errors"));
    assert!(refusals.len() >= 15);
    for row in refusals {
        let q = code(row[0]);
        let error = read(q).err().unwrap_or_else(|| panic!("{q} was read"));
        assert_eq!(error.position.to_string(), row[1], "{q}");
        if let Some((_, remedy)) = row[2].split_once("; try ") {
            assert_eq!(error.suggestion.as_deref(), Some(code(remedy)), "{q}");
        }
    }
}

#[test]
fn canonical_forms_are_printed() {
    let forms = rows(section("\n## Canonical form"));
    assert!(forms.len() >= 4);
    for row in forms {
        let query = read(code(row[0])).unwrap_or_else(|error| panic!("{row:?}: {error}"));
        assert_eq!(query.to_string(), code(row[1]));
    }
}
