//! Figures as they are printed: one JSON object per line.

use serde_json::{Map, Value};

use crate::Fallible;

/// Figures of one step, without its name.
pub(crate) type Figures = Map<String, Value>;

/// `KEY=VALUE` as figures; what reads as a number is one.
pub(crate) fn pairs(pairs: &[&str]) -> Fallible<Figures> {
    let mut figures = Figures::new();
    for pair in pairs {
        let (key, value) = pair.split_once('=').ok_or_else(|| format!("{pair} is no KEY=VALUE"))?;
        let number = serde_json::from_str::<Value>(value).ok().filter(Value::is_number);
        figures.insert(key.to_owned(), number.unwrap_or_else(|| value.into()));
    }
    Ok(figures)
}

/// Highest resident memory of this process so far, bytes.
pub(crate) fn peak_rss_bytes() -> Fallible<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()).ok_or("no VmHWM in status")?;
    Ok(kib.parse::<u64>()? << 10)
}

/// Seconds with the digits that mean something.
pub(crate) fn rounded(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_numbers_where_they_read_as_one() {
        let figures = pairs(&["messages=12", "version=0.37", "cpu=a b=c", "commit=abc"]).unwrap();
        assert_eq!(figures["messages"], 12);
        assert_eq!(figures["version"], 0.37);
        assert_eq!(figures["cpu"], "a b=c");
        assert_eq!(figures["commit"], "abc");
        assert!(pairs(&["nothing"]).is_err());
        assert!(peak_rss_bytes().unwrap() > 1 << 16);
    }
}
