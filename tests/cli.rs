//! The command line from outside: the built program over the sample mail.

#[path = "world/settings.rs"]
mod settings;
mod world;

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use settings::words_only;
use world::{SAMPLES_DISTINCT, SAMPLES_READ, World, letter, samples};

fn command(world: &World, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    command
        .args(arguments)
        .env("POSTRIDER_DATA", world.data_dir())
        .env("TZ", "UTC")
        .env("POSTRIDER_CONFIG", words_only(world))
        .env_remove("POSTRIDER_LOG")
        .stdin(Stdio::null());
    command
}

fn run(world: &World, arguments: &[&str]) -> Output {
    command(world, arguments).output().expect("runs")
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// Runs, expects success and one JSON value.
fn json(world: &World, arguments: &[&str]) -> Value {
    let output = run(world, arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", err(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn import(world: &World, more: &[&str]) -> Output {
    let mut command = command(world, &["import"]);
    command.args(samples()).args(more).output().expect("runs")
}

/// A server of its own process; ends with the test.
struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    fn start(world: &World) -> Self {
        let mut child = command(world, &["serve", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("listening on http://").expect(&line).to_owned();
        Self { child, address }
    }

    fn stop(mut self) -> Option<i32> {
        signal("TERM", &self.child);
        self.child.wait().expect("ends").code()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn signal(name: &str, child: &Child) {
    let pid = child.id().to_string();
    let sent = Command::new("kill").args([&format!("-{name}"), &pid]).status().expect("kill");
    assert!(sent.success());
}

#[test]
fn the_account_adds_up_and_a_second_import_finds_everything_there() {
    let world = World::new();
    let first = import(&world, &[]);
    assert_eq!(first.status.code(), Some(0), "{}", err(&first));
    let account = format!(
        "{SAMPLES_READ} read = {SAMPLES_DISTINCT} stored + {} already there + 0 failed\n",
        SAMPLES_READ - SAMPLES_DISTINCT
    );
    assert!(out(&first).starts_with(&account), "{}", out(&first));
    assert_eq!(err(&first), "");
    let second: Value = serde_json::from_slice(&import(&world, &["--json"]).stdout).expect("JSON");
    assert_eq!(second["read"], SAMPLES_READ);
    assert_eq!(second["already_there"], SAMPLES_READ);
    assert_eq!((&second["stored"], &second["placed"]), (&0.into(), &0.into()));
}

#[test]
fn the_exit_code_tells_whose_fault_it_is() {
    let world = World::new();
    let none = run(&world, &["search", "boiler"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(err(&none).contains("there is no data directory"), "{}", err(&none));
    assert!(!world.data_dir().exists(), "looking made a directory");
    assert_eq!(run(&world, &["import", "/not/there"]).status.code(), Some(2));

    let mut mbox = b"From a@b Mon Mar  3 10:00:00 2025\n\n".to_vec();
    mbox.extend_from_slice(b"From a@b Mon Mar  3 10:00:00 2025\n");
    mbox.extend_from_slice(&letter("good"));
    let partly = world.file("partly.mbox", &mbox);
    let partly = run(&world, &["import", &partly.display().to_string()]);
    assert_eq!(partly.status.code(), Some(1), "{}{}", out(&partly), err(&partly));
    assert!(out(&partly).starts_with("2 read = 1 stored + 0 already there + 1 failed\n"));
    assert!(out(&partly).contains("partly.mbox at byte 0: the entry is empty"), "{}", out(&partly));

    assert_eq!(run(&world, &["search", "good"]).status.code(), Some(0));
    assert_eq!(run(&world, &["search", "nothingofthatkind"]).status.code(), Some(0));
    let query = run(&world, &["search", "good", "frm:ada"]);
    assert_eq!(query.status.code(), Some(2));
    assert!(err(&query).ends_with("  good frm:ada\n       ^\n"), "{}", err(&query));
    for wrong in [
        &["search", "good", "--mailbox", "nobody"][..],
        &["search", "good", "--limit", "1001"],
        &["search", "good", "--colour"],
        &["show", "msg_1"],
        &["show", "msg_01J9Z3K8V4QW7X2M5N6P8R0T1V"],
        &["own-address", "not an address"],
        &["status", "--config", "/not/there.toml"],
        &["rebuild", "--mailbox", "nobody"],
        &["thread", "thr_01J9Z3K8V4QW7X2M5N6P8R0T1V"],
        &["import", "/dev/null", "--mailbox", ".."],
        &["import", "/dev/null", "--mailbox", "a\u{202e}b"],
        &["nonsense"],
    ] {
        let output = run(&world, wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", err(&output));
        assert_eq!(out(&output), "", "{wrong:?}");
        assert_ne!(err(&output), "", "{wrong:?}");
    }
    let output = run(&world, &["search", "frm:ada", "--json"]);
    let envelope: Value = serde_json::from_slice(&output.stderr).expect("JSON on stderr");
    assert_eq!(envelope["error"]["code"], "invalid_query");
    assert_eq!(envelope["error"]["details"]["position"], 0);

    let traces = command(&world, &["status"]).env("POSTRIDER_LOG", "postrider=loud").output();
    let traces = traces.expect("runs");
    assert_eq!(traces.status.code(), Some(2));
    assert!(err(&traces).contains("POSTRIDER_LOG is not understood"), "{}", err(&traces));
    let full = File::options().write(true).open("/dev/full").expect("there");
    let full = command(&world, &["dump"]).stdout(full).output().expect("runs");
    assert_eq!(full.status.code(), Some(3));
    assert!(err(&full).contains("the output cannot be written"), "{}", err(&full));

    // Somebody holds the directory and is no server.
    let lock = File::options().write(true).open(world.data_dir().join("LOCK")).expect("there");
    lock.try_lock().expect("free");
    let held = run(&world, &["status"]);
    assert_eq!(held.status.code(), Some(3), "{}", err(&held));
    assert!(err(&held).contains("in use by another process"), "{}", err(&held));
    // A server was killed, and somebody else holds the directory.
    let stale = r#"{"address":"127.0.0.1:1","token":"t","pid":4000000}"#;
    std::fs::write(world.data_dir().join("server.json"), stale).expect("written");
    let held = run(&world, &["status"]);
    assert_eq!(held.status.code(), Some(3));
    assert!(err(&held).contains("127.0.0.1:1, process 4000000"), "{}", err(&held));
}

#[test]
fn reading_commands_answer_in_json() {
    let world = World::new();
    assert_eq!(import(&world, &[]).status.code(), Some(0));
    let found = json(&world, &["search", "\"burn pot\"", "--json", "--highlight"]);
    assert_eq!(found["total"], 2);
    assert!(found["hits"][0]["highlights"].is_array(), "{found}");
    let id = found["hits"][0]["message_id"].as_str().expect("an id");
    let shown = json(&world, &["show", id, "--json"]);
    assert_eq!(shown["message_id"], id);
    assert!(shown["text"].as_str().is_some_and(|text| text.contains("burn pot")));
    let status = json(&world, &["--json", "status"]);
    assert_eq!(status["mailboxes"][0]["messages"], SAMPLES_DISTINCT);
    assert_eq!(status["health"]["writing"], true);
    let before = run(&world, &["dump"]);
    let rebuilt = json(&world, &["rebuild", "--all", "--json"]);
    assert_eq!(rebuilt["rebuilt"][0]["messages"], SAMPLES_DISTINCT);
    assert_eq!(before.stdout, run(&world, &["dump"]).stdout);
    let own = json(&world, &["own-address", "office@hallowmere-heat.example", "--json"]);
    assert!(own["seq"].as_u64().is_some());
    let outbound = json(&world, &["search", "from:office@hallowmere-heat.example", "--json"]);
    assert_eq!(outbound["hits"][0]["direction"], "outbound");

    let raw = run(&world, &["show", id, "--raw"]).stdout;
    assert_eq!(shown["raw_bytes"], raw.len());
    let table = out(&run(&world, &["search", "burn", "pot", "--limit", "1", "--highlight"]));
    assert!(table.contains("*burn*") && table.contains(" of "), "{table}");
    let less = json(&world, &["search", "boiler", "-subject:boiler", "--json", "--limit", "1000"]);
    let all = json(&world, &["search", "boiler", "--json", "--limit", "1000"]);
    assert!(less["total"].as_u64() < all["total"].as_u64(), "-subject: was taken for an option");
}

#[test]
fn commands_go_through_the_server_that_holds_the_directory() {
    let world = World::new();
    assert_eq!(import(&world, &[]).status.code(), Some(0));
    let alone = json(&world, &["search", "boiler", "--json", "--limit", "100"]);
    let id = alone["hits"][0]["message_id"].as_str().expect("an id");
    let thread = alone["hits"][0]["thread_id"].as_str().expect("an id");
    let before = [run(&world, &["show", id]), run(&world, &["dump"])];
    let thread_before = run(&world, &["thread", thread]);
    assert!(out(&thread_before).contains("unread; "), "{}", err(&thread_before));

    let serving = Serving::start(&world);
    let status = run(&world, &["status"]);
    assert!(out(&status).contains("held by a server"), "{}{}", out(&status), err(&status));
    let served = json(&world, &["search", "boiler", "--json", "--limit", "100"]);
    assert_eq!(alone, served);
    assert_eq!(before[0].stdout, run(&world, &["show", id]).stdout);
    assert_eq!(before[1].stdout, run(&world, &["dump"]).stdout);
    assert_eq!(thread_before.stdout, run(&world, &["thread", thread]).stdout);
    let raw = run(&world, &["show", id, "--raw"]).stdout;
    assert!(!raw.is_empty());
    assert_eq!(run(&world, &["rebuild"]).status.code(), Some(0));
    let account: Value = serde_json::from_slice(&import(&world, &["--json"]).stdout).expect("JSON");
    assert_eq!(account["already_there"], SAMPLES_READ);
    let missing = run(&world, &["search", "x", "--mailbox", "nobody"]);
    assert_eq!(missing.status.code(), Some(2), "{}", err(&missing));
    let query = run(&world, &["search", "good", "frm:ada"]);
    assert!(err(&query).ends_with("  good frm:ada\n       ^\n"), "{}", err(&query));
    let second = run(&world, &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(second.status.code(), Some(3));
    assert!(err(&second).contains(&serving.address), "{}", err(&second));

    assert_eq!(serving.stop(), Some(0));
    assert!(!world.data_dir().join("server.json").exists());
    assert_eq!(alone["total"], json(&world, &["search", "boiler", "--json"])["total"]);
    assert_eq!(raw, run(&world, &["show", id, "--raw"]).stdout);
}

#[test]
fn an_interrupted_import_finishes_what_is_on_its_way_and_says_so() {
    let world = World::new();
    let mut mbox = Vec::new();
    for number in 0..6_000 {
        mbox.extend_from_slice(b"From ada@example.org Mon Mar  3 10:00:00 2025\n");
        mbox.extend_from_slice(&letter(&format!("number {number}")));
        mbox.push(b'\n');
    }
    let mbox = world.file("many.mbox", &mbox).display().to_string();
    let child = command(&world, &["import", &mbox, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    // The mailbox is opened after the signal is heard.
    let mailboxes = world.data_dir().join("mailboxes");
    let opened = |dir: &Path| dir.read_dir().is_ok_and(|mut entries| entries.next().is_some());
    while !opened(&mailboxes) {
        std::thread::yield_now();
    }
    signal("INT", &child);
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(130), "{}", err(&output));
    let account: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(account["interrupted"], true);
    assert_eq!(account["read"], account["stored"]);
    assert!(account["read"].as_u64() < Some(6_000), "it was not stopped: {account}");
    let found = json(&world, &["search", "--json"]);
    assert_eq!(found["total"], account["stored"]);
}

#[test]
fn control_characters_of_mail_never_reach_standard_output() {
    let world = World::new();
    let hostile = "From: =?utf-8?q?Ada=1B[31m?= <ada@example.org>\r\n\
        Subject: =?utf-8?q?red=1B]0;owned=07_=C2=9B31m_=E2=80=AEtxt?=\r\n\
        Date: Mon, 03 Mar 2025 10:00:00 +0000\r\nMessage-ID: <h@example.org>\r\n\
        Content-Type: text/plain; charset=utf-8\r\n\r\n\
        hostile \u{1b}[2J\u{9b}2J\u{7}\u{8} \u{202e}text\r\n";
    let path = world.file("hostile.eml", hostile.as_bytes()).display().to_string();
    let name = "--folder=a\u{1b}[31mb";
    assert_eq!(run(&world, &["import", &path, name]).status.code(), Some(0));
    let id = json(&world, &["search", "hostile", "--json"])["hits"][0]["message_id"].clone();
    let id = id.as_str().expect("an id");
    for arguments in [
        &["search", "hostile"][..],
        &["search", "hostile", "--json"],
        &["search", "hostile", "--highlight"],
        &["show", id],
        &["show", id, "--new-text"],
        &["show", id, "--json"],
        &["status"],
        &["search", "hostile", "\u{1b}[31m\u{9b}", "x:\u{1b}y"],
    ] {
        let output = run(&world, arguments);
        for text in [out(&output), err(&output)] {
            let bad = |c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}';
            assert!(!text.contains(bad), "{arguments:?}: {text:?}");
        }
        assert!(!out(&output).is_empty() || output.status.code() == Some(2), "{arguments:?}");
    }
}

#[test]
fn every_command_explains_itself() {
    let world = World::new();
    for name in [
        "import",
        "search",
        "show",
        "status",
        "rebuild",
        "dump",
        "own-address",
        "serve",
        "label",
        "mark",
        "erase",
        "hold",
        "receipt",
        "verify",
        "compact",
        "backup",
        "restore",
        "log",
    ] {
        let help = run(&world, &[name, "--help"]);
        assert_eq!(help.status.code(), Some(0));
        assert!(out(&help).contains("Example"), "{name}");
    }
    assert!(out(&run(&world, &["--help"])).contains("Exit codes"));
}
