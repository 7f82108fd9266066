//! Tables of figures and ratios in Markdown, of what was measured and nothing else.

use std::path::Path;

use crate::Fallible;
use crate::queries::{self, Column};
use crate::report_tables::{NONE, Results, cell, head, megabytes, ratio, row};

/// Reads a file of results and writes its tables.
pub(crate) fn markdown(file: &Path) -> Fallible<String> {
    let results = Results::read(&std::fs::read_to_string(file)?)?;
    let mut text = machine(&results);
    text += &targets(&results);
    for (source, title, engines) in [
        ("mbox", "Import of mboxes", &["postrider", "fts5"][..]),
        ("maildir", "Import of a Maildir", &["postrider", "notmuch", "mu", "fts5"][..]),
    ] {
        text += &import(&results, source, title, engines);
    }
    text += &queries(&results);
    text += &replay(&results);
    text += &matches(&results)?;
    Ok(text)
}

fn machine(results: &Results) -> String {
    let mut text = "## Machine\n\n".to_owned() + &head(&["what", "value"]);
    for (name, step, place) in [
        ("date", "machine", "/date"),
        ("commit", "machine", "/commit"),
        ("processor", "machine", "/cpu"),
        ("processors", "machine", "/cores"),
        ("memory, kB", "machine", "/memory_kb"),
        ("kernel", "machine", "/kernel"),
        ("file system", "machine", "/filesystem"),
        ("profile", "machine", "/profile"),
        ("load before", "machine", "/load"),
        ("rustc", "machine", "/rustc"),
        ("notmuch", "machine", "/notmuch"),
        ("mu", "machine", "/mu"),
        ("SQLite", "query-fts5", "/sqlite"),
    ] {
        text += &row(&[name, &results.text(step, place)]);
    }
    text
}

struct Target {
    figure: &'static str,
    wanted: &'static str,
    measured: Option<f64>,
    digits: usize,
    holds: fn(f64) -> bool,
}

fn targets(results: &Results) -> String {
    let rate = |step| results.rate(step);
    let faster = |step, than| ratio(rate(step), rate(than));
    let rss = |step| results.number(step, "/peak_rss_bytes").map(|bytes| bytes / 1e6);
    let disk = |import, source| {
        ratio(results.number(import, "/disk_bytes"), results.number(source, "/source_bytes"))
    };
    let target = |figure, wanted, measured, digits, holds| Target {
        figure,
        wanted,
        measured,
        digits,
        holds,
    };
    let (mbox, maildir) = ("import-mbox-postrider", "import-maildir-postrider");
    let all = [
        target(
            "import, Maildir: rate ÷ notmuch's",
            "≥ 10",
            faster(maildir, "import-maildir-notmuch"),
            1,
            |x| x >= 10.0,
        ),
        target(
            "import, Maildir: rate ÷ FTS5's",
            "> 1",
            faster(maildir, "import-maildir-fts5"),
            2,
            |x| x > 1.0,
        ),
        target("import, mbox: rate ÷ FTS5's", "> 1", faster(mbox, "import-mbox-fts5"), 2, |x| {
            x > 1.0
        }),
        target("import, Maildir: peak memory, MB", "≤ 400", rss(maildir), 0, |x| x <= 400.0),
        target("import, mbox: peak memory, MB", "≤ 400", rss(mbox), 0, |x| x <= 400.0),
        target("Maildir: disk ÷ raw size", "≤ 1", disk(maildir, "source-maildir"), 2, |x| {
            x <= 1.0
        }),
        target("mbox: disk ÷ raw size", "≤ 1", disk(mbox, "source-mbox"), 2, |x| x <= 1.0),
        target(
            "query over HTTP: p95 of warm runs, ms",
            "≤ 200",
            results.number("query-http", "/warm/p95_ms"),
            2,
            |x| x <= 200.0,
        ),
        target("replay: rate ÷ bare Tantivy's", "≥ 0.7", faster("rebuild", "tantivy"), 2, |x| {
            x >= 0.7
        }),
    ];
    let mut text =
        "\n## Targets\n\n".to_owned() + &head(&["figure", "target", "measured", "holds"]);
    for Target { figure, wanted, measured, digits, holds } in all {
        let verdict = measured.map_or(NONE, |x| if holds(x) { "yes" } else { "no" });
        text += &row(&[figure, wanted, &cell(measured, digits), verdict]);
    }
    text
}

fn import(results: &Results, source: &str, title: &str, engines: &[&str]) -> String {
    let at = format!("source-{source}");
    let raw = results.number(&at, "/source_bytes");
    let mut text = format!("\n## {title}\n\n{} MB raw.\n\n", megabytes(raw));
    text += &head(&[
        "program",
        "runs",
        "messages",
        "stored",
        "wall, s",
        "CPU, s",
        "messages/s",
        "peak memory, MB",
        "disk, MB",
        "disk ÷ raw",
        "Postrider's rate ÷ this",
    ]);
    let own = results.rate(&format!("import-{source}-postrider"));
    for engine in engines {
        let step = format!("import-{source}-{engine}");
        let number = |place| results.number(&step, place);
        text += &row(&[
            engine,
            &results.runs(&step).to_string(),
            &cell(number("/messages"), 0),
            &cell(number("/stored"), 0),
            &cell(number("/seconds"), 2),
            &cell(number("/cpu_seconds"), 2),
            &cell(results.rate(&step), 0),
            &megabytes(number("/peak_rss_bytes")),
            &megabytes(number("/disk_bytes")),
            &cell(ratio(number("/disk_bytes"), raw), 2),
            &cell(ratio(own, results.rate(&step)), 2),
        ]);
    }
    let fts5 = format!("import-{source}-fts5");
    let reading = cell(results.number(&fts5, "/reading_seconds"), 2);
    let distinct = megabytes(results.number(&fts5, "/stored_bytes"));
    text + &format!(
        "\nDistinct messages: {distinct} MB raw. Of FTS5's time, reading messages took {reading} s.\n"
    )
}

fn queries(results: &Results) -> String {
    let mut text = "\n## Queries\n\n".to_owned();
    text += &head(&["program", "runs", "p50, ms", "p95, ms", "most, ms", "Postrider's p50 ÷ this"]);
    for (title, step, place, own) in [
        ("Postrider over HTTP, warm", "query-http", "warm", "query-http"),
        ("FTS5 in process, warm", "query-fts5", "warm", "query-http"),
        ("Postrider over HTTP, first run", "query-http", "first", "query-http"),
        ("FTS5 in process, first run", "query-fts5", "first", "query-http"),
        ("`postrider search`", "query-cli-postrider", "process", "query-cli-postrider"),
        ("`notmuch search`", "query-cli-notmuch", "process", "query-cli-postrider"),
        (
            "`notmuch search --output=messages`",
            "query-cli-notmuch-messages",
            "process",
            "query-cli-postrider",
        ),
        ("`mu find`", "query-cli-mu", "process", "query-cli-postrider"),
    ] {
        let number = |step, name| results.number(step, &format!("/{place}/{name}"));
        text += &row(&[
            title,
            &cell(number(step, "runs"), 0),
            &cell(number(step, "p50_ms"), 2),
            &cell(number(step, "p95_ms"), 2),
            &cell(number(step, "max_ms"), 2),
            &cell(ratio(number(own, "p50_ms"), number(step, "p50_ms")), 2),
        ]);
    }
    let server = megabytes(results.number("server", "/peak_rss_bytes"));
    text + &format!("\nPeak memory of the server: {server} MB.\n")
}

fn replay(results: &Results) -> String {
    let mut text = "\n## Replay\n\n".to_owned();
    text += &head(&["what", "runs", "messages", "wall, s", "messages/s", "peak memory, MB"]);
    for (title, step) in [
        ("rebuild of catalog and text", "rebuild"),
        ("bare Tantivy, messages in memory", "tantivy"),
    ] {
        text += &row(&[
            title,
            &results.runs(step).to_string(),
            &cell(results.number(step, "/messages"), 0),
            &cell(results.number(step, "/seconds"), 2),
            &cell(results.rate(step), 0),
            &megabytes(results.number(step, "/peak_rss_bytes")),
        ]);
    }
    let merged = cell(results.number("tantivy", "/seconds_with_merges"), 2);
    text + &format!(
        "\nThe rebuild waits for merges; the loop ends with its commit, its merges at {merged} s.\n"
    )
}

/// What each query matches: whether the programs were asked the same.
fn matches(results: &Results) -> Fallible<String> {
    let columns = ["count-postrider", "query-fts5", "count-notmuch", "count-mu"];
    let totals: Vec<Vec<u64>> = columns.iter().map(|step| results.totals(step)).collect();
    let mut text = "\n## Matches per query\n\n".to_owned();
    text += &head(&["query", "Postrider", "FTS5", "notmuch", "mu"]);
    for (at, query) in queries::of(Column::Native)?.iter().enumerate() {
        let cells: Vec<String> = totals
            .iter()
            .map(|one| one.get(at).map_or_else(|| NONE.to_owned(), u64::to_string))
            .collect();
        let query = format!("`{query}`");
        let mut cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        cells.insert(0, &query);
        text += &row(&cells);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_measurements_there_are_only_dashes() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("results.jsonl");
        std::fs::write(&file, "").unwrap();
        let text = markdown(&file).unwrap();
        assert!(text.contains("| import, Maildir: rate ÷ notmuch's | ≥ 10 | – | – |"), "{text}");
        std::fs::write(
            &file,
            "{\"step\":\"import-maildir-postrider\",\"seconds\":2.0,\"messages\":100}\n\
             {\"step\":\"import-maildir-notmuch\",\"seconds\":10.0,\"messages\":100}\n",
        )
        .unwrap();
        let text = markdown(&file).unwrap();
        assert!(text.contains("| import, Maildir: rate ÷ notmuch's | ≥ 10 | 5.0 | no |"), "{text}");
    }
}
