//! What operators ask of a policy: keys of rules, bans, and statistics.

mod stats;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use tollgate::{Denied, ManualClock, Tick};
use tollgate_policy::operate::KeyError;
use tollgate_policy::{FactName, FactValue, Facts, KeyRef, KeyedLimit, LivePolicy, Policy};

const MINUTE: Duration = Duration::from_secs(60);

fn policy(text: &str) -> Policy<ManualClock> {
    let policy = Policy::builder().clock(ManualClock::new()).build_toml(text);
    policy.unwrap_or_else(|errors| panic!("{errors}"))
}

/// Returns the limits of a key: each text, with its plan, and the permits.
fn available(policy: &Policy<ManualClock>, rule: &str, key: &[&str]) -> String {
    let key = policy.key(rule, key.iter().copied()).expect("a key");
    let all = key.available().expect("a rule in memory");
    let all = all.iter().map(|it| match it.plan {
        Some(plan) => format!("{plan} {}: {}", it.limit, it.permits),
        None => format!("{}: {}", it.limit, it.permits),
    });
    all.collect::<Vec<_>>().join(", ")
}

#[test]
fn the_rules_are_listed_as_the_file_says_them() {
    let text = "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = ['5/s', '9/h']\nshadow = true\n\
                [[rule]]\nname = 'b'\nplan = { by = 'tier', free = '1/s' }";
    let policy = policy(text);
    let rules: Vec<_> = policy.rules().collect();
    assert_eq!(rules.len(), 2);
    let limits: Vec<&str> = rules[0].limits.iter().map(|limit| limit.as_str()).collect();
    assert_eq!(
        (rules[0].name.as_str(), rules[0].shadow, limits),
        ("a", true, vec!["5/s", "9/h"])
    );
    let plan = rules[1].plan.as_ref().expect("plans");
    assert_eq!(
        (plan.by.as_str(), plan.limits[0].0.as_str()),
        ("tier", "free")
    );
    assert_eq!((rules[1].key.len(), rules[1].store.as_str()), (0, "memory"));
}

#[test]
fn a_key_says_what_it_has_of_each_limit() {
    let policy = policy(
        "
        apply = 'all'
        [[rule]]
        name = 'two'
        key = ['user', 'path']
        limit = ['10/h', 'concurrency 3']
        [[rule]]
        name = 'plans'
        key = 'user'
        plan = { by = 'tier', free = '5/h', pro = '50/h', default = 'free' }
        override = [{ key = 'bob', limit = '7/h' }, { key = 'carol', limit = '20 per minute' },
                    { key = 'dan', limit = 'unlimited' }, { key = 'eve', limit = '0' }]
        [[rule]]
        name = 'all'
        limit = ['100/h', 'concurrency 9']
        ",
    );
    let ann = [("user", "ann"), ("path", "/a/"), ("tier", "pro")];
    let decision = policy.decide(&ann);
    assert!(decision.is_allowed());
    // A path in another spelling is the same key.
    assert_eq!(
        available(&policy, "two", &["ann", "//a"]),
        "10/h: 9, concurrency 3: 2"
    );
    assert_eq!(
        available(&policy, "two", &["ann", "/b"]),
        "10/h: 10, concurrency 3: 3"
    );
    // What she used of one plan counts under the other.
    assert_eq!(
        available(&policy, "plans", &["ann"]),
        "free 5/h: 4, pro 50/h: 49"
    );
    let unlimited = format!("unlimited: {}", u64::MAX);
    for (user, has) in [
        ("bob", "7/h: 7"),
        ("carol", "20 per minute: 20"),
        ("dan", &unlimited),
        ("eve", "0: 0"),
    ] {
        assert_eq!(available(&policy, "plans", &[user]), has);
    }
    assert_eq!(
        available(&policy, "all", &[]),
        "100/h: 99, concurrency 9: 8"
    );
    drop(decision);
    assert_eq!(
        available(&policy, "all", &[]),
        "100/h: 99, concurrency 9: 9"
    );
    assert!(
        policy
            .key("all", [])
            .expect("a key")
            .reset()
            .expect("a rate")
    );
    assert_eq!(
        available(&policy, "all", &[]),
        "100/h: 100, concurrency 9: 9"
    );
}

/// A request whose address is a value of its own type.
struct From(IpAddr);

impl Facts for From {
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        (name.as_str() == "client-ip").then(|| self.0.into())
    }
}

#[test]
fn an_address_is_a_value_and_so_is_its_network_as_it_is_explained() {
    let policy = policy(
        "[[rule]]\nname = 'a'\nkey = 'client-ip'\nlimit = '9/h'\nnetwork = { v4 = 24, v6 = 48 }",
    );
    for (from, values) in [
        ("10.0.0.7", ["10.0.0.9", "10.0.0.0/24", "::ffff:10.0.0.1"]),
        (
            "2001:db8::7",
            ["2001:db8:0:1::", "2001:db8::/48", "[2001:db8::1]:80"],
        ),
    ] {
        let from = From(from.parse().expect("an address"));
        assert!(policy.decide(&from).is_allowed());
        for value in values {
            assert_eq!(available(&policy, "a", &[value]), "9/h: 8", "{value}");
        }
    }
    for value in ["10.0.0.0/16", "2001:db8::/64", "localhost", ""] {
        let error = policy.key("a", [value]).expect_err("no key");
        assert!(
            matches!(error, KeyError::Address { .. }),
            "{value}: {error}"
        );
    }
}

#[test]
fn a_ban_lasts_as_long_as_it_says_and_a_reset_lifts_it() {
    for (ban, limit) in [
        ("", "10/s"),
        ("ban = { after = 9, for = '1d' }\n", "fixed-window 5/d"),
    ] {
        let text = format!("[[rule]]\nname = 'a'\nkey = 'user'\n{ban}limit = '{limit}'");
        let live = LivePolicy::new(policy(&text));
        let policy = live.load();
        let clock = policy.clock();
        let ann = policy.key("a", ["ann"]).expect("a key");
        let is_allowed = || live.decide(&[("user", "ann")]).is_allowed();
        assert_eq!(ann.banned_for(), Ok(None));
        assert_eq!(ann.reset(), Ok(false));
        assert!(is_allowed());

        ann.ban_for(MINUTE).expect("a slot");
        ann.ban_for(Duration::from_secs(1))
            .expect("a longer ban stays");
        let left = ann.banned_for().expect("in memory").expect("a ban");
        assert!(
            left >= MINUTE && left <= MINUTE + Duration::from_millis(101),
            "{left:?}"
        );
        assert!(!is_allowed());
        assert!(live.decide(&[("user", "bob")]).is_allowed());
        assert_eq!(available(&policy, "a", &["ann"]), format!("{limit}: 0"));
        // A reload keeps it.
        let _ = live.reload_toml(&text).expect("a policy");
        clock.advance(MINUTE - Duration::from_nanos(1));
        assert!(!is_allowed());
        clock.advance(Duration::from_millis(101));
        assert!(is_allowed());
        assert_eq!(ann.banned_for(), Ok(None));

        ann.ban_for(MINUTE).expect("a slot");
        assert!(!is_allowed());
        assert_eq!(ann.reset(), Ok(true));
        assert_eq!(ann.banned_for(), Ok(None));
        assert!(is_allowed());
        ann.ban_for(Duration::ZERO).expect("nothing");
        assert!(is_allowed());
        ann.ban_for(Duration::MAX).expect("a slot");
        clock.advance(Duration::from_secs(1 << 32));
        assert!(!is_allowed());
    }
}

#[test]
fn a_reset_forgets_denials_and_failures() {
    for of in ["denials", "failures"] {
        let text = format!(
            "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '1/d'\n\
             ban = {{ after = 2, for = '5s', of = '{of}' }}"
        );
        let policy = policy(&text);
        let ask = || policy.decide(&[("user", "ann")]).is_allowed();
        assert_eq!((ask(), ask()), (true, false));
        let ann = policy.key("a", ["ann"]).expect("a key");
        assert_eq!(ann.reset(), Ok(true));
        let limits = available(&policy, "a", &["ann"]);
        assert!(limits.ends_with("1/d: 1"), "{limits}");
        assert_eq!((ask(), ask()), (true, false));
        assert_eq!(ann.banned_for(), Ok(None), "the first denial counts");
    }
}

#[test]
fn the_requests_that_may_fail_are_a_limit_too() {
    let text =
        "[[rule]]\nname = 'a'\nkey = 'user'\nban = { after = 3, for = '5s', of = 'failures' }";
    let policy = policy(text);
    let decision = policy.decide(&[("user", "ann")]);
    let limit = decision.asked().next().expect("a limit").limit().to_owned();
    assert_eq!(available(&policy, "a", &["ann"]), format!("{limit}: 2"));
}

/// A limit of the program's own, which has no verb besides.
#[derive(Debug)]
struct Budget(Mutex<BTreeMap<Vec<u8>, u64>>);

impl KeyedLimit for Budget {
    fn take(&self, key: KeyRef<'_>, n: u64, _: Tick) -> Result<u64, Denied> {
        let mut keys = self.0.lock().expect("no panic");
        let left = keys.entry(key.bytes().to_vec()).or_insert(5);
        *left = left.checked_sub(n).ok_or(Denied::busy(n))?;
        Ok(*left)
    }

    fn undo(&self, _: KeyRef<'_>, _: u64, _: Tick) -> u64 {
        0
    }
}

#[test]
fn errors_say_what_is_not_possible() {
    let builder = Policy::builder().clock(ManualClock::new());
    let builder = builder.limit("budget", |_| Ok(Box::new(Budget(Mutex::default()))));
    let text = "
        [[rule]]
        name = 'own'
        key = 'user'
        limit = 'budget'
        [[rule]]
        name = 'calls'
        key = ['user', 'path']
        limit = 'concurrency 3'
        [[rule]]
        name = 'all'
        limit = '5/s'
        ";
    let policy = builder.build_toml(text).expect("a policy");
    let missing = |rule: &str, key: &[&str]| {
        let found = policy.key(rule, key.iter().copied());
        found.expect_err("no key").to_string()
    };
    assert_eq!(
        missing("call", &["ann"]),
        "rule \"call\" is not in the policy; did you mean `calls`? Known: own, calls, all"
    );
    assert_eq!(
        missing("calls", &["ann"]),
        "rule \"calls\" needs 2 values: user, path; the number given is 1"
    );
    assert_eq!(
        missing("all", &["ann"]),
        "rule \"all\" needs no value: it has no key; the number given is 1"
    );

    let own = policy.key("own", ["ann"]).expect("a key");
    assert!(policy.decide(&[("user", "ann")]).is_allowed());
    assert_eq!(own.available().expect("a limit")[0].permits, 4);
    let calls = policy.key("calls", ["ann", "/"]).expect("a key");
    for (key, rule) in [(&own, "own"), (&calls, "calls")] {
        for (error, verb) in [
            (key.ban_for(MINUTE).expect_err("no table"), "ban_for"),
            (key.reset().expect_err("no table"), "reset"),
        ] {
            assert_eq!(
                error.to_string(),
                format!("no limit of rule \"{rule}\" has `{verb}`")
            );
        }
        assert_eq!(key.banned_for(), Ok(None));
    }
    let all = policy.key("all", []).expect("a key");
    let error = all.ban_for(MINUTE).expect_err("no key");
    assert_eq!(error.to_string(), "rule \"all\" has no key to ban");
    assert!(!format!("{own:?}").contains("ann"), "{own:?}");
}

#[test]
fn a_table_without_a_slot_has_no_room_for_a_ban() {
    let text = "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '1/d'\ncapacity = 1\n\
                overflow = 'deny'";
    let policy = policy(text);
    let mut users = (0..10_000).map(|user| user.to_string());
    let full = users.find(|user| {
        let key = policy.key("a", [user.as_str()]).expect("a key");
        key.ban_for(MINUTE) == Err(KeyError::NoRoom { rule: "a".into() })
    });
    let full = full.expect("a full table");
    assert!(full.parse::<u64>().expect("a number") >= 1000, "{full}");
    let error = policy
        .key("a", [full.as_str()])
        .expect("a key")
        .ban_for(MINUTE);
    let error = error.expect_err("no slot").to_string();
    assert_eq!(error, "the table of rule \"a\" has no slot for the ban");
}
