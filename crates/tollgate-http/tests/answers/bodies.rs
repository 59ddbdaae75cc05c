//! Statuses and bodies of refusals.

use std::time::Duration;

use http::{Response, StatusCode};
use serde_json::{Value, json};
use tollgate::{Denied, Quota};
use tollgate_http::{Answers, Cause, LimitState, Refusal, RefusalBody};

use crate::states::{denied, granted};

const CAUSES: [(Cause, u16); 10] = [
    (Cause::Limit, 429),
    (Cause::Overload, 503),
    (Cause::Unavailable, 503),
    (Cause::Banned, 429),
    (Cause::Listed, 403),
    (Cause::MissingKey, 400),
    (Cause::Ambiguous, 400),
    (Cause::NoPlan, 403),
    (Cause::TooLarge, 429),
    (Cause::Misconfigured, 500),
];

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn each_cause_has_its_status_unless_it_is_set() {
    for (cause, status) in CAUSES {
        let refusal = Refusal::new(cause);
        assert_eq!(Answers::new().refuse(&refusal).status(), status);
        let teapot = Answers::new().status(cause, StatusCode::IM_A_TEAPOT);
        assert_eq!(teapot.refuse(&refusal).status(), 418);
        // A rule's own status comes first.
        let own = refusal.status(StatusCode::NOT_FOUND);
        assert_eq!(teapot.refuse(&own).status(), 404);
        // Another cause's status does not change.
        for (other, its) in CAUSES {
            if other != cause {
                assert_eq!(teapot.refuse(&Refusal::new(other)).status(), its);
            }
        }
    }
}

#[test]
fn each_denial_has_its_cause() {
    for (denied, cause) in [
        (Denied::later(1, SECOND), Cause::Limit),
        (Denied::no_room(1), Cause::Overload),
        (Denied::banned(1, Some(SECOND)), Cause::Banned),
        (Denied::banned(1, None), Cause::Banned),
        (Denied::busy(1), Cause::Overload),
        (Denied::line_full(1, 9, 9), Cause::Overload),
        (Denied::never(2, 1), Cause::TooLarge),
        (Denied::no_such_plan(1), Cause::NoPlan),
        (Denied::stuck(1), Cause::Limit),
        (Denied::timer_mismatch(1), Cause::Misconfigured),
    ] {
        let refusal = Refusal::of_denied(&denied);
        assert_eq!(refusal.cause(), cause);
        assert_eq!(refusal.wait(), denied.retry_after());
    }
}

fn text(refusal: &Refusal<'_>) -> String {
    let answer = Answers::new().refuse(refusal);
    assert_eq!(
        answer.headers()["content-type"],
        "text/plain; charset=utf-8"
    );
    String::from_utf8(answer.into_body().to_vec()).expect("text")
}

#[test]
fn a_text_is_one_line_that_says_when_to_retry() {
    for (cause, _) in CAUSES {
        let line = text(&Refusal::new(cause).rule("login"));
        assert!(line.ends_with('\n') && line.lines().count() == 1, "{line}");
        assert!(!line.contains("retry") && !line.contains("login"), "{line}");
        let line = text(&Refusal::new(cause).retry_after(SECOND * 12));
        assert!(line.ends_with(": retry in 12 s\n"), "{line}");
    }
    let line = text(&Refusal::new(Cause::Limit).retry_after(Duration::from_millis(11_500)));
    assert_eq!(line, "too many requests: retry in 12 s\n");
}

fn problem(refusal: &Refusal<'_>) -> Value {
    let answer = Answers::new().body(RefusalBody::Problem).refuse(refusal);
    assert_eq!(answer.headers()["content-type"], "application/problem+json");
    serde_json::from_slice(answer.body()).expect("JSON")
}

#[test]
fn a_problem_has_its_registered_type_and_the_limits_that_deny() {
    let quota = Quota::per_second(1);
    let limits = [
        granted("minute", quota, 1, SECOND),
        denied("daily", quota, 0, SECOND),
        denied("daily", quota, 0, SECOND),
    ];
    for (cause, status, kind, title) in [
        (Cause::Limit, 429, "quota-exceeded", "Quota Exceeded"),
        (Cause::TooLarge, 429, "quota-exceeded", "Quota Exceeded"),
        (
            Cause::Overload,
            503,
            "temporary-reduced-capacity",
            "Temporary Reduced Capacity",
        ),
        (
            Cause::Banned,
            429,
            "abnormal-usage-detected",
            "Abnormal Usage Detected",
        ),
    ] {
        let kind = format!("https://iana.org/assignments/http-problem-types#{kind}");
        let refusal = Refusal::new(cause).rule("daily").limits(&limits);
        assert_eq!(
            problem(&refusal),
            json!({
                "type": kind,
                "title": title,
                "status": status,
                // The names are those of the fields.
                "violated-policies": ["daily", "daily-2"],
            })
        );
        // Without the limits, it is the rule.
        let of_rule = problem(&Refusal::new(cause).rule("daily"));
        assert_eq!(of_rule["violated-policies"], json!(["daily"]));
        let of_none = problem(&Refusal::new(cause).limits(&limits[..1]));
        assert_eq!(of_none["violated-policies"], json!([]));
    }
}

#[test]
fn other_problems_have_the_title_of_their_status() {
    for (cause, title) in [
        (Cause::Unavailable, "Service Unavailable"),
        (Cause::Listed, "Forbidden"),
        (Cause::NoPlan, "Forbidden"),
        (Cause::MissingKey, "Bad Request"),
        (Cause::Ambiguous, "Bad Request"),
        (Cause::Misconfigured, "Internal Server Error"),
    ] {
        let problem = problem(&Refusal::new(cause).rule("login"));
        assert_eq!(
            (&problem["type"], &problem["title"]),
            (&json!("about:blank"), &json!(title))
        );
        assert_eq!(problem.as_object().map(serde_json::Map::len), Some(3));
    }
    let unknown = StatusCode::from_u16(799).expect("a status");
    let problem = problem(&Refusal::new(Cause::Listed).status(unknown));
    assert_eq!(
        (&problem["title"], &problem["status"]),
        (&json!("Refused"), &json!(799))
    );
}

#[test]
fn names_are_escaped_in_a_problem() {
    let quota = Quota::per_second(1);
    let name = "say \"hi\" \\ \n\t\u{0}\u{1f} ü </script>";
    let limits = [denied(name, quota, 0, SECOND)];
    let said = problem(&Refusal::new(Cause::Limit).limits(&limits));
    assert_eq!(
        said["violated-policies"],
        json!(["say \"hi\" \\ ____ _ </script>"])
    );
    let said = problem(&Refusal::new(Cause::Limit).rule(name));
    assert_eq!(
        said["violated-policies"],
        json!(["say \"hi\" \\ ____ _ </script>"])
    );
}

#[test]
fn an_empty_body_has_no_type() {
    let answer = Answers::new().body(RefusalBody::Empty);
    let answer = answer.refuse(&Refusal::new(Cause::Limit).retry_after(SECOND));
    assert!(answer.body().is_empty());
    assert!(!answer.headers().contains_key("content-type"));
    assert_eq!(answer.headers()["retry-after"], "1");
}

#[test]
fn a_function_has_the_last_word() {
    let answers = Answers::new().edit(|refusal, response| {
        assert_eq!(response.headers()["retry-after"], "3");
        *response.status_mut() = StatusCode::NOT_FOUND;
        *response.body_mut() = format!("{:?}", refusal.rule_name()).into();
    });
    // It goes with the clones.
    let answers = answers.clone();
    assert!(format!("{answers:?}").contains("edits: true"));
    let refusal = Refusal::new(Cause::Limit)
        .rule("login")
        .retry_after(3 * SECOND);
    let answer: Response<_> = answers.refuse(&refusal);
    assert_eq!(
        (answer.status().as_u16(), &answer.body()[..]),
        (404, &b"Some(\"login\")"[..])
    );
}

#[test]
fn answers_can_be_shared_by_threads() {
    fn is_shared<T: Clone + Send + Sync + 'static>(_: &T) {}
    is_shared(&Answers::default());
    is_shared(&RefusalBody::Text);
    is_shared(&Refusal::new(Cause::Limit));
    is_shared(&LimitState::of_concurrency("a", 1));
}

/// Each place that names the wait names the same one, and different answers differ.
#[test]
fn jitter_adds_to_the_wait_wherever_it_is_named() {
    let answers = Answers::new().jitter(600 * SECOND);
    let refusal = Refusal::new(Cause::Limit).retry_after(5 * SECOND);
    let mut waits = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let answer = answers.refuse(&refusal);
        let wait = answer.headers()["retry-after"].to_str().unwrap();
        let body = format!("too many requests: retry in {wait} s\n");
        assert_eq!(*answer.body(), body);
        let seconds: u64 = wait.parse().unwrap();
        assert!((5..=605).contains(&seconds), "{seconds}");
        waits.insert(seconds);
    }
    // 50 equal numbers of 600 do not come by chance.
    assert!(waits.len() > 1);
    // Nothing is added to a wait that is not known.
    let unknown = answers.refuse(&Refusal::new(Cause::Overload));
    assert!(!unknown.headers().contains_key("retry-after"));
    let most = Answers::new().jitter(Duration::MAX);
    let answer = most.refuse(&refusal.retry_after(Duration::MAX));
    assert!(answer.headers().contains_key("retry-after"));
}
