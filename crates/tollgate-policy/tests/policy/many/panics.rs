//! A limit of the program that panics while others have granted.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tollgate::compose::{Held, Member};
use tollgate::store::Place;
use tollgate::{Denied, ManualClock, Tick};
use tollgate_policy::{DynLimit, KeyRef, OwnLimit, Policy, Store};

use crate::many::rules;

/// A limit that would grant everything, and panics when it is taken from.
#[derive(Debug)]
struct Panics;

impl OwnLimit<ManualClock> for Panics {
    fn with_key(&self, _: KeyRef<'_>, _: usize, visit: &mut dyn FnMut(&DynLimit<'_, ManualClock>)) {
        visit(self);
    }
}

impl Member<ManualClock> for Panics {
    fn place(&self) -> Place {
        Place::of(self)
    }

    fn check(&self, _: u64, _: Tick) -> Result<(), Denied> {
        Ok(())
    }

    /// A composition takes from it last.
    fn can_undo(&self) -> bool {
        false
    }

    fn take(&self, _: u64, _: Tick) -> Result<Held, Denied> {
        panic!("as the test wants it");
    }

    fn available_at(&self, _: Tick) -> u64 {
        u64::MAX
    }

    fn give_back(&self, held: Held, _: Tick) -> u64 {
        held.granted.n()
    }
}

/// As of a few limits, nothing stays taken.
#[test]
fn if_a_limit_panics_nothing_stays_taken() {
    for count in [3, 65] {
        let text = rules(count, |index| {
            let limit = match index {
                0 => "limit = 'concurrency 1'",
                1 => "limit = '1/h'",
                2 => "limit = 'any'\nstore = 'panics'\nfallback = 'closed'",
                _ => "limit = '9/h'",
            };
            format!("when = {{ header.h{index} = true }}\n{limit}")
        });
        let builder = Policy::builder().clock(ManualClock::new());
        let policy = builder.store("panics", Store::here(|_| Ok(Box::new(Panics))));
        let policy = policy.build_toml(&text).expect("a policy");
        let headers = (0..count).map(|index| (format!("header:h{index}"), String::from("1")));
        let headers: Vec<_> = headers.collect();
        let decide = AssertUnwindSafe(|| policy.decide(&headers).is_allowed());
        assert!(catch_unwind(decide).is_err(), "{count}");
        for one in &headers[..2] {
            let one = [one.clone()];
            assert!(policy.decide(&one).is_allowed(), "{count} {one:?}");
        }
    }
}
