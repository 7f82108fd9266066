//! Lines of results gathered by step, and cells of tables made of them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Fallible;

/// Stands where nothing was measured.
pub(crate) const NONE: &str = "–";

/// All lines, by step.
pub(crate) struct Results(BTreeMap<String, Vec<Value>>);

impl Results {
    /// Reads lines of JSON.
    pub(crate) fn read(text: &str) -> Fallible<Self> {
        let mut steps: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let line: Value = serde_json::from_str(line)?;
            let step = line["step"].as_str().ok_or("a line without a step")?.to_owned();
            steps.entry(step).or_default().push(line);
        }
        Ok(Self(steps))
    }

    /// Times a step was run.
    pub(crate) fn runs(&self, step: &str) -> usize {
        self.0.get(step).map_or(0, Vec::len)
    }

    /// Median over the runs of a step (the lower of two); `place` is a JSON pointer.
    pub(crate) fn number(&self, step: &str, place: &str) -> Option<f64> {
        let mut values: Vec<f64> =
            self.0.get(step)?.iter().filter_map(|line| line.pointer(place)?.as_f64()).collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len().checked_sub(1)? / 2;
        values.get(middle).copied()
    }

    /// Text or number of the latest run, as it is shown.
    pub(crate) fn text(&self, step: &str, place: &str) -> String {
        let value = self.0.get(step).and_then(|lines| lines.last()?.pointer(place));
        match value {
            Some(Value::String(text)) => text.replace('|', "/"),
            Some(Value::Null) | None => NONE.to_owned(),
            Some(other) => other.to_string(),
        }
    }

    /// Matches of each query, of the latest run.
    pub(crate) fn totals(&self, step: &str) -> Vec<u64> {
        let line = self.0.get(step).and_then(|lines| lines.last());
        let totals = line.and_then(|line| line["totals"].as_array());
        totals.map(|t| t.iter().filter_map(Value::as_u64).collect()).unwrap_or_default()
    }

    /// Messages per second.
    pub(crate) fn rate(&self, step: &str) -> Option<f64> {
        ratio(self.number(step, "/messages"), self.number(step, "/seconds"))
    }
}

/// One by the other, when both were measured.
pub(crate) fn ratio(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    let other = other.filter(|other| *other > 0.0)?;
    Some(one? / other)
}

/// A number with as many digits behind the point.
pub(crate) fn cell(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| format!("{value:.digits$}"))
}

/// Bytes in MB, 10^6.
pub(crate) fn megabytes(bytes: Option<f64>) -> String {
    cell(bytes.map(|bytes| bytes / 1e6), 0)
}

/// One row of a table.
pub(crate) fn row(cells: &[&str]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// Head of a table: the first column is text, the others are numbers.
pub(crate) fn head(cells: &[&str]) -> String {
    let rule: Vec<&str> = (0..cells.len()).map(|at| if at == 0 { "---" } else { "---:" }).collect();
    row(cells) + &row(&rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_the_median_of_its_runs_or_a_dash() {
        let text = "{\"step\":\"a\",\"seconds\":3.0,\"messages\":6,\"warm\":{\"p50_ms\":1.5}}\n\n\
                    {\"step\":\"a\",\"seconds\":1.0,\"messages\":6}\n\
                    {\"step\":\"a\",\"seconds\":2.0,\"messages\":6}\n";
        let results = Results::read(text).unwrap();
        assert_eq!(results.runs("a"), 3);
        assert_eq!(results.number("a", "/warm/p50_ms"), Some(1.5));
        assert_eq!(results.rate("a"), Some(3.0));
        assert_eq!(cell(results.rate("b"), 1), "–");
        assert_eq!(ratio(Some(1.0), Some(0.0)), None);
        assert!(Results::read("{}").is_err());
    }
}
