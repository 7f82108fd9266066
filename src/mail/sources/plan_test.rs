//! Trees of every sort on disk, planned and read.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::super::{
    Entry, Failure, FailureReason, Item, Kind, Options, SkipReason, SourceError, plan,
};

const SEP: &str = "From jk at host  Tue Apr  1 12:00:00 2003\n";

fn write(root: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn gzip(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes.as_ref()).unwrap();
    encoder.finish().unwrap()
}

fn one(n: u32) -> String {
    format!("Subject: message {n}\n\nbody\n")
}

fn mbox(count: u32) -> String {
    (0..count).map(|n| format!("{SEP}{}\n", one(n))).collect()
}

fn read(path: &Path, options: &Options) -> (Vec<Entry>, Vec<Failure>) {
    let plan = plan(path, options).unwrap();
    let total = plan.bytes_total();
    let mut reader = plan.read();
    let progress = reader.progress();
    let (mut entries, mut failures) = (Vec::new(), Vec::new());
    for item in &mut reader {
        match item {
            Item::Entry(entry) => entries.push(entry),
            Item::Failure(failure) => failures.push(failure),
        }
        assert!(progress.bytes_done() <= total);
    }
    assert_eq!((progress.bytes_done(), progress.bytes_total()), (total, total));
    (entries, failures)
}

fn folders(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.folder.as_str()).collect()
}

#[test]
fn a_maildir_with_subfolders_of_both_layouts() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    write(root, "cur/2.b:2,FRS", one(2));
    write(root, "new/1.a", one(1));
    write(root, "tmp/9.x", "under way");
    write(root, "dovecot-uidlist", "3 V1 N2\n");
    write(root, "dovecot-keywords", "0 Work\n1 $Forwarded\n");
    write(root, "cur/3.c:2,Sab", one(3));
    write(root, ".Lists.rust/cur/1:2,S", one(4));
    write(root, ".Entw&APw-rfe/cur/1:2,DS", one(5));
    fs::create_dir_all(root.join(".Empty/cur")).unwrap();
    let day = UNIX_EPOCH + Duration::from_millis(1_049_198_400_123);
    fs::File::options()
        .write(true)
        .open(root.join("new/1.a"))
        .and_then(|file| file.set_modified(day))
        .unwrap();

    let seen = plan(root, &Options::default()).unwrap();
    assert!(seen.parts.iter().all(|part| part.kind == Kind::Maildir));
    assert_eq!(seen.parts.len(), 4);
    let reasons: Vec<_> = seen.skipped.iter().map(|skipped| &skipped.reason).collect();
    assert!(reasons.contains(&&SkipReason::MaildirTmp), "{reasons:?}");

    let (entries, failures) = read(root, &Options::default());
    assert_eq!(failures, []);
    assert_eq!(folders(&entries), ["INBOX", "INBOX", "INBOX", "Entwürfe", "Lists/rust"]);
    assert_eq!(entries[0].labels, ["unread"]);
    assert_eq!(entries[0].file_ms, Some(1_049_198_400_123));
    assert_eq!(entries[1].labels, ["starred", "replied"]);
    assert_eq!(entries[2].labels, ["work", "forwarded"]);
    assert_eq!(entries[3].labels, ["draft"]);
    assert_eq!(entries[4].raw, one(4).as_bytes());

    let other = tempfile::tempdir().unwrap();
    write(other.path(), "Lists/rust/cur/1:2,S", one(1));
    write(other.path(), "inbox/new/1", one(2));
    fs::create_dir_all(other.path().join("inbox/tmp")).unwrap();
    let (entries, _) = read(other.path(), &Options::default());
    assert_eq!(folders(&entries), ["Lists/rust", "INBOX"]);
}

#[test]
fn trees_of_mboxes_as_programs_keep_them() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    write(root, "Inbox", mbox(2));
    write(root, "Inbox.msf", "// <!-- <mdb:mork:z v=\"1.4\"/> -->\n");
    write(root, "Drafts", "");
    write(root, "Work.sbd/Plans", mbox(1));
    write(root, "list/2003-April.txt", mbox(1));
    write(root, "list/2003-May.txt.gz", gzip(mbox(1)));
    write(root, "Apple.mbox/mbox", mbox(1));
    let (entries, failures) = read(root, &Options::default());
    assert_eq!(failures, []);
    assert_eq!(
        folders(&entries),
        ["INBOX", "INBOX", "Apple", "Work/Plans", "list/2003-April", "list/2003-May"]
    );
    assert!(entries.iter().all(|entry| entry.separator_ms == Some(1_049_198_400_000)));
    let seen = plan(root, &Options::default()).unwrap();
    let mut skipped: Vec<_> = seen.skipped.iter().map(|s| s.reason.clone()).collect();
    skipped.sort_by_key(ToString::to_string);
    assert_eq!(skipped, [SkipReason::Empty, SkipReason::NotMail]);
    assert_eq!(seen.skipped_count, 2);

    let options = Options { folder: Some("Old".to_owned()), ..Options::default() };
    let (entries, _) = read(&root.join("Inbox"), &options);
    assert_eq!(folders(&entries), ["Old", "Old"]);
}

#[test]
fn a_folder_of_messages_in_every_wrapping() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("old mail");
    write(&root, "1", one(1));
    write(&root, "2.eml.gz", gzip(one(2)));
    write(&root, "3.txt", format!("{SEP}{}", one(3).replace("body", ">From x")));
    let list = "<plist><key>flags</key><integer>16</integer></plist>";
    write(&root, "4.emlx", format!("{}      \n{}{list}", one(4).len(), one(4)));
    write(&root, "5.eml", format!("\u{feff}X-Keywords: Todo\n{}", one(5)));
    write(&root, "notes.txt", "no mail at all\n");
    let seen = plan(&root, &Options::default()).unwrap();
    assert_eq!((seen.parts.len(), seen.parts[0].kind), (1, Kind::EmlFolder));
    assert_eq!(seen.skipped_count, 1);
    let (entries, failures) = read(&root, &Options::default());
    assert_eq!(failures, []);
    assert_eq!(folders(&entries), ["old mail"; 5]);
    assert_eq!(entries[1].raw, one(2).as_bytes());
    assert_eq!(entries[2].raw, b"Subject: message 3\n\nFrom x\n");
    assert_eq!(entries[2].separator_ms, Some(1_049_198_400_000));
    assert_eq!(entries[3].raw, one(4).as_bytes());
    assert_eq!(entries[3].labels, ["unread", "starred"]);
    assert_eq!((entries[3].place.offset, entries[4].place.offset), (9, 3));
    assert_eq!(entries[4].labels, ["todo"]);

    let (entries, _) = read(&root.join("1"), &Options::default());
    assert_eq!(folders(&entries), ["1"]);
}

#[test]
fn takeout_folders_come_from_labels() {
    let dir = tempfile::tempdir().unwrap();
    let entry = |labels: &str| format!("{SEP}X-GM-THRID: 1\n{labels}{}\n", one(1));
    let all = [
        entry("X-Gmail-Labels: Inbox,Unread,Category Updates\n"),
        entry("X-Gmail-Labels: =?UTF-8?Q?Gesendet,Posteingang?=\n"),
        entry("X-Gmail-Labels: Archived,Opened,Work/A\n"),
        entry(""),
    ];
    write(dir.path(), "Takeout/Mail/All mail.mbox", all.concat());
    let seen = plan(dir.path(), &Options::default()).unwrap();
    assert_eq!(seen.parts[0].kind, Kind::Takeout);
    let (entries, _) = read(dir.path(), &Options::default());
    assert_eq!(folders(&entries), ["INBOX", "INBOX", "Archive", "Archive"]);
    assert_eq!(entries[0].labels, ["unread", "category_updates"]);
    assert_eq!(entries[1].more_folders, ["Sent"]);
    assert_eq!(entries[2].labels, ["work:a"]);
}

#[test]
fn archives_are_refused_with_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let mut tar = vec![0; 512];
    tar[257..262].copy_from_slice(b"ustar");
    write(dir.path(), "takeout.zip", b"PK\x03\x04....");
    write(dir.path(), "takeout.tgz", gzip(tar));
    for name in ["takeout.zip", "takeout.tgz"] {
        let error = plan(&dir.path().join(name), &Options::default()).unwrap_err();
        assert!(matches!(error, SourceError::Archive { .. }));
        assert!(error.to_string().contains("unpack it first"), "{error}");
    }
    assert_eq!(plan(dir.path(), &Options::default()).unwrap().skipped_count, 2);
    write(dir.path(), "x.txt", "words");
    let error = plan(&dir.path().join("x.txt"), &Options::default()).unwrap_err();
    assert!(matches!(error, SourceError::NotMail { .. }));
    let error = plan(&dir.path().join("absent"), &Options::default()).unwrap_err();
    assert!(matches!(error, SourceError::Unreachable { .. }));
}

#[test]
fn a_damaged_gzip_yields_what_came_before_and_where_it_broke() {
    let dir = tempfile::tempdir().unwrap();
    let whole =
        gzip((0..5_000).map(|n| format!("{SEP}{}{}\n", one(n), n * 7_919)).collect::<String>());
    let cut = whole.len() / 2;
    write(dir.path(), "a.mbox.gz", &whole[..cut]);
    write(dir.path(), "b.mbox", mbox(2));
    let (entries, failures) = read(dir.path(), &Options::default());
    assert!(entries.len() > 1_000);
    assert_eq!(folders(&entries[entries.len() - 2..]), ["b", "b"]);
    assert_eq!(failures.len(), 1);
    let FailureReason::GzipDamaged { packed_offset, .. } = failures[0].reason else {
        panic!("{}", failures[0]);
    };
    assert_eq!(packed_offset, cut as u64);
    assert!(failures[0].to_string().contains("a.mbox.gz at byte"));
}

#[test]
fn large_and_vanished_files_are_failures_and_the_walk_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..4 {
        write(dir.path(), &format!("{n}.eml"), one(n));
    }
    write(dir.path(), "1.eml", one(1) + &"x".repeat(200_000));
    write(dir.path(), "2.eml", one(2) + &"x".repeat(5_000));
    let options = Options { message_bytes_max: 1_000, ..Options::default() };
    let plan = plan(dir.path(), &options).unwrap();
    fs::remove_file(dir.path().join("3.eml")).unwrap();
    let (mut entries, mut reasons) = (0, Vec::new());
    for item in plan.read() {
        match item {
            Item::Entry(_) => entries += 1,
            Item::Failure(failure) => reasons.push(failure.reason),
        }
    }
    assert_eq!(entries, 1);
    let large = |extra| one(1).len() as u64 + extra;
    assert_eq!(
        reasons,
        [
            FailureReason::TooLarge { bytes: large(200_000), bytes_max: 1_000 },
            FailureReason::TooLarge { bytes: large(5_000), bytes_max: 1_000 },
            FailureReason::Vanished,
        ]
    );
}

#[cfg(unix)]
#[test]
fn links_and_special_files_are_listed_and_never_opened() {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("mail");
    write(&root, "box", mbox(2));
    write(&root, "sub/cur/1:2,S", one(1));
    symlink(&root, root.join("sub/loop")).unwrap();
    symlink(root.join("box"), root.join("link")).unwrap();
    symlink(root.join("box"), root.join("sub/cur/2:2,S")).unwrap();
    let _socket = UnixListener::bind(root.join("socket")).unwrap();
    let fifo = std::process::Command::new("mkfifo").arg(root.join("fifo")).status();
    let specials = if fifo.is_ok_and(|status| status.success()) { 2 } else { 1 };

    let seen = plan(&root, &Options::default()).unwrap();
    let count = |reason: &SkipReason| seen.skipped.iter().filter(|s| s.reason == *reason).count();
    assert_eq!(count(&SkipReason::SymbolicLink), 3);
    assert_eq!(count(&SkipReason::SpecialFile), specials);
    let (entries, _) = read(&root, &Options::default());
    assert_eq!(entries.len(), 3);
    // The root itself may be a link.
    symlink(&root, dir.path().join("mail-link")).unwrap();
    assert_eq!(read(&dir.path().join("mail-link"), &Options::default()).0.len(), 3);
    let error = plan(&root.join("socket"), &Options::default()).unwrap_err();
    assert!(matches!(error, SourceError::SpecialFile { .. }));
}

#[test]
fn sixty_four_mboxes_of_one_are_loose_messages() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..64 {
        write(dir.path(), &format!("many/{n:03}"), mbox(1));
        write(dir.path(), &format!("few/{}", n % 5), mbox(1));
    }
    let seen = plan(dir.path(), &Options::default()).unwrap();
    let kinds: Vec<_> = seen.parts.iter().map(|p| (p.kind, p.folder.as_str())).collect();
    assert_eq!(kinds.len(), 6);
    assert_eq!(kinds[0], (Kind::Mbox, "few/0"));
    assert_eq!(kinds[5], (Kind::EmlFolder, "many"));
}
