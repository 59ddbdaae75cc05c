//! The page's tables.

use tollgate_page::{Cell, Column};

/// A longer cell is a sentence.
const SENTENCE: usize = 40;

/// Returns a table with its caption. The first cell of each row is its header, and the others are
/// numbers or sentences.
pub(crate) fn table(caption: &str, head: &[String], rows: &[Vec<String>]) -> String {
    let is_text = |place: usize| {
        let mut cells = rows.iter().filter_map(|row| row.get(place));
        place == 0 || cells.any(|cell| cell.len() > SENTENCE)
    };
    let column = |(place, title): (usize, &String)| match is_text(place) {
        true => Column::text(title),
        false => Column::number(title),
    };
    let columns: Vec<_> = head.iter().enumerate().map(column).collect();
    let cells = |row: &Vec<String>| row.iter().map(Cell::from).collect();
    let rows: Vec<Vec<Cell>> = rows.iter().map(cells).collect();
    tollgate_page::table(caption, &columns, &rows).into_string()
}
