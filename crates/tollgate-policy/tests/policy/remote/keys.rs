//! Keys of rules on stores, as operators ask about them.

use std::time::Duration;

use tollgate_policy::operate::KeyError;

use crate::remote::{policy, run};

const MINUTE: Duration = Duration::from_secs(60);

const TEXT: &str = "
    [[rule]]
    name = 'two'
    when = { path = '/two' }
    key = 'user'
    limit = ['3', '9']
    store = 'near'
    fallback = 'closed'
    ban = { after = 5, within = '1h', for = '1d' }
    [[rule]]
    name = 'plans'
    when = { path = '/plans' }
    key = 'user'
    plan = { by = 'tier', free = '5', pro = '50', default = 'pro' }
    store = 'near'
    fallback = 'closed'
    [[rule]]
    name = 'all'
    when = { path = '/all' }
    limit = '7'
    store = 'near'
    fallback = 'closed'
    [[rule]]
    name = 'memory'
    key = 'user'
    limit = '5/h'
";

#[test]
fn a_store_is_asked_about_each_limit_and_plan() {
    let (policy, near, _) = policy(TEXT);
    near.state().has_verbs = true;
    let available = |rule: &str, values: &[&str]| {
        let key = policy.key(rule, values.iter().copied()).expect("a key");
        let all = run(key.available_async()).expect("a store");
        let all = all
            .iter()
            .map(|it| (it.limit.to_string(), it.plan, it.permits));
        all.collect::<Vec<_>>()
    };
    for (path, rule) in [
        ("/two", "two"),
        ("/plans", "plans"),
        ("/all", "all"),
        ("/", "memory"),
    ] {
        let decision = run(policy.decide_async(&[("user", "ann"), ("path", path)]));
        assert!(decision.is_allowed(), "{rule}");
    }
    let one = |limit: &str, plan, permits| (limit.to_owned(), plan, permits);
    assert_eq!(
        available("two", &["ann"]),
        [one("3", None, 2), one("9", None, 8)]
    );
    assert_eq!(
        available("two", &["bob"]),
        [one("3", None, 3), one("9", None, 9)]
    );
    assert_eq!(available("all", &[]), [one("7", None, 6)]);
    assert_eq!(available("memory", &["ann"]), [one("5/h", None, 4)]);
    let plans = [one("5", Some("free"), 4), one("50", Some("pro"), 49)];
    // The test's store counts all plans as one.
    assert_eq!(available("plans", &["ann"]), plans);

    let ann = policy.key("two", ["ann"]).expect("a key");
    assert_eq!(run(ann.reset_async()), Ok(true));
    assert_eq!(
        available("two", &["ann"]),
        [one("3", None, 3), one("9", None, 9)]
    );
    assert_eq!(
        run(policy.key("all", []).expect("a key").reset_async()),
        Ok(true)
    );
    assert_eq!(available("all", &[]), [one("7", None, 7)]);
}

#[test]
fn a_ban_is_told_to_each_limit_and_plan_and_kept_here_if_the_rule_bans() {
    let (policy, near, _) = policy(TEXT);
    near.state().has_verbs = true;
    for (rule, limits) in [("two", 2), ("plans", 2)] {
        let key = policy.key(rule, ["ann"]).expect("a key");
        assert_eq!(run(key.ban_for_async(MINUTE)), Ok(()));
        assert_eq!(near.state().banned.len(), limits, "{rule}");
        assert_eq!(run(key.banned_for_async()), Ok(Some(MINUTE)));
        near.state().banned.clear();
        // The store knows no ban, but this process may.
        let here = (rule == "two").then_some(MINUTE);
        assert_eq!(run(key.banned_for_async()), Ok(here), "{rule}");
        let permits = run(key.available_async()).expect("a store")[0].permits;
        assert_eq!(permits == 0, here.is_some(), "{rule}");
        assert_eq!(run(key.reset_async()), Ok(true));
        assert_eq!(run(key.banned_for_async()), Ok(None));
    }
    let memory = policy.key("memory", ["ann"]).expect("a key");
    assert_eq!(run(memory.ban_for_async(MINUTE)), Ok(()));
    assert!(memory.banned_for().expect("in memory") >= Some(MINUTE));
    assert_eq!(run(memory.reset_async()), Ok(true));
    assert!(near.state().banned.is_empty());
}

#[test]
fn errors_say_what_a_store_did_not_do() {
    let (policy, near, _) = policy(TEXT);
    let key = policy.key("plans", ["ann"]).expect("a key");
    let here = KeyError::Asynchronous {
        rule: "plans".into(),
    };
    assert_eq!(key.available(), Err(here.clone()));
    assert_eq!(key.banned_for(), Err(here.clone()));
    assert_eq!(key.ban_for(MINUTE), Err(here.clone()));
    assert_eq!(key.reset(), Err(here.clone()));
    assert!(here.to_string().ends_with("ends in `_async`"), "{here}");
    assert!(near.calls().is_empty() && near.state().banned.is_empty());

    let unable = |verb| KeyError::Unable {
        rule: "plans".into(),
        verb,
    };
    assert_eq!(run(key.available_async()), Err(unable("available")));
    assert_eq!(run(key.banned_for_async()), Err(unable("banned_for")));
    assert_eq!(run(key.reset_async()), Err(unable("reset")));
    let error = run(key.ban_for_async(MINUTE))
        .expect_err("not told")
        .to_string();
    let silent = "the store of rule \"plans\": it does not say that the key is banned";
    assert_eq!(error, silent);

    (near.state().has_verbs, near.state().is_down) = (true, true);
    let down = "the store of rule \"plans\": the store is down";
    let errors = [
        run(key.available_async()).map(drop),
        run(key.banned_for_async()).map(drop),
        run(key.reset_async()).map(drop),
    ];
    for error in errors {
        assert_eq!(error.expect_err("an outage").to_string(), down);
    }
    let all = policy.key("all", []).expect("a key");
    let no_key = KeyError::NoKey { rule: "all".into() };
    assert_eq!(run(all.ban_for_async(MINUTE)), Err(no_key));
}
