//! The pictures in docs/pictures equal what the code draws, byte for byte. They are small, describe
//! themselves in words, and are readable on light and dark.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::{between, contrast, failure, folder, no_folder, printed, replacement, with_stdout};

const NAMES: [&str; 9] = [
    "fixed-window",
    "fixed-window-first-hit",
    "gcra",
    "intervals",
    "intervals-greedy",
    "leaky-meter",
    "leaky-queue",
    "sliding-window",
    "token-bucket",
];

pub(super) fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/pictures")
}

/// Returns all pictures of a folder, by name.
fn pictures(folder: &Path) -> BTreeMap<String, String> {
    let files = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let read = |file: io::Result<fs::DirEntry>| {
        let path = file.expect("a file").path();
        let name = path.file_stem().expect("a name").to_string_lossy();
        let text = fs::read_to_string(&path).expect("text");
        (name.into_owned(), text)
    };
    files.map(read).collect()
}

#[test]
fn the_committed_pictures_are_up_to_date() {
    let folder = folder("all");
    let said = printed(&["plot", "--out", folder.to_str().expect("text")]);
    assert_eq!(said.lines().count(), NAMES.len(), "{said}");
    let (drawn, committed) = (pictures(&folder), pictures(&committed()));
    assert!(drawn.keys().eq(NAMES), "{:?}", drawn.keys());
    assert!(committed.keys().eq(NAMES), "{:?}", committed.keys());
    for name in NAMES {
        // assert_eq would print two whole pictures.
        let is_same = drawn[name] == committed[name];
        assert!(is_same, "{name} differs: cargo run --release -- plot");
    }
}

#[test]
fn each_picture_is_small_and_describes_itself() {
    for (name, svg) in pictures(&committed()) {
        assert!(svg.len() < 40_000, "{name} has {} bytes", svg.len());
        assert!(svg.starts_with("<svg role=\"img\" aria-labelledby=\"title about\" "));
        assert!(svg.contains("<title id=\"title\">"), "{name}");
        let about = between(&svg, "<desc id=\"about\">", "</desc>");
        assert_eq!(about.matches("requests are admitted").count(), 3, "{about}");
        let leaves = about.matches("at most 10 leave within a second").count();
        assert_eq!(leaves, if name == "leaky-queue" { 3 } else { 0 }, "{about}");
        let doubles = about.contains("at most 20 within a second");
        assert_eq!(doubles, ["fixed-window", "intervals"].contains(&&*name));
    }
}

/// In a picture with a double burst, the running count reaches twice the limit's line and no more.
/// In the others it stays at the limit, give or take a permit.
#[test]
fn the_double_burst_is_in_the_picture() {
    for (name, svg) in pictures(&committed()) {
        let lines = |color| {
            let drawn = svg.lines().filter(|line| line.starts_with("<polyline"));
            let lines = drawn.filter(move |line| line.contains(color));
            lines.map(heights).collect::<Vec<_>>()
        };
        // The last line of each color belongs to the panel of the edge.
        let (limits, counts) = (lines(LIMIT), lines(ADMITTED));
        let limit = limits.last().expect("a limit")[0];
        let count = counts.last().expect("a count");
        let (zero, top) = (count[0], *count.iter().min().expect("a point"));
        let ratio = f64::from(zero - top) / f64::from(zero - limit);
        let wanted = match &*name {
            "fixed-window" | "intervals" => 2.0,
            "fixed-window-first-hit" | "intervals-greedy" => 1.9,
            "sliding-window" => 1.0,
            // The lone request is still within the last period.
            _ => 1.1,
        };
        assert!((ratio - wanted).abs() < 0.05, "{name}: {ratio}");
    }
}

/// The colors before the style sheet replaces them.
const LIMIT: &str = "stroke=\"#D05005\"";
const ADMITTED: &str = "stroke=\"#0C7ADB\"";

/// Returns the heights of a line's points, from the picture's upper edge.
fn heights(line: &str) -> Vec<i32> {
    let points = between(line, "points=\"", "\"");
    let height = |point: &str| point.split_once(',')?.1.parse().ok();
    let heights = points.split_whitespace().map(height);
    heights.collect::<Option<_>>().expect("numbers")
}

#[test]
fn only_the_chosen_algorithms_are_drawn() {
    let folder = folder("some");
    let out = folder.to_str().expect("text");
    printed(&[
        "plot",
        "--algorithm=gcra",
        "--algorithm=intervals",
        "--out",
        out,
    ]);
    assert!(pictures(&folder).keys().eq(["gcra", "intervals"]));
    let figures = printed(&["plot", "--json", "--algorithm=gcra"]);
    assert_eq!(figures.matches("\"algorithm\":").count(), 1, "{figures}");
    let (status, said) = failure(&["plot", "--algorithm", "lottery", "--out", out]);
    assert_eq!(status, Some(2));
    assert!(said.contains("lottery") && said.contains("sliding-window"));
}

#[test]
fn one_picture_can_be_printed() {
    let gcra = printed(&["plot", "--out=-", "--algorithm=gcra"]);
    assert!(gcra == pictures(&committed())["gcra"]);
    let (status, said) = failure(&["plot", "--out=-"]);
    assert_eq!(status, Some(1));
    assert!(said.contains("name one --algorithm"), "{said}");
}

#[test]
fn a_folder_that_can_not_be_created_is_named() {
    let (status, said) = failure(&["plot", "--out", &no_folder("pictures")]);
    assert_eq!(status, Some(1));
    let is_named =
        said.contains("--out: ") && said.contains("Cargo.toml/pictures can't be written");
    assert!(is_named, "{said}");
}

/// `head` closes the pipe before the program has printed everything.
#[test]
fn a_closed_pipe_is_not_an_error() {
    let folder = folder("closed");
    let out = folder.to_str().expect("text");
    for arguments in [&["plot", "--json"][..], &["plot", "--out", out]] {
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        let output = with_stdout(writer.into(), arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{said}");
    }
}

/// Pages are white or nearly black, and the picture itself has no background.
#[test]
fn the_colors_are_readable_on_light_and_dark() {
    const PAGES: [&str; 2] = ["#FFFFFF", "#0D1117"];
    for (name, svg) in pictures(&committed()) {
        let sheet = between(&svg, "<style>", "</style>");
        let rest = svg.replace(sheet, "");
        let used = colors(&rest);
        assert!((3..=4).contains(&used.len()), "{name}: {used:?}");
        for color in used {
            let worst = |it| contrast(it, PAGES[0]).min(contrast(it, PAGES[1]));
            assert!(worst(color) >= 4.3, "{name}: {color}");
            for (theme, own) in ["light", "dark"].into_iter().zip(PAGES) {
                let media = format!("@media(prefers-color-scheme:{theme}){{");
                let new = replacement(between(sheet, &media, "}}"), color);
                let is_readable = contrast(new, own) >= 6.2 && worst(new) >= 2.99;
                assert!(is_readable, "{name}: {new} for {color}");
            }
        }
        let whole = "width=\"960\" height=\"400\"";
        assert_eq!(svg.matches(whole).count(), 1, "{name}: no background");
    }
}

/// Returns all colors of fills and strokes.
fn colors(svg: &str) -> BTreeSet<&str> {
    let [fills, strokes] = ["fill=\"", "stroke=\""].map(|attribute| svg.split(attribute).skip(1));
    let values = fills.chain(strokes);
    let values = values.map(|value| value.split_once('"').expect("a value").0);
    values.filter(|value| *value != "none").collect()
}
