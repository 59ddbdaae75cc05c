//! Rules on a private server whose permits processes lease, and of which they have an allowance.

use std::time::{Duration, Instant};

use tollgate::clock::SystemClock;
use tollgate::stats::Metric;
use tollgate_policy::operate::PolicyStats;
use tollgate_policy::redis::RedisStore;
use tollgate_policy::{Outcome, Policy};
use tollgate_redis::Keys;

use crate::on_redis::{ANN, policy, run};
use crate::server::on_each_server;

fn lapsed(policy: &Policy<SystemClock>) -> u64 {
    let stats = policy.stats();
    let stored = stats.rules.iter().flat_map(|rule| &rule.stored);
    let metrics = stored.flat_map(|limit| &limit.metrics);
    let lapsed = metrics.filter(|(metric, _)| *metric == Metric::LeaseLapsed);
    lapsed.map(|(_, lapsed)| lapsed).sum()
}

/// Two processes lease permits of one rule: together they allow what the limit has, and few of
/// their decisions make a call.
#[test]
fn processes_that_lease_allow_exactly_the_limit_with_few_calls() {
    const TEXT: &str = "
        [[rule]]
        name = 'api'
        key = 'user'
        limit = '1/h burst 10000'
        store = 'redis'
        fallback = 'closed'
        mode = 'leased'
    ";
    on_each_server(|mut private| {
        private.start(false);
        run(async {
            let processes = [policy(&private, TEXT), policy(&private, TEXT)];
            // What a process could not spend in time, because the machine was busy, is spent.
            let lapsed = || {
                processes
                    .iter()
                    .map(|(policy, _)| lapsed(policy))
                    .sum::<u64>()
            };
            let (mut allowed, mut leased, start) = (0, 0, Instant::now());
            while allowed + lapsed() < 10_000 && start.elapsed() < Duration::from_secs(60) {
                for (policy, _) in &processes {
                    let decision = policy.decide_async(&ANN).await;
                    match decision.is_allowed() {
                        true => allowed += 1,
                        false => tokio::task::yield_now().await,
                    }
                    let asked = decision.tightest().expect("a limit");
                    leased += u64::from(!asked.is_remaining_known());
                }
            }
            assert_eq!(allowed + lapsed(), 10_000);
            assert!(leased > 5000, "{leased} by leases");
            for (policy, server) in &processes {
                for _ in 0..100 {
                    let denied = policy.decide_async(&ANN).await;
                    let asked = denied.tightest().expect("a limit");
                    assert!(!denied.is_allowed() && asked.is_remaining_known());
                }
                let calls = server.stats().server;
                assert!(calls < 5000, "{calls} calls");
            }
        });
    });
}

/// What leases do is counted by limit and plan. Keys with a limit of their own count with the first
/// plan.
#[test]
fn leases_are_counted_by_limit() {
    const TEXT: &str = "
        [[rule]]
        name = 'api'
        key = 'user'
        plan = { by = 'tier', free = '1/h burst 10000', pro = '1/h burst 20000', default = 'free' }
        override = [{ key = 'bob', limit = '1/h burst 30000' }]
        store = 'redis'
        fallback = 'closed'
        mode = 'leased'
        [[rule]]
        name = 'direct'
        limit = '1/h burst 100000'
        store = 'redis'
        fallback = 'closed'
    ";
    on_each_server(|mut private| {
        private.start(false);
        run(async {
            let (policy, _) = policy(&private, TEXT);
            let drawn_of = |stats: &PolicyStats| {
                let stored = &stats.rules.first().expect("a rule").stored;
                let of = |table: &str| {
                    let limit = stored.iter().find(|limit| limit.table == table);
                    let metrics = &limit.expect("a limit").metrics;
                    let drawn = metrics.iter().find(|it| it.0 == Metric::LeaseDrawn);
                    drawn.expect("a metric").1
                };
                (of("0/free"), of("0/pro"))
            };
            let drawn = || drawn_of(&policy.stats());
            assert_eq!(drawn(), (0, 0));
            let until = async |facts: &[(&str, &str)], is_drawn: &dyn Fn() -> bool| {
                let start = Instant::now();
                while !is_drawn() {
                    assert!(start.elapsed() < Duration::from_secs(60), "a lease");
                    let _ = policy.decide_async(&facts).await;
                    tokio::task::yield_now().await;
                }
            };
            let pro = [("user", "ann"), ("tier", "pro")];
            until(&pro, &|| drawn().1 > 0).await;
            assert_eq!(drawn().0, 0);
            until(&[("user", "bob")], &|| drawn().0 > 0).await;

            let mut page = String::new();
            let stats = policy.stats();
            stats.write_prometheus(&mut page, "t", &[]).expect("a page");
            let (free, pro) = drawn_of(&stats);
            for line in [
                format!("t_lease_drawn_total{{rule=\"api\",table=\"0/free\"}} {free}"),
                format!("t_lease_drawn_total{{rule=\"api\",table=\"0/pro\"}} {pro}"),
            ] {
                assert!(page.lines().any(|known| known == line), "{line}: {page}");
            }
            assert!(!page.contains("lease_drawn_total{rule=\"direct\""));
        });
    });
}

/// Two processes lease slots of one rule: together they let in as many requests as it has slots,
/// and few of their decisions make a call.
#[test]
fn processes_that_lease_let_in_as_many_as_there_are_slots() {
    const TEXT: &str = "
        [[rule]]
        name = 'api'
        key = 'user'
        limit = 'concurrency 20 lease 1h'
        store = 'redis'
        fallback = 'closed'
        mode = 'leased'
    ";
    on_each_server(|mut private| {
        private.start(false);
        run(async {
            let processes = [policy(&private, TEXT), policy(&private, TEXT)];
            let (mut inside, start) = (Vec::new(), Instant::now());
            for round in 0..20 {
                while inside.len() < 20 {
                    assert!(
                        start.elapsed() < Duration::from_secs(60),
                        "not all are in use"
                    );
                    for (policy, _) in &processes {
                        let decision = policy.decide_async(&ANN).await;
                        match decision.is_allowed() {
                            true => inside.push(decision),
                            false => tokio::task::yield_now().await,
                        }
                    }
                }
                for (policy, _) in &processes {
                    assert!(!policy.decide_async(&ANN).await.is_allowed());
                }
                assert_eq!(inside.len(), 20);
                if round == 19 {
                    break;
                }
                for decision in inside.drain(..) {
                    let finished = decision.finish_async(Outcome::Success, &ANN).await;
                    assert_eq!(finished.expect("an answer").returned, 1);
                }
            }
            // Without the server, a slot that comes back is used again, unless the process gives it
            // back in between.
            private.kill();
            let mut allowed = 0;
            for decision in inside {
                let _ = decision.finish_async(Outcome::Success, &ANN).await;
                for (policy, _) in &processes {
                    let decision = policy.decide_async(&ANN).await;
                    allowed += u32::from(decision.is_allowed());
                    let _ = decision.finish_async(Outcome::Success, &ANN).await;
                }
            }
            assert!(allowed > 0);
        });
    });
}

#[test]
fn only_some_limits_can_be_leased() {
    for (limit, can) in [
        ("100/s", true),
        ("fixed-window 100/min", true),
        ("sliding-window 100/min", true),
        ("leaky-queue 100/s", false),
        ("concurrency 5 lease 60s", true),
        ("concurrency 5 lease 100ms", false),
    ] {
        let text = format!(
            "[[rule]]\nname = 'api'\nkey = 'user'\nlimit = '{limit}'\nstore = 'redis'\n\
             fallback = 'closed'\nmode = 'leased'"
        );
        let store = RedisStore::without_server(Keys::new("policy").expect("a namespace"));
        let built = Policy::builder().store("redis", store).build_toml(&text);
        match built {
            Ok(_) => assert!(can, "{limit}"),
            Err(error) => {
                let error = error.to_string();
                assert!(
                    !can && error.contains("can't be leased"),
                    "{limit}: {error}"
                );
            }
        }
    }
}

/// Each process has a part of each key's limit, so that a key that is asked for seldom needs no
/// call. Of a rule's limits, only the rates have one.
#[test]
fn keys_that_are_asked_for_seldom_need_no_call_if_the_rule_has_an_allowance() {
    const TEXT: &str = "
        [[rule]]
        name = 'api'
        key = 'user'
        limit = '100/s'
        override = [{ key = 'bob', limit = '200/s' }]
        store = 'redis'
        fallback = { local = { processes = 2, keys = 1000 } }
        mode = 'leased'
        allowance = { percent = 20, processes = 2, keys = 1000 }
    ";
    on_each_server(|mut private| {
        private.start(false);
        run(async {
            let (policy, server) = policy(&private, TEXT);
            // Another process may have spent its allowance a second ago.
            let start = Instant::now();
            for round in 0.. {
                assert!(start.elapsed() < Duration::from_secs(60), "no allowance");
                let before = server.stats().server;
                let user = format!("user {round}");
                let facts = [("user", user.as_str())];
                let decision = policy.decide_async(&facts).await;
                assert!(decision.is_allowed());
                // The server does not know what allowances have left.
                let asked = decision.tightest().expect("a limit");
                assert!(!asked.is_remaining_known());
                if server.stats().server == before {
                    break;
                }
            }
            let calls = server.stats().server;
            for user in ["ann", "eve"] {
                for _ in 0..10 {
                    let facts = [("user", user)];
                    assert!(policy.decide_async(&facts).await.is_allowed());
                }
            }
            assert_eq!(server.stats().server, calls);
            for _ in 0..5 {
                assert!(policy.decide_async(&[("user", "bob")]).await.is_allowed());
            }
        });
    });
}

#[test]
fn an_allowance_is_checked_when_the_file_is_read() {
    let check = |rest: &str| {
        let text = format!(
            "[[rule]]\nname = 'api'\nkey = 'user'\nstore = 'redis'\nfallback = 'closed'\n{rest}"
        );
        let store = RedisStore::without_server(Keys::new("policy").expect("a namespace"));
        let built = Policy::builder().store("redis", store).build_toml(&text);
        built.map(drop).map_err(|error| error.to_string())
    };
    let allowance = "allowance = { percent = 20, processes = 4, keys = 1000 }";
    let leased = format!("mode = 'leased'\n{allowance}");
    for limit in [
        "'100/s'",
        "['100/s', 'concurrency 5 lease 60s']",
        "'fixed-window 40/s'",
    ] {
        assert_eq!(check(&format!("limit = {limit}\n{leased}")), Ok(()));
    }
    for (rest, says) in [
        (
            format!("limit = '100/s'\n{allowance}"),
            "allowance needs `mode = \"leased\"`",
        ),
        (
            format!("limit = '100/s'\n{leased}\nban = {{ after = 3, for = '1h' }}"),
            "allowance can't be combined with `ban`",
        ),
        (
            format!("limit = 'concurrency 5 lease 60s'\n{leased}"),
            "allowance needs a limit that has a period",
        ),
        (
            format!("plan = {{ by = 'tier', a = 'concurrency 5 lease 60s' }}\n{leased}"),
            "allowance needs a limit that has a period",
        ),
        (
            format!("limit = '19/s'\n{leased}"),
            "can't be leased: the allowance is 20 percent of the limit among 4 processes, but must \
             be from 1 to 99 percent, and at least one permit of a burst",
        ),
        (
            "limit = '100/s'\nmode = 'leased'\nallowance = { percent = 100, processes = 4 }".into(),
            "allowance.percent is 100, but must be from 1 to 99",
        ),
        (
            "limit = '100/s'\nmode = 'leased'\nallowance = { percent = 10, processes = 4 }".into(),
            "allowance.keys is missing",
        ),
    ] {
        let error = check(&rest).expect_err(&rest);
        assert!(error.contains(says), "{error}");
    }
    let wrong = format!("limit = '100/s'\nmode = 'leasd'\n{allowance}");
    let error = check(&wrong).expect_err("a wrong mode");
    assert_eq!(error.lines().count(), 1, "{error}");
}
