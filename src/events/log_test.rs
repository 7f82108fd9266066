//! Tests of the log against a real directory.

use std::fs::File;

use super::*;
use crate::events::event::{MailboxConfigured, Placement};
use crate::ids::{IdentityId, TenantId};

fn configured(address: &str) -> Event {
    Event::MailboxConfigured(MailboxConfigured { own_addresses: vec![address.into()] })
}

fn log_with_mailbox(dir: &Path) -> (Log, MailboxNo) {
    let log = Log::open(dir, LogOptions::default()).expect("opens");
    let mailbox = MailboxNo(1);
    log.put_identity(&Identity {
        id: IdentityId::from_parts(1, 1),
        tenant: TenantId::from_parts(1, 1),
        name: "main".into(),
        mailbox,
        created_ms: 1,
    })
    .expect("stored");
    (log, mailbox)
}

#[test]
fn appended_events_and_content_come_back_after_reopening() {
    let dir = tempfile::tempdir().expect("temp dir");
    {
        let (log, mailbox) = log_with_mailbox(dir.path());
        let mut sealer = log.sealer(mailbox).expect("sealer");
        let mut append = SealedAppend::default();
        sealer.event(&mut append, 10, &configured("a@x.test")).expect("sealed");
        sealer
            .content(
                &mut append,
                Ordinal(0),
                &compress::compress(b"raw bytes", compress::Effort::Little).expect("small"),
            )
            .expect("sealed");
        log.append(&[append]).expect("durable");
        let mut second = SealedAppend::default();
        sealer.event(&mut second, 11, &configured("b@x.test")).expect("sealed");
        log.append(&[second]).expect("durable");
    }
    let (log, mailbox) = log_with_mailbox(dir.path());
    assert_eq!(log.head(mailbox).expect("head"), Seq(2));
    let read: Vec<Recorded> = log
        .read(mailbox, Seq::ZERO, Seq(u64::MAX))
        .expect("key")
        .collect::<Result<_, _>>()
        .expect("whole");
    assert_eq!(read.len(), 2);
    assert_eq!(read[1].event, configured("b@x.test"));
    assert_eq!(read[0].previous, [0; 32]);
    assert_eq!(read[1].previous, read[0].digest);
    assert_eq!(log.raw(mailbox, Ordinal(0)).expect("content"), b"raw bytes");
    assert!(matches!(log.raw(mailbox, Ordinal(1)), Err(LogError::Erased { .. })));
    assert_eq!(log.registry().expect("registry").identity("main").expect("there").mailbox, mailbox);
    let mut sealer = log.sealer(mailbox).expect("sealer");
    let mut third = SealedAppend::default();
    assert_eq!(sealer.event(&mut third, 12, &configured("c@x.test")).expect("sealed"), Seq(3));
    log.append(&[third]).expect("durable");
    let tail: Vec<Recorded> = log
        .read(mailbox, Seq(2), Seq(u64::MAX))
        .expect("key")
        .collect::<Result<_, _>>()
        .expect("whole");
    assert_eq!(tail[0].previous, read[1].digest);
}

#[test]
fn second_opening_of_a_directory_says_it_is_in_use() {
    let dir = tempfile::tempdir().expect("temp dir");
    let (_log, _) = log_with_mailbox(dir.path());
    let again = Database::builder(dir.path().join("log")).open();
    assert!(matches!(again, Err(fjall::Error::Locked)));
}

#[test]
fn mailboxes_do_not_see_each_other() {
    let dir = tempfile::tempdir().expect("temp dir");
    let (log, first) = log_with_mailbox(dir.path());
    let other = MailboxNo(2);
    log.put_identity(&Identity {
        id: IdentityId::from_parts(2, 2),
        tenant: TenantId::from_parts(1, 1),
        name: "other".into(),
        mailbox: other,
        created_ms: 1,
    })
    .expect("stored");
    let placement = Placement { folder: "INBOX".into(), source: "import".into() };
    let event = Event::MessageUnplaced(crate::events::event::MessageUnplaced {
        ordinal: Ordinal(0),
        placement,
    });
    let mut append = SealedAppend::default();
    log.sealer(other).expect("sealer").event(&mut append, 1, &event).expect("sealed");
    log.append(&[append]).expect("durable");
    assert_eq!(log.head(first).expect("head"), Seq::ZERO);
    assert_eq!(log.read(first, Seq::ZERO, Seq(u64::MAX)).expect("key").count(), 0);
    assert_eq!(log.head(other).expect("head"), Seq(1));
}

#[test]
fn a_retired_journal_leaves_everything_and_its_bytes_go() {
    let dir = tempfile::tempdir().expect("temp dir");
    let noise: Vec<u8> = {
        // A hundred kilobytes that no compression makes smaller.
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        };
        (0..100_000).map(|_| next()).collect()
    };
    {
        let (log, mailbox) = log_with_mailbox(dir.path());
        let mut sealer = log.sealer(mailbox).expect("sealer");
        let mut append = SealedAppend::default();
        sealer.event(&mut append, 10, &configured("a@x.test")).expect("sealed");
        let packed = compress::compress(&noise, compress::Effort::Little).expect("small");
        sealer.content(&mut append, Ordinal(0), &packed).expect("sealed");
        log.append(&[append]).expect("durable");
        log.settle().expect("settles");
    }
    let journals = || -> Vec<u64> {
        std::fs::read_dir(dir.path().join("log"))
            .expect("there")
            .map(|entry| entry.expect("there"))
            .filter(|entry| entry.path().extension().is_some_and(|e| e == "jnl"))
            .map(|entry| std::os::unix::fs::MetadataExt::blocks(&entry.metadata().expect("there")))
            .collect()
    };
    let before: u64 = journals().iter().sum();
    assert!(before * 512 > 100_000, "{before} blocks");
    assert!(Log::retire_journal(dir.path()).expect("retires"));
    assert!(journals().iter().sum::<u64>() < before / 4, "{:?}", journals());
    assert!(!Log::retire_journal(dir.path()).expect("has little to do"));
    // One more that was begun when the process died.
    File::create_new(dir.path().join("log/77.jnl")).expect("made");
    for _ in 0..2 {
        let (log, mailbox) = log_with_mailbox(dir.path());
        assert_eq!(log.raw(mailbox, Ordinal(0)).expect("content"), noise);
        assert!(log.head(mailbox).expect("head") >= Seq(1));
        let mut sealer = log.sealer(mailbox).expect("sealer");
        let mut append = SealedAppend::default();
        sealer.event(&mut append, 11, &configured("b@x.test")).expect("sealed");
        log.append(&[append]).expect("durable");
    }
    let (log, mailbox) = log_with_mailbox(dir.path());
    assert_eq!(log.head(mailbox).expect("head"), Seq(3));
}
