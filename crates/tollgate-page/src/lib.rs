//! What tollgate's pages have in common: their look, tables, and charts.
//!
//! [`Html`] escapes each text, so a name that a client chose stays a text. All that is written is
//! XML too.

mod chart;
mod html;
mod table;

pub use chart::{Chart, Series, spark};
pub use html::{Html, document, escaped};
pub use table::{Cell, Column, table};

/// The style sheet: readable on light and dark backgrounds, without a script. Text has a contrast
/// of at least 4.5 : 1 on both, lines and marks at least 3 : 1.
pub const SHEET: &str = include_str!("sheet.css");

/// The README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
