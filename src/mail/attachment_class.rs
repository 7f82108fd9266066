//! Classes of attachments for `type:`: a closed table from MIME type to class (digest §1.3).
//!
//! Looks at types only, never at file names or bytes; sniffing is done elsewhere.

use serde::Serialize;

/// Class of an attachment by its effective type (sniffed, else declared).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AttachmentClass {
    /// application/pdf.
    Pdf,
    /// Word, OOXML word processing, ODF text.
    Doc,
    /// Excel, OOXML spreadsheets, ODF spreadsheets, CSV.
    Sheet,
    /// PowerPoint, OOXML presentations.
    Slides,
    /// image/*.
    Image,
    /// zip, 7z, rar, gzip, tar.
    Archive,
    /// text/calendar.
    Ics,
    /// message/rfc822.
    Eml,
    /// text/plain.
    Text,
    /// text/html.
    Html,
    /// audio/*.
    Audio,
    /// video/*.
    Video,
    /// Everything else.
    Other,
}

impl AttachmentClass {
    /// Class of a MIME type; parameters and letter case do not matter.
    #[must_use]
    pub fn of(effective_type: &str) -> Self {
        let lower =
            effective_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let (kind, sub) = lower.split_once('/').unwrap_or((lower.as_str(), ""));
        match kind {
            "image" => return Self::Image,
            "audio" => return Self::Audio,
            "video" => return Self::Video,
            _ => {}
        }
        match (kind, sub) {
            ("application", "pdf") => Self::Pdf,
            ("application", "msword") => Self::Doc,
            ("text", "csv") => Self::Sheet,
            ("application", "zip" | "x-7z-compressed" | "x-rar-compressed" | "gzip" | "x-tar") => {
                Self::Archive
            }
            ("text", "calendar") => Self::Ics,
            ("message", "rfc822") => Self::Eml,
            ("text", "plain") => Self::Text,
            ("text", "html") => Self::Html,
            ("application", _)
                if sub.contains("wordprocessingml.") || sub == "vnd.oasis.opendocument.text" =>
            {
                Self::Doc
            }
            ("application", _)
                if sub.contains("ms-excel")
                    || sub.contains("spreadsheetml.")
                    || sub == "vnd.oasis.opendocument.spreadsheet" =>
            {
                Self::Sheet
            }
            ("application", _)
                if sub.contains("ms-powerpoint") || sub.contains("presentationml.") =>
            {
                Self::Slides
            }
            _ => Self::Other,
        }
    }

    /// Class by a name accepted after `type:`, any letter case; `None` for an unknown one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "pdf" => Self::Pdf,
            "doc" | "docx" | "word" => Self::Doc,
            "sheet" | "xls" | "xlsx" | "csv" | "spreadsheet" => Self::Sheet,
            "slides" | "ppt" | "pptx" => Self::Slides,
            "image" | "jpg" | "jpeg" | "png" | "gif" | "heic" => Self::Image,
            "archive" | "zip" => Self::Archive,
            "ics" | "calendar" => Self::Ics,
            "eml" => Self::Eml,
            "text" | "txt" => Self::Text,
            "html" => Self::Html,
            "audio" => Self::Audio,
            "video" => Self::Video,
            "other" => Self::Other,
            _ => return None,
        })
    }

    /// The class's own name, as in facets; [`Self::from_name`] reads it back.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pdf => "pdf",
            Self::Doc => "doc",
            Self::Sheet => "sheet",
            Self::Slides => "slides",
            Self::Image => "image",
            Self::Archive => "archive",
            Self::Ics => "ics",
            Self::Eml => "eml",
            Self::Text => "text",
            Self::Html => "html",
            Self::Audio => "audio",
            Self::Video => "video",
            Self::Other => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table() {
        use AttachmentClass as C;
        for (mime, class) in [
            ("application/PDF; name=x", C::Pdf),
            ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", C::Doc),
            ("application/vnd.ms-excel", C::Sheet),
            ("application/vnd.oasis.opendocument.presentation", C::Other),
            ("application/vnd.openxmlformats-officedocument.presentationml.slideshow", C::Slides),
            ("image/heic", C::Image),
            ("message/rfc822", C::Eml),
            ("text/x-patch", C::Other),
            ("", C::Other),
        ] {
            assert_eq!(C::of(mime), class, "{mime}");
        }
        for class in [
            C::Pdf,
            C::Doc,
            C::Sheet,
            C::Slides,
            C::Image,
            C::Archive,
            C::Ics,
            C::Eml,
            C::Text,
            C::Html,
            C::Audio,
            C::Video,
            C::Other,
        ] {
            assert_eq!(C::from_name(class.name()), Some(class));
        }
        assert_eq!(C::from_name("XLSX"), Some(C::Sheet));
        assert_eq!(C::from_name("exe"), None);
    }
}
