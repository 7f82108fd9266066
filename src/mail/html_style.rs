//! CSS declarations and presentational attributes → is this element hidden, and in what size and
//! colour?
//!
//! Knows only the tricks that hide text (digest §1.9): no layout, and of the cascade no more than
//! which declaration of a property wins. Which rules of a style sheet match is told by `html_sheet`.

use super::html_sheet::Sheet;
use super::html_value::{Length, Paint, background, font_size, length, paint, rect_is_empty};

/// What inheritance carries down to an element's text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Look {
    /// Computed font size, px.
    font_px: f32,
    /// Text colour `0xRRGGBB`, when it is known; black until told otherwise.
    color: Option<u32>,
    /// Background colour, when it is known.
    background: Option<u32>,
    /// Fully transparent text.
    transparent: bool,
}

impl Look {
    /// Black text of usual size on `background`.
    pub(super) fn on(background: Option<u32>) -> Self {
        Self { font_px: 16.0, color: Some(0), background, transparent: false }
    }

    /// Text of this look cannot be seen.
    pub(super) fn is_invisible(self) -> bool {
        let same = self.background.is_some() && self.background == self.color;
        self.font_px <= 1.0 || self.transparent || same
    }

    fn paint_text(&mut self, paint: Paint) {
        self.transparent = match paint {
            Paint::Transparent => true,
            Paint::Inherit => return,
            Paint::Known(_) | Paint::Unknown => false,
        };
        self.color = match paint {
            Paint::Known(rgb) => Some(rgb),
            _ => None,
        };
    }

    fn paint_background(&mut self, paint: Paint) {
        match paint {
            Paint::Known(rgb) => self.background = Some(rgb),
            Paint::Unknown => self.background = None,
            Paint::Inherit | Paint::Transparent => {}
        }
    }
}

/// The properties that are read; each is a slot of a [`Style`].
#[derive(Clone, Copy, PartialEq)]
enum Property {
    Display,
    Visibility,
    Opacity,
    FontSize,
    Color,
    Background,
    Overflow,
    Height,
    MaxHeight,
    Width,
    MaxWidth,
    Position,
    Left,
    Right,
    Top,
    Bottom,
    TextIndent,
    MarginLeft,
    MarginTop,
    Clip,
    ClipPath,
}

const PROPERTIES: usize = 21;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Value {
    /// Whether the value is the one that hides.
    Hides(bool),
    Size(Length),
    Paint(Paint),
}

/// Weight that `!important` adds.
const IMPORTANT: u16 = 1 << 15;
/// Weight of a style attribute: more than that of any rule.
const INLINE: u16 = IMPORTANT - 1;

/// The declarations of one element or rule: at most one for each property, with its weight.
#[derive(Debug, Clone, Default)]
pub(super) struct Style([Option<(u16, Value)>; PROPERTIES]);

impl Style {
    /// Reads declarations; of two for one property the important or the later one stays.
    pub(super) fn read(declarations: &str) -> Self {
        let mut style = Self::default();
        for declaration in declarations.split(';') {
            let Some((name, value)) = declaration.split_once(':') else { continue };
            let (name, value) = (name.trim().to_ascii_lowercase(), value.to_ascii_lowercase());
            let (value, important) = match value.rsplit_once('!') {
                Some((value, mark)) if mark.trim() == "important" => (value.trim(), IMPORTANT),
                _ => (value.trim(), 0),
            };
            if let Some((property, value)) = read_declaration(&name, value) {
                style.set(property as usize, important, value);
            }
        }
        style
    }

    /// Adds what `other` says, each declaration heavier by `weight` (below that of [`INLINE`]).
    pub(super) fn add(&mut self, other: &Self, weight: u16) {
        for (slot, declared) in other.0.iter().enumerate() {
            if let Some((own, value)) = declared {
                self.set(slot, own + weight.min(INLINE), *value);
            }
        }
    }

    fn set(&mut self, slot: usize, weight: u16, value: Value) {
        if self.0[slot].is_none_or(|(before, _)| before <= weight) {
            self.0[slot] = Some((weight, value));
        }
    }

    /// Says something about the size of text.
    pub(super) fn sets_size(&self) -> bool {
        self.0[Property::FontSize as usize].is_some()
    }

    /// Says something about colours.
    pub(super) fn sets_paint(&self) -> bool {
        self.0[Property::Color as usize].is_some()
            || self.0[Property::Background as usize].is_some()
    }

    /// Forgets what was said about the size of text.
    pub(super) fn forget_size(&mut self) {
        self.0[Property::FontSize as usize] = None;
    }

    /// Forgets what was said about colours: the background is any.
    pub(super) fn forget_paint(&mut self) {
        self.0[Property::Color as usize] = None;
        self.0[Property::Background as usize] = Some((0, Value::Paint(Paint::Unknown)));
    }

    /// Changes the look of the element; `true` when its whole subtree is hidden.
    fn apply(&self, look: &mut Look, parent_px: f32) -> bool {
        use Property as P;
        let value = |property: P| self.0[property as usize].map(|(_, value)| value);
        let hides = |property: P| value(property) == Some(Value::Hides(true));
        if let Some(Value::Size(size)) = value(P::FontSize) {
            look.font_px = size.px(parent_px);
        }
        if let Some(Value::Paint(paint)) = value(P::Color) {
            look.paint_text(paint);
        }
        if let Some(Value::Paint(paint)) = value(P::Background) {
            look.paint_background(paint);
        }
        let alone = [P::Display, P::Visibility, P::Opacity, P::TextIndent, P::MarginLeft];
        let more = [P::MarginTop, P::Clip, P::ClipPath];
        let zero = [P::Height, P::MaxHeight, P::Width, P::MaxWidth];
        let off = [P::Left, P::Right, P::Top, P::Bottom];
        alone.into_iter().chain(more).any(hides)
            || (hides(P::Overflow) && zero.into_iter().any(hides))
            || (hides(P::Position) && off.into_iter().any(hides))
    }
}

/// One declaration, lower-cased; `None` when it is none of ours or says nothing.
fn read_declaration(name: &str, value: &str) -> Option<(Property, Value)> {
    use Property as P;
    let px = || length(value).map(|l| l.px(16.0));
    let zero = || Value::Hides(px().is_some_and(|p| p <= 0.0));
    let far = || Value::Hides(px().is_some_and(|p| p <= -999.0));
    Some(match name {
        "display" => (P::Display, Value::Hides(value == "none")),
        "visibility" => (P::Visibility, Value::Hides(value == "hidden" || value == "collapse")),
        "opacity" => (P::Opacity, Value::Hides(value.parse::<f32>().is_ok_and(|o| o <= 0.05))),
        "font-size" | "font" => {
            let size = if name == "font" { font_size(value) } else { length(value) };
            let inherited = matches!(value, "inherit" | "unset" | "smaller" | "larger");
            // Names and functions are of a size that can be read.
            let usual = if inherited { Length::Times(1.0) } else { Length::Px(16.0) };
            (P::FontSize, Value::Size(size.unwrap_or(usual)))
        }
        "color" => (P::Color, Value::Paint(paint(value))),
        "background-color" | "background" => (P::Background, Value::Paint(background(value))),
        "background-image" if value != "none" => (P::Background, Value::Paint(Paint::Unknown)),
        "overflow" | "overflow-x" | "overflow-y" => (P::Overflow, Value::Hides(value == "hidden")),
        "height" => (P::Height, zero()),
        "max-height" => (P::MaxHeight, zero()),
        "width" => (P::Width, zero()),
        "max-width" => (P::MaxWidth, zero()),
        "position" => (P::Position, Value::Hides(value == "absolute" || value == "fixed")),
        "left" => (P::Left, far()),
        "right" => (P::Right, far()),
        "top" => (P::Top, far()),
        "bottom" => (P::Bottom, far()),
        "text-indent" => (P::TextIndent, far()),
        "margin-left" => (P::MarginLeft, far()),
        "margin-top" => (P::MarginTop, far()),
        "clip" => (P::Clip, Value::Hides(value.starts_with("rect(") && rect_is_empty(value))),
        "clip-path" => {
            let nothing = value.starts_with("inset(50%")
                || value.starts_with("inset(100%")
                || value == "circle(0)";
            (P::ClipPath, Value::Hides(nothing))
        }
        _ => return None,
    })
}

/// Reads one element; returns its look and whether it hides its whole subtree.
pub(super) fn read<'a>(
    parent: Look,
    sheet: &Sheet,
    tag: &str,
    attributes: impl Iterator<Item = (&'a str, &'a str)>,
) -> (Look, bool) {
    let mut look = parent;
    let (mut hidden, mut inline, mut class, mut id) = (false, "", "", "");
    for (name, value) in attributes {
        match name {
            "hidden" => hidden = true,
            "bgcolor" => look.paint_background(background(&value.trim().to_ascii_lowercase())),
            "background" => look.background = None,
            "color" | "text" => look.paint_text(paint(&value.trim().to_ascii_lowercase())),
            "style" => inline = value,
            "class" => class = value,
            "id" => id = value,
            _ => {}
        }
    }
    let mut style = sheet.style(tag, class, id);
    if !inline.is_empty() {
        style.get_or_insert_default().add(&Style::read(inline), INLINE);
    }
    hidden |= style.is_some_and(|style| style.apply(&mut look, parent.font_px));
    (look, hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hides(style: &str) -> bool {
        let (look, hidden) = read(
            Look::on(Some(0xFF_FF_FF)),
            &Sheet::default(),
            "p",
            [("style", style)].into_iter(),
        );
        hidden || look.is_invisible()
    }

    #[test]
    fn tricks_that_hide() {
        for style in [
            "display:none",
            "DISPLAY : NONE !important",
            "display:none!important;display:block",
            "visibility:hidden",
            "opacity:0.01",
            "font-size:0",
            "font-size:1px",
            "font:0/0 a",
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
            "display:none;display:block",
            "opacity:.9",
            "font-size:11px",
            "color:#333",
            "color:#fff;background:#000",
            "color:#fff;background:crimson",
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
