//! The parts of docs/POLICY.md and docs/FROM_GATEWAYS.md that the tests read: sections, examples
//! and tables.

/// Both pages, one after the other: the numbers of lines go on.
pub(crate) const PAGE: &str = concat!(
    include_str!("../../../docs/POLICY.md"),
    include_str!("../../../docs/FROM_GATEWAYS.md")
);

/// A policy, and the lines below it.
#[derive(Debug)]
pub(crate) struct Example {
    /// The heading of its section.
    pub(crate) section: &'static str,
    /// The number of the policy's first line.
    pub(crate) line: usize,
    pub(crate) policy: String,
    /// The lines below the policy, each with its number.
    pub(crate) lines: Vec<(usize, &'static str)>,
}

/// A row of a table with three columns: what a gateway says, what a policy says, and the rules that
/// show it.
#[derive(Debug)]
pub(crate) struct Row {
    /// The heading of its section.
    pub(crate) section: &'static str,
    /// The number of its line.
    pub(crate) line: usize,
    /// The names of rules, each with the heading of another section if it is there.
    pub(crate) rules: Vec<(String, Option<&'static str>)>,
    /// Whether it says that another part of a program does it.
    pub(crate) is_elsewhere: bool,
}

/// Returns the examples with requests, and those of errors.
pub(crate) fn examples() -> (Vec<Example>, Vec<Example>) {
    let is_wrong = |example: &Example| example.lines[0].1.contains(": error: ");
    let (wrong, right) = all_examples().into_iter().partition(is_wrong);
    (right, wrong)
}

/// Returns all examples.
///
/// # Panics
///
/// Panics if a policy has no lines below it, or if lines have no policy.
fn all_examples() -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let (mut section, mut block) = ("", None);
    for (number, line) in PAGE.lines().enumerate().map(|(at, line)| (at + 1, line)) {
        match (block, line) {
            (None, _) if line.starts_with("## ") => section = &line[3..],
            (None, "```toml") => {
                let answered = examples.last().is_none_or(|last| !last.lines.is_empty());
                assert!(answered, "line {number}: the policy before has no lines");
                block = Some("toml");
                examples.push(Example {
                    section,
                    line: number + 1,
                    policy: String::new(),
                    lines: Vec::new(),
                });
            }
            (None, "```text") => {
                let last = examples.last().filter(|last| last.section == section);
                let fresh = last.is_some_and(|last| last.lines.is_empty());
                assert!(fresh, "line {number}: which policy decides these lines?");
                block = Some("text");
            }
            (None, _) if line.starts_with("```") => block = Some("other"),
            (Some(_), "```") => block = None,
            (Some("toml"), _) => {
                let example = examples.last_mut().expect("begun above");
                example.policy.push_str(line);
                example.policy.push('\n');
            }
            (Some("text"), _) => {
                let example = examples.last_mut().expect("begun above");
                example.lines.push((number, line));
            }
            _ => {}
        }
    }
    assert!(examples.last().is_some_and(|last| !last.lines.is_empty()));
    examples
}

/// Returns the rows of the tables with three columns, without their heads.
pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let (mut section, mut is_inside) = ("", false);
    for (number, line) in PAGE.lines().enumerate().map(|(at, line)| (at + 1, line)) {
        if let Some(heading) = line.strip_prefix("## ") {
            section = heading;
        }
        let is_head = line == "| it says | here | rule |";
        is_inside = is_head || (is_inside && line.starts_with('|'));
        if is_head || !is_inside || line.starts_with("|--") {
            continue;
        }
        let cells: Vec<_> = line.split(" | ").collect();
        let [_, _, shown] = cells[..] else {
            panic!("line {number} has three cells");
        };
        let shown = shown.trim_end_matches('|').trim();
        rows.push(Row {
            section,
            line: number,
            rules: rules_of(shown),
            is_elsewhere: shown == "–",
        });
    }
    rows
}

/// Reads "`a`, `b` in [plans], `c` in [Spring](#spring-cloud-gateway)".
fn rules_of(cell: &'static str) -> Vec<(String, Option<&'static str>)> {
    let names = cell.split(", ").filter(|name| name.starts_with('`'));
    names
        .map(|name| {
            let (name, link) = name.split_once(" in [").unwrap_or((name, ""));
            // A link without an anchor has the name of the section.
            let anchor = link.split_once("](#").map_or(link, |(_, anchor)| anchor);
            let heading = heading_of(anchor.trim_end_matches([')', ']']));
            (name.trim_matches('`').to_owned(), heading)
        })
        .collect()
}

/// Finds the heading that a link leads to.
fn heading_of(anchor: &str) -> Option<&'static str> {
    let mut headings = PAGE.lines().filter_map(|line| line.strip_prefix("## "));
    headings.find(|heading| {
        let plain = heading.to_lowercase().replace(' ', "-");
        plain.replace([',', '\''], "") == anchor
    })
}
