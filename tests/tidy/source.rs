//! The repository as text: which files there are, what a source names, where a page links to.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Default)]
pub(crate) struct Offences(Vec<String>);

impl Offences {
    /// Notes one.
    pub(crate) fn add(&mut self, file: &File, line: usize, what: &str) {
        self.0.push(format!("{}:{line}: {what}", file.name));
    }

    /// Fails when there are any.
    pub(crate) fn none(self) {
        assert!(self.0.is_empty(), "{} offences:\n{}", self.0.len(), self.0.join("\n"));
    }
}

pub(crate) struct File {
    /// Path from the root, with `/`.
    pub(crate) name: String,
    pub(crate) text: String,
}

impl File {
    /// The text with comments and the insides of literals blanked, line by line the same.
    pub(crate) fn code(&self) -> String {
        code_only(&self.text)
    }
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|e| e.path()) {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        if path.is_dir() {
            // Built, generated or fetched.
            if !matches!(name, "target" | "corpus" | "artifacts" | ".git") {
                walk(&path, found);
            }
        } else {
            found.push(path);
        }
    }
}

fn files(folders: &[&str], wanted: impl Fn(&str) -> bool) -> Vec<File> {
    let mut paths = Vec::new();
    folders.iter().for_each(|folder| walk(&root().join(folder), &mut paths));
    let mut files: Vec<File> = paths
        .iter()
        .filter_map(|path| {
            let name = path.strip_prefix(root()).ok()?.to_str()?.replace('\\', "/");
            wanted(&name).then(|| {
                let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{name}: {e}"));
                File { name, text }
            })
        })
        .collect();
    files.sort_by(|a, b| a.name.cmp(&b.name));
    files
}

pub(crate) fn rust_files(folders: &[&str]) -> Vec<File> {
    let files = files(folders, |name| name.ends_with(".rs"));
    assert!(files.len() > 50, "only {} sources were seen", files.len());
    files
}

/// Everything that people write by hand. Sample mail and snapshots hold what mail holds.
pub(crate) fn texts() -> Vec<File> {
    let files = files(&[""], |name| {
        let by_hand = [".rs", ".md", ".toml", ".sh"].iter().any(|end| name.ends_with(end))
            || name.starts_with(".ci/")
            || name.starts_with("LICENSE");
        by_hand && !name.starts_with("snapshots/")
    });
    assert!(files.len() > 50, "only {} texts were seen", files.len());
    files
}

/// Module path of every source, from the crate's root; files named by `#[path]` are children of
/// the file that names them.
pub(crate) fn modules(sources: &[File]) -> BTreeMap<String, Vec<String>> {
    let mut modules: BTreeMap<String, Vec<String>> = sources
        .iter()
        .map(|source| {
            let inner = source.name.trim_start_matches("src/").trim_end_matches(".rs");
            let mut path: Vec<String> = inner.split('/').map(str::to_owned).collect();
            if path.len() > 1 {
                path.pop_if(|last| last == "mod");
            }
            (source.name.clone(), path)
        })
        .collect();
    for source in sources {
        for line in source.text.lines() {
            let named = line.trim().strip_prefix("#[path = \"").and_then(|l| l.split('"').next());
            if let Some(named) = named {
                let folder = source.name.rsplit_once('/').map_or("", |(folder, _)| folder);
                let mut path = modules[&source.name].clone();
                path.push(named.trim_end_matches(".rs").to_owned());
                modules.insert(format!("{folder}/{named}"), path);
            }
        }
    }
    modules
}

/// Line and top folder of everything of ours that a file names: in `use` trees, where `super` and
/// `self` are followed, and as `crate::…` anywhere.
pub(crate) fn imports(code: &str, module: &[String]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    // Modules written inside the file, with the indentation of their opening line.
    let mut inner: Vec<(usize, String)> = Vec::new();
    let lines: Vec<&str> = code.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let trimmed = unpublished(line.trim());
        if trimmed == "}" {
            inner.pop_if(|(opened, _)| *opened == indent);
        }
        if let Some(name) = trimmed.strip_prefix("mod ").and_then(|l| l.strip_suffix(" {")) {
            inner.push((indent, name.to_owned()));
        }
        if trimmed.starts_with("use ") {
            let rest = lines[at..].join("\n");
            let tree = rest.split(';').next().unwrap_or_default();
            let tree = tree.split_once("use ").map_or("", |(_, tree)| tree);
            let here: Vec<&str> =
                module.iter().chain(inner.iter().map(|(_, n)| n)).map(String::as_str).collect();
            let tops = leaves(tree).into_iter().filter_map(|leaf| top(&leaf, &here));
            found.extend(tops.map(|top| (at + 1, top)));
        } else {
            for (before, rest) in line.match_indices("crate::").map(|(i, _)| line.split_at(i)) {
                if !before.ends_with(|c: char| c.is_alphanumeric() || "_$".contains(c)) {
                    found
                        .extend(words(&rest["crate::".len()..]).next().map(|w| (at + 1, w.into())));
                }
            }
        }
    }
    found
}

/// A line without `pub`, `pub(crate)` and the like.
fn unpublished(line: &str) -> &str {
    let Some(rest) = line.strip_prefix("pub") else { return line };
    let rest = match rest.strip_prefix('(') {
        Some(inside) => inside.split_once(')').map_or(rest, |(_, behind)| behind),
        None => rest,
    };
    rest.strip_prefix(' ').unwrap_or(line)
}

/// `a::{b, c::{d, e}}` → `a::b`, `a::c::d`, `a::c::e`.
pub(crate) fn leaves(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else { return vec![tree.to_owned()] };
    let close = tree.rfind('}').unwrap_or(tree.len());
    let prefix = &tree[..open];
    let (mut depth, mut start, mut all) = (0_usize, 0, Vec::new());
    let inside = &tree[open + 1..close];
    for (at, c) in inside.char_indices().chain([(inside.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                let part = inside[start..at].trim();
                if !part.is_empty() {
                    all.extend(leaves(part).into_iter().map(|leaf| format!("{prefix}{leaf}")));
                }
                start = at + 1;
            }
            _ => {}
        }
    }
    all
}

/// The top folder that a path leads to from a module; `None` when it leads out of the crate or to
/// the crate's root alone.
pub(crate) fn top(path: &str, here: &[&str]) -> Option<String> {
    let path = path.split(" as ").next().unwrap_or(path);
    let mut steps = path.split("::").map(str::trim).peekable();
    let mut at: Vec<&str> = match *steps.peek()? {
        "crate" => Vec::new(),
        "self" | "super" => here.to_vec(),
        _ => return None,
    };
    for step in steps {
        match step {
            "crate" => at.clear(),
            "self" | "*" => {}
            "super" => {
                at.pop();
            }
            other => at.push(other),
        }
    }
    at.first().map(|folder| (*folder).to_owned())
}

pub(crate) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|w| !w.is_empty())
}

/// Blanks comments and what stands in literals.
pub(crate) fn code_only(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if c == '"' {
            quoted(rest)
        } else if c == 'r' && !code.ends_with(|b: char| b.is_alphanumeric() || b == '_') {
            raw(rest)
        } else if c == '\'' {
            character(rest)
        } else {
            0
        };
        if skipped == 0 {
            code.push(c);
            rest = &rest[c.len_utf8()..];
        } else {
            code.extend(rest[..skipped].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            rest = &rest[skipped..];
        }
    }
    code
}

fn quoted(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Length of a raw string at the start, 0 when there is none.
fn raw(rest: &str) -> usize {
    let hashes = rest[1..].bytes().take_while(|b| *b == b'#').count();
    let open = 1 + hashes;
    if !rest[open..].starts_with('"') {
        return 0;
    }
    let close = format!("\"{}", "#".repeat(hashes));
    rest[open + 1..].find(&close).map_or(rest.len(), |at| open + 1 + at + close.len())
}

/// Length of a character literal at the start, 0 for a lifetime.
fn character(rest: &str) -> usize {
    let mut inside = rest.char_indices().skip(1);
    match inside.next() {
        Some((_, '\\')) => {
            rest[2..].char_indices().skip(1).find(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 3)
        }
        Some(_) => inside.next().filter(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 1),
        None => 0,
    }
}

/// Absolute paths of the machine on which this is written.
pub(crate) fn paths_below_work(line: &str) -> Vec<String> {
    let start = ["/wo", "rk"].concat();
    let joins = |c: char| c.is_alphanumeric() || "_-.~".contains(c);
    line.match_indices(&start)
        .filter(|(at, _)| !line[..*at].ends_with(|c: char| joins(c) || c == '/'))
        .filter(|(at, _)| !line[at + start.len()..].starts_with(joins))
        .map(|_| start.clone())
        .collect()
}

/// Line and target of each relative link, outside of code.
pub(crate) fn markdown_links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    let mut fenced = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        // Every other piece between backticks is code.
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join(" ");
        let inline = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let reference = prose.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
        for target in inline.chain(reference.map(|(_, target)| target)) {
            let target = target.split_whitespace().next().unwrap_or_default();
            if !target.contains("://") && !target.starts_with("mailto:") {
                links.push((number + 1, target.to_owned()));
            }
        }
    }
    links
}

pub(crate) fn decision_exists(digits: &str) -> bool {
    let Ok(entries) = fs::read_dir(root().join("docs/adr")) else { return false };
    let prefix = format!("{digits}-");
    digits.len() == 4
        && entries.flatten().any(|e| e.file_name().to_string_lossy().starts_with(&prefix))
}
