//! The table of all fields in docs/POLICY.md is the parser's own. To write it anew, run the test
//! with `TOLLGATE_RECORD=1`.

use std::fs;

use tollgate_policy::file::PolicyFile;

/// What the parser reads.
const ROWS: &str = include_str!("../../../src/parse/fields.md");
const HEAD: &str = "| table | field | value | default | meaning |\n|---|---|---|---|---|\n";
const BEGIN: &str = "<!-- fields -->\n";
const END: &str = "<!-- end of fields -->\n";

#[test]
fn the_page_has_the_fields_that_are_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/POLICY.md");
    let page = fs::read_to_string(path).expect("it is text");
    let (before, rest) = page.split_once(BEGIN).expect("the table begins");
    let (table, after) = rest.split_once(END).expect("the table ends");
    let expected = format!("\n{HEAD}{ROWS}\n");
    if std::env::var_os("TOLLGATE_RECORD").is_some() {
        let page = format!("{before}{BEGIN}{expected}{END}{after}");
        fs::write(path, page).expect("it can be written");
    } else {
        assert_eq!(table, expected);
    }
}

/// Returns a policy with a field of a table, whose value no field can have.
fn with_field(table: &str, field: &str) -> String {
    let wrong = format!("{field} = 1979-05-27");
    let rule = "[[rule]]\nname = 'a'\n";
    match table {
        "top" => wrong,
        "key-secret" | "client" | "store" => format!("{table} = {{ {wrong} }}"),
        "store.redis" => format!("store = {{ redis = {{ {wrong} }} }}"),
        "rule" | "limit" | "deny" | "allow" => format!("[[{table}]]\n{wrong}"),
        "override" => format!("{rule}override = [{{ {wrong} }}]"),
        "fallback.open" | "fallback.local" => {
            let kind = &table["fallback.".len()..];
            format!("{rule}fallback = {{ {kind} = {{ {wrong} }} }}")
        }
        "test" => format!("{rule}when = {{ user = {{ {wrong} }} }}"),
        _ => format!("{rule}{table} = {{ {wrong} }}"),
    }
}

#[test]
fn each_field_of_the_table_is_read() {
    let mut count = 0;
    for row in ROWS.lines() {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let [_, tables, field, value, default, meaning, _] = cells[..] else {
            panic!("{row}");
        };
        assert!(![value, default, meaning].contains(&""), "{row}");
        let quoted = field.split(['`']).skip(1).step_by(2);
        for (table, field) in tables
            .split(", ")
            .flat_map(|table| quoted.clone().map(move |field| (table, field)))
        {
            let text = with_field(table, field);
            let problems = PolicyFile::from_toml(&text).expect_err(&text);
            let read = problems.iter().any(|problem| {
                let is_it = problem.field.rsplit(['.', ' ']).next() == Some(field);
                is_it && problem.value == "1979-05-27"
            });
            // The message about a secret, or about what may contain one, shows no value.
            let is_secret = ["key-secret", "store.redis"].contains(&table)
                || matches!(
                    (table, field),
                    ("top", "key-secret" | "store") | ("store", "redis")
                );
            let is_known = !problems.to_string().contains("is not a field");
            assert!(is_known && (read || is_secret), "{text}\n{problems}");
            count += 1;
        }
    }
    assert!(count > 80, "{count}");
}
