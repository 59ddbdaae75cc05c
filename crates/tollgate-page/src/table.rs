//! Tables.

use std::fmt::Display;

use crate::html::Html;

/// A longer text is a sentence, which may be wrapped.
const SENTENCE: usize = 40;

/// A column of a [table](table()).
#[derive(Debug, Clone)]
pub struct Column {
    title: Html,
    is_text: bool,
}

impl Column {
    /// A column of texts.
    #[must_use]
    pub fn text(title: impl Display) -> Self {
        Self {
            title: Html::of(title),
            is_text: true,
        }
    }

    /// A column of numbers.
    #[must_use]
    pub fn number(title: impl Display) -> Self {
        Self {
            title: Html::of(title),
            is_text: false,
        }
    }
}

/// What a cell of a [table](table()) shows.
#[derive(Debug, Clone)]
pub struct Cell {
    html: Html,
    is_sentence: bool,
}

impl<T: Display> From<T> for Cell {
    fn from(text: T) -> Self {
        let html = Html::of(text);
        Self {
            is_sentence: html.as_str().len() > SENTENCE,
            html,
        }
    }
}

impl Cell {
    /// A cell with markup.
    #[must_use]
    pub const fn html(html: Html) -> Self {
        Self {
            html,
            is_sentence: false,
        }
    }

    /// A bar for a part of a whole, beside the part in percent.
    #[must_use]
    pub fn bar(part: u64, whole: u64) -> Self {
        let percent = match whole {
            0 => 0,
            whole => part.min(whole).saturating_mul(100) / whole,
        };
        let mut html = Html::new();
        html.raw("<svg class=\"bar\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\">");
        html.raw("<rect width=\"100\" height=\"8\"/><rect width=\"")
            .text(percent);
        html.raw("\" height=\"8\"/></svg>").text(percent).raw(" %");
        Self::html(html)
    }
}

/// Returns a table with its caption. The first cell of each row is its header. Keyboard users can
/// scroll it.
#[must_use]
pub fn table(caption: &str, columns: &[Column], rows: &[Vec<Cell>]) -> Html {
    let mut html = Html::new();
    html.raw("<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"")
        .text(caption);
    html.raw("\">\n<table>\n<caption>")
        .text(caption)
        .raw("</caption>\n<thead><tr>");
    for column in columns {
        let start = match column.is_text {
            true => "<th scope=\"col\" class=\"left\">",
            false => "<th scope=\"col\">",
        };
        html.raw(start).push(&column.title).raw("</th>");
    }
    html.raw("</tr></thead>\n<tbody>\n");
    for row in rows {
        html.raw("<tr>");
        for (place, cell) in row.iter().enumerate() {
            let is_text = columns.get(place).is_some_and(|column| column.is_text);
            let (start, end) = match (place, is_text) {
                (0, _) => ("<th scope=\"row\">", "</th>"),
                _ if cell.is_sentence && is_text => ("<td class=\"text\">", "</td>"),
                (_, true) => ("<td class=\"left\">", "</td>"),
                _ => ("<td>", "</td>"),
            };
            html.raw(start).push(&cell.html).raw(end);
        }
        html.raw("</tr>\n");
    }
    html.raw("</tbody>\n</table>\n</div>\n");
    html
}

#[cfg(test)]
mod tests {
    use super::{Cell, Column, table};

    #[test]
    fn a_table_has_a_caption_headers_and_escaped_cells() {
        let columns = [Column::text("a<b"), Column::number("n")];
        let html = table("c&d", &columns, &[vec![Cell::from("<i>"), Cell::bar(1, 4)]]);
        let page = roxmltree::Document::parse(html.as_str()).unwrap();
        let texts = |name| -> Vec<String> {
            let nodes = page.descendants().filter(|node| node.has_tag_name(name));
            let text = |node: roxmltree::Node<'_, '_>| {
                node.descendants()
                    .filter(|it| it.is_text())
                    .filter_map(|it| it.text())
                    .collect()
            };
            nodes.map(text).collect()
        };
        assert_eq!(texts("caption"), ["c&d"]);
        assert_eq!(texts("th"), ["a<b", "n", "<i>"]);
        assert_eq!(texts("td"), ["25 %"]);
    }
}
