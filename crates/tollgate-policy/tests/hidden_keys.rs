//! No value of a request's key is shown by the server that stores the limits, and not by texts. The
//! names of rules are.

#[allow(dead_code, reason = "other tests use more of it")]
#[path = "../../tollgate-redis/tests/support/server.rs"]
mod server;

#[path = "../../tollgate-redis/tests/support/seen.rs"]
mod seen;

use std::sync::Arc;
use std::time::Duration;

use tollgate_policy::Policy;
use tollgate_policy::redis::RedisStore;
use tollgate_redis::client::connect_lazily;
use tollgate_redis::{Keys, Server};

use seen::Seen;
use server::on_each_server;

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
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(async {
            let client = connect_lazily(private.url().as_str()).expect("an address");
            let server = Arc::new(Server::new(client).with_budget(Duration::from_secs(20)));
            let store = RedisStore::new(server, Keys::new("policy").expect("a namespace"));
            let builder = Policy::builder().remote_store("redis", store);
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
