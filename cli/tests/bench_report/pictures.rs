//! What is drawn, and the words for who can't see it.

use std::collections::BTreeSet;

use crate::page::{
    CONTESTANTS, INK, KINDS, PERCENTILES, THREADS, TIMING, all, all_in_svg, all_svg, attribute,
    page, parsed, text,
};

#[test]
fn its_pictures_draw_every_contestant() {
    let document = parsed(&page().1);
    let pictures: Vec<_> = all_svg(&document).collect();
    assert_eq!(pictures.len(), KINDS.len() + KINDS.len() * THREADS.len());
    for picture in pictures {
        let texts: Vec<_> = all_in_svg(picture, "text").map(text).collect();
        let title = all_in_svg(picture, "title")
            .map(text)
            .next()
            .expect("a title");
        let is_latency = title.starts_with("Latency of ");
        let mut subjects: Vec<_> = CONTESTANTS.iter().map(|&(subject, _)| subject).collect();
        let mut lines = 2 * 3;
        lines += CONTESTANTS
            .iter()
            .map(|(_, sources)| sources.len())
            .sum::<usize>();
        if is_latency {
            subjects.push(TIMING);
            lines += 3;
        }
        for subject in &subjects {
            let times = texts.iter().filter(|text| text == subject).count();
            assert_eq!(times, 1, "{subject} in the key of {title}: {texts:?}");
        }
        let places = if is_latency {
            &PERCENTILES[..]
        } else {
            &THREADS[..]
        };
        for place in places {
            let is_it = |text: &&String| text.trim_end_matches('*') == *place;
            let times = texts.iter().filter(is_it).count();
            // 1 may also stand on the left.
            let is_each = times == 3 || (*place == "1" && times == 6);
            assert!(is_each, "{place} below each panel of {title}: {texts:?}");
        }
        let unit = if is_latency {
            "nanoseconds"
        } else {
            "million decisions a second"
        };
        assert_eq!(
            texts.iter().filter(|text| *text == unit).count(),
            3,
            "{title}"
        );
        // In the key, and in the panels; each contestant in a colour of its own.
        let drawn = all_in_svg(picture, "polyline").map(|line| attribute(line, "stroke"));
        let drawn: Vec<_> = drawn.filter(|stroke| !INK.contains(stroke)).collect();
        let colours: BTreeSet<_> = drawn.iter().collect();
        assert_eq!(colours.len(), subjects.len(), "{title}: {colours:?}");
        assert!(
            drawn.len() == subjects.len() + lines,
            "{title}: {} lines",
            drawn.len()
        );
    }
}

#[test]
fn its_pictures_have_words_for_who_can_not_see_them() {
    let document = parsed(&page().1);
    let root = document.root_element();
    assert_eq!(attribute(root, "lang"), "en");
    let mut ids = BTreeSet::new();
    for node in root.descendants().filter(|node| node.has_attribute("id")) {
        let id = attribute(node, "id");
        assert!(ids.insert(id), "{id} twice");
    }
    for picture in all_svg(&document) {
        assert_eq!(attribute(picture, "role"), "img");
        let named = attribute(picture, "aria-labelledby").split(' ');
        for id in named {
            assert!(ids.contains(id), "no {id}");
            let words = picture
                .descendants()
                .find(|node| node.attribute("id") == Some(id));
            let words = words.map(text).expect("in the picture itself");
            assert!(words.len() > 20, "{words}");
        }
        let about = all_in_svg(picture, "desc")
            .map(text)
            .next()
            .expect("a description");
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
