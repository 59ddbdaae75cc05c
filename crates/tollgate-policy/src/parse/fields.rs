//! The fields of each table of a file.

use std::collections::HashMap;
use std::sync::LazyLock;

/// A row for each field: the tables that have it, its name, its value, its default, and what it
/// says. docs/POLICY.md has these rows too.
const ROWS: &str = include_str!("fields.md");

static FIELDS: LazyLock<HashMap<&str, Vec<&str>>> = LazyLock::new(|| {
    let mut fields = HashMap::<_, Vec<_>>::new();
    for row in ROWS.lines() {
        let mut cells = row.split('|').skip(1).map(str::trim);
        let (tables, field) = (cells.next(), cells.next());
        let name = field.and_then(|field| field.strip_prefix('`')?.strip_suffix('`'));
        let name = name.filter(|name| !name.contains('`'));
        // Without quotes, or with several names, it is read elsewhere.
        let (Some(tables), Some(name)) = (tables, name) else {
            continue;
        };
        for table in tables.split(", ") {
            fields.entry(table).or_default().push(name);
        }
    }
    fields
});

/// Returns the names of the fields of a table, such as `rule`.
pub(super) fn of(table: &str) -> &'static [&'static str] {
    FIELDS.get(table).map_or(&[], Vec::as_slice)
}
