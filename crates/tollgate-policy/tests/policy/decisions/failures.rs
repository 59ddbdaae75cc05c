//! What counts as a failure, and bans of keys that fail again and again.

use std::time::Duration;

use tollgate::ManualClock;
use tollgate_policy::file::PolicyFile;
use tollgate_policy::{Outcome, Policy};

use crate::decisions::policy;

const ANN: [(&str, &str); 1] = [("user", "ann")];
const HOUR: Duration = Duration::from_secs(3600);

fn status(number: &str) -> [(&str, &str); 1] {
    [("response-status", number)]
}

#[test]
fn a_ban_of_requests_without_a_key_is_refused() {
    for ban in [
        "{ after = 3, for = '1h' }",
        "{ after = 3, of = 'failures' }",
    ] {
        let text = format!(
            "[[rule]]\nname = 'a'\nkey = 'header:x-key'\nlimit = '9/h'\nmissing = 'shared'\n\
             ban = {ban}"
        );
        let refused = Policy::from_toml(&text).expect_err("anyone could ban all others");
        let refused = refused.to_string();
        for word in [
            "error: rule \"a\": ban",
            "`missing = \"shared\"`",
            "deny",
            "skip",
        ] {
            assert!(refused.contains(word), "{refused}");
        }
    }
}

/// A file need not come from a text.
#[test]
fn a_ban_of_failures_needs_a_key() {
    let text = "[[rule]]\nname = 'a'\nkey = 'user'\nban = { after = 3, of = 'failures' }";
    let mut file = PolicyFile::from_toml(text).unwrap();
    file.rules[0].key.clear();
    let refused = Policy::builder().build(&file);
    let refused = refused
        .expect_err("any client could ban all others")
        .to_string();
    assert!(
        refused.contains("rule \"a\": ban needs a `key`"),
        "{refused}"
    );
}

/// Returns whether a request that is answered so counts, whatever the program says of it.
fn counts(rule: &str, answer: &[(&str, &str)]) -> bool {
    let policy = policy(&format!("[[rule]]\nname = 'a'\nlimit = '9/h'\n{rule}"));
    let counted = [Outcome::Success, Outcome::Failure].map(|outcome| {
        let settled = policy.decide(&()).finish(outcome, &answer.to_vec());
        settled.returned == 0
    });
    assert_eq!(counted[0], counted[1], "{rule} {answer:?}");
    counted[0]
}

#[test]
fn a_rule_names_the_statuses_that_fail() {
    let named = "failures = [401, '5xx']\n";
    for (number, fails, succeeds) in [
        ("200", false, true),
        ("302", false, true),
        ("401", true, false),
        ("403", false, false),
        ("404", false, false),
        ("500", true, false),
        ("503", true, false),
    ] {
        let count = |count: &str| counts(&format!("{named}count = '{count}'"), &status(number));
        assert_eq!(count("failures"), fails, "{number}");
        assert_eq!(count("successes"), succeeds, "{number}");
    }
    // A redirect to the form can be a failure too.
    let redirect = "failures = 303\ncount = ";
    assert!(counts(&format!("{redirect}'failures'"), &status("303")));
    assert!(!counts(&format!("{redirect}'successes'"), &status("303")));
}

#[test]
fn a_rule_names_the_codes_of_grpc_that_fail() {
    let named = "failures = ['grpc:UNAUTHENTICATED', 'grpc:NOT_FOUND']\n";
    for (code, fails, succeeds) in [
        ("0", false, true),
        ("5", true, false),
        ("7", false, false),
        ("14", false, false),
        ("16", true, false),
    ] {
        let answer = [("response-status", "200"), ("response-grpc-status", code)];
        let count = |count: &str| counts(&format!("{named}count = '{count}'"), &answer);
        assert_eq!(count("failures"), fails, "{code}");
        assert_eq!(count("successes"), succeeds, "{code}");
    }
}

/// In one line, what fails five times in ten minutes is banned for an hour.
const LOGIN: &str = "[[rule]]\nname = 'login'\nkey = 'user'\n\
                     ban = { after = 5, of = 'failures', within = '10min', for = '1h' }\n";

fn ends(policy: &Policy<ManualClock>, outcome: Outcome) -> Option<Duration> {
    let decision = policy.decide(&ANN);
    let wait = decision.retry_after();
    let _ = decision.finish(outcome, &());
    wait
}

#[test]
fn failures_ban_a_key_and_successes_do_not() {
    let policy = policy(LOGIN);
    for _ in 0..20 {
        assert_eq!(ends(&policy, Outcome::Success), None);
    }
    for _ in 0..5 {
        assert_eq!(ends(&policy, Outcome::Failure), None);
        assert!(policy.decide(&[("user", "bob")]).is_allowed());
    }
    // The fifth failure bans it, before another request comes.
    assert_eq!(ends(&policy, Outcome::Success), Some(HOUR));
    policy.clock().advance(HOUR - Duration::from_secs(1));
    assert_eq!(
        ends(&policy, Outcome::Success),
        Some(Duration::from_secs(1))
    );
    policy.clock().advance(Duration::from_secs(1));
    for _ in 0..4 {
        assert_eq!(ends(&policy, Outcome::Failure), None);
    }
    // Ten minutes after the first failure, they count anew.
    policy.clock().advance(HOUR / 6);
    for _ in 0..4 {
        assert_eq!(ends(&policy, Outcome::Failure), None);
    }
    assert_eq!(ends(&policy, Outcome::Success), None);
}

#[test]
fn requests_under_way_are_at_most_as_many_as_may_fail_and_ban_none() {
    let policy = policy(LOGIN);
    assert_eq!(ends(&policy, Outcome::Failure), None);
    for round in 0..9 {
        let under_way: Vec<_> = (0..4).map(|_| policy.decide(&ANN)).collect();
        assert!(under_way.iter().all(|it| it.is_allowed()), "{round}");
        for _ in 0..9 {
            assert_eq!(policy.decide(&ANN).denied_by(), Some("login"), "{round}");
        }
        for decision in under_way {
            let _ = decision.finish(Outcome::Success, &());
        }
    }
    // All requests that may still fail do so: four more, each of them once.
    let under_way: Vec<_> = (0..4).map(|_| policy.decide(&ANN)).collect();
    for decision in under_way {
        let _ = decision.finish(Outcome::Failure, &());
    }
    assert_eq!(ends(&policy, Outcome::Success), Some(HOUR));
}

#[test]
fn the_line_needs_nothing_else_and_goes_with_a_limit() {
    for rest in ["", "limit = '100/s'\n"] {
        let policy = policy(&format!(
            "[[rule]]\nname = 'login'\nkey = 'user'\nban = {{ after = 5, of = 'failures' }}\n{rest}"
        ));
        for _ in 0..5 {
            assert_eq!(ends(&policy, Outcome::Failure), None);
        }
        assert_eq!(ends(&policy, Outcome::Success), Some(HOUR / 4), "{rest}");
        policy.clock().advance(HOUR / 4);
        for _ in 0..20 {
            assert_eq!(ends(&policy, Outcome::Success), None);
        }
    }
}
