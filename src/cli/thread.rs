//! `postrider thread`.

use std::fmt::Write as _;

use crate::config::Config;
use crate::http::wire::path_segment;
use crate::search::request::PersonOut;
use crate::search::{ThreadMessage, ThreadOut};

use super::access::Access;
use super::args::Thread;
use super::count::counted;
use super::failure::{Exit, Failure};
use super::output::Output;
use super::{safe, table};

/// Prints one thread.
pub(super) async fn run(config: Config, args: Thread, out: Output) -> Result<Exit, Failure> {
    let access = Access::find(config).await?;
    let mailbox = &args.of.mailbox;
    let found = match &access {
        Access::Here(postrider) => postrider.thread(mailbox, args.id).await.map_err(Failure::from),
        Access::Server(client) => {
            let path = format!("/v1/identities/{}/threads/{}", path_segment(mailbox), args.id);
            client.get::<ThreadOut>(&path).await
        }
    };
    access.close().await;
    let thread = found?;
    if out.json {
        out.value(&thread)?;
    } else {
        out.text(&for_people(&thread, out))?;
    }
    Ok(Exit::Fine)
}

fn for_people(thread: &ThreadOut, out: Output) -> String {
    let subject = safe::line(thread.subject.as_deref().unwrap_or("(no subject)"));
    let mut text = format!("{}\n", out.bold(&subject));
    let _ = writeln!(
        text,
        "{}, {} unread; {} to {}",
        counted(thread.message_count, "message"),
        thread.unread_count,
        table::local(&thread.first_at),
        table::local(&thread.last_at)
    );
    let people: Vec<String> = thread.participants.iter().map(|p| safe::line(called(p))).collect();
    let _ = writeln!(text, "with {}\n", people.join(", "));
    let left_out = thread.message_count - thread.messages.len() as u64;
    if left_out > 0 {
        let _ = writeln!(text, "{}", out.faint(&format!("({left_out} earlier ones left out)")));
    }
    for ThreadMessage { message_id, date, from, subject, unread, .. } in &thread.messages {
        let author = safe::line(called(from));
        let subject = safe::line(subject.as_deref().unwrap_or("(no subject)"));
        let mark = if *unread { '*' } else { ' ' };
        let id = out.faint(&message_id.to_string());
        let _ = writeln!(text, "{mark} {}  {author}  {subject}\n  {id}", table::local(date));
    }
    text
}

fn called(person: &PersonOut) -> &str {
    if person.name.is_empty() { &person.address } else { &person.name }
}
