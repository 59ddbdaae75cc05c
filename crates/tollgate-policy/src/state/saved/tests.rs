//! How much of a state is looked at.

use std::cell::Cell;
use std::fmt::Write;

use super::Section;
use crate::{Policy, RuleState};

thread_local! {
    /// How many sections were looked at.
    static LOOKED: Cell<usize> = const { Cell::new(0) };
}

pub(super) fn looked_at(_: &Section) {
    LOOKED.with(|looked| looked.set(looked.get() + 1));
}

#[test]
fn the_state_of_each_rule_is_found_without_a_look_at_the_others() {
    const RULES: usize = 200;
    let mut text = String::new();
    for rule in 0..RULES {
        let _ = writeln!(
            text,
            "[[rule]]\nname = 'r{rule}'\nwhen = {{ path = '/{rule}' }}\nkey = 'user'\n\
             limit = ['5/h', '9/d']\nban = {{ after = 3, for = '1h' }}\ncapacity = 8"
        );
    }
    let policy = Policy::from_toml(&text).unwrap();
    let last = [("path", "/199"), ("user", "ann")];
    assert_eq!(policy.decide(&last).remaining(), Some(4));
    let mut state = Vec::new();
    policy.snapshot(&mut state).unwrap();
    let builder = Policy::builder().restore(&mut state.as_slice()).unwrap();
    LOOKED.set(0);
    let policy = builder.build_toml(&text).unwrap();
    // Each rule has four sections, and looks for each of them once.
    assert!(LOOKED.get() <= RULES * 16, "{} sections", LOOKED.get());
    assert!(policy.restored().all(|(_, state)| state == RuleState::Kept));
    assert_eq!(policy.decide(&last).remaining(), Some(3));
}
