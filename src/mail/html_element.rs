//! HTML elements by what their tags do to text and to other open elements.
//!
//! A small table, told once per tag; no attributes, no state.

/// What matters about an element's name, told once per tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Inline,
    Void,
    /// Starts and ends a line.
    Block,
    /// A block that has nothing inside.
    Rule,
    Paragraph,
    Item,
    List,
    Term,
    TermList,
    Cell,
    Row,
    Table,
    /// tbody, thead, tfoot, body, html: closed from anywhere.
    Frame,
    Anchor,
    Option,
    Select,
}

impl Sort {
    pub(super) fn of(name: &str) -> Self {
        match name {
            "area" | "base" | "br" | "col" | "embed" | "img" | "input" | "link" | "meta"
            | "param" | "source" | "track" | "wbr" => Self::Void,
            "hr" => Self::Rule,
            "p" => Self::Paragraph,
            "li" => Self::Item,
            "ul" | "ol" => Self::List,
            "dd" | "dt" => Self::Term,
            "dl" => Self::TermList,
            "td" | "th" => Self::Cell,
            "tr" => Self::Row,
            "table" => Self::Table,
            "tbody" | "thead" | "tfoot" | "body" | "html" => Self::Frame,
            "a" => Self::Anchor,
            "option" => Self::Option,
            "select" => Self::Select,
            "address" | "article" | "aside" | "blockquote" | "center" | "div" | "fieldset"
            | "figure" | "footer" | "form" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "header"
            | "main" | "nav" | "pre" | "section" | "caption" | "textarea" => Self::Block,
            _ => Self::Inline,
        }
    }

    pub(super) fn is_block(self) -> bool {
        !matches!(self, Self::Inline | Self::Void | Self::Cell | Self::Anchor)
    }

    /// HTML lets the end tag of some elements be left out: which one the start of this one ends,
    /// unless something that `stops` lies between.
    pub(super) fn ends(self) -> Option<Self> {
        match self {
            Self::Item | Self::Cell | Self::Row | Self::Term | Self::Option | Self::Anchor => {
                Some(self)
            }
            _ if self.is_block() => Some(Self::Paragraph),
            _ => None,
        }
    }

    pub(super) fn stops(self, ended: Self) -> bool {
        match ended {
            Self::Item => matches!(self, Self::List | Self::Cell | Self::Table),
            Self::Cell => matches!(self, Self::Row | Self::Table),
            Self::Row => self == Self::Table,
            Self::Term => matches!(self, Self::TermList | Self::Cell | Self::Table),
            Self::Option => self == Self::Select,
            _ => matches!(self, Self::Cell | Self::Table),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implied_ends() {
        assert_eq!(Sort::of("div").ends(), Some(Sort::Paragraph));
        assert_eq!(Sort::of("td").ends(), Some(Sort::Cell));
        assert_eq!(Sort::of("span").ends(), None);
        assert!(Sort::of("ul").stops(Sort::Item) && !Sort::of("div").stops(Sort::Item));
        assert!(Sort::of("h1").is_block() && !Sort::of("td").is_block());
    }
}
