//! What is drawn, and the words for a reader that can't see it.

use std::collections::BTreeSet;

use super::{
    CONTESTANTS, INK, KINDS, PAGE, PERCENTILES, THREADS, TIMING, all, attribute, parsed, subjects,
    text, texts,
};

#[test]
fn its_pictures_draw_every_contestant() {
    let document = parsed(&PAGE.1);
    let pictures: Vec<_> = all(document.root_element(), "svg").collect();
    assert_eq!(pictures.len(), KINDS.len() + KINDS.len() * THREADS.len());
    for picture in pictures {
        let title = texts(picture, "title").remove(0);
        let texts = texts(picture, "text");
        let times = |wanted: &str| texts.iter().filter(|text| *text == wanted).count();
        let mut subjects = subjects();
        let with_source = CONTESTANTS.iter().filter(|(_, label)| label.contains(", "));
        // The floor and its like on private words are in each of three panels.
        let mut lines = 2 * 3 + with_source.count();
        let (mut places, mut unit) = (&THREADS[..], "million decisions a second");
        if title.starts_with("Latency of ") {
            subjects.insert(TIMING);
            lines += 3;
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
            // 1 may also stand on the left.
            let is_each = times == 3 || (*place == "1" && times == 6);
            assert!(is_each, "{place} below each panel of {title}: {texts:?}");
        }
        assert_eq!(times(unit), 3, "{title}");
        // In the key, and in the panels; each contestant in a colour of its own.
        let drawn = all(picture, "polyline").map(|line| attribute(line, "stroke"));
        let drawn: Vec<_> = drawn.filter(|stroke| !INK.contains(stroke)).collect();
        let colours: BTreeSet<_> = drawn.iter().collect();
        assert_eq!(colours.len(), subjects.len(), "{title}: {colours:?}");
        assert_eq!(drawn.len(), subjects.len() + lines, "{title}");
    }
}

#[test]
fn its_pictures_have_words_for_a_reader_that_can_not_see_them() {
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
            let words = words.map(text).expect("in the picture itself");
            assert!(words.len() > 20, "{words}");
        }
        let about = texts(picture, "desc").remove(0);
        assert!(
            about.contains("The table below has all figures."),
            "{about}"
        );
        // So that it is as wide as the page.
        assert!(picture.has_attribute("viewBox"));
    }
    for scrolled in all(root, "div") {
        assert_eq!(attribute(scrolled, "tabindex"), "0");
        assert!(!attribute(scrolled, "aria-label").is_empty());
    }
}
