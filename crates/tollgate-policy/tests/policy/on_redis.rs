//! Rules in memory and rules on a private server together. Without a server program, the tests say
//! that they are skipped.

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tollgate::clock::SystemClock;
use tollgate::{Denied, Quota, TokenBucket};
use tollgate_audit::{Audit, Bounded, Log};
use tollgate_policy::file::PolicyFile;
use tollgate_policy::operate::KeyError;
use tollgate_policy::redis::RedisStore;
use tollgate_policy::{FactName, FactValue, Facts, Outcome, Policy, Reason};
use tollgate_redis::client::{Connection, connect_lazily};
use tollgate_redis::{Keys, RedisServer};

use crate::server::{Server, on_each_server};

pub(crate) type Shared = Arc<RedisServer<Connection>>;

/// Returns a policy whose store `redis` is this server.
pub(crate) fn policy(private: &Server, text: &str) -> (Policy<SystemClock>, Shared) {
    let client = connect_lazily(private.url().as_str()).expect("an address");
    // A slow machine is not an outage.
    let budget = Duration::from_secs(20);
    let shared = Arc::new(RedisServer::new(client).with_budget(budget));
    let keys = Keys::new("policy").expect("a namespace");
    let store = RedisStore::new(Arc::clone(&shared), keys);
    let builder = Policy::builder().store("redis", store);
    (builder.build_toml(text).expect("a policy"), shared)
}

pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

pub(crate) const ANN: [(&str, &str); 1] = [("user", "ann")];

#[test]
fn rules_in_memory_and_on_a_server_hold_their_bounds_together() {
    const TEXT: &str = "
        apply = 'all'
        [[rule]]
        name = 'memory'
        key = 'user'
        limit = '400/s burst 30'
        [[rule]]
        name = 'server'
        key = 'user'
        limit = '300/s burst 50'
        store = 'redis'
        fallback = 'closed'
    ";
    on_each_server(|mut private| {
        private.start(false);
        let logs = run(async {
            let policy = Arc::new(policy(&private, TEXT).0);
            let tasks = (0..4).map(|_| {
                let policy = Arc::clone(&policy);
                tokio::spawn(async move {
                    let mut logs: [Log; 2] = Default::default();
                    for _ in 0..400 {
                        let decision = policy.decide_async_owned(&ANN).await;
                        let expected = if decision.is_allowed() { 2 } else { 0 };
                        let granted: Vec<_> =
                            decision.asked().filter_map(|it| it.grant()).collect();
                        assert_eq!(granted.len(), expected);
                        for (granted, log) in granted.iter().zip(&mut logs) {
                            log.grant(granted.at(), granted.n());
                        }
                    }
                    logs
                })
            });
            let tasks: Vec<_> = tasks.collect();
            let mut logs = Vec::new();
            for task in tasks {
                logs.push(task.await.expect("no panic"));
            }
            logs
        });
        for (limit, quota) in ["400/s burst 30", "300/s burst 50"].iter().enumerate() {
            let audit: Audit = logs.iter().map(|logs| logs[limit].clone()).collect();
            let quota: Quota = quota.parse().expect("a quota");
            let bucket = TokenBucket::new(quota).expect("a bucket");
            let summary = audit.check(&bucket.bound());
            let summary = summary.unwrap_or_else(|excess| panic!("limit {limit}: {excess}"));
            assert!(summary.granted > 0);
        }
    });
}

#[test]
fn two_processes_admit_the_quota_and_denials_take_nothing_in_memory() {
    const TEXT: &str = "
        apply = 'all'
        [[rule]]
        name = 'memory'
        key = 'user'
        limit = '1000/d'
        [[rule]]
        name = 'server'
        key = 'user'
        limit = 'fixed-window 150/d first-hit'
        store = 'redis'
        fallback = 'closed'
    ";
    on_each_server(|mut private| {
        private.start(false);
        let admitted: Vec<(u64, u64)> = run(async {
            // Each has its own connection, as two processes have.
            let processes = [(); 2].map(|()| Arc::new(policy(&private, TEXT).0));
            let mut tasks = Vec::new();
            for index in [0, 1, 0, 1] {
                let policy = Arc::clone(&processes[index]);
                let task = tokio::spawn(async move {
                    let mut allowed = 0_u64;
                    for _ in 0..100 {
                        let decision = policy.decide_async_owned(&ANN).await;
                        allowed += u64::from(decision.is_allowed());
                    }
                    (index, allowed)
                });
                tasks.push(task);
            }
            let mut allowed = [0, 0];
            for task in tasks {
                let (index, of_task) = task.await.expect("no panic");
                allowed[index] += of_task;
            }
            let mut admitted = Vec::new();
            for (policy, allowed) in processes.iter().zip(allowed) {
                let denied = policy.decide_async(&ANN).await;
                assert_eq!(denied.denied_by(), Some("server"));
                let memory = denied.asked().find(|it| it.rule() == "memory");
                admitted.push((allowed, memory.map_or(0, |it| it.remaining())));
            }
            admitted
        });
        // What the server denied is back in the memory of its process.
        for (allowed, left_in_memory) in &admitted {
            assert_eq!(left_in_memory + allowed, 1000);
        }
        assert_eq!(
            admitted.iter().map(|(allowed, _)| allowed).sum::<u64>(),
            150
        );
    });
}

#[test]
fn a_rule_in_the_shadow_takes_all_or_nothing_on_the_server() {
    const TEXT: &str = "
        [[rule]]
        name = 'trial'
        key = 'user'
        limit = ['9/h', '1/h']
        store = 'redis'
        fallback = 'closed'
        shadow = true
    ";
    on_each_server(|mut private| {
        private.start(false);
        run(async {
            let (policy, _) = policy(&private, TEXT);
            for allowed in [true, false, false] {
                let decision = policy.decide_async(&ANN).await;
                assert!(decision.is_allowed());
                assert_eq!(decision.asked().all(|it| it.would_allow()), allowed);
            }
            // The first limit alone, of a process whose rule can deny.
            let alone = TEXT
                .replace("['9/h', '1/h']", "'9/h'")
                .replace("shadow = true", "");
            let (alone, _) = self::policy(&private, &alone);
            let decision = alone.decide_async(&ANN).await;
            // The first request took one permit, this one another, and those between none.
            assert_eq!(decision.remaining(), Some(7), "{decision:?}");
        });
    });
}

#[test]
fn costs_settle_and_a_concurrency_comes_back_on_the_server() {
    const TEXT: &str = "
        apply = 'all'
        [[rule]]
        name = 'tokens'
        key = 'user'
        limit = ['100/h', 'sliding-log 50/h']
        store = 'redis'
        fallback = 'closed'
        cost = { estimate = 'n', settle = 'used' }
        [[rule]]
        name = 'at once'
        key = 'user'
        limit = 'concurrency 1 lease 60s'
        store = 'redis'
        fallback = 'closed'
        cost = { estimate = 'n', settle = 'used' }
    ";
    on_each_server(|mut private| {
        private.start(false);
        run(async {
            let (policy, _) = policy(&private, TEXT);
            let request = [("user", "ann"), ("n", "10")];
            let decision = policy.decide_async(&request).await;
            assert!(decision.is_allowed(), "{decision:?}");
            // All limits of the user are asked in one call.
            assert_eq!(private.scripts(), 1);
            let left: Vec<_> = decision.asked().map(|it| it.remaining()).collect();
            assert_eq!(left, [90, 40, 0]);
            let second = policy.decide_async(&request).await;
            assert_eq!(second.denied_by(), Some("at once"));

            let used = [("used", "4")];
            let settled = decision.finish_async(Outcome::Success, &used).await;
            assert_eq!(settled.expect("the server answers").returned, 13);
            let decision = policy.decide_async(&request).await;
            let left: Vec<_> = decision.asked().map(|it| it.remaining()).collect();
            assert_eq!(left, [86, 36, 0]);
            assert_eq!(decision.undo_async().await.ok(), Some(21));
        });
    });
}

/// A concurrency on a server gives fields of answers the same numbers as one in memory, also with
/// plans, and whatever a request costs.
#[test]
fn a_concurrency_on_a_server_says_what_one_in_memory_says() {
    const TEXT: &str = "
        [[rule]]
        name = 'at once'
        key = 'user'
        plan = { by = 'tier', free = 'concurrency 2', pro = 'concurrency 3' }
        cost = { default = 7 }
    ";
    fn said(decision: &tollgate_policy::Decision<impl Deref<Target = Policy>>) -> Vec<Said> {
        let said = |asked: tollgate_policy::Asked<'_>| Said {
            numbers: (asked.concurrency(), asked.quota(), asked.cost()),
            remaining: asked.remaining(),
            granted: asked.grant().map(|grant| grant.n()),
            denied: asked.denial(),
        };
        decision.asked().map(said).collect()
    }
    on_each_server(|mut private| {
        private.start(false);
        run(async {
            let on_server = TEXT.replace("concurrency 2", "concurrency 2 lease 60s");
            let on_server = on_server.replace("concurrency 3", "concurrency 3 lease 60s");
            let (server, _) = policy(
                &private,
                &format!("{on_server}store = 'redis'\nfallback = 'closed'"),
            );
            let memory = Policy::from_toml(TEXT).expect("a policy");
            for (tier, limit) in [("free", 2), ("pro", 3)] {
                let request = [("user", "ann"), ("tier", tier)];
                let mut held = Vec::new();
                for number in 1..5 {
                    let one = server.decide_async(&request).await;
                    let other = memory.decide_async(&request).await;
                    assert_eq!(said(&one), said(&other), "{tier}, {number}");
                    assert_eq!(said(&one)[0].numbers, (Some(limit), None, 1));
                    assert_eq!(one.is_allowed(), number <= limit);
                    held.push((one, other));
                }
            }
        });
    });
}

#[derive(Debug, PartialEq)]
struct Said {
    numbers: (Option<u64>, Option<Quota>, u64),
    remaining: u64,
    granted: Option<u64>,
    denied: Option<Denied>,
}

#[test]
fn plans_count_on_their_own_and_their_names_can_be_read() {
    const TEXT: &str = "
        [[rule]]
        name = 'api'
        key = 'user'
        plan = { by = 'tier', free = '1/h', pro = '2/h', default = 'free' }
        store = 'redis'
        fallback = 'closed'
        ban = { after = 1, for = '10min' }
    ";
    on_each_server(|mut private| {
        private.start(false);
        run(async {
            let (policy, _) = policy(&private, TEXT);
            let pro = [("user", "ann"), ("tier", "pro")];
            for (request, remaining) in [(&pro[..], 1), (&ANN[..], 0), (&pro[..], 0)] {
                let decision = policy.decide_async(&request.to_vec()).await;
                assert!(decision.is_allowed());
                assert_eq!(decision.remaining(), Some(remaining));
            }
            let keys: Vec<String> = {
                let mut keys: Vec<String> = private.run("KEYS *");
                keys.sort();
                keys
            };
            let names = Keys::new("policy").expect("a namespace");
            let expected = ["free", "pro"].map(|plan| {
                let key = names.key(&format!("api/0/token-bucket/{plan}"), b"ann");
                String::from_utf8(key).expect("text")
            });
            assert!(expected[0].ends_with("}:api/0/token-bucket/free"));
            assert_eq!(keys, expected);
            // Too many denials ban the key on the server.
            assert_eq!(policy.decide_async(&ANN).await.denied_by(), Some("api"));
            let denied = policy.decide_async(&ANN).await;
            let Some(Reason::Limit { denied, .. }) = denied.reason() else {
                panic!("{denied:?}");
            };
            assert!(matches!(denied, Denied::Banned { .. }), "{denied:?}");
            // Another process, which has counted nothing.
            let (other, _) = self::policy(&private, TEXT);
            let denied = other.decide_async(&ANN).await;
            let Some(Reason::Limit { denied, .. }) = denied.reason() else {
                panic!("{denied:?}");
            };
            assert!(matches!(denied, Denied::Banned { .. }), "{denied:?}");
        });
    });
}

#[test]
fn the_process_that_bans_a_key_tells_the_wait_that_the_server_tells_others() {
    on_each_server(|mut private| {
        private.start(false);
        for limit in [
            "2/h",
            "2/min",
            "fixed-window 2/h first-hit",
            "sliding-log 2/h",
        ] {
            let () = private.run("FLUSHALL");
            run(async {
                let text = format!(
                    "[[rule]]\nname = 'api'\nkey = 'user'\nlimit = '{limit}'\nstore = 'redis'\n\
                     fallback = 'closed'\nban = {{ after = 1, for = '10min', within = '1h' }}"
                );
                let ((one, _), (other, _)) = (policy(&private, &text), policy(&private, &text));
                for _ in 0..2 {
                    assert!(one.decide_async(&ANN).await.is_allowed());
                }
                let start = Instant::now();
                let told = banned_for(one.decide_async(&ANN).await.reason());
                let later = banned_for(other.decide_async(&ANN).await.reason());
                // Both count microseconds on the server's clock.
                let between = start.elapsed() + Duration::from_millis(1);
                assert!(
                    later <= told && told <= later + between,
                    "{limit}: {told:?} here, {later:?} elsewhere"
                );
            });
        }
    });
}

fn banned_for(reason: Option<Reason<'_>>) -> Duration {
    match reason {
        Some(Reason::Limit {
            denied: Denied::Banned { retry_after, .. },
            ..
        }) => retry_after.expect("a wait"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn fallbacks_decide_while_the_server_is_down() {
    const TEXT: &str = "
        [[rule]]
        name = 'closed'
        when = { path = '/a' }
        key = 'user'
        limit = '100/h'
        store = 'redis'
        fallback = 'closed'
        [[rule]]
        name = 'open'
        when = { path = '/b' }
        key = 'user'
        limit = '100/h'
        store = 'redis'
        fallback = { open = { at_most = 2 } }
        [[rule]]
        name = 'local'
        when = { path = '/c' }
        key = 'user'
        limit = '100/h'
        store = 'redis'
        fallback = { local = { processes = 4, keys = 100 } }
    ";
    on_each_server(|mut private| {
        private.start(false);
        run(async {
            let (policy, shared) = policy(&private, TEXT);
            let request = |path| [("user", "ann"), ("path", path)];
            assert!(policy.decide_async(&request("/a")).await.is_allowed());
            private.kill();
            for (path, granted) in [("/a", 0), ("/b", 2), ("/c", 25)] {
                for n in 0..30 {
                    let decision = policy.decide_async(&request(path)).await;
                    assert_eq!(decision.is_allowed(), n < granted, "{path} {n}");
                }
            }
            assert!(shared.is_down());
        });
    });
}

#[test]
fn each_algorithm_that_an_error_lists_is_one_of_the_server() {
    let text = "[[rule]]\nname = 'a'\nlimit = 'x 1/h'\nstore = 'redis'\nfallback = 'closed'";
    let check = |text: &str| {
        let store = RedisStore::without_server(Keys::new("policy").expect("a namespace"));
        let builder = Policy::builder().store("redis", store);
        builder.check_toml(text).to_string()
    };
    let error = check(text);
    let (_, known) = error.split_once("known: ").expect("a list");
    assert_eq!(known.split(", ").count(), 8);
    for name in known.split(", ") {
        let limit = match name {
            "concurrency" => "concurrency 1 lease 1s".to_owned(),
            _ => format!("{name} 1/h"),
        };
        assert_eq!(check(&text.replace("x 1/h", &limit)), "", "{name}");
    }
}

#[test]
fn what_the_server_can_not_count_is_an_error_at_its_position() {
    let build = |rest: &str| {
        let store = RedisStore::without_server(Keys::new("policy").expect("a namespace"));
        let text = format!("[[rule]]\nname = 'a'\nkey = 'user'\nstore = 'redis'\n{rest}");
        let text = match text.contains("fallback") {
            true => text,
            false => text + "\nfallback = 'closed'",
        };
        let builder = Policy::builder().store("redis", store);
        builder.build_toml(&text).expect_err("an error").to_string()
    };
    let cases = [
        (
            "limit = 'concurrency 5'",
            "5:9: error: rule \"a\": limit is \"concurrency 5\", but lease is missing, as in \
             `concurrency 5 lease 60s`",
        ),
        (
            "limit = ['1/h', 'slidinglog 5/h']",
            "5:17: error: rule \"a\": limit is \"slidinglog 5/h\", but must begin with an \
             algorithm of the server or a rate; did you mean `sliding-log`? Known: token-bucket, \
             gcra, leaky-meter, leaky-queue, fixed-window, sliding-window, sliding-log, \
             concurrency",
        ),
        (
            "plan = { by = 'tier', a = '1/h', b = '0/h', c = 'gcra 1' }",
            "5:38: error: rule \"a\": plan is \"0/h\", but n is 0, but must be at least 1 permit\n\
             5:49: error: rule \"a\": plan is \"gcra 1\", but at byte 6: the text ends \
             where a `/` or `per` is expected, as in `100/s`",
        ),
        (
            "fallback = { local = { processes = 4, keys = 10 } }\nlimit = 'concurrency 5 lease 60s'",
            "5:12: error: rule \"a\": fallback must be \"closed\", \"open\" or { open = { at_most \
             = 100, per = \"1m\" } }: a concurrency has no local share",
        ),
    ];
    for (rest, expected) in cases {
        assert_eq!(build(rest), expected);
    }
}

#[test]
fn a_key_that_one_process_bans_or_resets_is_banned_or_reset_in_another() {
    const TEXT: &str = "
        [[rule]]
        name = 'a'
        key = 'user'
        plan = { by = 'tier', free = '5/h', pro = '50/h', default = 'free' }
        store = 'redis'
        fallback = 'closed'
        remember = false
    ";
    on_each_server(|mut private| {
        private.start(false);
        run(async {
            let (here, _here) = policy(&private, TEXT);
            let (there, _there) = policy(&private, TEXT);
            let pro = [("user", "ann"), ("tier", "pro")];
            assert!(there.decide_async(&pro).await.is_allowed());
            let ann = here.key("a", ["ann"]).expect("a key");
            let left = async || {
                let all = ann.available_async().await.expect("a server");
                all.iter()
                    .map(|it| (it.plan, it.permits))
                    .collect::<Vec<_>>()
            };
            assert_eq!(left().await, [(Some("free"), 5), (Some("pro"), 49)]);
            assert_eq!(ann.banned_for_async().await, Ok(None));

            let hour = Duration::from_secs(3600);
            ann.ban_for_async(hour).await.expect("a server");
            for request in [&pro[..], &ANN] {
                let denied = there.decide_async(&request).await.retry_after();
                assert!(denied > Some(hour / 2), "{denied:?}");
            }
            assert!(ann.banned_for_async().await.expect("a server") > Some(hour / 2));
            assert_eq!(left().await, [(Some("free"), 0), (Some("pro"), 0)]);

            assert_eq!(ann.reset_async().await, Ok(true));
            assert_eq!(left().await, [(Some("free"), 5), (Some("pro"), 50)]);
            assert!(there.decide_async(&pro).await.is_allowed());
        });
        private.kill();
        let ann = policy(&private, TEXT).0;
        let ann = ann.key("a", ["ann"]).expect("a key");
        let error = run(ann.ban_for_async(Duration::from_secs(1)));
        assert!(matches!(error, Err(KeyError::Store { .. })), "{error:?}");
    });
}

/// A program reads a file, connects to the server that the file names, and builds the policy.
#[test]
fn a_file_names_the_server_of_its_limits() {
    on_each_server(|mut private| {
        private.start(false);
        let text = format!(
            "[store]\nredis = '{}'\nnamespace = 'of-the-file'\nbudget = '20s'\nfallback = 'closed'\n\
             [[rule]]\nname = 'server'\nkey = 'user'\nlimit = '2/d'\nalso = 'memory'\n\
             [[limit]]\nname = 'memory'\nlimit = '9/d'\nstore = 'memory'\n",
            private.url()
        );
        run(async {
            let process = || {
                let file = PolicyFile::from_toml(&text).expect("a policy");
                let settings = file.store.as_ref().expect("a server");
                let url = settings.resolve_url().expect("a URL");
                let client = connect_lazily(url.reveal()).expect("an address");
                let budget = settings.budget.expect("a budget").value;
                let server = RedisServer::new(client).with_budget(budget);
                let keys = Keys::new(&settings.namespace).expect("a namespace");
                let store = RedisStore::new(Arc::new(server), keys);
                let builder = Policy::builder().store("redis", store);
                builder.build(&file).expect("a policy")
            };
            let processes = [process(), process(), process()];
            let mut allowed = Vec::new();
            for policy in &processes {
                assert!(policy.is_asynchronous());
                let decision = policy.decide_async(&ANN).await;
                assert_eq!(decision.fallback(), None);
                allowed.push((
                    decision.is_allowed(),
                    decision.denied_by().map(str::to_owned),
                ));
            }
            let denied = (false, Some("server".to_owned()));
            assert_eq!(allowed, [(true, None), (true, None), denied]);
        });
        let keys: Vec<String> = private.run("KEYS *");
        assert_eq!(keys.len(), 1, "{keys:?}");
        assert!(keys[0].starts_with("of-the-file:{"), "{keys:?}");
    });
}

/// A user that asks for a number of permits.
struct Ask(u64);

impl Facts for Ask {
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        (name.as_str() == "user").then(|| "ann".into())
    }

    fn permits(&self) -> Option<u64> {
        Some(self.0)
    }
}

#[test]
fn a_server_is_looked_at_charged_and_gets_permits_back_by_facts() {
    const TEXT: &str = "
        apply = 'all'
        [[rule]]
        name = 'memory'
        key = 'user'
        limit = '100/d'
        [[rule]]
        name = 'server'
        key = 'user'
        limit = 'fixed-window 10/d first-hit'
        store = 'redis'
        fallback = 'closed'
    ";
    on_each_server(|mut private| {
        private.start(false);
        run(async {
            let policy = policy(&private, TEXT).0;
            let left = async |n| policy.decide_async(&Ask(n)).await.remaining();
            for _ in 0..12 {
                assert_eq!(left(0).await, Some(10));
            }
            assert_eq!(left(10).await, Some(0));
            let looked = policy.decide_async(&Ask(0)).await;
            assert_eq!(looked.denied_by(), Some("server"));
            assert!(looked.retry_after() > Some(Duration::from_secs(86_000)));
            // 4 on the server and 4 in memory.
            assert_eq!(policy.refund_async(&Ask(4)).await.unwrap(), 8);
            assert_eq!(left(0).await, Some(4));
            assert_eq!(policy.charge_async(&Ask(6)).await.unwrap(), 12);
            assert_eq!(policy.refund_async(&Ask(3)).await.unwrap(), 6);
            assert_eq!(left(0).await, Some(1));
        });
    });
}

/// What is given back by this process counts at once, although denials are remembered.
#[test]
fn what_a_decision_gives_back_is_allowed_to_the_next_one() {
    const TEXT: &str = "
        [[rule]]
        name = 'api'
        key = 'user'
        limit = '1/d'
        store = 'redis'
        fallback = 'closed'
    ";
    on_each_server(|mut private| {
        private.start(false);
        run(async {
            let (policy, server) = policy(&private, TEXT);
            let mut decisions = 0;
            for way in 0..3 {
                let decision = policy.decide_async(&ANN).await;
                assert!(decision.is_allowed(), "{way}");
                // Even a slow machine remembers one of these.
                let before = server.stats().remembered;
                while server.stats().remembered == before {
                    assert!(!policy.decide_async(&ANN).await.is_allowed());
                    decisions += 1;
                    assert!(decisions < 10_000);
                }
                let key = policy.key("api", ["ann"]).expect("a key");
                match way {
                    0 => _ = decision.undo_async().await.expect("an answer"),
                    1 => _ = policy.refund_async(&ANN).await.expect("an answer"),
                    _ => _ = key.reset_async().await.expect("an answer"),
                }
            }
            assert!(policy.decide_async(&ANN).await.is_allowed());
        });
    });
}
