//! The page's building blocks: escaped text, and tables.

use std::fmt::Write;

/// Escapes text for HTML, also within quotes.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A longer cell is a sentence, which may be wrapped.
const SENTENCE: usize = 40;

/// Returns a table with its caption. The first cell of each row is its header.
pub(crate) fn table(caption: &str, head: &[String], rows: &[Vec<String>]) -> String {
    let mut html = String::new();
    let caption = escaped(caption);
    // Writing to a String can't fail. The tab stop lets keyboard users scroll the table.
    let _ = writeln!(
        html,
        "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"{caption}\">\n\
         <table>\n<caption>{caption}</caption>\n<thead><tr>"
    );
    for title in head {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escaped(title));
    }
    html += "</tr></thead>\n<tbody>\n";
    for row in rows {
        html += "<tr>";
        for (i, text) in row.iter().enumerate() {
            let text = escaped(text);
            let _ = match i {
                0 => write!(html, "<th scope=\"row\">{text}</th>"),
                _ if text.len() > SENTENCE => write!(html, "<td class=\"text\">{text}</td>"),
                _ => write!(html, "<td>{text}</td>"),
            };
        }
        html += "</tr>\n";
    }
    html + "</tbody>\n</table>\n</div>\n"
}

#[cfg(test)]
mod tests {
    use super::{escaped, table};

    #[test]
    fn special_characters_are_escaped() {
        let processor = "A&B <\"fast\"> CPU";
        let html = "A&amp;B &lt;&quot;fast&quot;&gt; CPU";
        assert_eq!(escaped(processor), html);
        let texts = [processor.to_owned(), processor.to_owned()];
        let table = table(processor, &texts[..1], &[texts.to_vec()]);
        assert_eq!(table.matches(html).count(), 5, "{table}");
        assert!(!table.contains(processor), "{table}");
    }
}
