//! Tables for the terminal.

use comfy_table::{Table, TableComponent, presets};

/// Returns a table with a line under its head and no other lines.
pub(crate) fn bare() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.remove_style(TableComponent::HorizontalLines);
    table.remove_style(TableComponent::MiddleIntersections);
    table
}
