//! Inline CSS and presentational attributes → is this element hidden, and in what size and colour?
//!
//! Knows only the tricks that hide text (digest §1.9). No style sheets, no cascade, no layout: a
//! class that hides through a `<style>` block is not seen.

/// What inheritance carries down to an element's text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Look {
    /// Computed font size, px.
    pub(super) font_px: f32,
    /// Text colour `0xRRGGBB`; black until told otherwise.
    pub(super) color: u32,
    /// Background colour, when it is known.
    pub(super) background: Option<u32>,
    /// Fully transparent text.
    pub(super) transparent: bool,
}

impl Default for Look {
    fn default() -> Self {
        Self { font_px: 16.0, color: 0, background: None, transparent: false }
    }
}

impl Look {
    /// Text of this look cannot be seen.
    pub(super) fn is_invisible(self) -> bool {
        self.font_px <= 1.0 || self.transparent || self.background == Some(self.color)
    }
}

/// Reads one element's attributes; returns its look and whether it hides its whole subtree.
pub(super) fn read<'a>(
    parent: Look,
    attributes: impl Iterator<Item = (&'a str, &'a str)>,
) -> (Look, bool) {
    let mut look = parent;
    let mut hidden = false;
    for (name, value) in attributes {
        match name {
            "hidden" => hidden = true,
            "bgcolor" => look.background = colour(value).map(|c| c.0).or(look.background),
            "background" => look.background = None,
            "color" | "text" => set_colour(&mut look, value),
            "style" => hidden |= declarations(&mut look, parent.font_px, value),
            _ => {}
        }
    }
    (look, hidden)
}

fn set_colour(look: &mut Look, value: &str) {
    if let Some((rgb, alpha)) = colour(value) {
        look.color = rgb;
        look.transparent = alpha <= 0.0;
    }
}

/// A `style` attribute; `true` when it hides the element.
fn declarations(look: &mut Look, parent_px: f32, style: &str) -> bool {
    let (mut hidden, mut overflow, mut zero, mut positioned, mut off) =
        (false, false, false, false, false);
    for declaration in style.split(';') {
        let Some((name, value)) = declaration.split_once(':') else { continue };
        let name = name.trim().to_ascii_lowercase();
        let value = value.trim().trim_end_matches("!important").trim().to_ascii_lowercase();
        let pixels = length(&value, parent_px);
        match name.as_str() {
            "display" => hidden |= value == "none",
            "visibility" => hidden |= value == "hidden" || value == "collapse",
            "opacity" => hidden |= value.parse::<f32>().is_ok_and(|o| o <= 0.05),
            "font-size" => look.font_px = pixels.unwrap_or(look.font_px),
            "color" => set_colour(look, &value),
            "background-color" | "background" => {
                let first = value.split_whitespace().next().unwrap_or_default();
                look.background =
                    match colour(if value.starts_with("rgb") { &value } else { first }) {
                        Some((_, alpha)) if alpha <= 0.0 => look.background,
                        Some((rgb, _)) if !value.contains("url") => Some(rgb),
                        _ => None,
                    };
            }
            "overflow" | "overflow-x" | "overflow-y" => overflow |= value == "hidden",
            "height" | "max-height" | "width" | "max-width" | "line-height" => {
                zero |= pixels.is_some_and(|p| p <= 0.0) && name != "line-height";
            }
            "position" => positioned |= value == "absolute" || value == "fixed",
            "left" | "right" | "top" | "bottom" => off |= pixels.is_some_and(|p| p <= -999.0),
            "text-indent" | "margin-left" | "margin-top" => {
                hidden |= pixels.is_some_and(|p| p <= -999.0);
            }
            "clip" => hidden |= value.starts_with("rect(") && rect_is_empty(&value),
            "clip-path" => {
                hidden |= value.starts_with("inset(50%")
                    || value.starts_with("inset(100%")
                    || value == "circle(0)";
            }
            _ => {}
        }
    }
    hidden || (overflow && zero) || (positioned && off)
}

/// `rect(0 0 0 0)`, `rect(1px, 1px, 1px, 1px)`: nothing between the edges.
fn rect_is_empty(value: &str) -> bool {
    let inside = value.trim_start_matches("rect(").trim_end_matches(')');
    let edges: Vec<f32> = inside
        .split([',', ' '])
        .filter(|e| !e.is_empty())
        .map(|e| length(e, 16.0).unwrap_or(f32::MAX))
        .collect();
    matches!(edges.as_slice(), [top, right, bottom, left] if bottom - top <= 0.0 || right - left <= 0.0)
}

/// A length in px; relative units count from `base_px`. Percentages of unknown things are not read.
fn length(value: &str, base_px: f32) -> Option<f32> {
    let end =
        value.find(|c: char| !matches!(c, '0'..='9' | '.' | '-' | '+')).unwrap_or(value.len());
    let number: f32 = value.get(..end)?.parse().ok()?;
    let factor = match value[end..].trim() {
        "" | "px" => 1.0,
        "pt" => 4.0 / 3.0,
        "em" | "ex" | "ch" => base_px,
        "rem" => 16.0,
        "%" => base_px / 100.0,
        _ => return (number == 0.0).then_some(0.0),
    };
    Some(number * factor)
}

/// A colour as `0xRRGGBB` and its opacity.
fn colour(value: &str) -> Option<(u32, f32)> {
    let value = value.trim();
    if let Some(hex) = value.strip_prefix('#') {
        return hex_colour(hex);
    }
    let lower = value.to_ascii_lowercase();
    if let Some(inside) = lower.strip_prefix("rgba(").or_else(|| lower.strip_prefix("rgb(")) {
        let parts: Vec<f32> = inside
            .split(')')
            .next()?
            .split([',', ' ', '/'])
            .filter(|p| !p.is_empty())
            .map_while(|p| p.trim().parse().ok())
            .collect();
        let [r, g, b, ..] = parts.as_slice() else { return None };
        let byte = |v: &f32| v.clamp(0.0, 255.0) as u32;
        return Some((
            byte(r) << 16 | byte(g) << 8 | byte(b),
            parts.get(3).copied().unwrap_or(1.0),
        ));
    }
    let rgb = match lower.as_str() {
        "transparent" => return Some((0, 0.0)),
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

    fn hides(style: &str) -> bool {
        let (look, hidden) = read(
            Look { background: Some(0xFF_FF_FF), ..Look::default() },
            [("style", style)].into_iter(),
        );
        hidden || look.is_invisible()
    }

    #[test]
    fn tricks_that_hide() {
        for style in [
            "display:none",
            "DISPLAY : NONE !important",
            "visibility:hidden",
            "opacity:0.01",
            "font-size:0",
            "font-size:1px",
            "color:transparent",
            "color:rgba(1,2,3,0)",
            "color:#fff",
            "color:white",
            "max-height:0;overflow:hidden",
            "position:absolute;left:-9999px",
            "text-indent:-1000px",
            "clip:rect(0 0 0 0)",
            "clip-path: inset(100%)",
        ] {
            assert!(hides(style), "{style}");
        }
    }

    #[test]
    fn usual_styles_do_not_hide() {
        for style in [
            "display:block",
            "opacity:.9",
            "font-size:11px",
            "color:#333",
            "color:#fff;background:#000",
            "height:0",
            "left:-9999px",
            "line-height:0",
            "font-size:small",
            "",
            ";;:",
            "background:url(x.png);color:#fff",
        ] {
            assert!(!hides(style), "{style}");
        }
    }
}
