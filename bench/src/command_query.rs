//! The queries as one-shot processes: what a person at a prompt waits for.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Fallible;
use crate::latency::Latencies;
use crate::queries::{self, Column};
use crate::results::Figures;

/// What `mu find` exits with when nothing matches.
const MU_NO_MATCH: i32 = 4;

/// Wall time of each process from its start to its end, `runs` rounds over all queries.
pub(crate) fn latencies(
    column: Column,
    runs: usize,
    program: &str,
    arguments: &[&str],
) -> Fallible<Figures> {
    let queries = queries::of(column)?;
    let mut times = Latencies::default();
    for _ in 0..runs {
        for query in &queries {
            times.add(process(column, query, program, arguments)?.0);
        }
    }
    let mut figures = Figures::new();
    figures.insert("queries".into(), queries.len().into());
    figures.insert("process".into(), times.figures());
    Ok(figures)
}

/// What each query matches: the total of an answer in JSON, else the lines printed.
pub(crate) fn counts(column: Column, program: &str, arguments: &[&str]) -> Fallible<Figures> {
    let mut totals = Vec::new();
    for query in queries::of(column)? {
        let (_, output) = process(column, &query, program, arguments)?;
        totals.push(matches(&output.stdout));
    }
    let mut figures = Figures::new();
    figures.insert("totals".into(), json!(totals));
    Ok(figures)
}

fn matches(printed: &[u8]) -> u64 {
    let answer = serde_json::from_slice::<Value>(printed).unwrap_or_default();
    answer["total"].as_u64().unwrap_or_else(|| {
        printed.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count() as u64
    })
}

fn process(
    column: Column,
    query: &str,
    program: &str,
    arguments: &[&str],
) -> Fallible<(Duration, Output)> {
    let arguments = arguments.iter().map(|one| if *one == "{}" { query } else { one });
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    let began = Instant::now();
    let output = command.output().map_err(|e| format!("{program}: {e}"))?;
    let took = began.elapsed();
    let nothing = column == Column::Mu && output.status.code() == Some(MU_NO_MATCH);
    if !output.status.success() && !nothing {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("{program} {query}: {}: {}", output.status, why.trim()).into());
    }
    Ok((took, output))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_is_given_to_the_program_as_one_argument() {
        let figures = counts(Column::Native, "printf", &["%s\n", "{}"]).unwrap();
        assert_eq!(figures["totals"], json!(vec![1; 30]));
        assert_eq!(matches(b"{\"total\":7}\n"), 7);
        assert_eq!(matches(b""), 0);
        let figures = latencies(Column::Native, 2, "true", &[]).unwrap();
        assert_eq!(figures["process"]["runs"], 60);
        assert!(latencies(Column::Native, 1, "false", &[]).is_err());
    }
}
