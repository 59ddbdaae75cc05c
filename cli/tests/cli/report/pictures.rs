//! The contents of the pictures, and their text alternatives.

use std::collections::BTreeSet;

use roxmltree::Node;

use super::{
    BESIDE, INK, KINDS, PAGE, PERCENTILES, THREADS, TIMING, all, attribute, parsed, subject, text,
    texts,
};
use crate::{OWN, PEERS};

/// Returns the contestants, the panels and the lines that a picture with this title must have.
fn drawn(title: &str) -> (BTreeSet<&'static str>, usize, usize) {
    if title.ends_with(BESIDE) {
        let subjects = BTreeSet::from([
            "floor",
            "token bucket",
            "sharded",
            "lease",
            "std mutex",
            "governor",
            "ratelimit",
            "leaky-bucket",
            "counter window",
            "keyed",
            "governor keyed",
            "locked map",
        ]);
        return (subjects.clone(), 2, subjects.len());
    }
    let own = OWN.iter().map(|(_, label)| subject(label));
    let mut subjects: BTreeSet<_> = own.collect();
    let with_source = OWN.iter().filter(|(_, label)| label.contains(", "));
    // Each of the three panels has the floor on one word and on private words.
    let mut lines = 2 * 3 + with_source.count();
    if title.starts_with("Latency of ") {
        subjects.insert(TIMING);
        lines += 3;
    }
    (subjects, 3, lines)
}

#[test]
fn its_pictures_draw_every_contestant() {
    let document = parsed(&PAGE.1);
    let pictures: Vec<_> = all(document.root_element(), "svg").collect();
    let of_each = if PEERS.is_empty() { 1 } else { 2 };
    assert_eq!(
        pictures.len(),
        of_each * KINDS.len() * (1 + THREADS.len()),
        "throughput, and latency on each number of threads"
    );
    for picture in pictures {
        let title = texts(picture, "title").remove(0);
        let texts = texts(picture, "text");
        let times = |wanted: &str| texts.iter().filter(|text| *text == wanted).count();
        let (subjects, panels, lines) = drawn(&title);
        let (mut places, mut unit) = (&THREADS[..], "million decisions a second");
        if title.starts_with("Latency of ") {
            (places, unit) = (&PERCENTILES, "nanoseconds");
        }
        for subject in &subjects {
            assert_eq!(
                times(subject),
                1,
                "{subject} in the key of {title}: {texts:?}"
            );
        }
        for place in places {
            let times = times(place) + times(&format!("{place}*"));
            // 1 may also label the vertical axis.
            let is_each = times == panels || (*place == "1" && times == 2 * panels);
            assert!(is_each, "{place} below each panel of {title}: {texts:?}");
        }
        assert_eq!(times(unit), panels, "{title}");
        // The colors in the legend equal those in the panels, one for each contestant.
        let drawn = all(picture, "polyline").map(|line| attribute(line, "stroke"));
        let drawn: Vec<_> = drawn.filter(|stroke| !INK.contains(stroke)).collect();
        let colors: BTreeSet<_> = drawn.iter().collect();
        assert_eq!(colors.len(), subjects.len(), "{title}: {colors:?}");
        assert_eq!(drawn.len(), subjects.len() + lines, "{title}");
    }
}

/// Returns the area of a text, with as much width as its letters may need.
fn extent(text: Node<'_, '_>) -> [f64; 4] {
    let number = |name| attribute(text, name).parse::<f64>().expect("a number");
    let (x, y, size) = (number("x"), number("y"), number("font-size"));
    // In a sans-serif font, letters are about half as wide as high.
    let width = 0.6 * size * super::text(text).chars().count() as f64;
    let left = match attribute(text, "text-anchor") {
        "middle" => x - width / 2.0,
        "end" => x - width,
        _ => x,
    };
    [left, left + width, y - size / 2.0, y + size / 2.0]
}

#[test]
fn the_names_in_its_pictures_do_not_overlap() {
    let document = parsed(&PAGE.1);
    for picture in all(document.root_element(), "svg") {
        let title = texts(picture, "title").remove(0);
        let (subjects, ..) = drawn(&title);
        let names = all(picture, "text").filter(|node| subjects.contains(&*text(*node)));
        let extents: Vec<_> = names.map(extent).collect();
        assert_eq!(extents.len(), subjects.len());
        for (i, a) in extents.iter().enumerate() {
            assert!(a[1] < 1080.0, "{title}: {a:?} is outside");
            for b in &extents[i + 1..] {
                let apart = a[1] <= b[0] || b[1] <= a[0] || a[3] <= b[2] || b[3] <= a[2];
                assert!(apart, "{title}: {a:?} and {b:?}");
            }
        }
    }
}

/// A list above each picture says who wins each panel and why, or that it is a tie.
#[test]
fn every_picture_has_sentences_that_say_who_wins() {
    let document = parsed(&PAGE.1);
    let figures: Vec<_> = all(document.root_element(), "figure").collect();
    assert!(!figures.is_empty());
    for figure in figures {
        let title = texts(figure, "title").remove(0);
        let before = figure.prev_sibling_element().expect("a list");
        assert_eq!(before.attribute("class"), Some("verdict"), "{title}");
        let sentences = texts(before, "li");
        let (subjects, panels, _) = drawn(&title);
        // For throughput: with the fewest and with the most threads.
        let most = if title.starts_with("Latency of ") {
            1
        } else {
            2
        };
        assert!(
            [panels, most * panels].contains(&sentences.len()),
            "{title}"
        );
        for sentence in sentences {
            let (_, said) = sentence.split_once(" thread").expect(&sentence);
            let (_, said) = said.split_once(": ").expect(&sentence);
            let names_one = subjects.iter().any(|subject| said.contains(subject));
            assert!(names_one, "{sentence}");
            let judges = said.contains(" wins, because ") && said.contains(" times as ")
                || said.contains(" tie, within 10 % of each other");
            assert!(judges && said.ends_with('.'), "{sentence}");
        }
    }
}

#[test]
fn its_pictures_have_text_alternatives() {
    let document = parsed(&PAGE.1);
    let root = document.root_element();
    assert_eq!(attribute(root, "lang"), "en");
    let mut ids = BTreeSet::new();
    for id in root.descendants().filter_map(|node| node.attribute("id")) {
        assert!(ids.insert(id), "{id} twice");
    }
    for picture in all(root, "svg") {
        assert_eq!(attribute(picture, "role"), "img");
        for id in attribute(picture, "aria-labelledby").split(' ') {
            let words = picture
                .descendants()
                .find(|node| node.attribute("id") == Some(id));
            let words = words
                .map(text)
                .expect("the picture has a title and a description");
            assert!(words.len() > 20, "{words}");
        }
        let about = texts(picture, "desc").remove(0);
        assert!(
            about.contains("The table below has all figures."),
            "{about}"
        );
        // The picture scales to the width of the page.
        assert!(picture.has_attribute("viewBox"));
    }
    for scrolled in all(root, "div") {
        assert_eq!(attribute(scrolled, "tabindex"), "0");
        assert!(!attribute(scrolled, "aria-label").is_empty());
    }
}
