//! No value of a request's key is shown by the server that stores the limits, and not by texts. The
//! names of rules are.

use std::sync::Arc;
use std::time::Duration;

use tollgate_policy::file::PolicyFile;
use tollgate_policy::redis::{RedisStore, StoredKeyError};
use tollgate_policy::{LivePolicy, Policy, RuleState};
use tollgate_redis::client::{Connection, connect_lazily};
use tollgate_redis::{Keys, RedisServer};

use crate::seen::Seen;
use crate::server::{Server, on_each_server};

const TEXT: &str = "
    apply = 'all'
    [[rule]]
    name = 'session'
    key = 'cookie:session'
    limit = ['1/d', 'sliding-log 10/d']
    store = 'redis'
    fallback = 'closed'
    ban = { after = 1, for = '1h' }
    [[rule]]
    name = 'token'
    key = ['header:x-api-key', 'client-ip']
    limit = 'concurrency 5 lease 60s'
    store = 'redis'
    fallback = 'closed'
    [[rule]]
    name = 'search'
    key = 'query:email'
    plan = { by = 'tier', free = 'fixed-window 5/d', pro = '50/d' }
    store = 'redis'
    fallback = 'closed'
";

const SECRET: &str = "key-secret = 'swordfish-swordfish'\n";

fn keys() -> Keys {
    Keys::new("policy").expect("a namespace")
}

fn store(private: &Server) -> RedisStore<Connection> {
    let client = connect_lazily(private.url().as_str()).expect("an address");
    let server = RedisServer::new(client).with_budget(Duration::from_secs(20));
    RedisStore::new(Arc::new(server), keys())
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

/// The facts of a request. The values of the first four make keys.
const FACTS: [(&str, &str); 5] = [
    ("cookie:session", "session-4711"),
    ("header:x-api-key", "sk-live-4242"),
    ("client-ip", "198.51.100.77"),
    ("query:email", "alice@example.com"),
    ("tier", "free"),
];

#[test]
fn no_stored_key_command_log_or_text_shows_a_value_of_a_key() {
    on_each_server(|mut private| {
        private.start(false);
        let seen = Seen::start(&private);
        let mut texts = String::new();
        run(async {
            let builder = Policy::builder().store("redis", store(&private));
            let policy = builder.build_toml(TEXT).expect("a policy");
            texts += &format!("{policy:?}");
            for _ in 0..3 {
                let decision = policy.decide_async(&FACTS).await;
                texts += &format!("{decision:?}");
            }
        });
        let seen = seen.all(&private);
        for rule in ["session/0/", "session/1/", "token/0/", "search/0/"] {
            assert!(seen.contains(rule), "{rule} is readable: {seen}");
        }
        for (fact, value) in FACTS.iter().take(4) {
            for (texts, of) in [(&seen, "the server"), (&texts, "a text")] {
                let line = texts.lines().find(|line| line.contains(value));
                assert_eq!(line, None, "{of} shows {fact}");
            }
        }
    });
}

/// Returns the names of all keys on a server, in order.
fn names(private: &Server) -> Vec<String> {
    let mut names: Vec<String> = private.run("KEYS *");
    names.sort();
    names
}

#[test]
fn the_keys_that_the_store_tells_are_those_that_a_decision_writes() {
    on_each_server(|mut private| {
        private.start(false);
        for secret in ["", SECRET] {
            let text = format!("{secret}{TEXT}");
            let file = PolicyFile::from_toml(&text).expect("a policy");
            let _: String = private.run("FLUSHALL");
            run(async {
                let builder = Policy::builder().store("redis", store(&private));
                let policy = builder.build_toml(&text).expect("a policy");
                assert!(policy.decide_async(&FACTS).await.is_allowed());
            });
            let store = RedisStore::without_server(keys());
            let told = |rule: &str, values: &[&str]| {
                let told = store.stored_keys(&file, rule, values).expect("keys");
                let told = told.into_iter();
                told.filter(|it| it.plan.as_deref() != Some("pro"))
            };
            let [session, token, address, email] = [0, 1, 2, 3].map(|index| FACTS[index].1);
            let told = told("session", &[session])
                .chain(told("token", &[token, address]))
                .chain(told("search", &[email]));
            let mut told: Vec<_> = told.map(|it| it.key).collect();
            told.sort();
            assert_eq!(told, names(&private));
            assert_eq!(told.len(), 4);
        }
    });
}

#[test]
fn a_reload_with_another_secret_starts_the_rules_on_the_server_anew() {
    const RULES: &str = "
        apply = 'all'
        [[rule]]
        name = 'server'
        key = 'user'
        limit = '5/d'
        store = 'redis'
        fallback = 'closed'
        [[rule]]
        name = 'memory'
        key = 'user'
        limit = '9/d'
    ";
    on_each_server(|mut private| {
        private.start(false);
        run(async {
            let builder = Policy::builder().store("redis", store(&private));
            let live = LivePolicy::new(builder.build_toml(RULES).expect("a policy"));
            let ann = [("user", "ann")];
            let other = SECRET.replace("sword", "stone");
            let fresh = RuleState::Fresh("the key secret changed");
            // The keys of each secret are still there when it comes back.
            for (secret, state, left) in [
                ("", RuleState::Kept, 4),
                (SECRET, fresh, 4),
                (SECRET, RuleState::Kept, 3),
                (&other, fresh, 4),
                ("", fresh, 3),
            ] {
                let text = format!("{secret}{RULES}");
                let reloaded = live.reload_toml(&text).expect("a policy");
                assert_eq!(reloaded.state("server"), Some(state), "{secret}");
                assert_eq!(reloaded.state("memory"), Some(RuleState::Kept));
                let decision = live.decide_async(&ann).await;
                assert_eq!(decision.remaining(), Some(left), "{secret}");
            }
        });
    });
}

#[test]
fn one_place_gives_the_secret() {
    let errors = |keys: Keys| {
        let store = RedisStore::without_server(keys);
        let builder = Policy::builder().store("redis", store);
        builder.check_toml(&format!("{SECRET}{TEXT}")).to_string()
    };
    assert_eq!(errors(keys()), "");
    let of = "1:14: error: key-secret of the store \"redis\" must be left out: the program";
    let secret = keys().with_secret("0123456789abcdef").expect("a secret");
    assert_eq!(errors(secret), format!("{of} gives the store a secret"));
    let readable = keys().with_readable_users();
    assert_eq!(errors(readable), format!("{of} lets users be readable"));
}

#[test]
fn values_without_a_key_are_errors() {
    let text = format!("{TEXT}\n[[rule]]\nname = 'memory'\nkey = 'user'\nlimit = '1/s'");
    let file = PolicyFile::from_toml(&text).expect("a policy");
    let store = RedisStore::without_server(keys());
    let error = |rule: &str, values: &[&str]| {
        let error: StoredKeyError = store
            .stored_keys(&file, rule, values)
            .expect_err("an error");
        error.to_string()
    };
    assert_eq!(
        error("sessions", &["a"]),
        "rule \"sessions\" is not in the policy; did you mean `session`? Known: session, token, \
         search, memory"
    );
    assert_eq!(
        error("memory", &["ann"]),
        "rule \"memory\" is in memory, so no server stores its keys"
    );
    assert_eq!(
        error("token", &["sk-live-4242"]),
        "rule \"token\" needs 2 values: header:x-api-key, client-ip; the number given is 1"
    );
    assert_eq!(
        error("token", &["sk-live-4242", "localhost"]),
        "client-ip is \"localhost\", but must be an address"
    );
    let secret = format!("key-secret = {{ env = 'TOLLGATE_NOT_SET' }}\n{TEXT}");
    let file = PolicyFile::from_toml(&secret).expect("a policy");
    let error = store.stored_keys(&file, "session", &["a"]);
    let error = error.expect_err("an error").to_string();
    assert!(error.contains("TOLLGATE_NOT_SET"), "{error}");
}
