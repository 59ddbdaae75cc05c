//! The statistics of the tables of rules.

use tollgate::stats::{Metrics, write_prometheus};
use tollgate::{Concurrency, ManualClock};
use tollgate_policy::operate::PolicyStats;
use tollgate_policy::{LivePolicy, Policy};

use crate::operate::policy;

const TEXT: &str = "
    apply = 'all'
    [[rule]]
    name = 'api'
    key = 'user'
    limit = ['50/h', '100/d']
    ban = { after = 2, for = '1h' }
    missing = 'skip'
    [[rule]]
    name = 'calls'
    key = 'tenant'
    plan = { by = 'tier', free = 'concurrency 1', pro = 'concurrency 9', default = 'pro' }
    missing = 'skip'
    [[rule]]
    name = 'login'
    key = 'ip'
    when = { path = '/login' }
    ban = { after = 2, for = '1h', of = 'failures' }
    [[rule]]
    name = 'all'
    limit = '10000/s'
";

/// Returns how many keys each table has.
fn tracked(stats: &PolicyStats) -> Vec<(&str, &str, u64)> {
    let rules = stats.rules.iter();
    let tables = rules.flat_map(|rule| {
        let tables = rule.tables.iter();
        tables.map(|it| (rule.rule.as_str(), it.table.as_str(), it.keys.tracked))
    });
    tables.collect()
}

fn page(policy: &Policy<ManualClock>) -> String {
    let mut page = String::new();
    let stats = policy.stats();
    stats.write_prometheus(&mut page, "t", &[]).expect("a page");
    page
}

#[test]
fn each_table_has_its_keys() {
    let policy = policy(TEXT);
    for user in 0..3 {
        assert!(policy.decide(&[("user", user.to_string())]).is_allowed());
    }
    policy
        .key("api", ["7"])
        .expect("a key")
        .ban_for(crate::operate::MINUTE)
        .expect("a slot");
    let _inside = policy.decide(&[("tenant", "acme")]);
    assert_eq!(
        tracked(&policy.stats()),
        [
            ("api", "0", 3),
            ("api", "1", 3),
            ("api", "bans", 1),
            ("api", "strikes", 0),
            ("calls", "0/free", 0),
            ("calls", "0/pro", 1),
            ("login", "bans", 0),
            ("login", "strikes", 0),
            ("login", "attempts", 0),
        ]
    );
}

#[test]
fn the_number_of_series_does_not_depend_on_the_keys() {
    let policy = policy(TEXT);
    let empty = page(&policy);
    for user in 0..5000 {
        assert!(policy.decide(&[("user", user.to_string())]).is_allowed());
    }
    let full = page(&policy);
    assert_eq!(empty.lines().count(), full.lines().count());
    for line in [
        "t_tracked{rule=\"api\",table=\"0\"} 5000",
        "t_no_room_total{rule=\"calls\",table=\"0/pro\"} 0",
        "t_missing_key_total{rule=\"login\"} 0",
    ] {
        assert!(full.lines().any(|known| known == line), "{line}");
    }
    // A rule without a key has no table.
    assert!(!full.contains("rule=\"all\",table"));
}

#[test]
fn other_limiters_share_the_page() {
    let policy = policy(TEXT);
    let uploads = Concurrency::new(8).expect("a limit");
    let uploads: &dyn Metrics = &uploads;
    let others: [(&[(&str, &str)], _); 1] = [(&[("limiter", "uploads")], uploads)];
    let mut both = String::new();
    let stats = policy.stats();
    stats
        .write_prometheus(&mut both, "t", &others)
        .expect("a page");
    let mut alone = String::new();
    write_prometheus(&mut alone, "t", &others).expect("a page");
    for line in alone.lines().chain(page(&policy).lines()) {
        assert!(both.lines().any(|known| known == line), "{line}");
    }
    let labels = [("rule", "api")];
    let error = stats.write_prometheus(&mut both, "t", &[(&labels[..], &stats.rules[0])]);
    assert!(error.is_err(), "the same labels");
}

#[test]
fn requests_without_the_key_of_a_rule_are_counted_there() {
    let live = LivePolicy::new(policy(TEXT));
    let missing = || {
        let stats = live.load().stats();
        stats
            .rules
            .iter()
            .map(|rule| rule.missing_key)
            .collect::<Vec<_>>()
    };
    let denied = |request: &[(&str, &str)]| live.decide(&request).denied_by().map(str::to_owned);
    let login = [("path", "/login")];
    assert_eq!(denied(&login).as_deref(), Some("login"));
    assert_eq!(denied(&login).as_deref(), Some("login"));
    assert_eq!(denied(&[("path", "/login"), ("ip", "1.2.3.4")]), None);
    // The rule is skipped, not refused, and one without a key does not lack it.
    assert_eq!(denied(&[("path", "/")]), None);
    assert_eq!(missing(), [0, 0, 2, 0]);
    let _ = live.reload_toml(TEXT).expect("a policy");
    assert_eq!(missing(), [0, 0, 0, 0]);
    let shadow = TEXT.replace("when = {", "shadow = true\nwhen = {");
    let _ = live.reload_toml(&shadow).expect("a policy");
    assert_eq!(denied(&login), None);
    assert_eq!(missing(), [0, 0, 1, 0]);
}
