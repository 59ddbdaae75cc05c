//! Text in HTML.

use std::fmt::{self, Display, Write};

/// HTML that is written piece by piece.
///
/// ```
/// use tollgate_page::Html;
///
/// let mut html = Html::new();
/// html.raw("<p>").text("<script>").raw("</p>");
/// assert_eq!(html.as_str(), "<p>&lt;script&gt;</p>");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Html(String);

impl Html {
    /// Begins.
    #[must_use]
    pub const fn new() -> Self {
        Self(String::new())
    }

    /// Returns an escaped text.
    #[must_use]
    pub fn of(text: impl Display) -> Self {
        let mut html = Self::new();
        html.text(text);
        html
    }

    /// Takes markup that the program made, as a library's picture. Its texts must be escaped.
    #[must_use]
    pub const fn trusted(markup: String) -> Self {
        Self(markup)
    }

    /// Appends markup that the program has.
    pub fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Appends a text, escaped, also for an attribute in quotes.
    pub fn text(&mut self, text: impl Display) -> &mut Self {
        // Neither a String nor the escaping refuses a text. A Display that does leaves out the
        // rest.
        let _ = write!(Escaping(&mut self.0), "{text}");
        self
    }

    /// Appends a style sheet. It has no use for `<` and `&`, so they are left out.
    pub fn style(&mut self, sheet: &str) -> &mut Self {
        self.0.push_str("<style>\n");
        self.0.push_str(&sheet.replace(['<', '&'], ""));
        self.0.push_str("</style>\n");
        self
    }

    /// Appends other HTML.
    pub fn push(&mut self, html: impl AsRef<Self>) -> &mut Self {
        self.0.push_str(&html.as_ref().0);
        self
    }

    /// Returns what was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns what was written.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

impl AsRef<Self> for Html {
    fn as_ref(&self) -> &Self {
        self
    }
}

struct Escaping<'a>(&'a mut String);

impl Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for char in text.chars() {
            match char {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                // XML has no place for them, and they show nothing.
                '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}' => {
                    self.0.push('\u{fffd}');
                }
                // They would change the order in which the rest of the line is shown.
                '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => self.0.push('\u{fffd}'),
                '\u{fffe}' | '\u{ffff}' => self.0.push('\u{fffd}'),
                char => self.0.push(char),
            }
        }
        Ok(())
    }
}

/// Escapes text for HTML, also within quotes.
///
/// ```
/// assert_eq!(tollgate_page::escaped("A & \"B\""), "A &amp; &quot;B&quot;");
/// ```
#[must_use]
pub fn escaped(text: &str) -> String {
    Html::of(text).into_string()
}

/// Returns a page. `head` has its style.
#[must_use]
pub fn document(title: &str, head: &Html, body: &Html) -> String {
    let mut html = Html::new();
    html.raw(HEAD).raw("<title>").text(title).raw("</title>\n");
    html.push(head).raw("</head>\n<body>\n<main>\n");
    html.push(body).raw("</main>\n</body>\n</html>\n");
    html.into_string()
}

/// How a page begins.
const HEAD: &str = "\
<!DOCTYPE html>
<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">
<head>
<meta charset=\"utf-8\"/>
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>
";

#[cfg(test)]
mod tests {
    use super::{Html, document};

    #[test]
    fn what_a_client_chose_stays_a_text() {
        let name = "\u{1}<img src=x onerror='alert(1)'>&\u{202e}\"";
        let mut html = Html::new();
        html.raw("<p title=\"")
            .text(name)
            .raw("\">")
            .text(name)
            .raw("</p>");
        let page = document(name, Html::new().style("</style><i>"), &html);
        let options = roxmltree::ParsingOptions {
            allow_dtd: true,
            ..roxmltree::ParsingOptions::default()
        };
        let page = roxmltree::Document::parse_with_options(&page, options);
        let page = page.expect("a page is XML");
        let all = |name| {
            page.descendants()
                .filter(move |node| node.tag_name().name() == name)
        };
        let shown = name.replace(['\u{1}', '\u{202e}'], "\u{fffd}");
        let paragraph = all("p").next().expect("the page has a paragraph");
        assert_eq!(paragraph.text(), Some(shown.as_str()));
        assert_eq!(paragraph.attribute("title"), Some(shown.as_str()));
        assert_eq!(all("img").chain(all("i")).count(), 0);
    }
}
