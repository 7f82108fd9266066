//! Whole messages, small and synthetic; each name says what once went wrong or must not.

use super::super::message::{Flags, Kind};
use super::*;

fn mail(raw: &str) -> Message {
    read(raw.as_bytes(), &ReadHints::default())
}

fn kinds(m: &Message) -> Vec<DefectKind> {
    m.defects.iter().map(|d| d.kind).collect()
}

#[test]
fn a_plain_message() {
    let m = mail(
        "From: Ann Lee <Ann@X.org>\nTo: bo@y.org\nSubject: =?utf-8?q?Caf=C3=A9?=\nDate: Thu, 22 Aug 2002 11:26:25 +0000\nMessage-ID: <1@X.org>\nReferences: <0@x> <00@x>\nIn-Reply-To: <0@x>\n\nHello\n\n> old\n-- \nAnn\n",
    );
    assert_eq!(m.from, [Address { name: "Ann Lee".into(), address: "ann@x.org".into() }]);
    assert_eq!((m.subject.as_str(), m.message_id.as_str()), ("Café", "1@x.org"));
    assert_eq!((m.references.len(), m.in_reply_to.as_slice()), (2, &["0@x".to_owned()][..]));
    assert_eq!(m.sent_ms, Some(1_030_015_585_000));
    assert_eq!(m.new_text(), "Hello\n\n");
    assert_eq!(m.quoted_text(), "> old\n-- \nAnn\n");
    assert!(m.defects.is_empty(), "{:?}", m.defects);
}

#[test]
fn every_line_end_reads_the_same() {
    let raw = "Subject: x\nMessage-ID: <1@x>\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\none \ntwo\n--b--\n";
    let lf = mail(raw);
    assert_eq!(lf.text, "one \ntwo\n".trim_end());
    for ends in ["\r\n", "\r"] {
        let other = mail(&raw.replace('\n', ends));
        assert_eq!(
            (&other.text, &other.subject, other.content_digest),
            (&lf.text, &lf.subject, lf.content_digest),
            "{ends:?}"
        );
        assert_ne!(other.raw_digest, lf.raw_digest);
    }
}

#[test]
fn content_digest_does_not_see_the_transfer_encoding() {
    let head = "Subject: x\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n";
    let plain = mail(&format!("{head}\nCaf\u{e9} one\n"));
    let qp = mail(&format!(
        "{head}Content-Transfer-Encoding: quoted-printable\n\nCaf=C3=A9=20=\none\n\n"
    ));
    let b64 = mail(&format!("{head}Content-Transfer-Encoding: base64\n\nQ2Fmw6kgb25lDQo=\n"));
    assert_eq!(plain.content_digest, qp.content_digest);
    assert_eq!(plain.content_digest, b64.content_digest);
    assert_ne!(plain.content_digest, mail(&format!("{head}\nCaf\u{e9} two\n")).content_digest);
}

#[test]
fn a_list_footer_does_not_replace_an_html_body() {
    let m = mail(
        "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/html\n\n<p>The body\n--b\nContent-Type: text/plain\n\n____________________\ndev mailing list\nhttp://x.org/listinfo\n--b--\n",
    );
    assert!(m.text.starts_with("The body\n") && m.text.contains("mailing list"), "{}", m.text);
    assert!(m.text_from_html && m.flags.has_link);
    assert_eq!(m.new_text(), "The body\n");
}

#[test]
fn alternatives_choose_plain_unless_it_is_a_pointer() {
    let raw = |plain: &str, html: &str| {
        format!(
            "Content-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain\n\n{plain}\n--b\nContent-Type: text/html\n\n{html}\n--b--\n"
        )
    };
    assert_eq!(mail(&raw("Plain words.", "<b>Plain words.</b>")).text.trim(), "Plain words.");
    let m = mail(&raw(
        "See the HTML part.",
        "<p>A long story that is told in the other part only, in many words.",
    ));
    assert!(m.text_from_html && m.text.starts_with("A long story"));
    let m = mail(&raw("", "<p>Only here"));
    assert_eq!((m.text.as_str(), m.attachments.len()), ("Only here\n", 0));
}

#[test]
fn attachments_and_their_two_facts() {
    let m = mail(concat!(
        "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: multipart/related; boundary=r\n\n--r\nContent-Type: text/html\n\n<img src=cid:1>hi\n",
        "--r\nContent-Type: image/gif\nContent-ID: <1>\nContent-Disposition: inline; filename=\"a.gif\"\n\nGIF89a\n--r--\n",
        "--b\nContent-Type: application/octet-stream; name=\"../x.pdf\"\nContent-Transfer-Encoding: base64\n\nJVBERi0xLjQ=\n--b--\n"
    ));
    assert_eq!(m.text, "hi\n");
    let [gif, pdf] = m.attachments.as_slice() else { panic!("{:?}", m.attachments) };
    assert_eq!(
        (gif.by_disposition, gif.by_mime_class, gif.content_id.as_str()),
        (false, false, "1")
    );
    assert_eq!((pdf.by_disposition, pdf.by_mime_class), (true, true));
    assert_eq!(
        (pdf.filename.as_str(), pdf.sniffed_type, pdf.bytes),
        ("x.pdf", Some("application/pdf"), 8)
    );
}

#[test]
fn nested_messages_are_attachments_with_text() {
    let inner = "Subject: inner\nFrom: a@x\nContent-Type: multipart/mixed; boundary=i\n\n--i\n\ninner text\n--i--\n";
    let m = mail(&format!(
        "Content-Type: multipart/mixed; boundary=b\n\n--b\n\nouter\n--b\nContent-Type: message/rfc822\n\n{inner}\n--b--\n"
    ));
    assert_eq!(m.text.trim(), "outer");
    assert_eq!(m.attachments[0].text, "inner\na@x\n\ninner text");
    let mut deep = "Subject: s0\n\ndeepest\n".to_owned();
    for i in 1..40 {
        deep = format!("Subject: s{i}\nContent-Type: message/rfc822\n\n{deep}");
    }
    let m = mail(&deep);
    assert!(m.attachments[0].text.contains("s36") && !m.attachments[0].text.contains("s35"));
}

#[test]
fn encrypted_and_signed_states() {
    let flags = |raw: &str| mail(raw).flags;
    assert!(flags("Content-Type: multipart/encrypted; boundary=b\n\n--b\nContent-Type: application/pgp-encrypted\n\nVersion: 1\n--b\nContent-Type: application/octet-stream\n\nx\n--b--\n").encrypted);
    let signed = mail(
        "Content-Type: multipart/signed; boundary=b\n\n--b\n\nhi\n--b\nContent-Type: application/pgp-signature\n\nx\n--b--\n",
    );
    assert!(signed.flags.signed && !signed.attachments[0].by_mime_class);
    assert!(flags("\n\n-----BEGIN PGP MESSAGE-----\n\nabc\n-----END PGP MESSAGE-----\n").encrypted);
    assert_eq!(flags("Subject: x\n\n> -----BEGIN PGP MESSAGE-----\n"), Flags::default());
    assert!(
        flags("Content-Type: application/pkcs7-mime; smime-type=enveloped-data\n\nxx\n").encrypted
    );
}

#[test]
fn delivery_reports_keep_their_text() {
    let m = mail(
        "Content-Type: multipart/report; report-type=delivery-status; boundary=b\n\n--b\n\nIt failed.\n--b\nContent-Type: message/delivery-status\n\nFinal-Recipient: rfc822; a@x\n--b\nContent-Type: text/rfc822-headers\n\nSubject: lost\n--b--\n",
    );
    assert_eq!(m.kind, Kind::Dsn);
    assert!(m.text.contains("It failed.") && m.text.contains("Final-Recipient"));
    assert_eq!(m.attachments[0].text.trim(), "lost");
    assert_eq!(mail("From: MAILER-DAEMON@x\nSubject: Returned mail: x\n\n").kind, Kind::Dsn);
}

#[test]
fn nothing_is_too_broken_to_read() {
    for raw in [
        "",
        "\n",
        "\0",
        ":",
        "From ",
        "From: \n",
        "\r",
        "\r\r\r",
        "--",
        "Content-Type: multipart/mixed; boundary=\"\"\n\n--\n--\n",
        "\u{feff}Subject: x\n\ny",
    ] {
        let m = mail(raw);
        assert!(m.message_id_synthetic && m.received_ms == 0);
    }
    let m = mail("no headers here\nat all\n");
    assert_eq!(m.text, "no headers here\nat all\n");
    assert!(kinds(&m).contains(&DefectKind::NoHeaders) && kinds(&m).contains(&DefectKind::Undated));
    assert_eq!(m.message_id.len(), 64 + "@synthetic.invalid".len());
}

#[test]
fn a_uuencoded_file_becomes_an_attachment() {
    let m = mail("Subject: x\n\nhere\nbegin 644 cat.txt\n#0V%T\n`\nend\nbye\n");
    assert_eq!(
        (m.text.as_str(), m.attachments[0].filename.as_str(), m.attachments[0].bytes),
        ("here\nbye\n", "cat.txt", 3)
    );
}

#[test]
fn control_characters_and_hidden_characters_are_reported() {
    let m = mail("Subject: x\n\na\0b\u{202e}c\n");
    assert_eq!(m.text, "abc\n");
    assert!(m.flags.hidden_text && kinds(&m).contains(&DefectKind::ControlsRemoved));
}

#[test]
fn format_flowed_paragraphs_are_whole() {
    let m = mail("Content-Type: text/plain; format=flowed; delsp=yes\n\nTo \ngether\n");
    assert_eq!(m.text, "Together\n");
}

#[test]
fn archived_addresses_are_unmasked() {
    let m = mail("From: glyph at twisted.example (Glyph)\nSubject: x\n\nx\n");
    assert_eq!(
        m.from[0],
        Address { name: "Glyph".into(), address: "glyph@twisted.example".into() }
    );
}

#[test]
fn a_page_of_pictures_is_kept_as_an_attachment() {
    let m = mail("Content-Type: text/html\n\n<img src=http://x.org/a.gif>\n");
    assert_eq!((m.text.as_str(), m.attachments.len()), ("", 1));
    assert!(!m.attachments[0].by_disposition && !m.attachments[0].by_mime_class);
}

#[test]
fn text_outside_of_empty_parts_is_rescued() {
    let m = mail("Content-Type: multipart/mixed; boundary=b\n\n--b\n\n--b--\nall of it is here\n");
    assert!(m.text.contains("all of it is here") && m.flags.parse_degraded);
    let m = mail("Content-Type: multipart/mixed; boundary=b\n\nno parts\n--b--\n");
    assert!(m.text.contains("no parts"));
}

#[test]
fn hostile_messages_take_linear_time() {
    let started = std::time::Instant::now();
    let html_parts = "--b\nContent-Type: text/html\n\n<p>x\n".repeat(499);
    let _ = mail(&format!(
        "Content-Type: multipart/alternative; boundary=b\n\n--b\n\nhtml\n{html_parts}"
    ));
    for piece in [
        "begin 644 x\n",
        "=?a?q? ",
        "<",
        "(",
        "\"",
        "a,",
        "<a@b",
        "--b\n",
        "-----BEGIN PGP ",
        "On 1\n",
        "&#",
        "=",
        "\u{200d}",
        "\r",
    ] {
        let many = piece.repeat(200_000 / piece.len());
        let folded = many.replace('\n', "");
        let _ = mail(&format!(
            "Subject: {folded}\nFrom: {folded}\nReferences: {folded}\nContent-Type: {folded}\n\n{many}"
        ));
        let _ = mail(&format!(
            "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/html\n\n{many}"
        ));
    }
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}

proptest::proptest! {
    #[test]
    fn no_bytes_panic(raw in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..600)) {
        let m = read(&raw, &ReadHints::default());
        let _ = (m.new_text(), m.quoted_text());
    }

    #[test]
    fn no_mail_like_text_panics(raw in "(Content-Type: (multipart/mixed|text/html|text/plain|message/rfc822); boundary=\"?[ab]\n|Content-Transfer-Encoding: (base64|quoted-printable)\n|--[ab](--)?\n|\n|From: [<>\"(),;:@a ]{0,12}\n|Subject: (=\\?utf-8\\?[qb]\\?[=A-F0-9]{0,9}(\\?=)?)*\n|<[a-z/]{1,4}|=[0-9A-Fé]|\r|On 1 x wrote:\n|> x\n|-- \n|Date: [0-9:/ -]{1,20}\n){0,40}") {
        let m = read(raw.as_bytes(), &ReadHints::default());
        let _ = (m.new_text(), m.quoted_text());
    }
}

#[test]
fn undeclared_bytes_of_headers_and_text_tell_their_charset() {
    for (charset, subject, body) in [
        (encoding_rs::GBK, "报价", "明天上午十点在会议室讨论锅炉的维修计划，请准时出席。"),
        (encoding_rs::BIG5, "報價", "明天上午十點在會議室討論鍋爐的維修計畫，請準時出席。"),
    ] {
        let mail = format!("Subject: {subject}\nFrom: {subject} <a@x.test>\n\n{body}\n");
        let (raw, _, failed) = charset.encode(&mail);
        assert!(!failed);
        let m = read(&raw, &ReadHints::default());
        assert_eq!((m.subject.as_str(), m.from[0].name.as_str()), (subject, subject));
        assert_eq!(m.text.trim(), body);
        assert!(kinds(&m).contains(&DefectKind::CharsetMended));
    }
}
