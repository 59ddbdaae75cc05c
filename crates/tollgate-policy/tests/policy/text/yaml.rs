//! YAML is read by the core schema of YAML 1.2, with positions. What JSON can't say is refused.

use tollgate_policy::Position;
use tollgate_policy::file::PolicyFile;

use crate::text::{JSON, YAML};

/// Returns the first error of a text.
fn error(text: &str) -> String {
    let problems = PolicyFile::from_yaml(text).expect_err(text);
    let first = problems.iter().next().expect("an error");
    assert!(first.position.is_some(), "{first}\n{text}");
    first.to_string()
}

#[test]
fn positions_are_those_of_the_text() {
    let file = PolicyFile::from_yaml(YAML).unwrap();
    for rule in &file.rules {
        let Position { line, column, .. } = rule.name.position.unwrap();
        let line = YAML.lines().nth(line - 1).unwrap();
        assert_eq!(line.get(column - 1..), Some(rule.name.as_str()), "{line}");
    }
    let text = "apply: all\nrule:\n  - { name: é, limit: 5 }\n\n  - key: user\n    name: 'b'\n";
    let problems = PolicyFile::from_yaml(text).unwrap_err();
    assert_eq!(
        problems.to_string(),
        "3:23: error: rule \"é\": limit is 5, but must be text such as \"5/min\", or a list of such \
         texts\n\
         5:5: error: rule \"b\": limit is missing; write `limit` or `plan`"
    );
}

#[test]
fn a_file_of_json_is_the_same_policy() {
    let file = PolicyFile::from_json(JSON).unwrap();
    assert_eq!(PolicyFile::from_yaml(JSON), Ok(file));
}

#[test]
fn a_file_without_a_value_has_no_rules() {
    for text in ["", "# nothing\n", "%YAML 1.2\n---\n{}\n...\n", "\u{feff}{}"] {
        assert_eq!(PolicyFile::from_yaml(text), Ok(PolicyFile::default()));
    }
}

/// How a value is shown that is text, and how one that is not.
#[test]
fn values_have_the_types_of_the_core_schema() {
    let shown = |value: &str| {
        let error = error(&format!("rule:\n  - {value}\n"));
        let (_, value) = error.split_once("rule 1 is ").expect("a rule");
        value.split_once(", but").expect("a reason").0.to_owned()
    };
    let texts = [
        "no",
        "on",
        "yes",
        "y",
        "1_000",
        "5/s",
        "0b1",
        "0x",
        "0o8",
        "-0x1",
        "1:30",
        "12e",
        "inf",
        "nan",
        ".",
        "-",
        "+",
        "2026-01-01",
        "tRUE",
        "nULL",
        "::1",
        "=",
        "<<",
        "1.2.3",
        "+.nan",
    ];
    for text in texts.into_iter().filter(|text| *text != "-") {
        assert_eq!(shown(text), format!("{text:?}"));
    }
    for text in ["'7'", "\"7\"", "|-\n    7", ">-\n    7"] {
        assert_eq!(shown(text), "\"7\"");
    }
    for (text, integer) in [
        ("7", "7"),
        ("-7", "-7"),
        ("+7", "7"),
        ("007", "7"),
        ("0x1F", "31"),
        ("0o17", "15"),
    ] {
        assert_eq!(shown(text), integer);
    }
    let large = "9".repeat(40);
    for other in [
        "1.5", "-.5", "1.", "1e5", "+1.5E-3", ".inf", "-.INF", ".nan", &large,
    ] {
        assert_eq!(shown(other), other);
    }
    for text in ["true", "True", "TRUE"] {
        assert_eq!(shown(text), "true");
    }
    for text in ["false", "False", "FALSE"] {
        assert_eq!(shown(text), "false");
    }
    for text in ["null", "Null", "NULL", "~", ""] {
        assert_eq!(shown(text), "null");
    }
}

#[test]
fn what_json_cannot_say_is_refused() {
    let anchors = "anchors and aliases (`&a`, `*a`) are not read; write the value where it is used, \
                   or text in quotes";
    let tags = "tags (`!a`) are not read; write the value without one, or text in quotes";
    for (text, position, message) in [
        ("apply: &a all", "1:8", anchors),
        (
            "apply: *bot*",
            "1:8",
            "the text is not YAML: while parsing node, found unknown anchor",
        ),
        ("rule: &r\n  - name: a", "1:7", anchors),
        ("&k apply: all", "1:1", anchors),
        ("apply: !!str all", "1:8", tags),
        ("apply: ! all", "1:8", tags),
        ("rule: !a\n  - name: a", "1:7", tags),
        ("# a\n%TAG !a! b\n---\n{}", "2:1", tags),
        (
            "apply: all\n---\nrule: []",
            "2:1",
            "a policy is one document, and another one begins here",
        ),
        (
            "{}\n...\n---\n",
            "3:1",
            "a policy is one document, and another one begins here",
        ),
        (
            "a: 1\nb:\n  c: 1\n  c: 2\n",
            "4:3",
            "the field \"c\" is given twice",
        ),
        (
            "rule:\n  - 7: a",
            "2:5",
            "the name of a field is 7, but must be text, so write it in quotes",
        ),
        (
            "true: a",
            "1:1",
            "the name of a field is true, but must be text, so write it in quotes",
        ),
        (
            "{ [a]: b }",
            "1:3",
            "the name of a field is [\"a\"], but must be text, so write it in quotes",
        ),
        (
            ": b",
            "1:1",
            "the name of a field is null, but must be text, so write it in quotes",
        ),
        (
            "- a",
            "1:1",
            "the policy must be a table, with fields such as `rule:`",
        ),
        (
            "---",
            "1:4",
            "the policy must be a table, with fields such as `rule:`",
        ),
        (
            "apply: all\n# \u{0}",
            "2:3",
            "the text is not YAML: the character '\\0' is not allowed here",
        ),
        (
            "apply: all\rrule: []",
            "1:11",
            "the text is not YAML: the character '\\r' is not allowed here",
        ),
    ] {
        assert_eq!(error(text), format!("{position}: error: {message}"));
    }
    assert_eq!(
        PolicyFile::from_yaml("apply: all\r\nrule: []\r\n").map(|file| file.rules.len()),
        Ok(0)
    );
}

#[test]
fn errors_of_syntax_have_positions() {
    for (text, position) in [
        ("apply: [all", "1:12"),
        ("apply: all\n\trule: a", "1:8"),
        ("apply: 'all", "1:8"),
        ("apply: all\n  rule: a", "2:7"),
        ("apply: \"\\q\"", "1:8"),
        ("rule: }", "1:7"),
    ] {
        let error = error(text);
        let expected = format!("{position}: error: the text is not YAML: ");
        assert!(error.starts_with(&expected), "{error}\n{text}");
    }
}

#[test]
fn values_can_be_nested_80_deep() {
    for (open, close) in [("[", "]"), ("{ a: ", "}")] {
        let deep = |depth: usize| {
            let text = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            error(&format!("a: {text}"))
        };
        assert!(deep(79).starts_with("1:1: error: a is not a field"));
        assert!(deep(80).ends_with("error: values are nested more than 80 deep"));
    }
}

#[test]
fn a_long_list_is_written_as_lines() {
    let list = |count| format!("rule:\n  - [{}]\n", "aaaaaaaa, ".repeat(count));
    assert!(error(&list(10_000)).contains("rule 1 is "));
    assert_eq!(
        error(&list(20_000)),
        "2:3: error: the value, list or comment after this has more than 131072 characters; write \
         a long list as lines that begin with `-`"
    );
    let lines = format!("rule:\n{}", "- aaaaaaaa\n".repeat(20_000));
    assert!(error(&lines).contains("rule 1 is "));
}
