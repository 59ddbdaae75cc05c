//! When denials by the server are remembered, and what makes a process forget them. The server
//! denies everything, on tokio's manual clock, and counts what it is asked.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tollgate::Denied;
use tollgate_policy::redis::RedisStore;
use tollgate_policy::{Policy, Reason};
use tollgate_redis::client::{Client, ClientError, Command, Reply};
use tollgate_redis::{Keys, RedisServer};

/// A server whose windows of 5 permits end in 20 seconds and whose slots are taken.
#[derive(Debug, Clone, Default)]
struct Full(Arc<Mutex<u64>>);

const NOW: u64 = 1_000_000;
const ENDS: u64 = 21_000_000;

impl Full {
    /// Returns how many calls there were since the last time.
    fn calls(&self) -> u64 {
        std::mem::take(&mut *self.0.lock().expect("a count"))
    }
}

impl Client for Full {
    async fn send(&self, command: &Command<'_>) -> Result<Reply, ClientError> {
        *self.0.lock().expect("a count") += 1;
        let packed = |numbers: &[u64]| {
            let bytes = numbers.iter().flat_map(|n| (*n as f64).to_le_bytes());
            Reply::Bytes(bytes.collect())
        };
        let now = Reply::Int(NOW as i64);
        let args = command.parts().skip(3 + command.keys().len());
        let told = args.map(|arg| match (arg[0], arg.len()) {
            (b'C', _) => (false, packed(&[5, 0, 0, 0])),
            // A ban has its length behind what a request has.
            (b'W', 49) => (true, packed(&[ENDS])),
            _ => (false, packed(&[5, 0, ENDS, 0])),
        });
        let (bans, told): (Vec<_>, Vec<_>) = told.unzip();
        let mut list = vec![now];
        if !bans.contains(&true) {
            list.insert(0, Reply::Int(0));
        }
        list.extend(told);
        Ok(Reply::List(list))
    }
}

/// Returns a policy with one rule on the server, or more.
fn policy(fields: &str) -> (Policy, Full, Arc<RedisServer<Full>>) {
    let full = Full::default();
    let server = Arc::new(RedisServer::new(full.clone()));
    let store = RedisStore::new(
        Arc::clone(&server),
        Keys::new("policy").expect("a namespace"),
    );
    let text = format!(
        "[[rule]]\nname = 'api'\nkey = 'user'\nstore = 'redis'\nfallback = 'closed'\n{fields}"
    );
    let policy = Policy::builder().store("redis", store).build_toml(&text);
    let policy = policy.unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    (policy, full, server)
}

const WINDOW: &str = "limit = 'fixed-window 5/min first-hit'\n";

/// Returns how many calls 10 denied requests make.
async fn calls_of_ten(policy: &Policy, full: &Full, facts: &[(&str, &str)]) -> u64 {
    for _ in 0..10 {
        let decision = policy.decide_async(&facts).await;
        assert_eq!(decision.denied_by(), Some("api"));
        assert!(matches!(decision.reason(), Some(Reason::Limit { .. })));
    }
    full.calls()
}

#[tokio::test(start_paused = true)]
async fn a_rule_remembers_by_itself_if_it_gives_nothing_back() {
    let two = "limit = ['fixed-window 5/min first-hit', 'fixed-window 9/h first-hit']\n";
    let plan = "plan = { by = 'tier', free = 'fixed-window 5/min first-hit', default = 'free' }\n";
    for (fields, remembers) in [
        (WINDOW.to_owned(), true),
        (two.to_owned(), true),
        (plan.to_owned(), true),
        (format!("{WINDOW}cost = 2"), true),
        (format!("{WINDOW}cost = {{ estimate = 'n' }}"), true),
        (format!("{WINDOW}remember = false"), false),
        (format!("{WINDOW}remember = true"), true),
        (format!("{WINDOW}count = 'failures'"), false),
        (format!("{WINDOW}count = 'successes'"), false),
        (format!("{WINDOW}cost = {{ settle = 'used' }}"), false),
        (format!("{WINDOW}count = 'failures'\nremember = true"), true),
        (
            format!("{WINDOW}cost = {{ settle = 'used' }}\nremember = true"),
            true,
        ),
        (
            format!("{WINDOW}override = [{{ key = 'bob', limit = '1/d' }}]"),
            true,
        ),
    ] {
        let (policy, full, server) = policy(&fields);
        let ann = [("user", "ann")];
        let expected = if remembers { 1 } else { 10 };
        assert_eq!(
            calls_of_ten(&policy, &full, &ann).await,
            expected,
            "{fields}"
        );
        assert_eq!(server.stats().remembered, 10 - expected, "{fields}");
        assert_eq!(
            calls_of_ten(&policy, &full, &[("user", "eve")]).await,
            expected
        );
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(
            calls_of_ten(&policy, &full, &ann).await,
            expected,
            "{fields}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn slots_are_not_remembered() {
    for fields in ["", "remember = true"] {
        let (policy, full, _) = policy(&format!("limit = 'concurrency 5 lease 60s'\n{fields}"));
        for _ in 0..10 {
            assert!(!policy.decide_async(&[("user", "ann")]).await.is_allowed());
        }
        assert_eq!(full.calls(), 10);
    }
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_a_single_key_remembers_too() {
    let own = "override = [{ key = 'ann', limit = 'fixed-window 2/d first-hit' }]";
    let (policy, full, _) = policy(&format!("{WINDOW}{own}"));
    for user in ["ann", "eve"] {
        let facts = [("user", user)];
        assert_eq!(calls_of_ten(&policy, &full, &facts).await, 1, "{user}");
        policy
            .key("api", [user])
            .expect("a key")
            .reset_async()
            .await
            .expect("a reply");
        assert_eq!(full.calls(), 1);
        assert_eq!(calls_of_ten(&policy, &full, &facts).await, 1, "{user}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reset_and_a_ban_of_a_key_forget_its_denials() {
    let (policy, full, _) = policy(WINDOW);
    let ann = [("user", "ann")];
    let key = policy.key("api", ["ann"]).expect("a key");
    assert_eq!(calls_of_ten(&policy, &full, &ann).await, 1);
    key.reset_async().await.expect("a reply");
    full.calls();
    assert_eq!(calls_of_ten(&policy, &full, &ann).await, 1);
    let long = Duration::from_secs(20);
    // The server bans the key, and does not say how long it is denied.
    let _ = key.ban_for_async(long).await;
    full.calls();
    assert_eq!(calls_of_ten(&policy, &full, &ann).await, 1);
}

/// Each denial is a strike, whether a call was needed or not.
#[tokio::test(start_paused = true)]
async fn denials_that_are_remembered_count_towards_a_ban() {
    let (policy, full, _) = policy(&format!("{WINDOW}ban = {{ after = 3, for = '10min' }}"));
    for strike in 1..=3 {
        let decision = policy.decide_async(&[("user", "ann")]).await;
        assert_eq!(decision.denied_by(), Some("api"), "{strike}");
        // The first denial, and then the ban and its wait.
        assert_eq!(full.calls(), [0, 1, 0, 2][strike], "{strike}");
    }
    let decision = policy.decide_async(&[("user", "ann")]).await;
    let Some(Reason::Limit { denied, .. }) = decision.reason() else {
        panic!("{decision:?}");
    };
    assert!(matches!(denied, Denied::Banned { .. }), "{denied:?}");
    assert_eq!(full.calls(), 0);
}

#[test]
fn a_rule_in_memory_needs_no_calls() {
    let text = "[[rule]]\nname = 'api'\nlimit = '5/min'\nremember = true";
    assert_eq!(
        Policy::builder().check_toml(text).to_string(),
        "4:1: error: rule \"api\": remember needs a `store` other than \"memory\", which needs no \
         call"
    );
}
