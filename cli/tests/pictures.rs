//! The pictures in docs/pictures are what the code draws, byte for byte; they are small, say in words
//! what they show, and are readable on light and dark.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

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

fn plot(arguments: &[&str], out: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    let command = command.arg("plot").args(arguments).arg("--out").arg(out);
    command.output().expect("the program runs")
}

/// An empty folder for this test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("the folder can be removed");
    }
    folder
}

fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/pictures")
}

/// All pictures of a folder, by name.
fn pictures(folder: &Path) -> BTreeMap<String, String> {
    let files = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let read = |file: std::io::Result<fs::DirEntry>| {
        let path = file.expect("a file").path();
        let name = path.file_stem().expect("a name").to_string_lossy();
        let text = fs::read_to_string(&path).expect("text");
        (name.into_owned(), text)
    };
    files.map(read).collect()
}

#[test]
fn the_committed_ones_are_what_is_drawn() {
    let folder = folder("all");
    let output = plot(&[], &folder);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).expect("text");
    assert_eq!(said.lines().count(), NAMES.len(), "{said}");
    let (drawn, committed) = (pictures(&folder), pictures(&committed()));
    assert!(drawn.keys().eq(NAMES), "{:?}", drawn.keys());
    assert!(committed.keys().eq(NAMES), "{:?}", committed.keys());
    for name in NAMES {
        // Not assert_eq: nobody wants to read two whole pictures.
        let is_same = drawn[name] == committed[name];
        assert!(is_same, "{name} differs: cargo run --release -- plot");
    }
}

#[test]
fn each_is_small_and_says_in_words_what_it_shows() {
    for (name, svg) in pictures(&committed()) {
        assert!(svg.len() < 40_000, "{name} has {} bytes", svg.len());
        assert!(svg.starts_with("<svg role=\"img\" aria-labelledby=\"title about\" "));
        assert!(svg.contains("<title id=\"title\">"), "{name}");
        let (_, about) = svg
            .split_once("<desc id=\"about\">")
            .expect("a description");
        let (about, _) = about.split_once("</desc>").expect("its end");
        assert_eq!(about.matches("requests are admitted").count(), 3, "{about}");
        let leaves = about.matches("at most 10 leave within a second").count();
        assert_eq!(leaves, if name == "leaky-queue" { 3 } else { 0 }, "{about}");
        let doubles = about.contains("at most 20 within a second");
        assert_eq!(
            doubles,
            ["fixed-window", "intervals"].contains(&&*name),
            "{about}"
        );
    }
}

/// The line of the running count goes up to twice the limit's line, and no further; the others' stays
/// at it.
#[test]
fn the_double_burst_is_in_the_picture() {
    for (name, svg) in pictures(&committed()) {
        let lines = |colour| {
            let drawn = svg.lines().filter(|line| line.starts_with("<polyline"));
            let lines = drawn.filter(move |line| line.contains(colour));
            lines.map(heights).collect::<Vec<_>>()
        };
        // The last of each is the panel of the edge.
        let (limits, counts) = (lines(LIMIT), lines(ADMITTED));
        let limit = limits.last().expect("a limit")[0];
        let count = counts.last().expect("a count");
        let (zero, top) = (count[0], *count.iter().min().expect("a point"));
        let ratio = f64::from(zero - top) / f64::from(zero - limit);
        let wanted = match &*name {
            "fixed-window" | "intervals" => 2.0,
            "fixed-window-first-hit" | "intervals-greedy" => 1.9,
            "sliding-window" => 1.0,
            // The lone request is not yet out of sight.
            _ => 1.1,
        };
        assert!((ratio - wanted).abs() < 0.05, "{name}: {ratio}");
    }
}

/// As they are before the style sheet replaces them.
const LIMIT: &str = "stroke=\"#D05005\"";
const ADMITTED: &str = "stroke=\"#0C7ADB\"";

/// The heights of a line's points, from the picture's upper edge.
fn heights(line: &str) -> Vec<i32> {
    let (_, points) = line.split_once("points=\"").expect("points");
    let (points, _) = points.split_once('"').expect("their end");
    let height = |point: &str| point.split_once(',')?.1.parse().ok();
    let heights = points.split_whitespace().map(height);
    heights.collect::<Option<_>>().expect("numbers")
}

#[test]
fn one_can_ask_for_some() {
    let folder = folder("some");
    let output = plot(
        &["--algorithm", "gcra", "--algorithm", "intervals"],
        &folder,
    );
    assert!(output.status.success(), "{output:?}");
    assert!(pictures(&folder).keys().eq(["gcra", "intervals"]));
    let output = plot(&["--algorithm", "lottery"], &folder);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("lottery") && said.contains("sliding-window"),
        "{said}"
    );
}

#[test]
fn a_folder_that_can_not_be_is_named() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml/pictures");
    let output = plot(&[], &folder);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("Cargo.toml/pictures"), "{said}");
}

/// Pages are white or nearly black, and the picture itself has no background.
#[test]
fn the_colours_are_readable_on_light_and_dark() {
    const PAGES: [&str; 2] = ["#FFFFFF", "#0D1117"];
    for (name, svg) in pictures(&committed()) {
        let (before, rest) = svg.split_once("<style>").expect("a style sheet");
        let (sheet, after) = rest.split_once("</style>").expect("its end");
        let used = colours(&(before.to_owned() + after));
        assert!((3..=4).contains(&used.len()), "{name}: {used:?}");
        for colour in &used {
            for page in PAGES {
                let ratio = contrast(colour, page);
                assert!(ratio >= 4.3, "{name}: {colour} on {page} has {ratio:.2}");
            }
            for (theme, own) in ["light", "dark"].into_iter().zip(PAGES) {
                let new = replacement(sheet, theme, colour);
                let (its, other) = (contrast(new, own), worst(new, &PAGES));
                println!("{colour} {theme} {new}: {its:.2}, at worst {other:.2}");
                assert!(
                    its >= 6.2 && other >= 2.99,
                    "{name}: {new} {its:.2} {other:.2}"
                );
            }
        }
        let whole = "width=\"960\" height=\"400\"";
        assert_eq!(svg.matches(whole).count(), 1, "{name}: no background");
    }
}

fn worst(colour: &str, pages: &[&str]) -> f64 {
    let ratios = pages.iter().map(|page| contrast(colour, page));
    ratios.fold(f64::INFINITY, f64::min)
}

/// All colours of fills and strokes.
fn colours(svg: &str) -> BTreeSet<String> {
    let mut colours = BTreeSet::new();
    for attribute in ["fill=\"", "stroke=\""] {
        for after in svg.split(attribute).skip(1) {
            let (value, _) = after.split_once('"').expect("a value");
            if value != "none" {
                colours.insert(value.to_owned());
            }
        }
    }
    colours
}

/// What the style sheet puts in the place of a colour, as a fill and as a stroke.
fn replacement<'a>(sheet: &'a str, theme: &str, colour: &str) -> &'a str {
    let media = format!("@media(prefers-color-scheme:{theme}){{");
    let (_, rules) = sheet.split_once(&media).expect("a theme");
    let (rules, _) = rules.split_once("}}").expect("its end");
    let [fill, stroke] = ["fill", "stroke"].map(|attribute| {
        let rule = format!("[{attribute}=\"{colour}\"]{{{attribute}:");
        let (_, new) = rules.split_once(&rule).expect("a rule");
        &new[..7]
    });
    assert_eq!(fill, stroke);
    fill
}

/// The contrast ratio of WCAG 2.
fn contrast(one: &str, other: &str) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

fn luminance(colour: &str) -> f64 {
    let part = |i: usize| {
        let part = u8::from_str_radix(&colour[i..i + 2], 16).expect("two digits");
        let part = f64::from(part) / 255.0;
        if part <= 0.04045 {
            part / 12.92
        } else {
            ((part + 0.055) / 1.055).powf(2.4)
        }
    };
    0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
}
