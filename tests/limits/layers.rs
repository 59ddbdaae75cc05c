//! Each layer uses only its own level and lower ones (docs/dev/DESIGN.md), no files of a crate
//! depend on each other in a cycle, only the shim names atomics, and no file on the decision path
//! contains `unsafe`, `unwrap` or `panic`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The modules of the crate and their levels.
const LEVELS: [(&str, u8); 26] = [
    ("sync", 0),
    ("clock", 0),
    ("quota", 0),
    ("metrics", 0),
    ("address", 0),
    ("algorithm", 1),
    ("outcome", 1),
    ("store", 1),
    ("traits", 1),
    ("seq_lock", 1),
    ("snapshot", 1),
    ("limiter", 2),
    ("limiter_error", 2),
    ("adjustable", 2),
    ("concurrency", 2),
    ("counted", 2),
    ("leases", 2),
    ("multiword", 2),
    ("sharded", 2),
    ("striped", 2),
    ("thread_index", 2),
    ("wait", 2),
    ("keyed", 3),
    ("compose", 3),
    ("constructors", 3),
    ("guide", 3),
];

fn level(module: &str) -> u8 {
    let known = LEVELS.iter().find(|(name, _)| *name == module);
    known.unwrap_or_else(|| panic!("{module} has no level")).1
}

/// Returns all sources of the core except lib.rs, each with its module.
fn sources() -> Vec<(String, PathBuf, String)> {
    sources_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
}

/// The same of the crate whose sources are in this folder.
fn sources_of(root: &Path) -> Vec<(String, PathBuf, String)> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                found.push(path);
            }
        }
    }
    let mut paths = Vec::new();
    walk(root, &mut paths);
    let read = paths.into_iter().map(|path| {
        let text = fs::read_to_string(&path).expect("text");
        let inner = path.strip_prefix(root).expect("inside");
        let first = inner.components().next().expect("a name");
        let module = first.as_os_str().to_string_lossy().replace(".rs", "");
        (module, path, text)
    });
    read.filter(|(module, ..)| module != "lib").collect()
}

/// Returns the code of a file, without comments and up to its tests.
fn code(text: &str) -> impl Iterator<Item = &str> {
    let lines = text
        .lines()
        .take_while(|line| !["#[cfg(test)]", "mod tests {"].contains(line));
    lines.filter(|line| !line.trim_start().starts_with("//"))
}

#[test]
fn a_layer_uses_lower_ones_only() {
    let mut seen = BTreeSet::new();
    for (module, path, text) in sources() {
        let own = level(&module);
        for line in code(&text) {
            for used in line.split("crate::").skip(1) {
                let used: String = used
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect();
                if used.is_empty() {
                    // `crate::{...}` would hide these names from this test.
                    panic!("{}: name one module a line: {line}", path.display());
                }
                let used_level = level(&used);
                assert!(
                    used_level <= own,
                    "{}: level {own} uses {used}, level {used_level}",
                    path.display()
                );
                seen.insert((module.clone(), used));
            }
        }
    }
    let (limiter, store) = ("limiter".to_owned(), "store".to_owned());
    assert!(seen.contains(&(limiter, store)), "{seen:?}");
    assert!(seen.len() >= 12, "{seen:?}");
}

/// Returns the paths in the `use` statements of a file, each starting at `crate`, `super`, `self`
/// or a sibling module.
fn used_paths(text: &str) -> Vec<Vec<String>> {
    fn expand(path: &str, into: &[String], all: &mut Vec<Vec<String>>) {
        let mut segments = into.to_vec();
        let Some((before, inside)) = path.split_once('{') else {
            let names = path.split("::").map(|name| name.trim().to_owned());
            segments.extend(names.filter(|name| !name.is_empty()));
            return all.push(segments);
        };
        let names = before.split("::").map(|name| name.trim().to_owned());
        segments.extend(names.filter(|name| !name.is_empty()));
        let (mut depth, mut begin) = (0, 0);
        let inside = inside.trim_end().trim_end_matches('}');
        for (place, letter) in inside.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    expand(&inside[begin..place], &segments, all);
                    begin = place + 1;
                }
                _ => {}
            }
        }
        expand(&inside[begin..], &segments, all);
    }
    let text = code(text).collect::<Vec<_>>().join(" ");
    let mut all = Vec::new();
    for part in text.split(';') {
        // Attributes and `pub` come before it.
        if let Some((_, path)) = format!(" {part}").rsplit_once(" use ") {
            expand(path, &[], &mut all);
        }
    }
    all
}

/// Returns the files that each file of a set of modules uses, except those below it: a `mod.rs`
/// re-exports their names.
fn uses(files: &[(Vec<String>, String)]) -> Vec<BTreeSet<usize>> {
    let place = |path: &[String]| files.iter().position(|(module, _)| module == path);
    let of = |(module, text): &(Vec<String>, String)| {
        let mut used = BTreeSet::new();
        for path in used_paths(text) {
            let mut from = match path.first().map(String::as_str) {
                Some("crate") => Vec::new(),
                _ => module.clone(),
            };
            for name in path {
                match name.as_str() {
                    "crate" | "self" => {}
                    "super" => drop(from.pop()),
                    _ => from.push(name),
                }
            }
            // The longest prefix that is a module.
            let found = (1..=from.len()).rev().find_map(|n| place(&from[..n]));
            let is_below = |found: &usize| files[*found].0.starts_with(module);
            used.extend(found.filter(|found| !is_below(found)));
        }
        used
    };
    files.iter().map(of).collect()
}

/// Returns a cycle of files that use each other, if there is one.
fn circle(uses: &[BTreeSet<usize>]) -> Option<BTreeSet<usize>> {
    let mut left: BTreeSet<usize> = (0..uses.len()).collect();
    // A file that uses none of the remaining files, or that none of them uses, is in no cycle.
    let is_free = |file: &usize, left: &BTreeSet<usize>| {
        uses[*file].is_disjoint(left) || !left.iter().any(|user| uses[*user].contains(file))
    };
    while let Some(free) = left.iter().copied().find(|file| is_free(file, &left)) {
        left.remove(&free);
    }
    (!left.is_empty()).then_some(left)
}

#[test]
fn no_files_depend_on_each_other_in_a_cycle() {
    let file = |module: &str, text: &str| {
        let module = module.split('/').map(str::to_owned).collect();
        (module, text.to_owned())
    };
    let two = [
        file("a/b", "use super::{c::X, d};"),
        file("a/c", "use crate::a::b::Y;"),
    ];
    assert_eq!(circle(&uses(&two)), Some(BTreeSet::from([0, 1])));
    let child = [file("a", "pub use b::Y;"), file("a/b", "use super::Z;")];
    assert_eq!(circle(&uses(&child)), None);

    let mut all_uses = 0;
    for root in crates() {
        let files = sources_of(&root).into_iter().map(|(_, path, text)| {
            let inner = path.strip_prefix(&root).expect("inside").with_extension("");
            let names = inner.iter().map(|name| name.to_string_lossy().into_owned());
            let module = names.filter(|name| name != "mod").collect::<Vec<_>>();
            (module, text)
        });
        let files: Vec<_> = files.collect();
        let uses = uses(&files);
        all_uses += uses.iter().map(BTreeSet::len).sum::<usize>();
        let names = |circle: BTreeSet<usize>| circle.into_iter().map(|it| files[it].0.join("/"));
        let circle = circle(&uses).map(|circle| names(circle).collect::<Vec<_>>());
        assert_eq!(circle, None, "{}", root.display());
    }
    assert!(all_uses > 300, "{all_uses}");
}

/// Returns the folders of the sources of all crates. Only the core is there if it was published.
fn crates() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = vec![root.join("src")];
    if let Ok(crates) = fs::read_dir(root.join("crates")) {
        found.extend(crates.map(|entry| entry.expect("an entry").path().join("src")));
        found.push(root.join("cli/src"));
        assert!(found.len() >= 9, "{found:?}");
    }
    found
}

/// The parts of the keyed table (docs/dev/DESIGN.md). The compiler checks that a part is used
/// through its `mod.rs` only, since the files behind it are private.
#[test]
fn a_part_of_the_keyed_table_uses_only_earlier_parts() {
    let parts = ["find", "plans", "admit", "decide"];
    let mut seen = BTreeSet::new();
    for (_, path, text) in sources() {
        let names = path.iter().map(|name| name.to_string_lossy());
        let mut after = names.skip_while(|name| name != "keyed").skip(1);
        let Some(own) = after.next().filter(|name| parts.contains(&&**name)) else {
            continue;
        };
        let is_private = |line: &str| !line.starts_with("pub") || !line.contains(" mod ");
        assert!(code(&text).all(is_private), "{}", path.display());
        let place = |part: &str| parts.iter().position(|known| *known == part);
        for used in used_paths(&text) {
            if let Some(part) = used.iter().find(|name| place(name).is_some()) {
                let text = format!("{} uses {part}", path.display());
                assert!(place(part) <= place(&own), "{text}");
                seen.insert((own.to_string(), part.clone()));
            }
        }
    }
    assert!(seen.len() >= 6, "{seen:?}");
}

#[test]
fn atomics_come_from_the_shim() {
    let raw = ["sync::atomic", "loom::", "shuttle::", "portable_atomic::"];
    let mut shim = 0;
    for (module, path, text) in sources() {
        let count = code(&text).filter(|line| raw.iter().any(|name| line.contains(name)));
        let count = count.count();
        if module == "sync" {
            shim += count;
        } else {
            assert_eq!(count, 0, "{}", path.display());
        }
    }
    assert!(shim >= 3);
}

/// Returns whether the line indexes or slices, which panics out of bounds.
fn indexes(line: &str) -> bool {
    let mut pairs = line.chars().zip(line.chars().skip(1));
    pairs.any(|(before, next)| next == '[' && (before.is_alphanumeric() || "_)]?".contains(before)))
}

#[test]
fn no_file_on_the_decision_path_contains_a_panic() {
    assert!(indexes("let word = words[i];") && indexes("f(x)[..2]") && indexes("a[0][1]"));
    assert!(!indexes(
        "#[inline] fn f(x: &[u64; 2]) -> Box<[u8]> { [1, 2]; vec![3] }"
    ));
    let not_on_it = ["sync", "seq_lock", "striped", "overflow"];
    let words = [
        "unsafe ",
        ".unwrap()",
        ".expect(",
        "panic!",
        "unreachable!",
        "assert!",
    ];
    let mut files = 0;
    for (module, path, text) in sources() {
        // Files of unit tests are not on it either.
        if not_on_it.contains(&module.as_str()) || path.ends_with("tests.rs") {
            continue;
        }
        // Parsing is not on the decision path, and indexes only into texts that it has checked. The
        // checksum's tables are computed at compile time, which would catch an error.
        let may_index = ["clock", "quota"].contains(&module.as_str())
            || ["any/text.rs", "snapshot/crc.rs"]
                .iter()
                .any(|end| path.ends_with(end));
        files += 1;
        // The compiler evaluates assertions about constants.
        let at_run_time = code(&text).filter(|line| !line.starts_with("const _: () = assert!"));
        for line in at_run_time {
            let found = words.iter().find(|word| line.contains(**word));
            assert_eq!(found, None, "{}: {line}", path.display());
            assert!(may_index || !indexes(line), "{}: {line}", path.display());
        }
    }
    assert!(files >= 30, "{files}");
}

/// Returns the names that lines with this indentation make public.
fn public_names<'t>(text: &'t str, indentation: &'t str) -> impl Iterator<Item = &'t str> {
    let kinds = ["use", "struct", "enum", "trait", "type", "const", "union"];
    let lines = text.lines().filter_map(move |line| {
        let (kind, rest) = line
            .strip_prefix(indentation)?
            .strip_prefix("pub ")?
            .split_once(' ')?;
        kinds.contains(&kind).then_some((kind, rest))
    });
    lines.flat_map(|(kind, rest)| {
        let names = match kind {
            "use" => rest.rsplit("::").next().unwrap_or(rest),
            _ => rest.split([' ', '<', ':', '(']).next().unwrap_or(rest),
        };
        let is_group = rest.contains('{') && kind == "use";
        let names = match is_group {
            true => rest.split_once('{').map_or(rest, |(_, names)| names),
            false => names,
        };
        names
            .split(',')
            .map(|name| name.trim_matches([' ', ';', '{', '}']))
    })
}

/// A program names each public item by one path, and most programs need only the root.
#[test]
fn the_root_has_at_most_thirty_names_and_each_has_one_path() {
    assert!(public_names("pub use a::b::{C, D};\npub struct E<T>(T);", "").eq(["C", "D", "E"]));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let read = |file: &str| fs::read_to_string(root.join(file)).expect("text");
    let text = read("lib.rs");
    let names: Vec<_> = public_names(&text, "").collect();
    assert!(
        (20..=30).contains(&names.len()),
        "{}: {names:?}",
        names.len()
    );
    let mut seen = BTreeSet::new();
    let mut once = |name: &str| assert!(seen.insert(name.to_owned()), "{name} has two paths");
    names.into_iter().for_each(&mut once);
    public_names(&text, "    ").for_each(&mut once);
    let modules = text
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    let mut count = 0;
    for module in modules {
        public_names(&read(&format!("{module}/mod.rs")), "").for_each(&mut once);
        count += 1;
    }
    assert!(count >= 10, "{count}");
}
