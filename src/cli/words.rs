//! Words of a query that begin with a hyphen (`-from:ada`), told from options.
//!
//! clap can take them for words only by taking every later option for one too. So they are marked
//! before it reads the line, with a character that no argument can hold, and unmarked when it
//! hands them out. Options are `--long` everywhere but for `-h` and `-V`, so nothing is lost.

use std::convert::Infallible;
use std::ffi::OsString;

/// No argument of a process can hold it.
const MARK: char = '\0';
/// Options of `search` and of every command that take the next argument.
const WITH_VALUE: [&str; 5] = ["--data-dir", "--config", "--mailbox", "--limit", "--sort"];

/// Marks the words of a `search`; other command lines stay as they are.
pub(super) fn mark(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let (mut searching, mut is_value) = (None, true);
    let mut marked = Vec::new();
    for argument in arguments {
        let text = argument.to_str().unwrap_or_default();
        let is_word = text.len() > 1 && text.starts_with('-') && !text.starts_with("--");
        let next_is_value = !is_value && WITH_VALUE.contains(&text);
        let mut argument_out = argument.clone();
        match searching {
            // The name of the program and values of options decide nothing.
            _ if is_value => {}
            None if !text.starts_with('-') => searching = Some(text == "search"),
            Some(true) if text == "--" => searching = Some(false),
            Some(true) if is_word && text != "-h" => argument_out = format!("{MARK}{text}").into(),
            _ => {}
        }
        is_value = next_is_value;
        marked.push(argument_out);
    }
    marked
}

/// The word without its mark.
#[expect(clippy::unnecessary_wraps, reason = "the form clap asks of a value parser")]
pub(super) fn unmark(word: &str) -> Result<String, Infallible> {
    Ok(word.strip_prefix(MARK).unwrap_or(word).to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::super::args::{Arguments, Command};
    use super::*;

    fn search(line: &str) -> (Vec<String>, u32, bool) {
        let line = mark(line.split(' ').map(OsString::from));
        let Arguments { global, command } = Arguments::try_parse_from(line).expect("understood");
        let Command::Search(search) = command else { panic!("a search") };
        (search.query, search.limit, global.json)
    }

    #[test]
    fn what_begins_with_a_hyphen_is_a_word_and_options_stay_options() {
        let (query, limit, json) =
            search("postrider --data-dir search search a -has:b -from:x --limit 3 -c --json");
        assert_eq!(query, ["a", "-has:b", "-from:x", "-c"]);
        assert_eq!((limit, json), (3, true));
        assert_eq!(search("postrider search -- -a --json").0, ["-a", "--json"]);
    }

    #[test]
    fn values_and_other_commands_stay() {
        let line = ["postrider", "search", "a", "--limit", "-5", "-h"].map(OsString::from);
        assert_eq!(mark(line.clone().into_iter()), line);
        let line = ["postrider", "import", "-x"].map(OsString::from);
        assert_eq!(mark(line.clone().into_iter()), line);
    }
}
