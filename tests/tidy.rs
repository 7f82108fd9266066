//! House rules that no compiler checks: layering, engines behind their folders, files that say
//! what they are, living links, no leftovers.
//!
//! Reads the repository as text. Every test lists all offences as `file:line: what`, and fails
//! when it saw too few files to have meant anything. A rule is loosened here, with the reason
//! beside it, or not at all.

#[path = "tidy/source.rs"]
mod source;

use std::collections::BTreeMap;
use std::path::Path;

use source::{
    Offences, code_only, decision_exists, imports, leaves, markdown_links, modules,
    paths_below_work, root, rust_files, texts, top, words,
};

/// Folders of `src` from bottom to top. A folder imports from lower rows only: not from its own
/// row, not from above. A row may name all that its folders import, where that is less.
const LAYERS: [(&[&str], Option<&[&str]>); 12] = [
    (&["ids", "clock", "compress", "crash_point", "config", "attachment_class"], Some(&[])),
    (&["mail", "query"], Some(&["ids", "attachment_class"])),
    (&["embed"], Some(&["clock"])),
    // The truth knows nothing of how mail is read: its stored shapes are its own.
    (&["events"], Some(&["ids", "clock", "compress", "crash_point"])),
    (&["projections"], None),
    // Whoever writes does not search, and whoever searches does not pass through a queue.
    (&["search", "actors"], None),
    (&["app"], None),
    (&["http"], None),
    // Above `http`: the command line is a client of the server and shares its wire types.
    (&["cli"], None),
    (&["lib"], Some(&[])),
    (&["main"], None),
    (&["bin"], None),
];

/// Crates that only certain places may name in code.
const BEHIND: [(&str, &[&str]); 8] = [
    ("fjall", &["src/events/"]),
    ("bincode", &["src/events/codec.rs"]),
    ("tantivy", &["src/projections/text/"]),
    // The error enum of the truth wraps the error of its key store.
    (
        "heed",
        &[
            "src/projections/catalog/",
            "src/projections/vectors/",
            "src/events/key_store.rs",
            "src/events/error.rs",
        ],
    ),
    ("ractor", &["src/actors/"]),
    ("gemm", &["src/embed/product.rs"]),
    // A method of Tantivy has the same name.
    ("tokenizers", &["src/embed/tokens.rs", "src/projections/text/"]),
    ("safetensors", &["src/embed/weights.rs"]),
];

const LINES_MAX: usize = 500;
/// Tables of cases grow; a file of nothing but tests may be longer.
const TEST_LINES_MAX: usize = 700;

/// Names that attract whatever has no place; as a whole name or between underscores.
const NAMES_BANNED: [&str; 8] =
    ["utils", "util", "helpers", "helper", "common", "manager", "misc", "stuff"];

/// What must stand nowhere, in two pieces so that this file does not find itself.
const LEFTOVERS: [(&str, &str); 4] = [("to", "do!("), ("FIX", "ME"), ("XX", "X"), ("#[ig", "nore")];

/// Where something was written is no part of what was written; in two pieces as above.
const WORKPLACE: [(&str, &str); 14] = [
    ("/tmp/ba", "sh"),
    ("issue tra", "cker"),
    ("issue-tra", "cker"),
    ("this sess", "ion"),
    ("previous sess", "ion"),
    ("earlier sess", "ion"),
    ("another sess", "ion"),
    ("contract ", "§"),
    ("(contr", "act"),
    ("(se", "ed,"),
    ("the se", "ed's"),
    ("of the se", "ed,"),
    ("(dig", "est,"),
    ("contract's or", "der"),
];

fn row_of(folder: &str) -> Option<usize> {
    LAYERS.iter().position(|(folders, _)| folders.contains(&folder))
}

#[test]
fn imports_point_down() {
    let sources = rust_files(&["src"]);
    let modules = modules(&sources);
    let mut offences = Offences::default();
    for source in &sources {
        let module = &modules[&source.name];
        let Some(row) = row_of(&module[0]) else {
            offences.add(source, 1, &format!("`{}` has no place in the layering", module[0]));
            continue;
        };
        for (line, target) in imports(&source.code(), module) {
            let allowed = match row_of(&target) {
                None => false,
                Some(_) if target == module[0] => true,
                Some(at) => at < row && LAYERS[row].1.is_none_or(|o| o.contains(&&*target)),
            };
            if !allowed {
                offences.add(source, line, &format!("`{}` imports `{target}`", module[0]));
            }
        }
    }
    offences.none();
}

#[test]
fn engines_stay_behind_their_folders() {
    let mut offences = Offences::default();
    for source in rust_files(&["src"]) {
        for (number, line) in source.code().lines().enumerate() {
            for (name, places) in BEHIND {
                let place = places.iter().any(|p| source.name.starts_with(p));
                if !place && words(line).any(|w| w == name) {
                    offences.add(&source, number + 1, &format!("`{name}` is known here"));
                }
            }
        }
    }
    offences.none();
}

#[test]
fn files_say_what_they_are_and_stay_short() {
    let mut offences = Offences::default();
    for source in rust_files(&["src", "tests", "benches", "bench", "fuzz"]) {
        if !source.text.starts_with("//! ") {
            offences.add(&source, 1, "the first line must be `//! ` and a purpose");
        }
        let lines = source.text.lines().count();
        let max = if source.name.ends_with("_test.rs") { TEST_LINES_MAX } else { LINES_MAX };
        if lines > max {
            offences.add(&source, lines, &format!("{lines} lines, at most {max}"));
        }
        let stem = Path::new(&source.name).file_stem().and_then(|s| s.to_str()).unwrap_or("");
        let folders = source.name.split('/').rev().skip(1);
        for part in std::iter::once(stem).chain(folders).flat_map(|name| name.split('_')) {
            if NAMES_BANNED.contains(&part) {
                offences.add(&source, 1, &format!("`{part}` says nothing"));
            }
        }
    }
    offences.none();
}

#[test]
fn nothing_is_left_over() {
    let mut offences = Offences::default();
    for file in texts() {
        for (number, line) in file.text.lines().enumerate() {
            let number = number + 1;
            let lower = line.to_lowercase();
            let mut found: Vec<String> = LEFTOVERS
                .iter()
                .map(|(a, b)| format!("{a}{b}"))
                .filter(|word| line.contains(word.as_str()))
                .collect();
            let words = WORKPLACE.iter().map(|(a, b)| format!("{a}{b}"));
            found.extend(words.filter(|word| lower.contains(word.as_str())));
            found.extend(paths_below_work(line));
            for what in found {
                offences.add(&file, number, &format!("`{what}` does not belong here"));
            }
            if line.ends_with([' ', '\t', '\r']) {
                offences.add(&file, number, "trailing blank");
            }
        }
        if !file.text.is_empty() && !file.text.ends_with('\n') {
            offences.add(&file, file.text.lines().count(), "no newline at the end");
        }
    }
    offences.none();
}

#[test]
fn links_lead_somewhere() {
    let mut offences = Offences::default();
    let mut links = 0;
    for file in texts() {
        if file.name.ends_with(".md") {
            let folder = Path::new(&file.name).parent().unwrap_or(Path::new(""));
            for (number, target) in markdown_links(&file.text) {
                links += 1;
                let path = target.split('#').next().unwrap_or_default();
                if !path.is_empty() && !root().join(folder).join(path).exists() {
                    offences.add(&file, number, &format!("dead link: {target}"));
                }
            }
        }
        for (number, line) in file.text.lines().enumerate() {
            for decision in line.split("docs/adr/").skip(1) {
                let digits: String = decision.chars().take_while(char::is_ascii_digit).collect();
                if !digits.is_empty() && !decision_exists(&digits) {
                    offences.add(&file, number + 1, &format!("no decision docs/adr/{digits}"));
                }
            }
        }
    }
    assert!(links > 10, "only {links} links were seen");
    offences.none();
}

#[test]
fn decisions_are_numbered_once() {
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    let mut offences = Offences::default();
    for file in texts().into_iter().filter(|f| f.name.starts_with("docs/adr/")) {
        let name = file.name.trim_start_matches("docs/adr/").to_owned();
        let number: String = name.chars().take_while(char::is_ascii_digit).collect();
        if number.len() != 4 || !file.text.starts_with(&format!("# {number}. ")) {
            offences.add(&file, 1, "must be NNNN-title.md and begin with `# NNNN. `");
        }
        if let Some(other) = seen.insert(number, name) {
            offences.add(&file, 1, &format!("has the number of {other}"));
        }
    }
    assert!(seen.len() > 10, "only {} decisions were seen", seen.len());
    offences.none();
}

#[test]
fn the_rules_see_what_they_should() {
    let here = ["mail", "read", "tests"];
    assert_eq!(leaves("a::{b, c::{d, e as f}}"), ["a::b", "a::c::d", "a::c::e as f"]);
    assert_eq!(top("super::super::super::query::Op", &here).as_deref(), Some("query"));
    assert_eq!(top("super::Message", &here).as_deref(), Some("mail"));
    assert_eq!(top("std::fmt", &here), None);
    let code = code_only("use a::b; // crate::x\nlet s = \"crate::y\"; let c = '\"'; crate::z::f");
    let module = ["search".to_owned()];
    assert_eq!(imports(&code, &module), [(2, "z".to_owned())]);
    let nested = "mod tests {\n    use super::super::app::Error;\n}\npub(super) use super::ids;";
    let found = [(2, "app".to_owned()), (4, "ids".to_owned())];
    assert_eq!(imports(nested, &module), found);
    assert_eq!(
        code_only("'a' <'a> '\\'' r#\"x\"# '\\u{1}'.").trim_end(),
        "    <'a>                    ."
    );
    assert_eq!(paths_below_work(&format!("see {}/main", ["/wo", "rk"].concat())).len(), 1);
    assert!(paths_below_work(&format!("xl{0}book and net{0}s", ["/wo", "rk"].concat())).is_empty());
    let links = markdown_links("[a](b.md#c) `[d](e)` [f](https://g)\n```\n[h](i)\n```\n[j]: k.md");
    assert_eq!(links, [(1, "b.md#c".to_owned()), (5, "k.md".to_owned())]);
}
