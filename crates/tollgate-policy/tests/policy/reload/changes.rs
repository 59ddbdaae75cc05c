//! What a reload makes of names, quotas and overrides that change together.

use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use tollgate::{AnyAlgorithm, Keyed, ManualClock, Quota};
use tollgate_policy::{LivePolicy, Outcome, Policy, RuleState};

use crate::reload::{left, live, rule, states};

const KEPT: RuleState = RuleState::Kept;
const MIGRATED: RuleState = RuleState::Migrated;

#[test]
fn the_state_belongs_to_the_name() {
    let [five, nine] = ["key = 'user'\nlimit = '5/h'", "key = 'user'\nlimit = '9/h'"];
    let both = |a: &str, b: &str| format!("apply = 'all'\n{}{}", rule("a", a), rule("b", b));
    let (live, _) = live(&both(five, nine));
    assert_eq!(left(&live, "ann"), Some(4));
    assert_eq!(left(&live, "ann"), Some(3));
    // Each rule has the other's limit now, and its own state.
    let swapped = states(&live, &both(nine, five));
    assert_eq!(swapped, [("a".into(), MIGRATED), ("b".into(), MIGRATED)]);
    let decision = live.decide(&[("user", "ann")]);
    let remaining: Vec<_> = decision.asked().map(|it| it.remaining()).collect();
    assert_eq!(remaining, [6, 2]);
}

#[test]
fn a_rule_that_was_away_starts_anew() {
    let text = rule("a", "key = 'user'\nlimit = '5/h'");
    let (live, _) = live(&text);
    assert_eq!(left(&live, "ann"), Some(4));
    let held = live.decide(&[("user", "ann")]);
    let renamed = [
        ("b".into(), RuleState::New),
        ("a".into(), RuleState::Removed),
    ];
    assert_eq!(states(&live, &text.replace("'a'", "'b'")), renamed);
    assert_eq!(left(&live, "ann"), Some(4));
    let back = [
        ("a".into(), RuleState::New),
        ("b".into(), RuleState::Removed),
    ];
    assert_eq!(states(&live, &text), back);
    // The decision from before it was away ends where it began.
    assert_eq!(held.undo(), 1);
    assert_eq!(left(&live, "ann"), Some(4));
}

#[test]
fn a_limit_that_is_gone_from_the_middle_makes_the_rule_anew() {
    let (live, _) = live(&rule("a", "key = 'user'\nlimit = ['5/h', '9/h', '7/h']"));
    assert_eq!(left(&live, "ann"), Some(4));
    let why = RuleState::Fresh("it has another number of limits");
    let text = rule("a", "key = 'user'\nlimit = ['5/h', '7/h']");
    assert_eq!(states(&live, &text), [("a".into(), why)]);
    let decision = live.decide(&[("user", "ann")]);
    assert_eq!(
        decision
            .asked()
            .map(|it| it.remaining())
            .collect::<Vec<_>>(),
        [4, 6]
    );
}

#[test]
fn a_limit_with_another_algorithm_starts_anew_and_the_others_go_on() {
    let (live, _) = live(&rule("a", "key = 'user'\nlimit = ['5/h', '9/h']"));
    assert_eq!(left(&live, "ann"), Some(4));
    let why = RuleState::Fresh("its algorithm changed");
    let text = rule("a", "key = 'user'\nlimit = ['4/h', 'gcra 9/h burst 9']");
    assert_eq!(states(&live, &text), [("a".into(), why)]);
    let decision = live.decide(&[("user", "ann")]);
    assert_eq!(
        decision
            .asked()
            .map(|it| it.remaining())
            .collect::<Vec<_>>(),
        [2, 8]
    );
}

#[test]
fn what_does_not_concern_the_state_keeps_it() {
    let (live, _) = live(&rule("a", "limit = '9/h'"));
    assert!(live.decide(&()).is_allowed());
    for (n, rest) in [
        "limit = '9/h'\nshadow = true",
        "limit = '9/h'\ncount = 'failures'\nmissing = 'skip'",
        "limit = '9/h'\ncost = { estimate = 'n', default = 1, max = 9, settle = 'used' }",
        "when = { path = '/a/**' }\nlimit = '9/h'",
        "limit = '9/h'\nstatus = 503",
        "limit = ' 9/h '\nnetwork = { v4 = 32 }\nstore = 'memory'",
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(
            states(&live, &rule("a", rest)),
            [("a".into(), KEPT)],
            "{rest}"
        );
        let decision = live.decide(&[("path", "/a/b")]);
        let remaining = decision.asked().next().map(|it| it.remaining());
        assert_eq!(remaining, Some(7 - n as u64), "{rest}");
    }
}

#[test]
fn decisions_that_are_held_end_after_the_reload() {
    let text = |n: u32, rate: &str| {
        rule(
            "a",
            &format!(
                "limit = ['concurrency {n}', '{rate}']\ncost = {{ default = 10, settle = 'used' }}"
            ),
        )
    };
    let (live, _) = live(&text(2, "100/h"));
    let (first, second) = (live.decide(&()), live.decide(&()));
    assert_eq!(states(&live, &text(1, "50/h")), [("a".into(), MIGRATED)]);
    assert!(!live.decide(&()).is_allowed());
    thread::scope(|scope| {
        scope.spawn(|| first.finish(Outcome::Success, &[("used", "0")]));
    });
    assert!(!live.decide(&()).is_allowed(), "the second is still inside");
    assert_eq!(states(&live, &text(1, "60/h")), [("a".into(), MIGRATED)]);
    let _ = second.settle(&[("used", "15")]);
    let third = live.decide(&());
    assert!(third.is_allowed());
    assert!(!live.decide(&()).is_allowed());
    let left = third.asked().last().map(|it| it.remaining());
    // The quota of the first one was replaced, so its 10 stay taken. The second one took 15.
    assert_eq!(left, Some(60 - 10 - 15 - 10));
}

#[test]
fn a_bad_file_changes_no_rule_before_the_bad_one() {
    let good = |free: u32, own: u32, inside: u32| {
        rule(
            "plans",
            &format!(
                "key = 'user'\nplan = {{ by = 'tier', free = '{free}/h', default = 'free' }}\n\
             override = [{{ key = 'acme', limit = '{own}/h' }}]\nban = {{ after = {own}, for = '1h' }}"
            ),
        ) + &rule(
            "inside",
            &format!("when = 'never'\nlimit = 'concurrency {inside}'"),
        )
    };
    let (live, _) = live(&good(5, 50, 3));
    assert_eq!(
        (left(&live, "ann"), left(&live, "acme")),
        (Some(4), Some(49))
    );
    for bad in [
        rule("bad", "limit = '1/fortnight'"),
        rule(
            "bad",
            "limit = '1/h'\nstore = 'nowhere'\nfallback = 'closed'",
        ),
        rule("bad", "limit = '1/h'\nalso = ['bad']"),
        rule("bad", "limit = 'concurrency 0'"),
        rule("plans", "limit = '1/h'"),
        "[[rule]\n".into(),
    ] {
        let text = good(2, 20, 1) + &bad;
        assert!(
            live.reload_toml(&text)
                .is_err_and(|errors| errors.has_errors()),
            "{bad}"
        );
    }
    assert_eq!(
        (left(&live, "ann"), left(&live, "acme")),
        (Some(3), Some(48))
    );
    assert_eq!(
        states(&live, &good(5, 50, 3)),
        [("plans".into(), KEPT), ("inside".into(), KEPT)]
    );
}

#[test]
fn a_changed_quota_is_the_quota_of_a_policy_that_is_new() {
    const KINDS: [&str; 7] = [
        "",
        "gcra ",
        "leaky-meter ",
        "leaky-queue ",
        "fixed-window ",
        "sliding-window ",
        "intervals ",
    ];
    const QUOTAS: [&str; 7] = [
        "1/d",
        "1/s",
        "7/3s",
        "1000/ms",
        "1000000000/s",
        "3/365d",
        "4000000/h",
    ];
    for kind in KINDS {
        for (n, old) in QUOTAS.iter().enumerate() {
            for new in &QUOTAS[n..] {
                for (old, new) in [(old, new), (new, old)] {
                    let text = |quota| {
                        let limit = format!("key = 'user'\ncapacity = 64\nlimit = '{kind}{quota}'");
                        rule("a", &limit)
                    };
                    let build = |text: &str| {
                        let builder = Policy::builder().clock(ManualClock::new());
                        builder.build_toml(text)
                    };
                    let (Ok(before), Ok(fresh)) = (build(&text(old)), build(&text(new))) else {
                        continue;
                    };
                    let live = LivePolicy::new(before);
                    let state = live.reload_toml(&text(new)).expect("a policy").state("a");
                    let case = format!("{kind}{old} {new} {state:?}");
                    let bob = [("user", "bob")];
                    for _ in 0..3 {
                        let (now, expected) = (live.decide(&bob), fresh.decide(&bob));
                        assert_eq!(now.remaining(), expected.remaining(), "{case}");
                        assert_eq!(now.retry_after(), expected.retry_after(), "{case}");
                    }
                }
            }
        }
    }
}

#[test]
fn overrides_come_and_go_over_many_reloads() {
    let text = |n: u64| {
        let own = (0..3).map(|i| {
            format!(
                "{{ key = 'user{}', limit = 'fixed-window {}/h' }}",
                n + i,
                100 + 10 * n + i
            )
        });
        let own: Vec<_> = own.collect();
        let free = 5 + n % 4;
        rule(
            "a",
            &format!(
                "key = 'user'\nplan = {{ by = 'tier', free = 'fixed-window {free}/h', pro = 'fixed-window 50/h', default = 'free' }}\n\
             override = [{}]",
                own.join(", ")
            ),
        )
    };
    let (live, _) = live(&text(0));
    for n in 1..200 {
        assert_eq!(states(&live, &text(n)), [("a".into(), MIGRATED)], "{n}");
        // The first time that this key is seen, and it has an override.
        let newest = left(&live, &format!("user{}", n + 2));
        assert_eq!(newest, Some(100 + 10 * n + 1));
        // It lost its override, and took at most three before.
        let lost = left(&live, &format!("user{}", n - 1));
        let free = 5 + n % 4;
        assert!(lost < Some(free), "{n}: {lost:?}");
        assert_eq!(left(&live, &format!("new{n}")), Some(free - 1), "{n}");
    }
}

#[test]
fn reloads_at_once_leave_one_of_their_policies_whole() {
    let text = |n: usize| {
        rule("a", &format!("key = 'user'\nlimit = 'fixed-window {n}/h'"))
            + &rule("b", &format!("when = 'never'\nlimit = 'concurrency {n}'"))
    };
    let (live, _) = live(&text(1000));
    assert_eq!(left(&live, "ann"), Some(999));
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        for half in 0..2 {
            let (live, barrier, text) = (&live, &barrier, &text);
            scope.spawn(move || {
                barrier.wait();
                for n in 1..=100 {
                    let reloaded = live.reload_toml(&text(1000 + 2 * n + half));
                    assert_eq!(reloaded.expect("a policy").state("a"), Some(MIGRATED));
                }
            });
        }
    });
    let decision = live.decide(&[("user", "bob")]);
    let asked = decision.tightest().expect("it asks a limit");
    assert_eq!(
        asked.limit(),
        format!("fixed-window {}/h", asked.remaining() + 1)
    );
    // Ann took one of 1000 before, and takes another one of the limit that bob took one of.
    assert_eq!(left(&live, "ann"), Some(asked.remaining() - 1));
}

#[test]
fn bans_are_of_keys_that_mean_the_same() {
    let text = |rest: &str| rule("a", &format!("{rest}\nban = {{ after = 1, for = '9h' }}"));
    let ann = [
        ("user", "ann"),
        ("tenant", "ann"),
        ("client-ip", "10.0.0.0"),
    ];
    for (old, new, is_banned) in [
        (
            "key = 'user'\nlimit = '1/h'",
            "key = 'user'\nlimit = '2/h'",
            true,
        ),
        (
            "key = 'user'\nlimit = '1/h'",
            "key = 'user'\nlimit = ['gcra 2/h', '2/h']",
            true,
        ),
        (
            "key = 'user'\nlimit = '1/h'",
            "key = 'tenant'\nlimit = '1/h'",
            false,
        ),
        (
            "key = 'user'\nlimit = '1/h'",
            "key = 'user'\nlimit = '1/h'\ncapacity = 9",
            false,
        ),
        (
            "key = 'client-ip'\nnetwork = { v4 = 24 }\nlimit = '1/h'",
            "key = 'client-ip'\nlimit = '1/h'",
            false,
        ),
    ] {
        let (live, _) = live(&text(old));
        assert!(live.decide(&ann).is_allowed());
        assert!(!live.decide(&ann).is_allowed());
        let _ = states(&live, &text(new));
        let wait = live.decide(&ann).retry_after();
        assert_eq!(
            wait.is_some_and(|wait| wait.as_secs() == 9 * 3600),
            is_banned,
            "{new}"
        );
    }
}

#[test]
fn denials_while_a_rule_was_on_trial_do_not_count() {
    let text = |rest: &str| {
        let ban = "ban = { after = 3, for = '9h' }";
        format!(
            "apply = 'all'\n{}",
            rule("a", &format!("key = 'user'\nlimit = '1/h'\n{ban}\n{rest}"))
        )
    };
    let (live, clock) = live(&(text("shadow = true") + &rule("all", "limit = '2/h'")));
    let ann = [("user", "ann")];
    for _ in 0..9 {
        let _ = live.decide(&ann);
    }
    assert_eq!(states(&live, &text(""))[0], ("a".into(), KEPT));
    for _ in 0..2 {
        assert!(live.decide(&ann).retry_after() <= Some(Duration::from_secs(3600)));
    }
    clock.advance(Duration::from_secs(3600));
    assert!(live.decide(&ann).is_allowed());
}

#[test]
fn a_concurrency_of_keys_that_changes_starts_anew() {
    let text = |n: u32| rule("a", &format!("key = 'user'\nlimit = 'concurrency {n}'"));
    let (live, _) = live(&text(1));
    let ann = [("user", "ann")];
    let inside = live.decide(&ann);
    assert_eq!(states(&live, &text(1)), [("a".into(), KEPT)]);
    assert!(!live.decide(&ann).is_allowed());
    let fresh = RuleState::Fresh("the concurrency of keys can't change");
    assert_eq!(states(&live, &text(2)), [("a".into(), fresh)]);
    let two = [live.decide(&ann), live.decide(&ann)];
    assert!(two.iter().all(|it| it.is_allowed()) && !live.decide(&ann).is_allowed());
    // It leaves the limit that it entered.
    drop(inside);
    assert!(!live.decide(&ann).is_allowed());
}

#[test]
fn a_rate_without_a_key_changes_its_quota() {
    let text = |n: u32| rule("a", &format!("limit = 'fixed-window {n}/h'"));
    let (live, _) = live(&text(9));
    assert_eq!(left(&live, ""), Some(8));
    assert_eq!(states(&live, &text(3)), [("a".into(), MIGRATED)]);
    assert_eq!(left(&live, ""), Some(1));
}

#[test]
fn an_override_that_changes_or_has_no_room_is_never_ignored() {
    let text = |own: &[(String, u32)]| {
        let own = own
            .iter()
            .map(|(key, n)| format!("{{ key = '{key}', limit = 'fixed-window {n}/h' }}"));
        let own: Vec<_> = own.collect();
        let own = own.join(", ");
        rule(
            "a",
            &format!("key = 'user'\nlimit = 'fixed-window 5/h'\noverride = [{own}]"),
        )
    };
    let users = |n: u32| {
        (0..n)
            .map(|n| (format!("user{n}"), 10 + n))
            .collect::<Vec<_>>()
    };
    let (live, _) = live(&text(&[]));
    assert_eq!(left(&live, "ann"), Some(4));
    let no_room = RuleState::Fresh("its table has no room for so many overrides");
    let mut fresh = 0;
    for n in 1..=60 {
        let state = states(&live, &text(&users(n))).remove(0).1;
        assert!(state == MIGRATED || state == no_room, "{n}: {state:?}");
        fresh += u32::from(state == no_room);
        let newest = left(&live, &format!("user{}", n - 1));
        assert_eq!(newest, Some(u64::from(10 + n - 2)), "{n}");
    }
    // Each new table has room for more.
    assert!((1..6).contains(&fresh), "{fresh}");
}

#[test]
fn one_reload_waits_for_another() {
    let inside = Arc::new(Mutex::new(()));
    let builder = Policy::builder().limit("own", move |spec| {
        // Threads that reload at once without waiting meet here.
        let _one = inside.try_lock().map_err(|error| error.to_string())?;
        (0..50).for_each(|_| thread::yield_now());
        let table =
            Keyed::token_bucket(Quota::per_hour(5), 64).map_err(|error| error.to_string())?;
        Ok(Box::new(table.with_hasher(spec.hasher.clone())))
    });
    let text = |n: usize| rule("a", &format!("key = 'user'\nlimit = 'own {n}'"));
    let live = LivePolicy::new(builder.build_toml(&text(0)).expect("a policy"));
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        for half in 0..2 {
            let (live, barrier, text) = (&live, &barrier, &text);
            scope.spawn(move || {
                barrier.wait();
                for n in 1..=10 {
                    let reloaded = live.reload_toml(&text(2 * n + half));
                    assert!(reloaded.is_ok(), "{reloaded:?}");
                }
            });
        }
    });
}

#[test]
fn a_key_that_was_banned_before_its_rule_was_on_trial_is_not_banned_in_the_trial() {
    let text = |rest: &str| {
        let limit = "key = 'user'\nlimit = ['1/s', '9/s']\nban = { after = 1, for = '9h' }";
        rule("a", &format!("{limit}\n{rest}"))
    };
    let (live, clock) = live(&text(""));
    let ann = [("user", "ann")];
    assert!(live.decide(&ann).is_allowed() && !live.decide(&ann).is_allowed());
    assert_eq!(states(&live, &text("shadow = true")), [("a".into(), KEPT)]);
    clock.advance(Duration::from_secs(1));
    let remaining = || {
        let decision = live.decide(&ann);
        let asked = decision
            .asked()
            .map(|it| (it.would_allow(), it.remaining()));
        asked.collect::<Vec<_>>()
    };
    assert_eq!(remaining(), [(true, 0), (true, 8)]);
    assert_eq!(remaining(), [(false, 0), (true, 8)]);
    // The ban goes on after the trial.
    assert_eq!(states(&live, &text("")), [("a".into(), KEPT)]);
    assert!(live.decide(&ann).retry_after() > Some(Duration::from_secs(8 * 3600)));
}

#[test]
fn an_override_of_a_rate_does_not_concern_a_registered_limit_beside_it() {
    let builder = Policy::builder().clock(ManualClock::new());
    let builder = builder.algorithm("hourly", |n| format!("{n}/h").parse::<AnyAlgorithm>());
    let text = |n: u32| {
        let own = format!("override = [{{ key = 'ann', limit = '{n}/h' }}]");
        rule(
            "a",
            &format!("key = 'user'\nlimit = ['hourly 9', '5/h']\n{own}"),
        )
    };
    let live = LivePolicy::new(builder.build_toml(&text(20)).expect("a policy"));
    assert_eq!(left(&live, "ann"), Some(8));
    assert_eq!(states(&live, &text(4)), [("a".into(), MIGRATED)]);
    let decision = live.decide(&[("user", "ann")]);
    assert_eq!(
        decision
            .asked()
            .map(|it| it.remaining())
            .collect::<Vec<_>>(),
        [7, 2]
    );
}
