//! `tollgate bench --report` writes a well-formed, self-contained and accessible page. Its pictures
//! and tables have every contestant and percentile, and it describes the machine.

mod pictures;
mod readable;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use roxmltree::{Document, Node, ParsingOptions};

use super::{CONTESTANTS, failure, folder, no_folder, printed};

const THREADS: [&str; 2] = ["1", "2"];
const KINDS: [&str; 2] = ["allowed", "denied"];
const PERCENTILES: [&str; 4] = ["p50", "p99", "p99.9", "p99.99"];
const TIMING: &str = "the timing alone";
/// The end of the title of a picture with other limiters.
const BESIDE: &str = ", compared with others";
/// Text and axes, and grid lines.
const INK: [&str; 2] = ["#3D444D", "#D0D7DE"];

/// Returns the names of the contestants, without the time source.
fn subjects() -> BTreeSet<&'static str> {
    CONTESTANTS
        .iter()
        .map(|(_, label)| subject(label))
        .collect()
}

/// Returns a label without the time source.
fn subject(label: &'static str) -> &'static str {
    label.split_once(", ").map_or(label, |it| it.0)
}

fn arguments(folder: &str) -> [&str; 7] {
    [
        "bench",
        "--seconds",
        "0.1",
        "--threads",
        "1,2",
        "--report",
        folder,
    ]
}

/// The printed text, and the page. All tests share one measurement.
static PAGE: LazyLock<(String, String)> = LazyLock::new(|| {
    let folder = folder("report").join("new/folders");
    let printed = printed(&arguments(folder.to_str().expect("text")));
    let page = fs::read_to_string(folder.join("index.html")).expect("a page");
    (printed, page)
});

/// Parses the page as XML, which fails if it is not well-formed.
fn parsed(page: &str) -> Document<'_> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(page, options).unwrap_or_else(|error| panic!("{error}: {page}"))
}

fn all<'a, 'i>(within: Node<'a, 'i>, name: &'static str) -> impl Iterator<Item = Node<'a, 'i>> {
    within
        .descendants()
        .filter(move |node| node.has_tag_name(name))
}

/// Returns the texts of all elements with this name.
fn texts(within: Node<'_, '_>, name: &'static str) -> Vec<String> {
    all(within, name).map(text).collect()
}

fn text(node: Node<'_, '_>) -> String {
    let texts = node.descendants().filter(Node::is_text);
    let text: String = texts.filter_map(|node| node.text()).collect();
    text.trim().to_owned()
}

fn attribute<'a>(node: Node<'a, '_>, name: &str) -> &'a str {
    let found = node.attribute(name);
    found.unwrap_or_else(|| panic!("no {name}: {node:?}"))
}

/// Tables by caption: the column headers, and the rows by their first cell.
type Tables = BTreeMap<String, (Vec<String>, BTreeMap<String, Vec<String>>)>;

fn tables(document: &Document<'_>) -> Tables {
    let table = |table| {
        let caption = texts(table, "caption").remove(0);
        let (mut heads, mut rows) = (Vec::new(), BTreeMap::new());
        for row in all(table, "tr") {
            let cells: Vec<_> = row.children().filter(Node::is_element).collect();
            let mut texts: Vec<_> = cells.iter().map(|&cell| text(cell)).collect();
            if attribute(cells[0], "scope") == "col" {
                heads = texts;
                continue;
            }
            assert_eq!(attribute(cells[0], "scope"), "row");
            assert_eq!(texts.len(), heads.len(), "{texts:?} below {heads:?}");
            let label = texts.remove(0);
            assert_eq!(rows.insert(label, texts), None, "twice");
        }
        (caption, (heads, rows))
    };
    all(document.root_element(), "table").map(table).collect()
}

#[test]
fn an_old_page_is_replaced_and_only_json_is_printed() {
    let folder = folder("replaced");
    fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("index.html");
    fs::write(&path, "old ".repeat(1 << 20)).expect("an old page");
    let arguments = arguments(folder.to_str().expect("text"));
    let printed = printed(&[&arguments[..], &["--json"]].concat());
    let rows: serde_json::Value = serde_json::from_str(&printed).expect("JSON alone");
    assert!(rows.is_array());
    let page = fs::read_to_string(&path).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert_eq!(tables(&parsed(&page)).len(), 7);
    assert_eq!(
        fs::read_dir(&folder).expect("a folder").count(),
        1,
        "one file"
    );
}

/// The program fails before it measures or prints anything.
#[test]
fn an_unwritable_page_is_named() {
    let taken = folder("taken");
    fs::create_dir_all(taken.join("index.html")).expect("a folder in the page's place");
    let taken = taken.to_str().expect("text");
    for (folder, named) in [
        (&*no_folder("pages"), "Cargo.toml/pages"),
        (taken, "taken/index.html"),
    ] {
        let (status, said) = failure(&arguments(folder));
        assert_eq!(status, Some(1), "{said}");
        assert!(said.starts_with("error: --report: "), "{said}");
        assert!(
            said.contains(named) && said.contains("can't be written"),
            "{said}"
        );
    }
}

/// The program also prints the path of the page.
#[test]
fn it_describes_the_machine() {
    let (printed, page) = &*PAGE;
    let document = parsed(page);
    let lines: Vec<_> = printed.lines().collect();
    let [machine, versions, .., path] = lines[..] else {
        panic!("{printed}");
    };
    assert!(
        machine.contains("core") && versions.contains("rustc"),
        "{printed}"
    );
    let titles = texts(document.root_element(), "title");
    assert_eq!(titles[0], format!("What a decision costs: {machine}"));
    let body = text(document.root_element());
    assert!(body.contains(machine) && body.contains(versions), "{body}");
    assert!(
        path.ends_with("new/folders/index.html") && Path::new(path).exists(),
        "{path}"
    );
    for line in lines
        .iter()
        .filter(|line| line.contains("on private words"))
    {
        assert!(body.contains(line), "{line} is not on the page");
    }
}
