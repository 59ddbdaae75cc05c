//! More limits than a composition has room for: those that always apply to one request are refused
//! when the file is read, and those that meet by their conditions decide like any others.

mod conditions;
mod panics;
mod read;

use std::fmt::Write;

/// Returns a policy under which all rules that match apply, with this many rules.
pub(crate) fn rules(count: usize, rule: impl Fn(usize) -> String) -> String {
    let mut text = String::from("apply = 'all'\n");
    for index in 0..count {
        writeln!(text, "[[rule]]\nname = 'r{index}'\n{}", rule(index)).expect("memory");
    }
    text
}
