//! Files that are too large, too deep or have too many errors.

use std::fmt::Write;

use tollgate_policy::Position;
use tollgate_policy::file::PolicyFile;

fn error(text: &str) -> String {
    PolicyFile::from_toml(text).unwrap_err().to_string()
}

#[test]
fn a_file_has_at_most_16_mebibytes() {
    let text = " ".repeat((16 << 20) + 1);
    let message = "1:1: error: the file has 16777217 bytes, but may have at most 16 MiB";
    assert_eq!(error(&text), message);
    assert!(PolicyFile::from_toml(&text[1..]).is_ok());
}

#[test]
fn a_file_has_at_most_four_million_separators() {
    let text = format!("a={}", ".".repeat(4_000_000));
    let message = "1:1: error: the file has 4000001 of the characters `= , . [ {`, but may have at \
                   most 4000000";
    assert_eq!(error(&text), message);
    assert!(error(&text.replacen('.', "", 1)).contains("the text is not TOML"));
}

#[test]
fn a_file_has_at_most_100_000_rules() {
    let mut text = String::new();
    for index in 0..=100_000 {
        let _ = writeln!(text, "[[rule]]\nname='{index}'\nlimit='1/s'");
    }
    let message = "1:3: error: rule has 100001 elements, but may have at most 100000";
    assert_eq!(error(&text), message);
}

#[test]
fn a_chain_of_many_rules_is_searched_for_cycles() {
    let mut text = String::new();
    for index in 0..20_000 {
        let next = (index + 1) % 20_000;
        let _ = writeln!(text, "[[rule]]\nname='{index}'\nlimit='1/s'\nalso='{next}'");
    }
    let error = error(&text);
    let end = "must not make a cycle: 0 -> 1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> 8 -> 9 -> 10 -> 11 \
               -> 19988 more -> 0";
    assert!(error.ends_with(end), "{error}");
    assert_eq!(error.lines().count(), 1);
}

#[test]
fn the_first_thousand_errors_are_kept_and_the_others_are_counted() {
    let mut text = String::from("apply = 'al'\n");
    for index in 0..3000 {
        let _ = writeln!(
            text,
            "[[rule]]\nname = '{index}'\nlimit = '1/s'\nalso = 'x'"
        );
    }
    let problems = PolicyFile::from_toml(&text).unwrap_err();
    assert_eq!((problems.errors(), problems.omitted()), (3001, 2001));
    assert_eq!(problems.iter().count(), 1000);
    let first = problems.iter().next().expect("an error");
    assert_eq!(first.position, Some(Position::new(1, 9)));
    let lines = problems.to_string();
    assert_eq!(lines.lines().count(), 1001);
    assert!(lines.ends_with("\nerror: 2001 more problems are not shown"));
}

#[test]
fn values_can_be_nested_80_deep() {
    let list = |depth| format!("a = {}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(error(&list(81)).contains("max recursion depth"));
    assert!(error(&list(79)).starts_with("1:1: error: a is not a field"));
    let json = |depth| {
        let text = format!("{{ \"a\": {}{} }}", "[".repeat(depth), "]".repeat(depth));
        serde_json::from_str::<PolicyFile>(&text)
            .unwrap_err()
            .to_string()
    };
    assert!(json(80).starts_with("the policy nests values more than 80 deep"));
    assert!(json(79).starts_with("error: a is not a field"));
}

#[test]
fn values_that_yaml_repeats_are_counted() {
    let mut yaml = String::from("a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n");
    for (name, before) in ('b'..='h').zip('a'..) {
        let list = format!("*{before}, ").repeat(10);
        let _ = writeln!(yaml, "{name}: &{name} [{list}]");
    }
    let error = serde_norway::from_str::<PolicyFile>(&yaml)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("more than 4000000 values") || error.contains("repetition"),
        "{error}"
    );
}

#[test]
fn a_long_line_has_exact_columns() {
    let mut text = String::from("facts = [");
    text.push_str(&"'ä', ".repeat(200));
    text.push_str("7]");
    let problems = PolicyFile::from_toml(&text).unwrap_err();
    let last = problems.iter().last().expect("an error");
    assert_eq!(last.position, Some(Position::new(1, 9 + 200 * 5 + 1)));
}
