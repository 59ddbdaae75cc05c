//! The page that all tests look at, and what is found in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use roxmltree::{Document, Node, ParsingOptions};

pub(crate) const THREADS: [&str; 2] = ["1", "2"];
pub(crate) const KINDS: [&str; 2] = ["allowed", "denied"];
pub(crate) const PERCENTILES: [&str; 4] = ["p50", "p99", "p99.9", "p99.99"];

/// Each contestant, with the panels that it is in.
pub(crate) const CONTESTANTS: [(&str, &[&str]); 9] = [
    ("floor", &[]),
    ("private words", &[]),
    ("token bucket", &["system", "coarse", "given tick"]),
    ("sharded", &["system", "given tick"]),
    ("lease of 64", &["system", "coarse"]),
    ("60 slots", &["system", "given tick"]),
    ("log of 1000", &["system", "given tick"]),
    ("std mutex", &["system", "coarse", "given tick"]),
    ("parking_lot", &["system", "coarse", "given tick"]),
];

pub(crate) const TIMING: &str = "the timing alone";

pub(crate) fn report(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    let command = command.args(["bench", "--seconds", "0.1", "--threads", &THREADS.join(",")]);
    let command = command.args(arguments).arg("--report").arg(folder);
    command.output().expect("the program runs")
}

/// A folder for this test, which is not there yet.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("the folder can be removed");
    }
    folder
}

/// What was printed, and the page; measured once for all tests.
pub(crate) fn page() -> &'static (String, String) {
    static PAGE: OnceLock<(String, String)> = OnceLock::new();
    PAGE.get_or_init(|| {
        let folder = folder("report").join("new/folders");
        let output = report(&folder, &[]);
        assert!(output.status.success(), "{output:?}");
        let printed = String::from_utf8(output.stdout).expect("text");
        let page = fs::read_to_string(folder.join("index.html")).expect("a page");
        (printed, page)
    })
}

/// The page is XML too: what is not well-formed fails here.
pub(crate) fn parsed(page: &str) -> Document<'_> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(page, options).unwrap_or_else(|error| panic!("{error}: {page}"))
}

pub(crate) fn all<'a, 'i>(
    within: Node<'a, 'i>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'i>> {
    within
        .descendants()
        .filter(move |node| node.has_tag_name(name))
}

pub(crate) fn text(node: Node<'_, '_>) -> String {
    let texts = node.descendants().filter(Node::is_text);
    texts
        .filter_map(|node| node.text())
        .collect::<String>()
        .trim()
        .to_owned()
}

pub(crate) fn attribute<'a>(node: Node<'a, '_>, name: &str) -> &'a str {
    let found = node.attribute(name);
    found.unwrap_or_else(|| panic!("no {name}: {node:?}"))
}

/// As the tables call them.
pub(crate) fn labels() -> BTreeSet<String> {
    let each = CONTESTANTS.iter().flat_map(|&(subject, sources)| {
        let with = sources
            .iter()
            .map(move |source| format!("{subject}, {source}"));
        with.chain(sources.is_empty().then(|| subject.to_owned()))
    });
    each.collect()
}

/// By its caption: what heads its columns, and its rows by what they begin with.
pub(crate) type Tables = BTreeMap<String, (Vec<String>, BTreeMap<String, Vec<String>>)>;

pub(crate) fn tables(document: &Document<'_>) -> Tables {
    let table = |table| {
        let caption = all(table, "caption").map(text).next().expect("a caption");
        let mut heads = Vec::new();
        let mut rows = BTreeMap::new();
        for row in all(table, "tr") {
            let cells: Vec<_> = row.children().filter(Node::is_element).collect();
            let scope = attribute(cells[0], "scope");
            let texts: Vec<_> = cells.iter().map(|&cell| text(cell)).collect();
            if scope == "col" {
                heads = texts;
            } else {
                assert_eq!(scope, "row");
                assert_eq!(texts.len(), heads.len(), "{texts:?} below {heads:?}");
                let before = rows.insert(texts[0].clone(), texts[1..].to_vec());
                assert_eq!(before, None, "twice");
            }
        }
        (caption, (heads, rows))
    };
    all(document.root_element(), "table").map(table).collect()
}

pub(crate) fn number(cell: &str) -> f64 {
    let figure = cell
        .parse()
        .unwrap_or_else(|_| panic!("{cell} is no number"));
    assert!(f64::is_finite(figure) && figure >= 0.0, "{cell}");
    figure
}

pub(crate) const SVG: &str = "http://www.w3.org/2000/svg";

pub(crate) fn all_svg<'a, 'i>(document: &'a Document<'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    all_in_svg(document.root_element(), "svg")
}

pub(crate) fn all_in_svg<'a, 'i>(
    within: Node<'a, 'i>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'i>> {
    let nodes = within.descendants();
    nodes.filter(move |node| node.has_tag_name((SVG, name)))
}

/// Text and axes, and the lines behind.
pub(crate) const INK: [&str; 2] = ["#3D444D", "#D0D7DE"];
