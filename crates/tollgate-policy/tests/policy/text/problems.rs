//! How problems are listed.

use tollgate_policy::file::PolicyFile;
use tollgate_policy::{Policy, Position, Problem, Problems};

fn example() -> Problems {
    let mut problems = Problems::new();
    let field = "rule \"a\": limit";
    problems.push(Problem::warning(field, "", "never binds").at(Position::new(9, 1)));
    problems.push(Problem::error(field, "5", "must be text").at(Position::new(2, 3)));
    problems.push(Problem::error("", "", "the file is empty"));
    problems
}

#[test]
fn problems_are_sorted_by_position_and_name_the_file() {
    let problems = example().with_file("limits.toml");
    let lines = "limits.toml: error: the file is empty\n\
                 limits.toml:2:3: error: rule \"a\": limit is 5, but must be text\n\
                 limits.toml:9:1: warning: rule \"a\": limit never binds";
    assert_eq!(problems.to_string(), lines);
    assert_eq!(
        (problems.errors(), problems.warnings(), problems.omitted()),
        (2, 1, 0)
    );
}

#[test]
fn problems_can_be_written_as_json() {
    let json = serde_json::to_value(example().with_file("limits.toml")).expect("it can be written");
    let second = serde_json::json!({
        "file": "limits.toml", "line": 2, "column": 3, "severity": "error",
        "field": "rule \"a\": limit", "value": "5", "message": "must be text",
    });
    assert_eq!(json[1], second);
    assert_eq!(json[0]["line"], serde_json::Value::Null);
    assert_eq!(json[2]["severity"], "warning");
}

#[test]
fn warnings_alone_are_not_errors() {
    let mut problems = Problems::new();
    assert!(problems.is_empty() && !problems.has_errors());
    problems.push(Problem::warning("memory", "1", "is small"));
    assert!(!problems.is_empty() && !problems.has_errors());
    problems.append(example());
    assert!(problems.has_errors());
    assert_eq!((problems.errors(), problems.warnings()), (2, 2));
}

#[test]
fn problems_that_are_not_kept_count_as_errors_too() {
    let mut problems = Problems::new();
    for _ in 0..1000 {
        problems.push(Problem::warning("a", "", "is odd"));
    }
    let mut more = Problems::new();
    more.push(Problem::error("b", "", "is wrong").at(Position::new(1, 1)));
    problems.append(more);
    assert!(problems.has_errors());
    assert_eq!(problems.omitted(), 1);
}

#[test]
fn long_values_are_cut_and_control_characters_replaced() {
    let value = format!("{}\u{1b}[31m", "x".repeat(100));
    let problem = Problem::error("a\u{7}", &value, "is wrong");
    assert_eq!(problem.value, format!("{}...", "x".repeat(60)));
    assert_eq!(problem.field, "a\u{fffd}");
}

#[test]
fn an_empty_file_is_a_policy_without_rules() {
    assert_eq!(PolicyFile::from_toml(""), Ok(PolicyFile::default()));
}

#[test]
fn a_capacity_that_no_memory_holds_is_an_error_of_that_field() {
    for limit in ["5/s", "concurrency 5"] {
        let text = format!(
            "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '{limit}'\ncapacity = '300_000_000G'"
        );
        assert_eq!(
            Policy::from_toml(&text).expect_err("no memory").to_string(),
            "5:12: error: rule \"a\": capacity is \"300000000G\", but there is not enough memory for \
             so many keys"
        );
    }
}
