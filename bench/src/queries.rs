//! The queries, each in the language of every program.

use std::str::FromStr;

use crate::Fallible;

/// Whose language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    Native,
    Fts5,
    Notmuch,
    Mu,
}

impl FromStr for Column {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Ok(match name {
            "native" => Self::Native,
            "fts5" => Self::Fts5,
            "notmuch" => Self::Notmuch,
            "mu" => Self::Mu,
            _ => return Err(format!("{name} is none of native, fts5, notmuch, mu")),
        })
    }
}

/// All queries in one language, in the order of the file.
pub(crate) fn of(column: Column) -> Fallible<Vec<String>> {
    let text = match std::env::var_os("BENCH_QUERIES") {
        Some(path) => std::fs::read_to_string(path)?,
        None => include_str!("../queries.txt").to_owned(),
    };
    parse(&text, column)
}

fn parse(text: &str, column: Column) -> Fallible<Vec<String>> {
    let mut queries = Vec::new();
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let forms: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, _, _, _] = forms[..] else {
            return Err(format!("not four forms: {line}").into());
        };
        queries.push(forms[column as usize].to_owned());
    }
    Ok(queries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_queries_of_which_each_is_understood() {
        let native = of(Column::Native).unwrap();
        assert_eq!(native.len(), 30);
        for query in native {
            let parsed = postrider::query::parse(&query, &Default::default());
            assert!(parsed.is_ok(), "{query}: {parsed:?}");
        }
        for column in ["fts5", "notmuch", "mu"] {
            assert_eq!(of(column.parse().unwrap()).unwrap().len(), 30);
        }
        assert!(parse("a | b", Column::Native).is_err());
    }
}
