//! The heaviest keys.

use tollgate_page::{Cell, Column, Html, table};

use super::words::{ago, bounds, most_times};
use crate::heaviest::{Heavy, HeavyKey, List};

/// How many keys are listed. `/keys` has more.
pub(super) const MOST_KEYS: usize = 10;

pub(super) fn lists(html: &mut Html, heavy: &Heavy, now_s: u64) {
    html.raw("<h2>Heaviest keys</h2>\n<p>Counted since ")
        .push(ago(heavy.since, now_s));
    html.raw(". A count such as 20 to 23 is not exact: it is at least 20, and at most 23.</p>\n");
    html.raw("<div class=\"pair\">\n");
    let denied = |key: &HeavyKey| key.denied;
    list(
        html,
        ["Keys that are denied most", "denied", "was denied"],
        &heavy.denied,
        denied,
    );
    list(
        html,
        ["Keys with most requests", "denied", "came"],
        &heavy.asked,
        denied,
    );
    if !heavy.would_be_denied.keys.is_empty() {
        let words = [
            "Keys that shadow rules would deny",
            "would be denied",
            "would have been denied",
        ];
        list(html, words, &heavy.would_be_denied, |key| {
            key.would_be_denied
        });
    }
    html.raw("</div>\n");
}

/// Writes a list of keys: its caption, the column of denials, and what happened to each key.
fn list(
    html: &mut Html,
    [caption, denials, happened]: [&str; 3],
    list: &List,
    denied: fn(&HeavyKey) -> (u64, u64),
) {
    html.raw("<div>\n");
    if list.keys.is_empty() && list.others_at_most == 0 {
        html.raw("<p>").text(caption).raw(": none.</p>\n</div>\n");
        return;
    }
    let columns = [
        Column::text("key"),
        Column::text("rule"),
        Column::number(denials),
        Column::number("requests"),
    ];
    let row = |key: &HeavyKey| {
        vec![
            Cell::from(values(key)),
            Cell::from(&key.rule),
            Cell::from(bounds(denied(key))),
            Cell::from(bounds(key.asked)),
        ]
    };
    let rows: Vec<_> = list.keys.iter().map(row).collect();
    html.push(table(caption, &columns, &rows));
    html.raw("<p>No other key ").text(happened);
    html.text(most_times(list.others_at_most))
        .raw(".</p>\n</div>\n");
}

/// Writes the parts of a key. One that requests lack is an empty text, which would show nothing.
pub(super) fn values(key: &HeavyKey) -> String {
    let shown = |value: &String| match value.is_empty() {
        true => "-".to_owned(),
        false => value.clone(),
    };
    let shown: Vec<_> = key.values.iter().map(shown).collect();
    shown.join(", ")
}
