//! SQLite FTS5 by itself: the plain program that one would write instead.
//!
//! One process, one thread: read, insert, commit each 10,000 messages. The same reader, the same
//! five texts, and the same rule for copies as Postrider's.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Statement, params};

use crate::Fallible;
use crate::corpus::{self, Seen, Texts};
use crate::latency::{Latencies, RUNS, figures};
use crate::queries::{self, Column};
use crate::results::{Figures, peak_rss_bytes, rounded};

/// Messages per transaction.
const COMMIT_MESSAGES: u64 = 10_000;

/// The weights are Postrider's; a journal that is written ahead is the faster choice.
const TABLES: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    PRAGMA cache_size = -65536;
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY,
        message_id TEXT NOT NULL,
        date_ms INTEGER NOT NULL,
        sender TEXT NOT NULL
    );
    CREATE VIRTUAL TABLE mail USING fts5 (
        subject, participants, new, quoted, attachments,
        tokenize = 'unicode61 remove_diacritics 2'
    );
    INSERT INTO mail (mail, rank) VALUES ('rank', 'bm25(8.0, 4.0, 3.0, 1.0, 1.5)');
";

const INSERT_MESSAGE: &str =
    "INSERT INTO messages (id, message_id, date_ms, sender) VALUES (?1, ?2, ?3, ?4)";
const INSERT_TEXTS: &str = "
    INSERT INTO mail (rowid, subject, participants, new, quoted, attachments)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

/// Loads a source into a new database.
pub(crate) fn load(source: &Path, path: &Path) -> Fallible<Figures> {
    if path.exists() {
        return Err(format!("{} is there already", path.display()).into());
    }
    let began = Instant::now();
    let mut reading = Duration::ZERO;
    let (mut read, mut stored, mut stored_bytes) = (0_u64, 0_u64, 0_u64);
    let db = Connection::open(path)?;
    db.execute_batch(TABLES)?;
    let mut seen = Seen::default();
    db.execute_batch("BEGIN")?;
    corpus::each(source, |entry| {
        read += 1;
        let started = Instant::now();
        let message = corpus::message(&entry);
        reading += started.elapsed();
        if !seen.is_new(&message) {
            return Ok(true);
        }
        stored += 1;
        stored_bytes += message.raw_bytes;
        let id = i64::try_from(stored)?;
        let sender = message.from.first().map_or("", |from| from.address.as_str());
        db.prepare_cached(INSERT_MESSAGE)?.execute(params![
            id,
            message.message_id,
            message.date_ms,
            sender
        ])?;
        let Texts { subject, participants, new, quoted, attachments } = corpus::texts(&message);
        db.prepare_cached(INSERT_TEXTS)?.execute(params![
            id,
            subject,
            participants,
            new,
            quoted,
            attachments
        ])?;
        if stored.is_multiple_of(COMMIT_MESSAGES) {
            db.execute_batch("COMMIT; BEGIN")?;
        }
        Ok(true)
    })?;
    db.execute_batch("COMMIT")?;
    db.close().map_err(|(_, error)| error)?;
    let seconds = began.elapsed().as_secs_f64();
    let mut figures = Figures::new();
    figures.insert("messages".into(), read.into());
    figures.insert("stored".into(), stored.into());
    figures.insert("stored_bytes".into(), stored_bytes.into());
    figures.insert("seconds".into(), rounded(seconds).into());
    figures.insert("reading_seconds".into(), rounded(reading.as_secs_f64()).into());
    figures.insert("peak_rss_bytes".into(), peak_rss_bytes()?.into());
    figures.insert("disk_bytes".into(), std::fs::metadata(path)?.len().into());
    Ok(figures)
}

/// The ten best by bm25, and what a list of results shows of each besides a snippet. The index of
/// words is asked first and the table of messages for each row it gives.
const TOP: &str = "
    SELECT m.id, m.message_id, m.date_ms, m.sender, mail.subject
    FROM mail CROSS JOIN messages m ON m.id = mail.rowid
    WHERE mail MATCH ?1 ORDER BY mail.rank LIMIT 10";
const TOP_BETWEEN: &str = "
    SELECT m.id, m.message_id, m.date_ms, m.sender, mail.subject
    FROM mail CROSS JOIN messages m ON m.id = mail.rowid
    WHERE mail MATCH ?1
        AND m.date_ms >= unixepoch(?2) * 1000 AND m.date_ms < unixepoch(?3) * 1000
    ORDER BY mail.rank LIMIT 10";
const COUNT: &str = "SELECT count(*) FROM mail WHERE mail MATCH ?1";
const COUNT_BETWEEN: &str = "
    SELECT count(*) FROM mail CROSS JOIN messages m ON m.id = mail.rowid
    WHERE mail MATCH ?1
        AND m.date_ms >= unixepoch(?2) * 1000 AND m.date_ms < unixepoch(?3) * 1000";

/// Words, and the days between which they are looked for: `WORDS [@ FROM..TO]`.
struct Ask<'q> {
    words: &'q str,
    days: Option<(&'q str, &'q str)>,
}

impl<'q> Ask<'q> {
    fn read(query: &'q str) -> Fallible<Self> {
        let Some((words, days)) = query.split_once(" @ ") else {
            return Ok(Self { words: query, days: None });
        };
        let days = days.split_once("..").ok_or_else(|| format!("not FROM..TO: {days}"))?;
        Ok(Self { words, days: Some(days) })
    }

    fn statement<'d>(
        &self,
        db: &'d Connection,
        all: &str,
        between: &str,
    ) -> Fallible<Statement<'d>> {
        let mut statement = db.prepare(if self.days.is_some() { between } else { all })?;
        statement.raw_bind_parameter(1, self.words)?;
        if let Some((from, to)) = self.days {
            statement.raw_bind_parameter(2, from)?;
            statement.raw_bind_parameter(3, to)?;
        }
        Ok(statement)
    }
}

/// Time to make the statement ready and to fetch its rows.
pub(crate) fn query(path: &Path) -> Fallible<Figures> {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let db = Connection::open_with_flags(path, flags)?;
    db.execute_batch("PRAGMA cache_size = -65536; PRAGMA mmap_size = 1073741824;")?;
    let queries = queries::of(Column::Fts5)?;
    let asks = queries.iter().map(|q| Ask::read(q)).collect::<Fallible<Vec<_>>>()?;
    let (mut first, mut warm) = (Latencies::default(), Latencies::default());
    for run in 0..RUNS {
        for ask in &asks {
            let began = Instant::now();
            fetch(&db, ask).map_err(|e| format!("{}: {e}", ask.words))?;
            let times = if run == 0 { &mut first } else { &mut warm };
            times.add(began.elapsed());
        }
    }
    let totals = asks.iter().map(|ask| count(&db, ask)).collect::<Fallible<Vec<_>>>()?;
    let mut figures = figures(first, warm, totals);
    figures.insert("sqlite".into(), rusqlite::version().into());
    figures.insert("peak_rss_bytes".into(), peak_rss_bytes()?.into());
    Ok(figures)
}

/// What is shown of a hit: row, Message-ID, date, sender, subject.
type Hit = (i64, String, i64, String, String);

fn fetch(db: &Connection, ask: &Ask<'_>) -> Fallible<Vec<Hit>> {
    let mut statement = ask.statement(db, TOP, TOP_BETWEEN)?;
    let (mut rows, mut top) = (statement.raw_query(), Vec::with_capacity(10));
    while let Some(row) = rows.next()? {
        top.push((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?));
    }
    Ok(top)
}

fn count(db: &Connection, ask: &Ask<'_>) -> Fallible<u64> {
    let mut statement = ask.statement(db, COUNT, COUNT_BETWEEN)?;
    let mut rows = statement.raw_query();
    let row = rows.next()?.ok_or("a count without a row")?;
    Ok(u64::try_from(row.get::<_, i64>(0)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_load_once_each_and_every_query_is_understood() {
        let dir = tempfile::tempdir().unwrap();
        let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples");
        // samples/README.md: 22 messages, one of them in two folders.
        let figures = load(&samples.join("maildir"), &dir.path().join("maildir.db")).unwrap();
        assert_eq!((&figures["messages"], &figures["stored"]), (&22.into(), &21.into()));
        let (samples, path) = (samples.join("archive.mbox"), dir.path().join("mail.db"));
        load(&samples, &path).unwrap();
        assert!(load(&samples, &path).is_err(), "nothing is loaded twice");
        assert_eq!(query(&path).unwrap()["totals"].as_array().unwrap().len(), 30);
        let db = Connection::open(&path).unwrap();
        let ask = |query| count(&db, &Ask::read(query).unwrap()).unwrap();
        let all = ask("boiler");
        assert!(all > 2);
        assert_eq!(ask("boiler @ 2023-01-01..2027-01-01"), all);
        assert_eq!(ask("boiler @ 2020-01-01..2021-01-01"), 0);
        assert_eq!(fetch(&db, &Ask::read("boiler").unwrap()).unwrap().len() as u64, all.min(10));
    }
}
