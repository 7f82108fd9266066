//! Benchmarks of Postrider beside notmuch, mu, SQLite FTS5 and bare Tantivy.
//!
//! `run.sh` does everything; each command here does one part and prints one line of JSON.

mod account;
mod command_query;
mod corpus;
mod embedding;
mod fts5;
mod http_query;
mod judged;
mod latency;
mod lifecycle;
mod maildir;
mod queries;
mod rebuild;
mod report;
mod report_tables;
mod results;
mod tantivy_loop;
mod timed;
mod tokenizers;
mod vectors;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use postrider::app::MAILBOX_DEFAULT;
use serde_json::{Map, Value};

/// The allocator of the program itself.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What can go wrong, for people.
type Fallible<T> = Result<T, Box<dyn Error>>;

const USAGE: &str = "\
postrider-bench [--step NAME] COMMAND

  maildir OUT N SOURCE...        write N distinct messages of mboxes as a Maildir (0: all)
  fts5-load SOURCE DB            load a source into SQLite FTS5
  fts5-query DB                  the queries against that, in process
  tantivy-loop SOURCE            index a source with Tantivy alone
  rebuild DATA_DIR [MAILBOX]     rebuild the projections of a mailbox, in process
  labels DATA_DIR [MAILBOX]      label every message and take it off again, in process
  search-during-rebuild DATA_DIR the queries alone, and while the mailbox is rebuilt
  many DATA_DIR N EACH           make N mailboxes of EACH synthetic messages
  cold DATA_DIR N                open a directory of many mailboxes; the first search in N of them
  vectors SOURCE SCRATCH N MODEL[,MODEL] [trees]
                                 an index of N passages of a source beside plain scans
  embedding SOURCE SCRATCH MODEL the whole way to vectors of a source beside the bare model
  judged SET SCRATCH MODEL       questions of a set in the layout of BEIR, in every mode
  http-query SERVER [MAILBOX]    the queries over one connection; SERVER is the data directory of
                                 a running server, or HOST:PORT with POSTRIDER_TOKEN set
  command-query COLUMN RUNS PROGRAM ARGUMENT...
                                 the queries as processes; {} stands for the query
  command-count COLUMN PROGRAM ARGUMENT...
                                 what each query matches: a total in JSON, or lines
  account FILE                   what `postrider --json import` said: READ STORED FAILED
  timed FILE KEY=VALUE...        what `/usr/bin/time -v -o FILE` measured
  note KEY=VALUE...              a line of these values
  report RESULTS                 tables in Markdown

Queries are those of the file named by BENCH_QUERIES, else the built-in bench/queries.txt.";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("postrider-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Fallible<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut step = None;
    if arguments.first().is_some_and(|first| first == "--step") {
        if arguments.len() < 2 {
            return Err(USAGE.into());
        }
        step = Some(arguments.remove(1));
        arguments.remove(0);
    }
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some((&command, rest)) = words.split_first() else { return Err(USAGE.into()) };
    let figures = match (command, rest) {
        ("maildir", [out, count, sources @ ..]) if !sources.is_empty() => {
            maildir::write(Path::new(out), count.parse()?, sources)?
        }
        ("fts5-load", [source, db]) => fts5::load(Path::new(source), Path::new(db))?,
        ("fts5-query", [db]) => fts5::query(Path::new(db))?,
        ("tantivy-loop", [source]) => tantivy_loop::run(Path::new(source))?,
        ("rebuild", [dir]) => rebuild::run(Path::new(dir), MAILBOX_DEFAULT)?,
        ("rebuild", [dir, mailbox]) => rebuild::run(Path::new(dir), mailbox)?,
        ("labels", [dir]) => lifecycle::labels(Path::new(dir), MAILBOX_DEFAULT)?,
        ("labels", [dir, mailbox]) => lifecycle::labels(Path::new(dir), mailbox)?,
        ("search-during-rebuild", [dir]) => {
            lifecycle::search_during_rebuild(Path::new(dir), MAILBOX_DEFAULT)?
        }
        ("many", [dir, count, each]) => {
            lifecycle::many(Path::new(dir), count.parse()?, each.parse()?)?
        }
        ("cold", [dir, count]) => lifecycle::cold(Path::new(dir), count.parse()?)?,
        ("vectors", [source, scratch, count, models]) => {
            vectors::run(Path::new(source), Path::new(scratch), count.parse()?, models, false)?
        }
        ("vectors", [source, scratch, count, models, trees]) if *trees == "trees" => {
            vectors::run(Path::new(source), Path::new(scratch), count.parse()?, models, true)?
        }
        ("embedding", [source, scratch, model]) => {
            embedding::run(Path::new(source), Path::new(scratch), model)?
        }
        ("judged", [set, scratch, model]) => {
            judged::run(Path::new(set), Path::new(scratch), model)?
        }
        ("http-query", [server]) => http_query::run(server, MAILBOX_DEFAULT)?,
        ("http-query", [server, mailbox]) => http_query::run(server, mailbox)?,
        ("command-query", [column, runs, program, arguments @ ..]) => {
            command_query::latencies(column.parse()?, runs.parse()?, program, arguments)?
        }
        ("command-count", [column, program, arguments @ ..]) => {
            command_query::counts(column.parse()?, program, arguments)?
        }
        ("timed", [file, pairs @ ..]) => timed::read(Path::new(file), pairs)?,
        ("note", pairs) if !pairs.is_empty() => results::pairs(pairs)?,
        ("account", [file]) => {
            println!("{}", account::line(Path::new(file))?);
            return Ok(());
        }
        ("report", [file]) => {
            print!("{}", report::markdown(Path::new(file))?);
            return Ok(());
        }
        _ => return Err(USAGE.into()),
    };
    let mut line = Map::new();
    line.insert("step".into(), step.as_deref().unwrap_or(command).into());
    line.extend(figures);
    println!("{}", Value::Object(line));
    Ok(())
}
