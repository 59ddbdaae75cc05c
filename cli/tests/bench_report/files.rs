//! Where the page is written, and where it can't be.

use std::fs;
use std::path::Path;

use crate::page::{folder, parsed, report, tables};

#[test]
fn an_old_page_is_replaced_and_the_json_stays_alone() {
    let folder = folder("replaced");
    fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("index.html");
    fs::write(&path, "old ".repeat(1 << 20)).expect("an old page");
    let output = report(&folder, &["--json"]);
    assert!(output.status.success(), "{output:?}");
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON alone");
    assert!(rows.is_array());
    let page = fs::read_to_string(&path).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert_eq!(tables(&parsed(&page)).len(), 6);
    assert_eq!(
        fs::read_dir(&folder).expect("a folder").count(),
        1,
        "one file"
    );
}

/// And nothing is measured first, or printed.
#[test]
fn a_page_that_can_not_be_written_is_named() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml/pages");
    let taken = folder("taken");
    fs::create_dir_all(taken.join("index.html")).expect("a folder in the page's place");
    for (folder, named) in [(file, "Cargo.toml/pages"), (taken, "taken/index.html")] {
        let output = report(&folder, &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.starts_with("error: --report: "), "{said}");
        assert!(
            said.contains(named) && said.contains("can't be written"),
            "{said}"
        );
        assert!(output.stdout.is_empty(), "{output:?}");
    }
}
