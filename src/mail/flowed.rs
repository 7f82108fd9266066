//! `format=flowed` (RFC 3676): soft-broken lines are joined again.
//!
//! A line that ends in a blank goes on in the next one of the same quote depth; `-- ` never does.
//! Quote marks are kept as `>` per level. Works on clean text with `\n` line ends.

/// Joins the soft line breaks; `delsp` removes the trailing blank as well (RFC 3676 §4.3).
pub(super) fn unflow(text: &str, delsp: bool) -> String {
    let mut out = String::with_capacity(text.len());
    // Quote depth of the paragraph that is still open.
    let mut open: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let line = line.strip_suffix('\n').unwrap_or(line);
        let depth = line.bytes().take_while(|b| *b == b'>').count();
        let content = &line[depth..];
        let content = content.strip_prefix(' ').unwrap_or(content);
        let is_signature = content == "-- ";
        if open == Some(depth) && !is_signature {
            // The paragraph goes on.
        } else {
            if open.is_some() {
                out.push('\n');
            }
            for _ in 0..depth {
                out.push('>');
            }
            if depth > 0 {
                out.push(' ');
            }
        }
        let flows = content.ends_with(' ') && !is_signature;
        out.push_str(if flows && delsp { &content[..content.len() - 1] } else { content });
        open = flows.then_some(depth);
        if !flows {
            out.push('\n');
        }
    }
    if open.is_some() {
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_joined_within_their_depth() {
        assert_eq!(unflow("a \nb\n> c \n> d\n>> e \nf\n", false), "a b\n> c d\n>> e \nf\n");
        assert_eq!(unflow("ab \ncd\n", true), "abcd\n");
        assert_eq!(unflow("a \n-- \nme\n", false), "a \n-- \nme\n");
        assert_eq!(unflow(" From here\n  stuffed\n", false), "From here\n stuffed\n");
    }
}
