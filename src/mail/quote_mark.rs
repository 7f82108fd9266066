//! Lines that announce quoted mail: attributions, separators, header blocks, `>` marks.
//!
//! Phrases of many mailers and languages, matched by hand (no regular expression, nothing compiled
//! per message). Each test looks at one line or a few; none allocates unless the line is a candidate.

/// Longest line that can be an attribution, bytes.
const ATTRIBUTION_BYTES_MAX: usize = 300;

/// `On … wrote:` in the languages of digest §1.9 and some more; whole words, lower case.
const VERBS: [&str; 27] = [
    "wrote",
    "writes",
    "said",
    "schrieb",
    "geschrieben",
    "écrit",
    "ecrit",
    "escribió",
    "escribio",
    "ha scritto",
    "scrisse",
    "schreef",
    "geschreven",
    "escreveu",
    "skrev",
    "napisał",
    "napisała",
    "napisał(a)",
    "pisze",
    "писал",
    "пишет",
    "написал",
    "書きました",
    "写道",
    "寫道",
    "kirjoitti",
    "yazdı",
];

/// How an attribution of the same languages begins.
const STARTERS: [&str; 22] = [
    "On ",
    "Am ",
    "Le ",
    "El ",
    "Il ",
    "Op ",
    "Em ",
    "Den ",
    "På ",
    "Dnia ",
    "W dniu ",
    "Il giorno ",
    "Quoting ",
    "At ",
    "In ",
    "On\u{A0}",
    "Le\u{A0}",
    "Am\u{A0}",
    "Dne ",
    "在 ",
    "于 ",
    "20",
];

/// An attribution that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attribution {
    /// How many lines it takes, 1–3.
    pub(super) lines: usize,
    /// It looks like one even with no quoted line after it.
    pub(super) is_sure: bool,
}

/// Is there an attribution at the first of `lines`?
pub(super) fn attribution(lines: &[&str]) -> Option<Attribution> {
    let first = lines.first()?.trim();
    if first.is_empty() || first.len() > ATTRIBUTION_BYTES_MAX {
        return None;
    }
    let starts = may_start(first) && STARTERS.iter().any(|s| first.starts_with(s));
    if !starts && !ends_like_one(first) {
        return None;
    }
    if ends_like_one(first) {
        let lower = first.to_lowercase();
        if has_verb(&lower) {
            let dated = lower.bytes().any(|b| b.is_ascii_digit());
            return Some(Attribution { lines: 1, is_sure: starts && dated });
        }
        return None;
    }
    // The line was wrapped: the verb stands at the end of the second or third one.
    if !starts || !first.bytes().any(|b| b.is_ascii_digit()) {
        return None;
    }
    for extra in 1..=2 {
        let next = lines.get(extra)?.trim();
        if next.is_empty() || next.len() > ATTRIBUTION_BYTES_MAX || next.starts_with('>') {
            return None;
        }
        if ends_like_one(next) {
            let joined = format!("{first} {next}").to_lowercase();
            return has_verb(&joined).then_some(Attribution { lines: extra + 1, is_sure: true });
        }
    }
    None
}

/// First bytes of [`STARTERS`], so that most lines cost one comparison.
fn may_start(line: &str) -> bool {
    matches!(
        line.as_bytes().first(),
        Some(b'O' | b'A' | b'L' | b'E' | b'I' | b'D' | b'P' | b'W' | b'Q' | b'2' | 0xE5 | 0xE4)
    )
}

fn ends_like_one(line: &str) -> bool {
    line.ends_with([':', '：'])
}

fn has_verb(lower: &str) -> bool {
    VERBS.iter().any(|verb| {
        lower.match_indices(verb).any(|(at, _)| {
            let before = lower[..at].chars().next_back();
            let after = lower[at + verb.len()..].chars().next();
            let edge = |c: Option<char>| {
                c.is_none_or(|c| !c.is_alphabetic() || !c.is_ascii() && !verb.is_ascii())
            };
            edge(before) && edge(after)
        })
    })
}

/// What a separator line announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
    /// `-----Original Message-----`
    Original,
    /// `---------- Forwarded message ---------`
    Forward,
}

/// Is the line a separator before an original or forwarded message?
pub(super) fn separator(line: &str) -> Option<Separator> {
    let line = line.trim();
    if line.len() > 100 {
        return None;
    }
    if line.starts_with(['-', '_', '*', '=']) {
        let core = line.trim_matches(|c| matches!(c, '-' | '_' | '*' | '=' | ' ')).to_lowercase();
        let dashes = line.len() - line.trim_start_matches(['-', '_', '*', '=']).len();
        if dashes < 2 || core.is_empty() {
            return None;
        }
        const ORIGINAL: [&str; 25] = [
            "original message",
            "original mail",
            "original email",
            "original-nachricht",
            "ursprüngliche nachricht",
            "originalnachricht",
            "message d'origine",
            "message original",
            "message d’origine",
            "mensaje original",
            "messaggio originale",
            "oorspronkelijk bericht",
            "mensagem original",
            "ursprungligt meddelande",
            "originalmeddelande",
            "oprindelig meddelelse",
            "opprinnelig melding",
            "wiadomość oryginalna",
            "oryginalna wiadomość",
            "исходное сообщение",
            "оригинальное сообщение",
            "元のメッセージ",
            "原始邮件",
            "邮件原件",
            "原始郵件",
        ];
        const FORWARD: [&str; 13] = [
            "forwarded message",
            "forwarded by",
            "forwarded mail",
            "forward",
            "weitergeleitete nachricht",
            "message transféré",
            "message transmis",
            "mensaje reenviado",
            "messaggio inoltrato",
            "doorgestuurd bericht",
            "mensagem encaminhada",
            "пересылаемое сообщение",
            "转发的邮件",
        ];
        if ORIGINAL.iter().any(|p| core.starts_with(p)) {
            return Some(Separator::Original);
        }
        return FORWARD.iter().any(|p| core.starts_with(p)).then_some(Separator::Forward);
    }
    const APPLE: [&str; 7] = [
        "Begin forwarded message:",
        "Anfang der weitergeleiteten",
        "Début du message",
        "Inizio messaggio inoltrato",
        "Begin doorgestuurd bericht",
        "Inicio del mensaje reenviado",
        "Início da mensagem",
    ];
    APPLE.iter().any(|p| line.starts_with(p)).then_some(Separator::Forward)
}

/// Do the lines begin with a header block as Outlook writes it: From, then within four lines a date
/// and To or Subject?
pub(super) fn header_block(lines: &[&str]) -> bool {
    const FROM: [&str; 20] = [
        "from",
        "von",
        "de",
        "da",
        "van",
        "från",
        "fra",
        "od",
        "от",
        "差出人",
        "发件人",
        "寄件者",
        "寄件人",
        "lähettäjä",
        "kimden",
        "feladó",
        "odesílatel",
        "expéditeur",
        "mittente",
        "remitente",
    ];
    const SENT: [&str; 25] = [
        "sent",
        "date",
        "gesendet",
        "datum",
        "envoyé",
        "enviado",
        "enviada",
        "fecha",
        "data",
        "inviato",
        "verzonden",
        "skickat",
        "sendt",
        "dato",
        "wysłano",
        "дата",
        "отправлено",
        "送信日時",
        "日時",
        "发送时间",
        "发送日期",
        "日期",
        "寄件日期",
        "lähetetty",
        "tarih",
    ];
    const REST: [&str; 30] = [
        "to",
        "an",
        "à",
        "para",
        "a",
        "aan",
        "till",
        "til",
        "do",
        "кому",
        "宛先",
        "收件人",
        "subject",
        "betreff",
        "objet",
        "asunto",
        "assunto",
        "oggetto",
        "onderwerp",
        "ämne",
        "emne",
        "temat",
        "тема",
        "件名",
        "主题",
        "主旨",
        "cc",
        "aihe",
        "konu",
        "tárgy",
    ];
    let Some(first) = lines.first().and_then(|l| label(l)) else { return false };
    if !is_any(first, &FROM) {
        return false;
    }
    let mut following = lines[1..].iter().take(5).filter_map(|l| label(l));
    let (mut sent, mut rest) = (false, false);
    for name in &mut following {
        sent |= is_any(name, &SENT);
        rest |= is_any(name, &REST);
    }
    sent && rest
}

/// The name before a colon near the start of the line; bold marks of rendered HTML do not count.
fn label(line: &str) -> Option<&str> {
    let line = line.trim_start().trim_start_matches('*');
    let head = &line.as_bytes()[..line.len().min(44)];
    let colon = head
        .iter()
        .position(|&b| b == b':')
        .or_else(|| if line.is_ascii() { None } else { line.find('：') })?;
    if colon == 0 || colon > 40 {
        return None;
    }
    Some(line[..colon].trim_end_matches(['*', ' ', '\u{A0}']))
}

fn is_any(name: &str, names: &[&str]) -> bool {
    if name.is_ascii() {
        return names.iter().any(|n| n.eq_ignore_ascii_case(name));
    }
    let lower = name.to_lowercase();
    names.contains(&lower.as_str())
}

/// A quoted line: `>`, or `JD>` as some old mailers wrote it; `>From ` is mbox escaping.
pub(super) fn quoted(line: &str) -> bool {
    let line = line.trim_start_matches([' ', '\t']);
    if let Some(rest) = line.strip_prefix('>') {
        return !rest.starts_with("From ");
    }
    let initials = line.bytes().take(5).take_while(u8::is_ascii_uppercase).count();
    let mark = line.as_bytes().get(initials..initials + 2);
    (1..=4).contains(&initials) && matches!(mark, Some(b"> " | b">>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributions_in_many_languages() {
        for line in [
            "On Thu, 22 Aug 2002, Ann <a@x> wrote:",
            "Am 22.08.2002 um 10:00 schrieb Ann <a@x>:",
            "Le jeu. 22 août 2002 à 10:00, Ann <a@x> a écrit :",
            "El 22/8/2002 a las 10:00, Ann escribió:",
            "Il giorno 22 ago 2002 Ann ha scritto:",
            "Op 22 aug. 2002 schreef Ann <a@x>:",
            "Em 22 de agosto de 2002 Ann escreveu:",
            "Den 22 aug 2002 skrev Ann:",
            "W dniu 22.08.2002 Ann napisał(a):",
            "22.08.2002 Ann писал(а):",
            "2002年8月22日 田中さんは書きました:",
            "在 2002年8月22日，安写道：",
        ] {
            assert!(attribution(&[line]).is_some(), "{line}");
        }
        let two = ["On Thu, 22 Aug 2002 at 10:00, Ann Lee", "<ann@x.org> wrote:"];
        assert_eq!(attribution(&two), Some(Attribution { lines: 2, is_sure: true }));
        assert_eq!(attribution(&["Ann wrote:"]), Some(Attribution { lines: 1, is_sure: false }));
        assert_eq!(attribution(&["Here is the list:"]), None);
        assert_eq!(attribution(&["We underwrote these:"]), None);
    }

    #[test]
    fn separators_and_blocks() {
        assert_eq!(separator("-----Original Message-----"), Some(Separator::Original));
        assert_eq!(separator("---------- Forwarded message ---------"), Some(Separator::Forward));
        assert_eq!(separator("-----Ursprüngliche Nachricht-----"), Some(Separator::Original));
        assert_eq!(separator("-- "), None);
        assert_eq!(separator("- original message"), None);
        assert!(header_block(&["*Von:* Ann", "Gesendet: heute", "An: Bo", "Betreff: x"]));
        assert!(!header_block(&["From: the top", "of the hill", "we saw it"]));
    }

    #[test]
    fn quoted_lines() {
        assert!(quoted("> a") && quoted("  >a") && quoted("JD> a"));
        assert!(!quoted(">From here") && !quoted("a > b") && !quoted("HTML>"));
    }
}
