//! A header, a parameter, a cookie and a part of a path have one name, with a colon or a dot.

use tollgate_policy::explain;
use tollgate_policy::file::PolicyFile;

const COLONS: &str = r#"
[[deny]]
name = "bots"
when = { "header:user-agent" = "*bot*", not = { "query:key" = { prefix = "k" } } }

[[allow]]
name = "office"
when = { any = [{ "cookie:office" = true }, { client-ip = "10.0.0.0/8" }] }

[[rule]]
name     = "items"
when     = { path = "/items/{item}", "header:x-a:b" = false }
key      = ["header:X-Api-Key", "path:item", "cookie:a.b", "query:header.x", "user.id"]
plan     = { by = "header:x-tier", free = "9/min" }
override = [{ key = ["k", "i", "c", "q", "u"], limit = "5/min" }]
cost     = { estimate = "query:n", settle = "response-header:x-used" }

[[rule]]
name  = "all"
limit = "9/min"
cost  = "header:x-cost"
"#;

/// Returns the policy with a dot in each name that has a colon.
fn with_dots() -> String {
    let groups = ["response-header", "header", "cookie", "query", "path"];
    let dots = |text: String, group| text.replace(&format!("{group}:"), &format!("{group}."));
    groups.into_iter().fold(COLONS.to_owned(), dots)
}

#[test]
fn a_dot_and_a_colon_are_the_same_wherever_a_fact_is_named() {
    let colons = PolicyFile::from_toml(COLONS).unwrap_or_else(|problems| panic!("{problems}"));
    let text = with_dots();
    assert_eq!(
        (text.contains("header:"), text.contains("header.x-tier")),
        (false, true)
    );
    let dots = PolicyFile::from_toml(&text).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(dots, colons);
    // In groups, as in TOML without quotes.
    let grouped = text.replace("\"header.user-agent\"", "header.user-agent");
    let grouped = grouped.replace("\"query.key\" =", "query.key =");
    assert_eq!(PolicyFile::from_toml(&grouped), Ok(colons));
}

#[test]
fn output_has_the_name_with_a_colon() {
    let file = PolicyFile::from_toml(&with_dots()).expect("a policy");
    let names: Vec<_> = file.fact_names().iter().map(ToString::to_string).collect();
    let expected = [
        "client-ip",
        "cookie:a.b",
        "cookie:office",
        "header:user-agent",
        "header:x-a:b",
        "header:x-api-key",
        "header:x-cost",
        "header:x-tier",
        "path",
        "query:header.x",
        "query:key",
        "query:n",
        "response-header:x-used",
        "user.id",
    ];
    let mut sorted = names.clone();
    sorted.sort();
    assert_eq!(sorted, expected);
    let facts = [("path", "/items/7"), ("header:x-api-key", "k1")];
    let explained = explain(&file, &facts).to_string();
    assert!(explained.contains("header:x-api-key = k1"), "{explained}");
    assert!(!explained.contains("header.x-"), "{explained}");
}
