//! A key keeps what it used when its limit changes, and no sequence of changes grants it more than
//! the largest limit allows.

use std::time::Duration;

use tollgate::clock::Clock;
use tollgate::{AnyAlgorithm, ManualClock, Tick};
use tollgate_audit::{Audit, Bounded, Log};
use tollgate_policy::{LivePolicy, RuleState};

use crate::random::Random;
use crate::reload::{live, rule, states};

const MIGRATED: RuleState = RuleState::Migrated;

/// Takes a permit, and returns how many are left. `None` if there is none.
fn take(live: &LivePolicy<ManualClock>, facts: &[(&str, &str)]) -> Option<u64> {
    let decision = live.decide(&facts);
    decision.is_allowed().then(|| decision.remaining())?
}

#[test]
fn a_limit_that_is_raised_adds_the_difference_and_one_that_is_lowered_takes_it_away() {
    for key in ["key = 'user'\n", ""] {
        for kind in ["", "gcra", "leaky-meter", "fixed-window", "sliding-window"] {
            let text = |n: u32| rule("a", &format!("{key}limit = '{kind} {n}/d'"));
            let (live, _) = live(&text(100));
            for _ in 0..60 {
                let _ = take(&live, &[("user", "ann")]);
            }
            for (limit, has) in [
                (1000, Some(939)),
                (100, Some(38)),
                (50, None),
                (70, Some(7)),
            ] {
                assert_eq!(states(&live, &text(limit)), [("a".into(), MIGRATED)]);
                assert_eq!(take(&live, &[("user", "ann")]), has, "{key} {kind} {limit}");
            }
        }
    }
}

#[test]
fn idle_keys_of_a_full_table_stay_idle_when_the_limit_is_raised() {
    let text = |n: u32| {
        let table = "key = 'user'\ncapacity = 64\noverflow = 'deny'";
        rule("a", &format!("{table}\nlimit = '{n}/min'"))
    };
    let (live, clock) = live(&text(10));
    // More keys than the table has slots. Returns how many of them find one.
    let fill = |name: &str| {
        let users = (0..5000).map(|n| format!("{name}{n}"));
        users
            .filter(|user| take(&live, &[("user", user)]).is_some())
            .count()
    };
    let before = fill("a");
    assert!((64..5000).contains(&before), "{before}");
    clock.advance(Duration::from_secs(60));
    assert_eq!(states(&live, &text(1000)), [("a".into(), MIGRATED)]);
    let after = fill("b");
    assert!(after >= 64, "{after}");
}

#[test]
fn a_key_that_moves_between_plans_keeps_what_it_used() {
    let plan = "plan = { by = 'tier', free = '10/d', pro = '100/d', default = 'free' }";
    let (live, _) = live(&rule("a", &format!("key = 'user'\n{plan}")));
    let of = |tier| take(&live, &[("user", "ann"), ("tier", tier)]);
    for _ in 0..6 {
        assert!(of("free").is_some());
    }
    assert_eq!((of("pro"), of("free")), (Some(93), Some(2)));
    for _ in 0..7 {
        assert!(of("pro").is_some());
    }
    // It used 15, so it owes 5 of the smaller plan.
    assert_eq!((of("free"), of("pro")), (None, Some(84)));
}

#[test]
fn a_key_keeps_what_it_used_when_its_override_comes_changes_and_goes() {
    let text = |own: &str| {
        rule(
            "a",
            &format!("key = 'user'\nlimit = '100/d'\noverride = [{own}]"),
        )
    };
    let own = |n: u32| text(&format!("{{ key = 'ann', limit = '{n}/d' }}"));
    let (live, _) = live(&text(""));
    for _ in 0..60 {
        let _ = take(&live, &[("user", "ann")]);
    }
    for (text, has) in [
        (own(1000), Some(939)),
        (own(70), Some(8)),
        (own(50), None),
        (text(""), Some(37)),
    ] {
        assert_eq!(states(&live, &text), [("a".into(), MIGRATED)]);
        assert_eq!(take(&live, &[("user", "ann")]), has);
    }
}

/// The period of all limits of a sequence of reloads, in seconds.
const PERIOD: u64 = 10;
/// The largest limit.
const LARGEST: u64 = 12;

/// A kind of limit, such as `fixed-window` and `first-hit`.
type Kind = (&'static str, &'static str);

fn limit((kind, tail): Kind, n: u64) -> String {
    format!("{kind} {n}/{PERIOD}s {tail}")
}

/// Returns a random policy, and the largest number of permits of a limit that a key can have. A
/// policy migrates to each other one of the same shape.
fn policy(kind: Kind, shape: u64, random: &mut Random) -> (String, u64) {
    let [free, pro, own] = [(); 3].map(|()| 1 + random.below(LARGEST));
    let [a, b, c] = [free, pro, own].map(|n| limit(kind, n));
    let key = "key = 'user'\ncapacity = 64";
    let plans = format!("plan = {{ by = 'tier', free = '{a}', pro = '{b}', default = 'free' }}");
    let has_own = shape == 4 && random.one_in(2);
    let own_of = if has_own { "ann" } else { "bob" };
    let (fields, most) = match shape {
        0 => (format!("limit = '{a}'"), free),
        1 => (format!("{key}\nlimit = '{a}'"), free),
        2 => (plans, free.max(pro)),
        3 => (format!("{key}\n{plans}"), free.max(pro)),
        _ => (
            format!("{key}\n{plans}\noverride = [{{ key = '{own_of}', limit = '{c}' }}]"),
            if has_own { own } else { free.max(pro) },
        ),
    };
    (rule("a", &fields), most)
}

/// What a key was granted while its limits changed.
#[derive(Default)]
struct History {
    /// The tick of each grant, and the number of its permits.
    grants: Vec<(u64, u64)>,
    /// From each of these ticks on, the largest limit that the key could have.
    limits: Vec<(u64, u64)>,
}

impl History {
    /// Asserts the bound of a bucket for each interval: the largest burst in force in it, and what
    /// the rates refill.
    fn assert_bucket(&self, case: &str) {
        for (first, (start, _)) in self.grants.iter().enumerate() {
            let mut granted = 0;
            for (end, n) in self.grants.iter().skip(first) {
                granted += n;
                let ends = self.limits.iter().skip(1).map(|limit| limit.0);
                let (mut burst, mut refilled) = (0, 0);
                for ((from, n), to) in self.limits.iter().zip(ends.chain([u64::MAX])) {
                    if from <= end && to >= *start {
                        burst = burst.max(*n);
                        refilled += n * (to.min(*end) - (*from).max(*start));
                    }
                }
                let allowed = burst + refilled.div_ceil(PERIOD * 1_000_000_000);
                assert!(
                    granted <= allowed,
                    "{case}: {granted} from {start} to {end}"
                );
            }
        }
    }

    /// Asserts the bound of the largest limit.
    fn assert_largest(&self, kind: Kind, case: &str) {
        let most = self.limits.iter().map(|limit| limit.1).max();
        let largest = limit(kind, most.expect("a limit"));
        let largest: AnyAlgorithm = largest.parse().expect("a limit");
        let mut log = Log::new();
        for (at, n) in &self.grants {
            log.grant(Tick::from_nanos(*at), *n);
        }
        let audit: Audit = [log].into_iter().collect();
        let checked = audit.check(&largest.bound());
        checked.unwrap_or_else(|excess| panic!("{case}: {excess}"));
    }
}

/// A client takes all that it can, under each plan, while quotas and overrides change.
#[test]
fn no_sequence_of_reloads_grants_more_than_the_largest_limit() {
    let mut granted = 0;
    for kind in [
        ("token-bucket", ""),
        ("gcra", ""),
        ("leaky-meter", ""),
        ("fixed-window", ""),
        ("fixed-window", "first-hit"),
        ("sliding-window", ""),
        ("intervals", ""),
        ("intervals", "greedy"),
    ] {
        for shape in 0..5 {
            for seed in 0..6 {
                let case = format!("{kind:?}, shape {shape}, seed {seed}");
                let mut random = Random(seed);
                let (text, most) = policy(kind, shape, &mut random);
                let (live, clock) = live(&text);
                let mut history = History::default();
                history.limits.push((0, most));
                for _ in 0..120 {
                    match random.below(3) {
                        0 => {
                            let time = random.below(PERIOD * 1_000_000_000 / 4);
                            clock.advance(Duration::from_nanos(time));
                        }
                        1 => {
                            let (text, most) = policy(kind, shape, &mut random);
                            let state = states(&live, &text).remove(0).1;
                            let is_kept = [MIGRATED, RuleState::Kept].contains(&state);
                            assert!(is_kept, "{case}: {state:?}");
                            history.limits.push((clock.now().as_nanos(), most));
                        }
                        _ => {
                            let tier = ["free", "pro"][random.below(2) as usize];
                            let ann = [("user", "ann"), ("tier", tier)];
                            let most = 1 + random.below(LARGEST);
                            let taken = (0..most).take_while(|_| take(&live, &ann).is_some());
                            let taken = taken.count() as u64;
                            history.grants.push((clock.now().as_nanos(), taken));
                            granted += taken;
                        }
                    }
                }
                history.assert_largest(kind, &case);
                if ["token-bucket", "gcra", "leaky-meter"].contains(&kind.0) {
                    history.assert_bucket(&case);
                }
            }
        }
    }
    assert!(granted > 5_000, "{granted}");
}
