//! Classes of attachments, shared by `type:`, the `attachment_type` facet and `why`.
//!
//! A class is told from a MIME type alone (the sniffed one, else the declared one); nothing here
//! looks at bytes or file names.

use std::fmt;

/// Class of an attachment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttachmentClass {
    /// PDF.
    Pdf,
    /// Word processor document.
    Doc,
    /// Spreadsheet or CSV.
    Sheet,
    /// Presentation.
    Slides,
    /// Image of any kind.
    Image,
    /// Compressed archive.
    Archive,
    /// Calendar data.
    Ics,
    /// A message.
    Eml,
    /// Plain text.
    Text,
    /// HTML.
    Html,
    /// Sound.
    Audio,
    /// Moving pictures.
    Video,
    /// Everything else.
    Other,
}

impl AttachmentClass {
    /// Every class, in the order of the documentation.
    pub const ALL: [Self; 13] = [
        Self::Pdf,
        Self::Doc,
        Self::Sheet,
        Self::Slides,
        Self::Image,
        Self::Archive,
        Self::Ics,
        Self::Eml,
        Self::Text,
        Self::Html,
        Self::Audio,
        Self::Video,
        Self::Other,
    ];

    /// The name in queries and facets.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.names()[0]
    }

    /// All names a query may use, the canonical one first.
    const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Pdf => &["pdf"],
            Self::Doc => &["doc", "docx", "word"],
            Self::Sheet => &["sheet", "xls", "xlsx", "csv", "spreadsheet"],
            Self::Slides => &["slides", "ppt", "pptx"],
            Self::Image => &["image", "jpg", "jpeg", "png", "gif", "heic"],
            Self::Archive => &["archive", "zip"],
            Self::Ics => &["ics", "calendar"],
            Self::Eml => &["eml"],
            Self::Text => &["text", "txt"],
            Self::Html => &["html"],
            Self::Audio => &["audio"],
            Self::Video => &["video"],
            Self::Other => &["other"],
        }
    }

    /// The class a query means by a lower-case name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.names().contains(&name))
    }

    /// Every name [`from_name`](Self::from_name) knows.
    pub(super) fn all_names() -> impl Iterator<Item = &'static str> {
        Self::ALL.into_iter().flat_map(|class| class.names().iter().copied())
    }

    /// The class of a MIME type; parameters and case do not matter.
    #[must_use]
    pub fn of_mime(mime: &str) -> Self {
        let mime = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let (family, subtype) = mime.split_once('/').unwrap_or((&mime, ""));
        match (family, subtype) {
            ("image", _) => Self::Image,
            ("audio", _) => Self::Audio,
            ("video", _) => Self::Video,
            ("text", "csv") => Self::Sheet,
            ("text", "calendar") => Self::Ics,
            ("text", "plain") => Self::Text,
            ("text", "html") => Self::Html,
            ("message", "rfc822") => Self::Eml,
            ("application", subtype) => Self::of_application(subtype),
            _ => Self::Other,
        }
    }

    fn of_application(subtype: &str) -> Self {
        match subtype {
            "pdf" => Self::Pdf,
            "msword" | "vnd.oasis.opendocument.text" => Self::Doc,
            "vnd.oasis.opendocument.spreadsheet" => Self::Sheet,
            // Both spellings of each are in use; mail programs still send the x- forms.
            "zip" | "x-zip-compressed" | "x-7z-compressed" | "x-rar-compressed" | "vnd.rar"
            | "gzip" | "x-gzip" | "x-tar" => Self::Archive,
            _ if subtype.contains("wordprocessingml.") => Self::Doc,
            _ if subtype.contains("spreadsheetml.") || subtype.contains("ms-excel") => Self::Sheet,
            _ if subtype.contains("presentationml.") || subtype.contains("ms-powerpoint") => {
                Self::Slides
            }
            _ => Self::Other,
        }
    }
}

impl fmt::Display for AttachmentClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_means_its_class() {
        for class in AttachmentClass::ALL {
            for name in class.names() {
                assert_eq!(AttachmentClass::from_name(name), Some(class), "{name}");
            }
        }
        assert_eq!(AttachmentClass::from_name("PDF"), None);
        let mut names: Vec<_> = AttachmentClass::all_names().collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "a name of two classes");
    }

    #[test]
    fn mime_types_fall_into_their_class() {
        use AttachmentClass as C;
        for (mime, class) in [
            ("application/pdf", C::Pdf),
            ("Application/PDF; name=a.pdf", C::Pdf),
            ("application/msword", C::Doc),
            ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", C::Doc),
            ("application/vnd.oasis.opendocument.text", C::Doc),
            ("application/vnd.ms-excel", C::Sheet),
            ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", C::Sheet),
            ("application/vnd.oasis.opendocument.spreadsheet", C::Sheet),
            ("text/csv", C::Sheet),
            ("application/vnd.ms-powerpoint", C::Slides),
            ("application/vnd.oasis.opendocument.presentation", C::Other),
            ("image/heic", C::Image),
            ("application/gzip", C::Archive),
            ("text/calendar", C::Ics),
            ("message/rfc822", C::Eml),
            ("text/plain", C::Text),
            ("text/html", C::Html),
            ("audio/ogg", C::Audio),
            ("video/mp4", C::Video),
            ("application/octet-stream", C::Other),
            ("", C::Other),
        ] {
            assert_eq!(C::of_mime(mime), class, "{mime}");
        }
    }
}
