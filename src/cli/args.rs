//! The command line as clap reads it: commands, options, help. Nothing is done here.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::app::MAILBOX_DEFAULT;
use crate::ids::{MessageId, ThreadId};
use crate::search::Sort;
use crate::search::request::Mode;

use super::args_lifecycle::{
    Backup, Embed, Erase, Hold, Label, Log, Mark, ModelArgs, Receipt, Restore, Verify,
};
use super::words;

const EXIT_CODES: &str = "\
Exit codes:
  0    done (a search that finds nothing is done too)
  1    done, but something failed: see the account
  2    the command, the query or an argument is wrong
  3    the surroundings: directory in use, disk, no server
  4    a fault of Postrider
  130  interrupted; what was taken in stays

A server that holds the data directory is found and used by itself.

Examples:
  postrider import ~/Mail
  postrider search from:ada boiler
  postrider serve";

/// Mail search beside your mail.
#[derive(Debug, Parser)]
#[command(name = "postrider", version, about, after_help = EXIT_CODES)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
pub(super) struct Global {
    /// Where mail and indexes are kept [default: the platform's data directory]
    #[arg(long, global = true, env = "POSTRIDER_DATA", value_name = "DIR")]
    pub(super) data_dir: Option<PathBuf>,
    /// Settings in TOML; --data-dir goes before its data_dir
    #[arg(long, global = true, env = "POSTRIDER_CONFIG", value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Answer in JSON, for programs
    #[arg(long, global = true)]
    pub(super) json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Take in mail from mbox files, Maildirs, message files and Takeout, also gzipped
    ///
    /// What lies at a path is told by its content. Running the same import again continues it:
    /// what is there already is not stored twice, but gets folders and labels that are new.
    /// Nothing is changed where the mail comes from.
    #[command(after_help = "Examples:
  postrider import ~/Mail
  postrider import --mailbox work --label old archive.mbox
  postrider import inbox.mbox --search 'from:ada boiler'
  postrider --json import takeout.mbox.gz")]
    Import(Import),
    /// Find messages
    ///
    /// Words are joined by blanks and must all be found; operators such as from:, subject:,
    /// after:, has:attachment, in: and label: narrow the search, a leading - leaves out, OR gives
    /// alternatives. docs/query.md has all of it.
    #[command(after_help = "Examples:
  postrider search boiler quote
  postrider search from:ada after:2025-01-01 -label:done --sort newest
  postrider search '\"rain cap\" OR chimney' --limit 50 --json")]
    Search(Search),
    /// Show one message: headers, text, attachments
    #[command(after_help = "Examples:
  postrider show msg_01J9Z3K8V4QW7X2M5N6P8R0T1V
  postrider show msg_01J9Z3K8V4QW7X2M5N6P8R0T1V --raw > message.eml")]
    Show(Show),
    /// Show one thread: who takes part, its messages, what is unread
    #[command(after_help = "Examples:
  postrider thread thr_01J9Z3K8V4QW7X2M5N6P8R0T1V
  postrider thread thr_01J9Z3K8V4QW7X2M5N6P8R0T1V --json")]
    Thread(Thread),
    /// Tell how the mailboxes are: messages, positions, sizes on disk
    #[command(after_help = "Examples:
  postrider status
  postrider status --json")]
    Status,
    /// Build the indexes again from the log of mail
    ///
    /// The old indexes serve until the new ones are complete, and are then kept until the next
    /// rebuild. One that was interrupted goes on where it was. Mail itself is not touched.
    #[command(after_help = "Examples:
  postrider rebuild
  postrider rebuild text --mailbox work
  postrider rebuild --all --max-rate 2000
  postrider rebuild --rollback")]
    Rebuild(Rebuild),
    /// Write the content of the indexes as text, the same for the same mail
    #[command(after_help = "Examples:
  postrider dump > before.txt
  postrider dump --mailbox work | sha256sum")]
    Dump(OfMailbox),
    /// Add and remove labels of many messages
    #[command(after_help = "Examples:
  postrider label add garden -- from:ada boiler
  postrider label remove old --dry-run -- before:2010-01-01
  postrider label undo 48213")]
    Label(Label),
    /// Mark messages as read, starred, hidden and so on
    ///
    /// Quarantined mail is found only when asked for; hidden and throttled mail never.
    #[command(after_help = "Examples:
  postrider mark read -- list:announce.example.org
  postrider mark hidden --dry-run -- from:spam@example.net")]
    Mark(Mark),
    /// Make messages vanish: for every search at once, from the disk soon after
    ///
    /// Their keys are destroyed first, so that nobody can read what is left in files or backups of
    /// the log; then the indexes are rewritten without them and searched for traces. The receipt
    /// tells. What a hold covers stays.
    #[command(after_help = "Examples:
  postrider erase --message msg_01J9Z3K8V4QW7X2M5N6P8R0T1V
  postrider erase --counterparty ada@example.org --dry-run
  postrider erase --query 'before:2005-01-01' --yes
  postrider erase --everything --mailbox old")]
    Erase(Erase),
    /// Keep messages from being erased
    #[command(after_help = "Examples:
  postrider hold set --reason 'case 12/2026' --thread thr_01J9Z3K8V4QW7X2M5N6P8R0T1V
  postrider hold list
  postrider hold release hld_01J9Z3K8V4QW7X2M5N6P8R0T1V")]
    Hold(Hold),
    /// Check everything that is stored against itself
    ///
    /// The chain and the seals of the log, the content of every message, the keys, the indexes and
    /// their counters. Names the first bad event. Nothing is changed without --repair.
    #[command(after_help = "Examples:
  postrider verify
  postrider verify --mailbox work --repair")]
    Verify(Verify),
    /// Rewrite all stores without what was let go, and free the space
    #[command(after_help = "Example:
  postrider compact")]
    Compact,
    /// Copy mail, log and keys into a directory, also while a server is at work
    ///
    /// A directory that holds an earlier backup is brought up to date. Indexes are not copied; they
    /// are built when the backup is restored. Whoever has a backup can read the mail in it.
    #[command(after_help = "Example:
  postrider backup /media/disk/mail-backup")]
    Backup(Backup),
    /// Put a backup into an empty data directory and build the indexes
    ///
    /// Erasures that are younger than the backup are applied again: name the old data directory, or
    /// a file that `postrider receipt export` wrote.
    #[command(after_help = "Examples:
  postrider --data-dir fresh restore /media/disk/mail-backup
  postrider --data-dir fresh restore /media/disk/mail-backup --receipts receipts.json")]
    Restore(Restore),
    /// Look at the log: events as lines of JSON, without anything that a person wrote
    #[command(after_help = "Examples:
  postrider log tail
  postrider log show 48213
  postrider log stats")]
    Log(Log),
    /// Show what erasures took, and the proof
    #[command(after_help = "Examples:
  postrider receipt list
  postrider receipt show rcp_01J9Z3K8V4QW7X2M5N6P8R0T1V")]
    Receipt(Receipt),
    /// Give messages the vectors that searches by meaning need
    ///
    /// A server does so by itself.
    #[command(after_help = "Examples:
  postrider embed run
  postrider embed run --mailbox work --limit 10000
  postrider embed status
  postrider embed estimate
  postrider embed rollback")]
    Embed(Embed),
    /// Take in a model that does not come with the program, checked before it is used
    ///
    /// A sentence model or a cross-encoder of the BERT or XLM-R family, or a static table, as
    /// sentence-transformers, transformers and model2vec write it.
    #[command(after_help = "Examples:
  postrider model add ~/Downloads/multilingual-e5-small
  postrider model list")]
    Model(ModelArgs),
    /// Say which addresses are yours: mail from them counts as sent
    ///
    /// The list replaces the one before.
    #[command(after_help = "Example:
  postrider own-address ada@example.org ada@work.example")]
    OwnAddress(OwnAddress),
    /// Serve search over HTTP until interrupted
    ///
    /// Writes server.json into the data directory, by which the other commands find it.
    #[command(after_help = "Examples:
  postrider serve
  postrider serve --listen 127.0.0.1:8080")]
    Serve(Serve),
}

#[derive(Debug, Args)]
pub(super) struct OfMailbox {
    /// Name or identity of the mailbox
    #[arg(long, default_value = MAILBOX_DEFAULT, value_name = "NAME")]
    pub(super) mailbox: String,
}

#[derive(Debug, Args)]
pub(super) struct Import {
    /// Files and directories of mail
    #[arg(required = true, value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) of: OfMailbox,
    /// Put everything into this folder instead of the one the source names
    #[arg(long, value_name = "F")]
    pub(super) folder: Option<String>,
    /// Label every message; may be repeated
    #[arg(long = "label", value_name = "L")]
    pub(super) labels: Vec<String>,
    /// Name of the source, for placements [default: mbox, maildir, eml or takeout, as it is found]
    #[arg(long, value_name = "S")]
    pub(super) source: Option<String>,
    /// Search the mailbox afterwards, as `postrider search` does
    #[arg(long, value_name = "QUERY")]
    pub(super) search: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Search {
    /// The query; several words are joined by blanks
    #[arg(value_name = "QUERY", value_parser = words::unmark)]
    pub(super) query: Vec<String>,
    #[command(flatten)]
    pub(super) of: OfMailbox,
    /// Messages to show
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) limit: u32,
    /// What comes first [default: relevance with words in the query, else newest]
    #[arg(long)]
    pub(super) sort: Option<SortBy>,
    /// By words, by meaning, or by both
    #[arg(long, default_value = "hybrid")]
    pub(super) mode: SearchMode,
    /// Find quarantined mail too
    #[arg(long)]
    pub(super) include_quarantined: bool,
    /// Leave the order to the fusion, also where the settings name a model that ranks again
    #[arg(long)]
    pub(super) no_rerank: bool,
    /// Mark the words found in the text shown
    #[arg(long)]
    pub(super) highlight: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum SearchMode {
    /// By the words
    Keyword,
    /// By what is meant
    Semantic,
    /// By both
    Hybrid,
}

impl From<SearchMode> for Mode {
    fn from(mode: SearchMode) -> Self {
        match mode {
            SearchMode::Keyword => Self::Keyword,
            SearchMode::Semantic => Self::Semantic,
            SearchMode::Hybrid => Self::Hybrid,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum SortBy {
    /// Best match
    Relevance,
    /// Latest first
    Newest,
    /// Earliest first
    Oldest,
}

impl From<SortBy> for Sort {
    fn from(sort: SortBy) -> Self {
        match sort {
            SortBy::Relevance => Self::Relevance,
            SortBy::Newest => Self::Newest,
            SortBy::Oldest => Self::Oldest,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct Show {
    /// Identifier of the message, as a search gives it
    #[arg(value_name = "MSG_ID")]
    pub(super) id: MessageId,
    #[command(flatten)]
    pub(super) of: OfMailbox,
    /// The message as it came in, byte for byte (made harmless on a terminal)
    #[arg(long, conflicts_with = "json")]
    pub(super) raw: bool,
    /// Only what its author wrote anew, without quotes
    #[arg(long, conflicts_with = "raw")]
    pub(super) new_text: bool,
}

#[derive(Debug, Args)]
pub(super) struct Thread {
    /// Identifier of the thread, as `show` and `search --json` give it
    #[arg(value_name = "THREAD_ID")]
    pub(super) id: ThreadId,
    #[command(flatten)]
    pub(super) of: OfMailbox,
}

#[derive(Debug, Args)]
pub(super) struct Rebuild {
    /// Which indexes
    #[arg(default_value = "all", value_name = "PART")]
    pub(super) parts: RebuildParts,
    /// Every mailbox
    #[arg(long)]
    pub(super) all: bool,
    /// Name or identity of the mailbox
    #[arg(long, default_value = MAILBOX_DEFAULT, conflicts_with = "all", value_name = "NAME")]
    pub(super) mailbox: String,
    /// Events per second at most, to leave the machine to others [default: no limit]
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "N")]
    pub(super) max_rate: u32,
    /// Do not compare the new indexes with the old ones, which takes as long again
    #[arg(long)]
    pub(super) unverified: bool,
    /// Let the indexes from before the last rebuild serve again
    #[arg(long)]
    pub(super) rollback: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum RebuildParts {
    /// Catalog and text index
    All,
    /// The catalog: people, threads, labels, dates
    Catalog,
    /// The text index
    Text,
}

#[derive(Debug, Args)]
pub(super) struct OwnAddress {
    /// All addresses of the owner
    #[arg(required = true, value_name = "ADDRESS")]
    pub(super) addresses: Vec<String>,
    #[command(flatten)]
    pub(super) of: OfMailbox,
}

#[derive(Debug, Args)]
pub(super) struct Serve {
    /// Address to listen on [default: listen of the settings, else 127.0.0.1:7700]
    #[arg(long, value_name = "ADDR")]
    pub(super) listen: Option<SocketAddr>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound_and_every_command_has_examples() {
        Arguments::command().debug_assert();
        for command in Arguments::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.starts_with("Example"), "{}", command.get_name());
            assert!(command.get_about().is_some(), "{}", command.get_name());
        }
    }
}
