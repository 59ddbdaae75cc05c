//! The calls and programs of the page are those of these tests.

/// The page.
const PAGE: &str = include_str!("../../../../crates/tollgate-tower/docs/FROM_TOWER_GOVERNOR.md");

/// The tests, where calls are compiled.
const TESTS: [&str; 7] = [
    include_str!("addresses.rs"),
    include_str!("answers.rs"),
    include_str!("keys.rs"),
    include_str!("memory.rs"),
    include_str!("programs.rs"),
    include_str!("rates.rs"),
    include_str!("several.rs"),
];

/// Returns code as it is compared: without spaces and commas, which rustfmt moves.
fn plain(code: &str) -> String {
    let is_kept = |c: &char| !c.is_whitespace() && *c != ',';
    code.chars().filter(is_kept).collect()
}

fn is_tested(code: &str) -> bool {
    let code = plain(code);
    TESTS.iter().any(|test| plain(test).contains(&code))
}

/// Names in the table that are no calls.
const NAMES: [&str; 8] = [
    "None",
    "axum",
    "tonic",
    "tracing",
    "metrics",
    "RateLimitLayer",
    "impl KeyExtractor for ApiKey",
    "Err(GovernorError::UnableToExtractKey)",
];

#[test]
fn each_call_of_the_table_is_made_by_a_test() {
    let head = "| tower_governor | tollgate-tower |\n|---|---|\n";
    let (_, table) = PAGE.split_once(head).expect("the table");
    let rows: Vec<_> = table
        .lines()
        .take_while(|line| line.starts_with('|'))
        .collect();
    assert!(rows.len() >= 20, "{} rows", rows.len());
    let mut missing = Vec::new();
    for row in rows {
        let row = row.replace("\\|", "|");
        let calls = row.split('`').skip(1).step_by(2);
        missing.extend(calls.filter(|call| !is_tested(call)).map(str::to_owned));
    }
    missing.retain(|call| !NAMES.contains(&call.as_str()));
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn each_program_with_tower_governor_is_compiled() {
    let programs: Vec<_> = PAGE.split("```rust,ignore\n").skip(1).collect();
    assert_eq!(programs.len(), 3);
    for program in programs {
        let (program, _) = program.split_once("```").expect("an end");
        let mut parts = program.split("\n\n");
        assert!(parts.all(is_tested), "{program}");
    }
}
