//! docs/POLICY.md and docs/FROM_GATEWAYS.md: each policy on a page decides the requests below it as
//! the page says, and each row of the tables names rules that show it.

mod decided;
mod document;
mod explained;
mod formats;
mod lines;
mod matching;
mod model;
mod random_decisions;
mod random_policies;
mod random_sets;
mod real;
mod recordings;

use std::collections::BTreeSet;
use std::time::Duration;

use tollgate_policy::file::PolicyFile;
use tollgate_policy::warnings;

use document::{Example, examples, rows};
use lines::{End, Expected, Line, Request, Verdict, read};

/// What is tested here.
type Tested = real::Real;
type Held = <Tested as decided::Decider>::Held;

#[test]
fn each_line_of_the_page_can_be_read() {
    let (examples, _) = examples();
    let wrong: Vec<_> = examples
        .iter()
        .flat_map(|example| &example.lines)
        .filter_map(|(number, line)| Some(format!("line {number}: {}", read(line).err()?)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_line_with_all_parts_is_read() {
    let line = "2x GET api.example.com/a?b=1&c=2 from 10.0.0.1 header:x-api-key=k1 as one \
                fails answers response-header:x-used=7   \
                denied by a, 4 left, retry after 500 ms, status 503, b would deny, c would allow";
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let request = Request {
        facts: vec![
            pair("method", "GET"),
            pair("host", "api.example.com"),
            pair("path", "/a"),
            pair("query:b", "1"),
            pair("query:c", "2"),
            pair("client-ip", "10.0.0.1"),
            pair("header:x-api-key", "k1"),
        ],
        name: Some("one".into()),
        end: End {
            fails: true,
            answer: vec![pair("response-header:x-used", "7")],
        },
    };
    let expected = Expected {
        verdict: Verdict::DeniedBy("a".into()),
        left: Some(4),
        retry_after: Some(Some(Duration::from_millis(500))),
        status: Some(Some(503)),
        shadows: vec![("b".into(), false), ("c".into(), true)],
    };
    let line = read(line).expect("a line");
    assert_eq!(
        line,
        Some(Line::Requests {
            count: 2,
            request,
            expected
        })
    );
}

#[test]
fn short_lines_are_read() {
    let read = |line| read(line).expect("a line");
    assert_eq!(read("# a remark"), None);
    assert_eq!(
        read("+2 min"),
        Some(Line::Advance(Duration::from_secs(120)))
    );
    assert_eq!(read("the store is down"), Some(Line::StoreDown));
    let ends = |end| {
        let name = "one".to_owned();
        Some(Line::Ends { name, end })
    };
    assert_eq!(read("one ends"), ends(End::default()));
    let end = End {
        fails: true,
        answer: vec![("used".into(), "7".into())],
    };
    assert_eq!(read("one ends fails answers used=7"), ends(end));
    let Some(Line::Requests { expected, .. }) = read("GET /a denied by a, no status") else {
        panic!("one request");
    };
    assert_eq!(expected.status, Some(None));
    let Some(Line::Requests {
        count: 1,
        request,
        expected,
    }) = read("call user=ann  allowed by a and b, never retry")
    else {
        panic!("one request");
    };
    assert_eq!(request.facts, [("user".to_owned(), "ann".to_owned())]);
    assert_eq!(expected.verdict.names(), ["a", "b"]);
    assert_eq!(expected.retry_after, Some(None));
}

#[test]
fn a_line_that_says_something_else_is_an_error() {
    for line in [
        "GET /a",
        "GET allowed by a",
        "GET a allowed by a",
        "GET /a user allowed by a",
        "GET /a allowed",
        "GET /a allowed by a, some left",
        "GET /a allowed by a, 4 rest",
        "GET /a denied by a, retry after 12s",
        "GET /a denied by a, status odd",
        "GET /a no way",
        "+12",
        "one ends user=ann",
    ] {
        assert!(read(line).is_err(), "{line}");
    }
}

/// The names of the rules and lists of a policy.
fn names(policy: &str) -> BTreeSet<String> {
    let names = policy.lines().filter_map(|line| {
        let (field, value) = line.split_once('=')?;
        (field.trim() == "name").then(|| value.trim().trim_matches('"').to_owned())
    });
    names.collect()
}

/// The names of the rules and lists that decide the lines below a policy.
fn names_in_lines(example: &Example) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (_, line) in &example.lines {
        if let Ok(Some(Line::Requests { expected, .. })) = read(line) {
            names.extend(expected.verdict.names().iter().cloned());
            names.extend(expected.shadows.into_iter().map(|(name, _)| name));
        }
    }
    names
}

#[test]
fn each_rule_of_the_page_decides_a_line_below_it() {
    let (examples, _) = examples();
    assert!(examples.len() > 20, "{}", examples.len());
    for example in examples {
        let line = example.line;
        assert_eq!(
            names(&example.policy),
            names_in_lines(&example),
            "line {line}"
        );
    }
}

#[test]
fn each_row_about_a_gateway_names_rules_that_show_it() {
    let (examples, _) = examples();
    let rows = rows();
    assert!(rows.len() > 90, "{}", rows.len());
    let mut elsewhere = 0;
    for row in rows {
        let line = row.line;
        elsewhere += usize::from(row.is_elsewhere);
        assert_ne!(row.rules.is_empty(), !row.is_elsewhere, "line {line}");
        for (rule, section) in &row.rules {
            let section = section.unwrap_or(row.section);
            let mut there = examples.iter().filter(|it| it.section == section);
            let is_there = there.any(|example| names(&example.policy).contains(rule));
            assert!(is_there, "line {line}: {section} has no rule `{rule}`");
        }
    }
    assert!(elsewhere < 25, "{elsewhere}");
}

#[test]
fn each_policy_of_the_page_can_be_read_without_warnings() {
    let mut wrong = String::new();
    for example in examples().0 {
        let problems = PolicyFile::from_toml(&example.policy).map_or_else(
            |errors| errors.to_string(),
            |file| {
                let facts = file.check_facts(|name| name == "first-letter-of-user");
                format!("{}{facts}", warnings(&file))
            },
        );
        if !problems.is_empty() {
            wrong += &format!("the policy at line {}:\n{problems}\n", example.line);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn errors_are_reported_as_the_page_says() {
    let (_, wrong) = examples();
    assert!(!wrong.is_empty());
    for example in wrong {
        let problems = PolicyFile::from_toml(&example.policy).expect_err("errors");
        let lines: Vec<_> = example.lines.iter().map(|(_, line)| *line).collect();
        assert_eq!(problems.to_string(), lines.join("\n"));
    }
}

/// Returns what is decided differently than the page says.
fn differing<D: decided::Decider>(new: impl Fn(&str) -> D) -> Vec<String> {
    let examples = examples().0.into_iter();
    let differing = examples.map(|example| decided::run(&example, new(&example.policy)));
    differing.flatten().collect()
}

#[test]
fn the_policy_decides_as_the_page_says() {
    let differing = differing(real::Real::new);
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

#[test]
fn the_model_decides_as_the_page_says() {
    let differing = differing(model::Model::new);
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
