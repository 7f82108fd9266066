//! Address headers as real mail writes them.

use super::*;

fn read(raw: &str) -> Vec<(String, String)> {
    list(raw.as_bytes(), None, true).entries.into_iter().map(|a| (a.name, a.address)).collect()
}

fn one(raw: &str) -> (String, String) {
    let all = read(raw);
    assert_eq!(all.len(), 1, "{raw}: {all:?}");
    all.into_iter().next().unwrap_or_default()
}

fn pair(name: &str, address: &str) -> (String, String) {
    (name.to_owned(), address.to_owned())
}

#[test]
fn usual_forms() {
    assert_eq!(one("Ann Lee <Ann.Lee@Example.ORG>"), pair("Ann Lee", "ann.lee@example.org"));
    assert_eq!(one("\"Lee, Ann\" <a@x.org>"), pair("Lee, Ann", "a@x.org"));
    assert_eq!(one("a@x.org (Ann (the boss) Lee)"), pair("Ann (the boss) Lee", "a@x.org"));
    assert_eq!(one("=?utf-8?Q?J=C3=B6?= <j@x.org>"), pair("Jö", "j@x.org"));
    assert_eq!(one("<a@x.org>"), pair("", "a@x.org"));
    assert_eq!(read("a@x.org, Bo <b@y.org>"), [pair("", "a@x.org"), pair("Bo", "b@y.org")]);
}

#[test]
fn groups_give_their_members() {
    assert_eq!(
        read("Friends: a@x.org, Bo <b@y.org>;"),
        [pair("", "a@x.org"), pair("Bo", "b@y.org")]
    );
    assert!(read("undisclosed-recipients:;").is_empty());
}

#[test]
fn masked_addresses_of_archives_are_read() {
    assert_eq!(one("glyph at twisted.example (Glyph L)"), pair("Glyph L", "glyph@twisted.example"));
    assert_eq!(one("jk at host"), pair("", "jk@host"));
    assert_eq!(one("Meet me at noon"), pair("Meet me at noon", ""));
}

#[test]
fn idna_domains_become_a_labels() {
    assert_eq!(one("x@BÜCHER.example"), pair("", "x@xn--bcher-kva.example"));
    assert_eq!(address_normal("mailto:A@B.c").as_deref(), Some("a@b.c"));
    assert_eq!(address_normal("<@relay,@b:u@h>").as_deref(), Some("u@h"));
    assert_eq!(address_normal("no address"), None);
    assert_eq!(address_normal("a b@c"), None);
}

#[test]
fn damage_keeps_what_can_be_read() {
    assert_eq!(one("Doe, John <j@x.org>"), pair("Doe, John", "j@x.org"));
    assert_eq!(one("\"Ann <a@x.org>"), pair("\"Ann", "a@x.org"));
    assert_eq!(one("Ann (open <a@x.org>"), pair("Ann (open", "a@x.org"));
    assert_eq!(one("Ann <a@x.org"), pair("Ann", "a@x.org"));
    assert_eq!(one("Ann a@x.org"), pair("Ann", "a@x.org"));
    assert_eq!(one("\"a b\"@x.org"), pair("", "\"a b\"@x.org"));
    assert_eq!(one("'Ann' <a@x.org>"), pair("Ann", "a@x.org"));
    assert_eq!(one("root"), pair("root", ""));
    assert_eq!(one("user @ host.org"), pair("", "user@host.org"));
    assert!(read("<>").is_empty());
}
