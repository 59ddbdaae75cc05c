//! Requests with more parameters, cookies or lines than are read.

use tollgate_http::{Ambiguous, RequestFacts};
use tollgate_policy::{FactName, Facts, Policy};

use crate::repeated::status;
use crate::request;

/// This many parts, and then one that is beyond those that are read if there are 256 of them.
fn behind(count: usize, end: &str, part: &str) -> String {
    let parts: String = (0..count)
        .map(|number| format!("p{number}=x{end}"))
        .collect();
    parts + part
}

#[test]
fn all_parts_are_read_up_to_a_number() {
    for count in [0, 1, 10, 100, 255] {
        let query = request(&format!("/?{}", behind(count, "&", "last=1")), &[]);
        assert_eq!(
            RequestFacts::new(&query).query("last"),
            Ok(Some("1".into())),
            "{count}"
        );
        assert_eq!(RequestFacts::new(&query).query("none"), Ok(None));
        let cookies = behind(count, "; ", "last=1");
        let cookies = request("/", &[("cookie", cookies.as_bytes())]);
        assert_eq!(
            RequestFacts::new(&cookies).cookie("last"),
            Ok(Some("1".into())),
            "{count}"
        );
        let line = |number: usize| format!("p{number}=x");
        let lines: Vec<_> = (0..count).map(line).chain(["last=1".into()]).collect();
        let lines: Vec<_> = lines
            .iter()
            .map(|line| ("cookie", line.as_bytes()))
            .collect();
        let lines = request("/", &lines);
        assert_eq!(
            RequestFacts::new(&lines).cookie("last"),
            Ok(Some("1".into())),
            "{count}"
        );
    }
    for count in [256, 300, 5000] {
        let query = request(&format!("/?{}", behind(count, "&", "last=1")), &[]);
        for name in ["p0", "last", "none"] {
            assert_eq!(
                RequestFacts::new(&query).query(name),
                Err(Ambiguous),
                "{count}"
            );
        }
        let cookies = behind(count, "; ", "last=1");
        let cookies = request("/", &[("cookie", cookies.as_bytes())]);
        assert_eq!(
            RequestFacts::new(&cookies).cookie("last"),
            Err(Ambiguous),
            "{count}"
        );
        let lines: Vec<_> = (0..=count).map(|_| ("x-line", &b"1"[..])).collect();
        let lines = request("/", &lines);
        assert_eq!(
            RequestFacts::new(&lines).header("x-line"),
            Err(Ambiguous),
            "{count}"
        );
        let mut lines = vec![("host", &b"a.example"[..]); count];
        lines.push(("host", b"b.example"));
        let lines = request("/", &lines);
        let facts = RequestFacts::new(&lines);
        let hosts = facts.values(&FactName::new("host"));
        assert_eq!(hosts.iter().len(), 1, "{count}");
        assert!(hosts.is_ambiguous(), "{count}");
    }
}

#[test]
fn what_is_beyond_can_be_anything() {
    let decide = |policy: &str, count| {
        let policy = Policy::from_toml(policy).unwrap();
        status(&policy, &[("", &behind(count, "&", "last=1"))])
    };
    let key = "[[rule]]\nname = 'a'\nkey = 'query:last'\nmissing = 'skip'\nlimit = '1/h'";
    let first = "[[rule]]\nname = 'a'\nkey = 'query:p0'\nrepeated = 'first'\nlimit = '1/h'";
    let cost = "[[rule]]\nname = 'a'\nlimit = '9/h'\ncost = 'query:last'";
    let plan = "[[rule]]\nname = 'a'\nplan = { by = 'query:last', 1 = '9/h' }";
    let deny = "[[deny]]\nname = 'a'\nwhen = { path = '/', query.none = '2' }";
    let deny_other = "[[deny]]\nname = 'a'\nwhen = { path = '/other', query.none = '2' }";
    let allow = "[[allow]]\nname = 'a'\nwhen = { query.p0 = 'x' }\n\
                 [[deny]]\nname = 'b'\nwhen = { not = { query.p0 = 'x' }, path = '/other' }\n\
                 [[rule]]\nname = 'b'\nlimit = '1/h'\ncost = 2";
    let rule = "[[rule]]\nname = 'a'\nwhen = { query.none = '2' }\nlimit = '1/h'";
    let rule_other =
        "[[rule]]\nname = 'a'\nwhen = { path = '/b', query.none = '2' }\nlimit = '1/h'";
    let rule_known = "[[rule]]\nname = 'a'\nwhen = { query.p0 = 'x' }\nlimit = '1/h'";
    for (policy, few, many) in [
        (key, 200, 400),
        (first, 200, 200),
        (cost, 200, 400),
        (plan, 200, 403),
        (deny, 200, 403),
        (deny_other, 200, 200),
        (allow, 200, 429),
        (rule, 200, 400),
        (rule_other, 200, 200),
        (rule_known, 200, 200),
    ] {
        assert_eq!(decide(policy, 100), few, "{policy}");
        assert_eq!(decide(policy, 400), many, "{policy}");
    }
}
