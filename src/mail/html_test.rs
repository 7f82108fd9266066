//! HTML as mailers and spammers write it.

use std::time::{Duration, Instant};

use super::*;

fn text(html: &str) -> String {
    to_text(html).text
}

#[test]
fn structure_becomes_lines() {
    assert_eq!(text("<p>a <b>b</b>\n c<p>d<br>e<ul><li>f<li>g</ul>"), "a b c\nd\ne\n- f\n- g\n");
    assert_eq!(
        text("<table><tr><td>a<td>b</tr><tr><td></td><td>c</td></tr></table>x"),
        "a | b\nc\nx\n"
    );
    assert_eq!(
        text("a<blockquote>b<blockquote>c</blockquote></blockquote>d"),
        "a\n> b\n> > c\nd\n"
    );
    assert_eq!(text("<pre>a\n  b</pre>&eacute;&nbsp;x &lt;y&gt;"), "a\n  b\né x <y>\n");
    assert_eq!(text("<title>t</title><style>p{}</style><script>x<b></script><!-- c -->v"), "v\n");
}

#[test]
fn links_and_images_are_written_out() {
    let r = to_text(
        "<a href='https://x.org/p'>here</a> <a href=\"http://y.org/\">y.org</a> <a href='mailto:a@b'>a@b</a> <img alt='logo  x'><img>",
    );
    assert_eq!(r.text, "here (https://x.org/p) y.org a@b [image: logo x]\n");
    assert!(r.has_link);
    assert!(!to_text("<a href='#x'>y</a>").has_link);
}

#[test]
fn hidden_text_is_left_out_and_reported() {
    for html in [
        "<div style='display:none'>secret <p>more</div>seen",
        "<span hidden>secret</span>seen",
        "<font color=white>secret</font>seen",
        "<div style='background:#000'><span style='color:black'>secret</span></div>seen",
        "<td style='font-size:0'>secret<span style='font-size:12px'>seen</span></td>",
    ] {
        let r = to_text(html);
        assert_eq!((r.text.as_str(), r.hidden_text), ("seen\n", true), "{html}");
    }
    let r = to_text(
        "<div style='display:none'> &nbsp;&zwnj; </div><body bgcolor=black><font color=white>seen</font>",
    );
    assert_eq!((r.text.as_str(), r.hidden_text), ("seen\n", false));
    let r = to_text("<p style='display:none'>secret<p>seen");
    assert_eq!(r.text, "seen\n");
}

#[test]
fn text_hidden_by_simple_rules_is_left_out_and_reported() {
    for (rules, element) in [
        (".a{display:none}", "<p class='x a'>secret</p>"),
        (".A { Display : None }", "<p class=a>secret</p>"),
        ("p.a, b{visibility:hidden}", "<p class=a>secret</p><b>secret</b>"),
        ("#a{opacity:0}", "<p id=a>secret</p>"),
        ("<!-- .b{} .a{font-size:0} -->", "<div class=a><p>secret</p></div>"),
        (".a{color:#fff}", "<span class=a>secret</span>"),
        ("/* } .a{display:block} */ .a{display:none}", "<p class=a>secret</p>"),
        (".a{display:block} .a{display:none}", "<p class=a>secret</p>"),
        (".a{display:none!important}", "<p class=a style='display:block'>secret</p>"),
        ("#a{display:none} .a{display:block}", "<p class=a id=a>secret</p>"),
        ("@import 'x'; @media print{.a{display:block}} .a{display:none}", "<p class=a>secret</p>"),
        (".a{overflow:hidden} .b{max-height:0}", "<p class='a b'>secret</p>"),
    ] {
        let before = to_text(&format!("<style>{rules}</style>{element}<p>seen"));
        assert_eq!((before.text.as_str(), before.hidden_text), ("seen\n", true), "{rules}");
        let after = to_text(&format!("{element}<p>seen<style>{rules}</style>"));
        assert_eq!((after.text.as_str(), after.hidden_text), ("seen\n", true), "{rules}, late");
    }
}

#[test]
fn rules_that_do_not_hide_cost_no_text() {
    for (rules, element) in [
        (".a{display:none} .a{display:block}", "<p class=a>seen</p>"),
        (".a{display:none}", "<p class=a style='display:block'>seen</p>"),
        (".a{display:none}", "<p class=ab>seen</p>"),
        ("p.a{display:none}", "<div class=a>seen</div>"),
        ("@media print{.a{display:none}}", "<p class=a>seen</p>"),
        ("@media print{.b{color:red}.a{display:none}", "<p class=a>seen</p>"),
        (".b .a{display:none}", "<p class=a>seen</p>"),
        (".a:hover{display:none}", "<p class=a>seen</p>"),
        (".a{display:none", "<p class=a>seen</p>"),
        // The size of the paragraph is set by a rule that is not read.
        (".a{font-size:0} .a p{font-size:14px}", "<div class=a><p>seen</p></div>"),
        ("td.a{background:#fff} tr td.a{background:#000}", "<td class=a style='color:#fff'>seen"),
        (".a{color:#fff;background:#000}", "<p class=a>seen</p>"),
    ] {
        let r = to_text(&format!("<style>{rules}</style>{element}"));
        assert_eq!((r.text.as_str(), r.hidden_text), ("seen\n", false), "{rules}");
    }
    let r = to_text("<style>a{color:#fff;font-size:0}</style><a><img alt=seen></a>");
    assert_eq!(r.text, "[image: seen]\n");
    let r = to_text("<style media=print>.a{display:none}</style><p class=a>seen");
    assert_eq!(r.text, "seen\n");
    let r = to_text("<!--[if mso]><style>.a{display:none}</style><![endif]--><p class=a>seen");
    assert_eq!(r.text, "seen\n");
}

#[test]
fn cut_marks_are_offsets_into_the_text() {
    let r = to_text(
        "<div>new</div><div class='gmail_quote x'>On day A wrote:<blockquote>old</blockquote></div><div>below</div>",
    );
    let cut: Vec<&str> = r.cuts.iter().map(|c| &r.text[c.clone()]).collect();
    assert_eq!(cut, ["On day A wrote:\n> old\n"]);
    let r = to_text("new<hr id=stopSpelling>From: x");
    assert_eq!(&r.text[r.cuts[0].clone()], "From: x\n");
    let r = to_text("new<blockquote type=cite>old</blockquote>");
    assert_eq!(&r.text[r.cuts[0].clone()], "> old\n");
}

#[test]
fn hostile_nesting_is_linear_and_does_not_overflow_the_stack() {
    let started = Instant::now();
    let deep = format!("{}x", "<div>".repeat(400_000));
    assert_eq!(text(&deep), "x\n");
    let quotes = format!("{}x", "<blockquote>".repeat(100_000));
    assert!(text(&quotes).ends_with("x\n"));
    let formatting: String = (0..50_000)
        .map(|i| format!("<b id={i}>"))
        .chain((0..50_000).map(|_| "<p>".to_owned()))
        .collect();
    let _ = text(&formatting);
    let stray = format!("{}{}", "<i>".repeat(200_000), "</u>".repeat(200_000));
    let _ = text(&stray);
    let _ = text(&"<a b='".repeat(100_000));
    let _ = text(&"<!--".repeat(100_000));
    let rules: String = (0..5_000).map(|i| format!(".c{i},p.c{i},")).collect();
    let classes: String = (0..5_000).map(|i| format!("c{i} ")).collect();
    let element = format!("<p class='{classes}'>x</p>");
    let _ = text(&format!("<style>{rules}b{{color:red}}</style>{}", element.repeat(20)));
    let _ = text(&format!("<style>{}</style>", "a{".repeat(30_000)));
    let _ = text(&format!("<style>{}</style>", "/*".repeat(30_000)));
    let _ = text(&"<style>a{b:c}</style>x".repeat(10_000));
    assert!(started.elapsed() < Duration::from_secs(20), "quadratic: {:?}", started.elapsed());
}
