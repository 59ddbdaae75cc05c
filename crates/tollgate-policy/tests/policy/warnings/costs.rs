//! Costs that no limit ever grants.

use tollgate::{Denied, ManualClock};
use tollgate_policy::file::PolicyFile;
use tollgate_policy::{Policy, warnings};

fn warned(fields: &str) -> String {
    let text = format!("[[rule]]\nname = 'a'\n{fields}\n");
    let file = PolicyFile::from_toml(&text).unwrap_or_else(|problems| panic!("{problems}"));
    warnings(&file).to_string()
}

#[test]
fn a_cost_above_what_a_limit_grants_is_always_denied() {
    assert_eq!(
        warned("limit = ['concurrency 9', '5/min']\ncost = 10"),
        "4:8: warning: rule \"a\": cost is 10, but \"5/min\" never grants more than 5 at once, so \
         each request is denied"
    );
    let text = "[[rule]]\nname = 'a'\nlimit = '5/min'\ncost = 10\n";
    let policy = Policy::builder().clock(ManualClock::new()).build_toml(text);
    let policy = policy.expect("a warning is no error");
    let decision = policy.decide(&());
    let denied = decision.asked().next().and_then(|asked| asked.denial());
    assert!(matches!(denied, Some(Denied::Never { .. })), "{denied:?}");

    let estimate = |rest: &str| format!("limit = '5/min'\ncost = {{ estimate = 'n', {rest} }}");
    assert!(
        warned(&estimate("default = 6")).ends_with("so a request without an estimate is denied")
    );
    assert!(warned(&estimate("max = 6")).ends_with("so a larger cost is denied"));
    assert!(warned(&estimate("min = 6")).ends_with("so each estimate is denied"));
    assert_eq!(warned(&estimate("default = 5, max = 5")), "");
    let settle = "cost = { default = 6, settle = 'used' }";
    assert!(warned(&format!("limit = '5/min'\n{settle}")).contains("cost.default is 6"));
}

#[test]
fn of_plans_the_one_that_grants_the_most_counts() {
    let plan = |cost: u64| {
        let plan = "plan = { by = 'tier', free = '4/h', pro = '9/h burst 20' }";
        warned(&format!("{plan}\ncost = {cost}"))
    };
    assert!(plan(21).contains("\"9/h burst 20\" never grants more than 20 at once"));
    assert_eq!(plan(20), "");
}

#[test]
fn a_cost_that_can_be_granted_is_not_warned_of() {
    for fields in [
        "limit = '5/min'\ncost = 5",
        "limit = '5/min burst 10'\ncost = 10",
        "limit = '5/min burst 10 initial 0'\ncost = 10",
        "limit = 'concurrency 1'\ncost = 10",
        "limit = '5/min'\ncost = 10\nstore = 'redis'\nfallback = 'closed'",
        "key = 'user'\nlimit = '5/min'\ncost = 10\noverride = [{ key = 'a', limit = '10/s' }]",
        "limit = 'own 5'\ncost = 10",
    ] {
        assert_eq!(warned(fields), "", "{fields}");
    }
}
