//! Arguments of the commands that change, erase, check and copy what is stored.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::args::OfMailbox;
use crate::ids::{HoldId, MessageId, ReceiptId, ThreadId};

#[derive(Debug, Args)]
pub(super) struct Label {
    #[command(subcommand)]
    pub(super) what: LabelWhat,
}

#[derive(Debug, Subcommand)]
pub(super) enum LabelWhat {
    /// Put a label on what a query finds
    Add(LabelQuery),
    /// Take a label off what a query finds
    Remove(LabelQuery),
    /// Take a change back
    Undo {
        /// The event, as the change answered
        #[arg(value_name = "EVENT")]
        event: u64,
        #[command(flatten)]
        of: OfMailbox,
    },
}

#[derive(Debug, Args)]
pub(super) struct LabelQuery {
    /// The label: lower-case letters, digits, and _ : - inside
    #[arg(value_name = "LABEL")]
    pub(super) label: String,
    #[command(flatten)]
    pub(super) on: OnQuery,
}

#[derive(Debug, Args)]
pub(super) struct Mark {
    /// What they become
    #[arg(value_name = "AS")]
    pub(super) mark: MarkAs,
    #[command(flatten)]
    pub(super) on: OnQuery,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum MarkAs {
    /// Without the label unread
    Read,
    /// With the label unread
    Unread,
    /// With the label starred
    Starred,
    /// Without the label starred
    Unstarred,
    /// Found as usual
    Received,
    /// Found only when asked for
    Quarantined,
    /// Never shown
    Throttled,
    /// Never shown
    Hidden,
}

/// What a query finds.
#[derive(Debug, Args)]
pub(super) struct OnQuery {
    /// Count only
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Only what had arrived at this position, as a dry run answered
    #[arg(long, value_name = "SEQ")]
    pub(super) as_of: Option<u64>,
    #[command(flatten)]
    pub(super) of: OfMailbox,
    /// The query, behind --
    #[arg(required = true, last = true, value_name = "QUERY")]
    pub(super) query: Vec<String>,
}

/// Which messages.
#[derive(Debug, Args)]
pub(super) struct Which {
    /// A message; may be repeated
    #[arg(long = "message", value_name = "MSG_ID")]
    pub(super) messages: Vec<MessageId>,
    /// A whole thread; may be repeated
    #[arg(long = "thread", value_name = "THR_ID")]
    pub(super) threads: Vec<ThreadId>,
    /// Everything from, to or answered to an address
    #[arg(long, value_name = "ADDRESS")]
    pub(super) counterparty: Option<String>,
    /// What a query finds
    #[arg(long, value_name = "QUERY")]
    pub(super) query: Option<String>,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("scope").required(true)
    .args(["messages", "threads", "counterparty", "query", "everything", "tenant"]))]
pub(super) struct Erase {
    #[command(flatten)]
    pub(super) which: Which,
    /// The mailbox with everything in it
    #[arg(long)]
    pub(super) everything: bool,
    /// All mailboxes of a tenant
    #[arg(long, value_name = "NAME", conflicts_with_all = ["remember", "dry_run", "as_of"])]
    pub(super) tenant: Option<String>,
    /// Refuse the same messages when they are imported again
    #[arg(long, conflicts_with = "everything")]
    pub(super) remember: bool,
    /// Count only
    #[arg(long, conflicts_with = "everything")]
    pub(super) dry_run: bool,
    /// Only what had arrived at this position, as a dry run answered
    #[arg(long, value_name = "SEQ", conflicts_with = "everything")]
    pub(super) as_of: Option<u64>,
    /// Do not ask
    #[arg(long)]
    pub(super) yes: bool,
    #[command(flatten)]
    pub(super) of: OfMailbox,
}

#[derive(Debug, Args)]
pub(super) struct Hold {
    #[command(subcommand)]
    pub(super) what: HoldWhat,
}

#[derive(Debug, Subcommand)]
pub(super) enum HoldWhat {
    /// Put messages and their threads under a hold
    #[command(group = clap::ArgGroup::new("scope").required(true)
        .args(["messages", "threads", "counterparty", "query"]))]
    Set {
        /// Why; it is repeated in receipts, so name a case and no person
        #[arg(long, value_name = "TEXT")]
        reason: String,
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        of: OfMailbox,
    },
    /// End a hold
    Release {
        /// Which
        #[arg(value_name = "HLD_ID")]
        hold: HoldId,
        #[command(flatten)]
        of: OfMailbox,
    },
    /// List holds
    List(OfMailbox),
}

#[derive(Debug, Args)]
pub(super) struct Receipt {
    #[command(subcommand)]
    pub(super) what: ReceiptWhat,
}

#[derive(Debug, Subcommand)]
pub(super) enum ReceiptWhat {
    /// All receipts
    List,
    /// Everything a restore needs to erase again what these erased
    Export,
    /// One receipt
    Show {
        /// Which
        #[arg(value_name = "RCP_ID")]
        receipt: ReceiptId,
    },
}

#[derive(Debug, Args)]
pub(super) struct Verify {
    /// Name or identity of the mailbox [default: every mailbox]
    #[arg(long, value_name = "NAME")]
    pub(super) mailbox: Option<String>,
    /// Build wrong indexes anew
    #[arg(long)]
    pub(super) repair: bool,
}

#[derive(Debug, Args)]
pub(super) struct Embed {
    #[command(subcommand)]
    pub(super) what: EmbedWhat,
}

#[derive(Debug, Subcommand)]
pub(super) enum EmbedWhat {
    /// Compute the vectors that are missing, newest message first
    Run {
        /// Name or identity of the mailbox [default: every mailbox]
        #[arg(long, value_name = "NAME")]
        mailbox: Option<String>,
        /// Messages at most [default: all]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        limit: Option<u64>,
        /// Ask again about passages that the model refused
        #[arg(long)]
        retry: bool,
    },
    /// Tell how many messages have vectors, and of which model
    Status {
        /// Name or identity of the mailbox [default: every mailbox]
        #[arg(long, value_name = "NAME")]
        mailbox: Option<String>,
    },
    /// Tell what giving vectors to the rest takes: passages, tokens, time
    Estimate,
    /// Change to the model that the settings name, after `cancel` or `rollback`
    Begin,
    /// Stop changing the model; the one that serves goes on to
    Cancel,
    /// Go back to the model that served before the last change
    Rollback,
    /// Remove vectors of models that neither serve, nor are going to, nor served last
    Prune {
        /// Those of the model that served last too: there is no going back then
        #[arg(long)]
        superseded: bool,
    },
}

#[derive(Debug, Args)]
pub(super) struct ModelArgs {
    #[command(subcommand)]
    pub(super) what: ModelWhat,
}

#[derive(Debug, Subcommand)]
pub(super) enum ModelWhat {
    /// Copy a model into the data directory, when it works
    Add {
        /// Folder with model.safetensors, config.json and tokenizer.json
        #[arg(value_name = "DIR")]
        dir: PathBuf,
        /// Its name [default: that of the folder]
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// List the models of the data directory
    List,
}

#[derive(Debug, Args)]
pub(super) struct Backup {
    /// Where
    #[arg(value_name = "DIR")]
    pub(super) dir: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct Restore {
    /// The backup
    #[arg(value_name = "DIR")]
    pub(super) backup: PathBuf,
    /// Erasures to apply again: the old data directory, or a file of `receipt export`
    #[arg(long, value_name = "PATH")]
    pub(super) receipts: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct Log {
    #[command(subcommand)]
    pub(super) what: LogWhat,
}

#[derive(Debug, Subcommand)]
pub(super) enum LogWhat {
    /// The last events, or those after a position
    Tail {
        /// Events to show
        #[arg(short = 'n', long, default_value_t = 20, value_name = "N")]
        limit: u32,
        /// Begin behind this position
        #[arg(long, value_name = "SEQ")]
        after: Option<u64>,
        #[command(flatten)]
        of: OfMailbox,
    },
    /// One event
    Show {
        /// Its position
        #[arg(value_name = "SEQ", value_parser = clap::value_parser!(u64).range(1..))]
        seq: u64,
        #[command(flatten)]
        of: OfMailbox,
    },
    /// How many events of which kind, since when, how large
    Stats(OfMailbox),
}
