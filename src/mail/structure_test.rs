//! Structures, whole and broken.

use std::fmt::Write as _;

use super::*;

fn shape(raw: &str) -> (Vec<String>, bool, bool) {
    let bytes = raw.as_bytes();
    let (headers, from) = header::split(bytes, 0, true, |_| false);
    let tree = walk(bytes, headers, from);
    let lines = (0..tree.parts.len())
        .map(|i| {
            let p = &tree.parts[i];
            let body = if p.is_container { "…".into() } else { String::from_utf8_lossy(p.body) };
            format!("{} {} {body}", tree.path(i), p.content_type.value)
        })
        .collect();
    (lines, tree.boundary_damaged, tree.limit_met)
}

#[test]
fn nested_parts_and_prefix_boundaries() {
    let raw = "Content-Type: multipart/mixed; boundary=a\n\npre\n--a\n\none\n--a\nContent-Type: multipart/alternative; boundary=ab\n\n--ab\n\ntwo\n--ab--\n--a--\npost\n";
    let (lines, damaged, limit) = shape(raw);
    assert_eq!(
        lines,
        [
            "0 multipart/mixed …",
            "1 text/plain one",
            "2 multipart/alternative …",
            "2.1 text/plain two"
        ]
    );
    assert!(!damaged && !limit);
}

#[test]
fn an_unclosed_inner_boundary_does_not_swallow_the_outer_parts() {
    let raw = "Content-Type: multipart/mixed; boundary=a\n\n--a\nContent-Type: multipart/alternative; boundary=b\n\n--b\n\none\n--a\n\ntwo\n";
    let (lines, damaged, _) = shape(raw);
    assert_eq!(lines[2..], ["1.1 text/plain one", "2 text/plain two\n"]);
    assert!(damaged);
}

#[test]
fn a_boundary_that_never_comes_leaves_the_text_readable() {
    let (lines, damaged, _) = shape("Content-Type: multipart/mixed; boundary=a\n\nhello\n");
    assert_eq!(lines, ["0 multipart/mixed hello\n"]);
    assert!(damaged);
    let (lines, _, _) =
        shape("Content-Type: multipart/mixed\n\n--x\nContent-Type: text/plain\n\nhello\n--x--\n");
    assert_eq!(lines[1], "1 text/plain hello");
}

#[test]
fn headers_that_run_into_the_next_delimiter_end_there() {
    let (lines, _, _) = shape(
        "Content-Type: multipart/mixed; boundary=a\n\n--a\nContent-Type: text/html\n--a\n\ntwo\n--a--\n",
    );
    assert_eq!(lines[1..], ["1 text/html ", "2 text/plain two"]);
}

#[test]
fn parts_and_depth_are_bounded() {
    let mut raw = "Content-Type: multipart/mixed; boundary=a\n\n".to_owned();
    raw.push_str(&"--a\n\nx\n".repeat(2_000));
    let (lines, _, limit) = shape(&raw);
    assert_eq!(lines.len(), PARTS_MAX + 1);
    assert!(limit);
    let mut deep = String::new();
    for i in 0..100 {
        let _ = write!(deep, "Content-Type: multipart/mixed; boundary=b{i}\n\n--b{i}\n");
    }
    let (lines, _, limit) = shape(&deep);
    assert_eq!(lines.len(), DEPTH_MAX + 1);
    assert!(limit);
}

#[test]
fn words_after_a_delimiter_do_not_hide_it() {
    let (lines, damaged, _) =
        shape("Content-Type: multipart/mixed; boundary=a\n\n--a ignore me\n\none\n--a-- me too\n");
    assert_eq!(lines[1], "1 text/plain one");
    assert!(!damaged);
}
