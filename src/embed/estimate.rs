//! How many tokens a text is likely to have, without asking any tokeniser.
//!
//! Weights per character (Pylota Mail search §6.2), in hundredths of a token: they overcount
//! English by about a quarter, so that a chunk that fits by estimate fits by count. Sums are exact,
//! so the estimate of a text is that of its pieces added up.

/// Hundredths of a token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Estimate(u64);

impl Estimate {
    /// Of so many tokens.
    pub(super) const fn tokens(tokens: u32) -> Self {
        Self(tokens as u64 * 100)
    }

    /// Of one character.
    pub(super) fn of_char(c: char) -> Self {
        Self(match c {
            c if c.is_whitespace() => 15,
            '\0'..='\u{7f}' => 30,
            '\u{80}'..='\u{4ff}' => 40,
            '\u{3040}'..='\u{30ff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7af}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{3ffff}' => 100,
            _ => 60,
        })
    }

    /// Of a text.
    pub(super) fn of(text: &str) -> Self {
        text.chars().map(Self::of_char).sum()
    }

    /// Whole tokens, rounded up.
    pub(super) fn rounded_up(self) -> u64 {
        self.0.div_ceil(100)
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    pub(super) fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl std::iter::Sum for Estimate {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Self::plus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_weigh_what_they_should() {
        // 5 × 0.30 + 0.15 + 4 × 0.30, and so on.
        for (text, hundredths) in [
            ("", 0),
            ("hello mail", 285),
            ("größe", 170),
            ("暖房 が", 315),
            ("🙂", 60),
            ("почта", 200),
        ] {
            assert_eq!(Estimate::of(text), Estimate(hundredths), "{text}");
        }
        assert_eq!(Estimate::tokens(3), Estimate(300));
    }
}
