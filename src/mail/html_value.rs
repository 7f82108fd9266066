//! CSS values → numbers and colours, as far as hiding text depends on them.

/// A length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Length {
    /// Pixels.
    Px(f32),
    /// Times the size of the parent's font.
    Times(f32),
}

impl Length {
    /// In pixels, where the parent's font is `base_px` high.
    pub(super) fn px(self, base_px: f32) -> f32 {
        match self {
            Self::Px(px) => px,
            Self::Times(factor) => factor * base_px,
        }
    }
}

/// What a colour property says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Paint {
    /// `0xRRGGBB`.
    Known(u32),
    /// Nothing is painted.
    Transparent,
    /// That of the parent.
    Inherit,
    /// Something that is not read here: a name, a picture, a function.
    Unknown,
}

/// Reads a length; `None` for anything else. Percentages count as parts of the font size.
pub(super) fn length(value: &str) -> Option<Length> {
    let end =
        value.find(|c: char| !matches!(c, '0'..='9' | '.' | '-' | '+')).unwrap_or(value.len());
    let number: f32 = value.get(..end)?.parse().ok()?;
    Some(match value[end..].trim() {
        "" | "px" => Length::Px(number),
        "pt" => Length::Px(number * 4.0 / 3.0),
        "rem" => Length::Px(number * 16.0),
        "em" | "ex" | "ch" => Length::Times(number),
        "%" => Length::Times(number / 100.0),
        _ => return (number == 0.0).then_some(Length::Px(0.0)),
    })
}

/// The size in a `font` shorthand: the first length that has a unit or is nothing.
pub(super) fn font_size(shorthand: &str) -> Option<Length> {
    shorthand
        .split([' ', '/'])
        .filter(|word| word.ends_with(|c: char| !c.is_ascii_digit()) || *word == "0")
        .find_map(length)
}

/// `rect(0 0 0 0)`, `rect(1px, 1px, 1px, 1px)`: nothing between the edges.
pub(super) fn rect_is_empty(value: &str) -> bool {
    let inside = value.trim_start_matches("rect(").trim_end_matches(')');
    let edges: Vec<f32> = inside
        .split([',', ' '])
        .filter(|e| !e.is_empty())
        .take(5)
        .map(|e| length(e).map_or(f32::MAX, |l| l.px(16.0)))
        .collect();
    matches!(edges.as_slice(), [top, right, bottom, left] if bottom - top <= 0.0 || right - left <= 0.0)
}

/// Reads a colour, lower-cased.
pub(super) fn paint(value: &str) -> Paint {
    match value {
        "inherit" | "unset" | "currentcolor" => Paint::Inherit,
        "transparent" => Paint::Transparent,
        _ => match colour(value) {
            Some((_, alpha)) if alpha <= 0.0 => Paint::Transparent,
            Some((rgb, _)) => Paint::Known(rgb),
            None => Paint::Unknown,
        },
    }
}

/// Reads the `background` shorthand, lower-cased: pictures hide its colour.
pub(super) fn background(value: &str) -> Paint {
    if value.contains("url") || value.contains("gradient") {
        return Paint::Unknown;
    }
    let first = value.split_whitespace().next().unwrap_or_default();
    match paint(if value.starts_with("rgb") { value } else { first }) {
        // A background does not inherit; what is behind shows.
        Paint::Transparent => Paint::Inherit,
        Paint::Unknown if matches!(first, "none" | "initial" | "0") => Paint::Inherit,
        paint => paint,
    }
}

/// A colour as `0xRRGGBB` and its opacity.
fn colour(value: &str) -> Option<(u32, f32)> {
    if let Some(hex) = value.strip_prefix('#') {
        return hex_colour(hex);
    }
    if let Some(inside) = value.strip_prefix("rgba(").or_else(|| value.strip_prefix("rgb(")) {
        let parts: Vec<f32> = inside
            .split(')')
            .next()?
            .split([',', ' ', '/'])
            .filter(|p| !p.is_empty())
            .take(4)
            .map_while(|p| p.trim().parse().ok())
            .collect();
        let [r, g, b, ..] = parts.as_slice() else { return None };
        let byte = |v: &f32| v.clamp(0.0, 255.0) as u32;
        return Some((
            byte(r) << 16 | byte(g) << 8 | byte(b),
            parts.get(3).copied().unwrap_or(1.0),
        ));
    }
    let rgb = match value {
        "white" => 0xFF_FF_FF,
        "black" => 0,
        "red" => 0xFF_00_00,
        "green" => 0x00_80_00,
        "lime" => 0x00_FF_00,
        "blue" => 0x00_00_FF,
        "navy" => 0x00_00_80,
        "yellow" => 0xFF_FF_00,
        "gray" | "grey" => 0x80_80_80,
        "silver" => 0xC0_C0_C0,
        "maroon" => 0x80_00_00,
        "purple" => 0x80_00_80,
        "teal" => 0x00_80_80,
        "orange" => 0xFF_A5_00,
        // Old mail writes `bgcolor=ffffff`.
        other => return hex_colour(other),
    };
    Some((rgb, 1.0))
}

fn hex_colour(hex: &str) -> Option<(u32, f32)> {
    let digits = u32::from_str_radix(hex, 16).ok()?;
    match hex.len() {
        3 => {
            let wide = |shift: u32| (digits >> shift & 0xF) * 0x11;
            Some((wide(8) << 16 | wide(4) << 8 | wide(0), 1.0))
        }
        6 => Some((digits, 1.0)),
        8 => Some((digits >> 8, (digits & 0xFF) as f32 / 255.0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_shorthands() {
        assert_eq!(font_size("0/0 a"), Some(Length::Px(0.0)));
        assert_eq!(font_size("bold 400 12px/1.5 arial"), Some(Length::Px(12.0)));
        assert_eq!(font_size("caption"), None);
    }

    #[test]
    fn backgrounds() {
        assert_eq!(background("#FFF".to_ascii_lowercase().as_str()), Paint::Known(0xFF_FF_FF));
        assert_eq!(background("rgb(0, 0, 255) none"), Paint::Known(0xFF));
        assert_eq!(background("none"), Paint::Inherit);
        assert_eq!(background("#fff url(x.png)"), Paint::Unknown);
        assert_eq!(background("crimson"), Paint::Unknown);
    }
}
