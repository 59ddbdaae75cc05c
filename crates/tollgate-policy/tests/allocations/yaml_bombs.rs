//! A text of YAML that is made to fill the memory is refused with little memory.

use std::fmt::Write;
use std::time::Instant;

use tollgate_policy::file::PolicyFile;

use crate::allocations::allocated_bytes;

/// The most bytes that are allocated for a text that is refused, all together.
const MOST: u64 = 64 << 20;

/// Ten lists, each of ten aliases of the list before.
fn billion_laughs() -> String {
    let mut text = String::from("a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n");
    for (name, before) in ('b'..='j').zip('a'..) {
        let list = format!("*{before}, ").repeat(10);
        let _ = writeln!(text, "{name}: &{name} [{list}]");
    }
    text
}

#[test]
fn a_bomb_is_refused_with_little_memory() {
    let large = 16 << 20;
    let many = |part: &str| part.repeat(large / part.len());
    for (name, text, why) in [
        ("aliases", billion_laughs(), "anchors and aliases"),
        (
            "anchors",
            format!("a: [&a 1{}]", ", &a 1".repeat(10_000)),
            "anchors and aliases",
        ),
        (
            "aliases in a long list",
            format!("a:\n- [{}]", "*a, ".repeat(900_000)),
            "131072 characters",
        ),
        (
            "lists in brackets",
            format!("a: {}", "[".repeat(1 << 20)),
            "the text is not YAML",
        ),
        (
            "tables in brackets",
            format!("a: {}", "{a: ".repeat(1 << 20)),
            "80 deep",
        ),
        (
            "lists in a line",
            format!("a:\n  {}", "- ".repeat(1 << 20)),
            "80 deep",
        ),
        ("names in a line", "? ".repeat(1 << 20), "80 deep"),
        (
            "names of lists",
            format!("? {}", "[a]: ".repeat(1 << 18)),
            "must be text",
        ),
        (
            "a long list",
            format!("a:\n- [{}]", "1,".repeat(1_900_000)),
            "131072 characters",
        ),
        (
            "a long text",
            format!("a: '{}'", " a".repeat(large / 2 - 8)),
            "131072 characters",
        ),
        ("a long name", "a".repeat(large), "131072 characters"),
        ("values", many("- a\n"), "the file has"),
        ("tags", many("%TAG !a! b\n"), "tags (`!a`) are not read"),
        ("bytes", " ".repeat(large + 1), "at most 16 MiB"),
    ] {
        let (before, start) = (allocated_bytes(), Instant::now());
        let read = PolicyFile::from_yaml(&text);
        let (bytes, took) = (allocated_bytes() - before, start.elapsed());
        println!(
            "{name}: {} bytes of text, {bytes} allocated, {took:?}",
            text.len()
        );
        let problems = read.expect_err(name).to_string();
        assert!(problems.contains(why), "{name}: {problems}");
        assert!(bytes < MOST, "{name}: {bytes} bytes");
    }
}
