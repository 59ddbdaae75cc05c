//! The limits of single keys of rules on a private server, and without one. Without a server
//! program, the tests that need one say that they are skipped.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use tollgate::clock::SystemClock;
use tollgate::{Denied, Quota};
use tollgate_policy::file::PolicyFile;
use tollgate_policy::operate::{Available, KeyError, RuleKey};
use tollgate_policy::redis::RedisStore;
use tollgate_policy::{Asked, Decision, LivePolicy, Policy, Reason, RuleState, explain};
use tollgate_redis::client::{Connection, connect_lazily};
use tollgate_redis::{Keys, RedisServer};

use crate::server::{Server, on_each_server};

fn keys() -> Keys {
    Keys::new("policy").expect("a namespace")
}

fn store(private: &Server) -> RedisStore<Connection> {
    let client = connect_lazily(private.url().as_str()).expect("an address");
    // A slow machine is not an outage.
    let server = RedisServer::new(client).with_budget(Duration::from_secs(20));
    RedisStore::new(Arc::new(server), keys())
}

/// Returns a policy with a connection of its own, as another process has.
fn policy(private: &Server, text: &str) -> Policy {
    let builder = Policy::builder().store("redis", store(private));
    let policy = builder.build_toml(text);
    policy.unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

/// Returns the text of a rule on the server, whose fallback is `closed` if the fields say none.
fn rule(fields: &str) -> String {
    let fallback = match fields.contains("fallback") {
        true => "",
        false => "fallback = 'closed'",
    };
    format!("[[rule]]\nname = 'api'\nkey = 'user'\nstore = 'redis'\n{fields}\n{fallback}")
}

fn user(name: &str) -> [(&str, &str); 1] {
    [("user", name)]
}

/// What a limit says of itself, and what it answers.
#[derive(Debug, PartialEq)]
struct Said {
    allowed: (Option<Quota>, Option<u64>),
    text: String,
    plan: Option<String>,
    remaining: u64,
    is_denied: bool,
}

fn said(decision: &Decision<impl Deref<Target = Policy>>) -> Vec<Said> {
    let said = |asked: Asked<'_>| Said {
        allowed: (asked.quota(), asked.concurrency()),
        text: asked.limit().to_owned(),
        plan: asked.plan().map(str::to_owned),
        remaining: asked.remaining(),
        is_denied: asked.denial().is_some(),
    };
    decision.asked().map(said).collect()
}

/// Rules that a server and the memory of a process can both decide. Nothing refills in a test.
const ALIKE: [&str; 6] = [
    "limit = '3/d'\noverride = [{ key = 'ann', limit = '6/d' }]",
    "limit = ['9/d', '4/d']\noverride = [{ key = 'ann', limit = 'fixed-window 6/d first-hit' }]",
    "limit = 'fixed-window 5/d first-hit'\noverride = [{ key = 'ann', limit = '2/d burst 3' }, \
     { key = 'bob', limit = 'fixed-window 7/d first-hit' }]",
    "limit = '5/d'\ncost = { estimate = 'n' }\noverride = [{ key = 'ann', limit = '12/d' }]",
    "plan = { by = 'tier', free = '2/d', pro = '4/d' }\n\
     override = [{ key = 'ann', limit = '5/d' }, { key = 'dan', limit = '3/d' }]",
    "plan = { by = 'tier', free = '2/d', pro = '4/d', default = 'free' }\nshadow = true\n\
     override = [{ key = 'bob', limit = '1/d' }]",
];

#[test]
fn a_rule_on_a_server_decides_each_key_as_the_same_rule_in_memory() {
    on_each_server(|mut private| {
        private.start(false);
        for fields in ALIKE {
            let () = private.run("FLUSHALL");
            run(async {
                let in_memory = rule(fields).replace("store = 'redis'\n", "");
                let in_memory = in_memory.replace("fallback = 'closed'", "");
                // Each decision is a call.
                let on_server = rule(&format!("{fields}\nremember = false"));
                let server = policy(&private, &on_server);
                let memory = Policy::from_toml(&in_memory).expect("a policy");
                let file = PolicyFile::from_toml(&on_server).expect("a policy");
                for number in 0..40 {
                    // Each user has one plan, and Dan and Eve have none.
                    let (name, tier) = [
                        ("ann", "pro"),
                        ("bob", "free"),
                        ("carol", "pro"),
                        ("dan", "none"),
                        ("eve", "none"),
                    ][number % 5];
                    let n = ["1", "2", "1"][number % 3];
                    let request = [("user", name), ("tier", tier), ("n", n)];
                    let before = private.scripts();
                    let one = server.decide_async(&request).await;
                    let asks = one.asked().any(|it| it.quota().is_some());
                    assert_eq!(private.scripts() - before, u64::from(asks), "{fields}");
                    let other = memory.decide_async(&request).await;
                    let context = || format!("{fields}\n{number}: {request:?}\n{one:?}\n{other:?}");
                    assert_eq!(one.denied_by(), other.denied_by(), "{}", context());
                    let (one, other) = (said(&one), said(&other));
                    match one.iter().find(|it| it.is_denied) {
                        // A server tells only the limit that denies.
                        Some(denied) => {
                            let mut known = other.iter().filter(|it| it.is_denied);
                            let is_same = |it: &Said| it.allowed == denied.allowed;
                            assert!(known.any(is_same), "{}", context());
                        }
                        None => assert_eq!(one, other, "{}", context()),
                    }
                    let explained = explain(&file, &request);
                    let asks = explained.rules[0].asks.as_ref().expect("it applies");
                    let has_own = fields.contains(&format!("key = '{name}'"));
                    assert_eq!(asks.is_override, has_own, "{}", context());
                }
            });
        }
    });
}

/// Returns the names of all keys on a server, without their beginning.
fn names(private: &Server) -> Vec<String> {
    let names: Vec<String> = private.run("KEYS *");
    let name = |it: &String| it.split_once("}:").expect("a tag").1.to_owned();
    let mut names: Vec<_> = names.iter().map(name).collect();
    names.sort();
    names
}

#[test]
fn an_override_has_a_key_of_its_own_that_the_store_tells() {
    const LIMIT: &str = "limit = ['9/d', 'concurrency 5 lease 60s', 'fixed-window 8/d']\nOVERRIDE";
    const PLAN: &str = "plan = { by = 'user', ann = '9/d', bob = 'fixed-window 8/d' }\nOVERRIDE";
    on_each_server(|mut private| {
        private.start(false);
        let own = "override = [{ key = 'ann', limit = 'sliding-log 7/d' }]";
        for (fields, of_ann, of_bob) in [
            (
                LIMIT,
                &[
                    "api/0/override/sliding-log",
                    "api/1/concurrency",
                    "api/2/override/sliding-log",
                ][..],
                &[
                    "api/0/token-bucket",
                    "api/1/concurrency",
                    "api/2/fixed-window",
                ][..],
            ),
            (
                PLAN,
                &["api/0/override/sliding-log"][..],
                &["api/0/fixed-window/bob"][..],
            ),
        ] {
            let text = rule(&fields.replace("OVERRIDE", own));
            let file = PolicyFile::from_toml(&text).expect("a policy");
            for (name, expected) in [("ann", of_ann), ("bob", of_bob)] {
                let () = private.run("FLUSHALL");
                let policy = policy(&private, &text);
                assert!(run(policy.decide_async(&user(name))).is_allowed());
                assert_eq!(names(&private), expected, "{name}");
                let told = store(&private).stored_keys(&file, "api", &[name]);
                let told = told.expect("keys").into_iter();
                let told = told.filter(|it| it.plan.as_deref().is_none_or(|plan| plan == name));
                let mut told: Vec<_> = told.map(|it| it.key).collect();
                told.sort();
                let mut stored: Vec<String> = private.run("KEYS *");
                stored.sort();
                assert_eq!(told, stored);
            }
        }
    });
}

#[test]
fn the_store_tells_the_keys_of_what_it_counts_under_an_override() {
    let store = RedisStore::without_server(keys());
    let own = "override = [{ key = 'ann', limit = 'sliding-log 7/d' }, \
               { key = 'bob', limit = 'unlimited' }, { key = 'eve', limit = '0' }]";
    let of_ann = ("api/0/override/sliding-log", "sliding-log 7/d");
    for (fields, ann, bob, carol) in [
        ("limit = 'unlimited'", vec![of_ann], vec![], vec![]),
        (
            "limit = ['9/d', 'concurrency 5 lease 60s']",
            vec![of_ann, ("api/1/concurrency", "concurrency 5 lease 60s")],
            vec![("api/1/concurrency", "concurrency 5 lease 60s")],
            vec![
                ("api/0/token-bucket", "9/d"),
                ("api/1/concurrency", "concurrency 5 lease 60s"),
            ],
        ),
        (
            "plan = { by = 'tier', a = 'unlimited', b = '8/d', c = '9/d' }",
            vec![of_ann],
            vec![],
            vec![
                ("api/0/token-bucket/b", "8/d"),
                ("api/0/token-bucket/c", "9/d"),
            ],
        ),
    ] {
        let text = rule(&format!("{fields}\n{own}"));
        let builder = Policy::builder().store("redis", RedisStore::without_server(keys()));
        assert_eq!(builder.check_toml(&text).to_string(), "", "{fields}");
        let file = PolicyFile::from_toml(&text).expect("a policy");
        for (name, expected) in [
            ("ann", ann),
            ("bob", bob.clone()),
            ("eve", bob),
            ("carol", carol),
        ] {
            let told = store.stored_keys(&file, "api", &[name]).expect("keys");
            let told = told.iter().map(|it| {
                let name = it.key.split_once("}:").expect("a tag").1;
                (name, it.limit.as_str())
            });
            assert_eq!(told.collect::<Vec<_>>(), expected, "{name} {fields}");
        }
        let explained = |name| {
            let request = [("user", name), ("tier", "b")];
            let mut rules = explain(&file, &request).rules.into_iter();
            let asks = rules.find_map(|rule| rule.asks).expect("it applies");
            (
                asks.is_override,
                asks.limits.into_iter().next(),
                asks.denies,
            )
        };
        assert_eq!(explained("bob"), (true, Some("unlimited".into()), None));
        let denies = Some("the override of this key is 0".into());
        assert_eq!(explained("eve"), (true, None, denies));
    }
}

/// Returns what a key has of each limit: the text, the plan and the permits.
async fn available(key: &RuleKey<'_, SystemClock>) -> Vec<(String, Option<String>, u64)> {
    let all = key.available_async().await.expect("a server");
    let one = |it: &Available<'_>| (it.limit.to_owned(), it.plan.map(str::to_owned), it.permits);
    all.iter().map(one).collect()
}

/// The tests of the documentation run the example without a server.
#[test]
fn a_server_decides_as_the_example_of_the_guide_says() {
    let page = include_str!("../../docs/POLICY.md");
    let (_, example) = page.split_once("let text = r#\"\n").expect("an example");
    let (text, _) = example.split_once("\"#;").expect("an end");
    on_each_server(|mut private| {
        private.start(false);
        let policy = policy(&private, text);
        run(async {
            for (tenant, left) in [("acme", 49), ("globex", 1)] {
                let decision = policy.decide_async(&[("tenant", tenant)]).await;
                assert_eq!(
                    (decision.remaining(), decision.fallback()),
                    (Some(left), None)
                );
            }
            let mallory = policy.decide_async(&[("tenant", "mallory")]).await;
            assert!(!mallory.is_allowed());
        });
    });
}

#[test]
fn the_verbs_of_a_key_are_those_of_its_override() {
    on_each_server(|mut private| {
        private.start(false);
        let own = "override = [{ key = 'ann', limit = 'sliding-log 4/d' }, \
                   { key = 'bob', limit = 'unlimited' }]";
        run(async {
            for fields in [
                "limit = 'sliding-log 9/d'",
                "limit = 'unlimited'",
                "plan = { by = 'tier', free = '5/d', pro = 'sliding-log 9/d' }",
            ] {
                let () = private.run("FLUSHALL");
                let text = rule(&format!("{fields}\n{own}"));
                let [here, there] = [(); 2].map(|()| policy(&private, &text));
                let ann = here.key("api", ["ann"]).expect("a key");
                let has = |permits| vec![("sliding-log 4/d".to_owned(), None, permits)];
                assert!(there.decide_async(&user("ann")).await.is_allowed());
                assert_eq!(available(&ann).await, has(3), "{fields}");
                let hour = Duration::from_secs(3600);
                ann.ban_for_async(hour).await.expect("a server");
                assert!(!there.decide_async(&user("ann")).await.is_allowed());
                assert!(ann.banned_for_async().await.expect("a server") > Some(hour / 2));
                assert_eq!(ann.reset_async().await, Ok(true));
                assert_eq!(available(&ann).await, has(4), "{fields}");

                let before = private.scripts();
                let bob = here.key("api", ["bob"]).expect("a key");
                let unlimited = [("unlimited".to_owned(), None, u64::MAX)];
                assert_eq!(available(&bob).await, unlimited, "{fields}");
                assert_eq!(bob.available().expect("no server").len(), 1);
                let unable = KeyError::Unable {
                    rule: "api".into(),
                    verb: "reset",
                };
                assert_eq!(bob.reset_async().await, Err(unable));
                assert_eq!(private.scripts(), before, "{fields}");
            }
            let text = rule(&format!(
                "plan = {{ by = 'tier', a = '5/d', b = '6/d' }}\n{own}"
            ));
            let policy = policy(&private, &text);
            let carol = policy.key("api", ["carol"]).expect("a key");
            let plan = |text: &str, plan: &str, n| (text.to_owned(), Some(plan.to_owned()), n);
            let expected = [plan("5/d", "a", 5), plan("6/d", "b", 6)];
            assert_eq!(available(&carol).await, expected);
        });
    });
}

#[test]
fn an_override_that_comes_or_goes_starts_its_key_anew_and_others_go_on() {
    on_each_server(|mut private| {
        private.start(false);
        run(async {
            let live = LivePolicy::new(policy(&private, &rule("limit = '5/d'")));
            let changed = RuleState::Fresh("its overrides changed");
            let own = |limit: &str| format!("override = [{{ key = 'ann', limit = '{limit}' }}]");
            let [short, none, log] = [own("50/d"), String::new(), own("sliding-log 50/d")];
            for (own, state, ann, bob) in [
                (&none, RuleState::Kept, 4, 4),
                (&short, changed, 49, 3),
                (&short, RuleState::Kept, 48, 2),
                // What was counted is still there.
                (&none, changed, 3, 1),
                (&short, changed, 47, 0),
                (&log, changed, 49, 0),
            ] {
                let text = rule(&format!("limit = '5/d'\n{own}"));
                let reloaded = live.reload_toml(&text).expect("a policy");
                assert_eq!(reloaded.state("api"), Some(state), "{own}");
                let left = live.decide_async(&user("ann")).await.remaining();
                assert_eq!(left, Some(ann), "{own}");
                let left = live.decide_async(&user("bob")).await.remaining();
                assert_eq!(left.unwrap_or(0), bob, "{own}");
            }
        });
    });
}

/// Each call is decided by the limit of the process that makes it, and all count in one place.
#[test]
fn processes_with_different_overrides_of_a_key_share_its_count() {
    on_each_server(|mut private| {
        private.start(false);
        run(async {
            let own = |n: u32| {
                let limit = format!("fixed-window {n}/d first-hit");
                let own = format!("override = [{{ key = 'ann', limit = '{limit}' }}]");
                policy(&private, &rule(&format!("limit = '2/d'\n{own}")))
            };
            let [large, small] = [own(10), own(4)];
            let without = policy(&private, &rule("limit = '2/d'"));
            let ann = user("ann");
            for (policy, n, left) in [
                (&large, 10, Some(9)),
                (&large, 10, Some(8)),
                (&small, 4, Some(1)),
                (&small, 4, Some(0)),
                (&small, 4, None),
                (&large, 10, Some(5)),
                (&small, 4, None),
                // A process without the override counts the key as any other.
                (&without, 2, Some(1)),
                (&large, 10, Some(4)),
            ] {
                let decision = policy.decide_async(&ann).await;
                let allowed = decision.is_allowed();
                assert_eq!(allowed.then_some(decision.remaining()).flatten(), left);
                let asked = decision.asked().next().expect("the rule applies");
                assert_eq!(asked.quota(), Some(Quota::per_day(n)));
            }
        });
    });
}

#[test]
fn a_key_with_an_override_is_banned_on_the_server() {
    on_each_server(|mut private| {
        private.start(false);
        run(async {
            let text = rule(
                "limit = '9/d'\nban = { after = 1, for = '10min' }\n\
                 override = [{ key = 'ann', limit = '1/d' }]",
            );
            let [one, other] = [(); 2].map(|()| policy(&private, &text));
            let ann = user("ann");
            assert!(one.decide_async(&ann).await.is_allowed());
            for policy in [&one, &other] {
                let denied = policy.decide_async(&ann).await;
                let Some(Reason::Limit { denied, .. }) = denied.reason() else {
                    panic!("{denied:?}");
                };
                assert!(matches!(denied, Denied::Banned { .. }), "{denied:?}");
            }
            assert!(other.decide_async(&user("bob")).await.is_allowed());
        });
    });
}

#[test]
fn fallbacks_of_a_key_follow_its_override() {
    for (fallback, own, granted) in [
        ("'closed'", "40/h", [0, 0]),
        // The key with an override counts on its own.
        ("{ open = { at_most = 3, per = '1h' } }", "40/h", [3, 3]),
        ("{ local = { processes = 4, keys = 9 } }", "40/h", [10, 5]),
        (
            "{ local = { processes = 4, keys = 9 } }",
            "sliding-log 8/h",
            [2, 5],
        ),
    ] {
        let text = rule(&format!(
            "limit = '20/h'\noverride = [{{ key = 'ann', limit = '{own}' }}]\nfallback = {fallback}"
        ));
        let store = RedisStore::without_server(keys());
        let builder = Policy::builder().store("redis", store);
        let policy = builder.build_toml(&text).expect("a policy");
        let mut allowed = [0, 0];
        run(async {
            for _ in 0..30 {
                for (name, allowed) in ["ann", "bob"].into_iter().zip(&mut allowed) {
                    let decision = policy.decide_async(&user(name)).await;
                    *allowed += u32::from(decision.is_allowed());
                }
            }
        });
        assert_eq!(allowed, granted, "{fallback} {own}");
    }
}

#[test]
fn the_explanation_of_a_key_shows_its_override_and_the_concurrency_that_stays() {
    let text = rule(
        "limit = ['sliding-log 9/h', 'concurrency 3 lease 60s', '2/s']\n\
         override = [{ key = 'ann', limit = 'sliding-log 50/h' }]",
    );
    let file = PolicyFile::from_toml(&text).expect("a policy");
    let limits = |name| {
        let mut rules = explain(&file, &user(name)).rules.into_iter();
        rules.find_map(|rule| rule.asks).expect("it applies").limits
    };
    assert_eq!(
        limits("ann"),
        ["sliding-log 50/h", "concurrency 3 lease 60s"]
    );
    assert_eq!(limits("bob").len(), 3);
}

#[test]
fn an_override_that_the_server_can_not_count_is_an_error_once() {
    let check = |fields: &str| {
        let store = RedisStore::without_server(keys());
        let builder = Policy::builder().store("redis", store);
        builder.check_toml(&rule(fields)).to_string()
    };
    let own = |limit: &str| format!("override = [{{ key = 'ann', limit = '{limit}' }}]");
    let of_two = |limit: &str| check(&format!("limit = ['5/h', '9/d']\n{}", own(limit)));
    for limit in [
        "9/h",
        "gcra 9/h burst 3",
        "sliding-log 9/h",
        "leaky-queue 9/h free 1",
    ] {
        assert_eq!(of_two(limit), "", "{limit}");
    }
    let at = "6:36: error: rule \"api\": override[1].limit is";
    for (limit, message) in [
        ("0/h", "but n is 0, but must be at least 1 permit"),
        ("concurrency 5", "but must be a rate, `unlimited` or `0`"),
        (
            "concurrency 5 lease 60s",
            "but must be a rate, `unlimited` or `0`",
        ),
        (
            "sliding-log 50000/h",
            "but n is 50000, but must be at most 20000, because the server \
          stores each permit of a log: a sliding window or a bucket can have more",
        ),
        (
            "intervals 9/h",
            "but must begin with an algorithm of the server or a rate; known: token-bucket, gcra, \
             leaky-meter, leaky-queue, fixed-window, sliding-window, sliding-log, concurrency",
        ),
    ] {
        assert_eq!(of_two(limit), format!("{at} \"{limit}\", {message}"));
    }
    let none =
        "6:21: error: rule \"api\": override needs a limit that is a rate, which it replaces";
    for limit in [
        "limit = 'concurrency 5 lease 60s'",
        "plan = { by = 'tier', a = '1/h', b = 'concurrency 5 lease 60s' }",
    ] {
        assert_eq!(check(&format!("{limit}\n{}", own("9/h"))), none);
    }
}
