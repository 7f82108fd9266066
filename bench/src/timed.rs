//! What `/usr/bin/time -v` measured of a process.

use std::path::Path;

use crate::Fallible;
use crate::results::{Figures, pairs, rounded};

/// Wall clock, CPU and peak memory, together with further figures.
pub(crate) fn read(file: &Path, more: &[&str]) -> Fallible<Figures> {
    let mut figures = parse(&std::fs::read_to_string(file)?)?;
    figures.extend(pairs(more)?);
    Ok(figures)
}

fn parse(text: &str) -> Fallible<Figures> {
    // The label of the wall clock has colons of its own; no value is followed by a blank.
    let value = |label: &str| {
        let line = text.lines().map(str::trim).find(|line| line.starts_with(label));
        let value = line.and_then(|line| line.rsplit(' ').next());
        value.ok_or_else(|| format!("/usr/bin/time said no {label:?}"))
    };
    if value("Exit status")? != "0" {
        return Err("the process failed".into());
    }
    let mut wall = 0.0;
    for part in value("Elapsed (wall clock) time")?.split(':') {
        wall = wall * 60.0 + part.parse::<f64>()?;
    }
    let user: f64 = value("User time (seconds)")?.parse()?;
    let system: f64 = value("System time (seconds)")?.parse()?;
    let rss_kib: u64 = value("Maximum resident set size (kbytes)")?.parse()?;
    let mut figures = Figures::new();
    figures.insert("seconds".into(), wall.into());
    figures.insert("cpu_seconds".into(), rounded(user + system).into());
    figures.insert("peak_rss_bytes".into(), (rss_kib << 10).into());
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_gnu_time_writes() {
        let text = "\tCommand being timed: \"notmuch new\"\n\tUser time (seconds): 61.25\n\
            \tSystem time (seconds): 2.50\n\tPercent of CPU this job got: 99%\n\
            \tElapsed (wall clock) time (h:mm:ss or m:ss): 1:02:03.50\n\
            \tMaximum resident set size (kbytes): 1000\n\tExit status: 0\n";
        let figures = parse(text).unwrap();
        assert_eq!(figures["seconds"], 3723.5);
        assert_eq!(figures["cpu_seconds"], 63.75);
        assert_eq!(figures["peak_rss_bytes"], 1_024_000);
        assert!(parse(&text.replace("status: 0", "status: 1")).is_err());
        assert!(parse("").is_err());
    }
}
