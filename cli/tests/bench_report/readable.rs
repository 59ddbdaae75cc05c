//! That a browser needs nothing but the page, and that its colours can be told from its background.

use std::collections::BTreeSet;

use roxmltree::Node;

use crate::page::{CONTESTANTS, INK, SVG, all, all_svg, page, parsed, text};

#[test]
fn it_needs_nothing_but_itself() {
    let page = &page().1;
    let document = parsed(page);
    let root = document.root_element();
    for node in root.descendants().filter(Node::is_element) {
        let name = node.tag_name().name();
        let fetched = [
            "script", "link", "img", "iframe", "object", "image", "use", "a",
        ];
        assert!(!fetched.contains(&name), "{name}");
        for attribute in node.attributes() {
            let name = attribute.name();
            let is_harmless = !name.starts_with("on") && !["src", "href", "style"].contains(&name);
            assert!(is_harmless, "{name} of {node:?}");
        }
    }
    let sheet = all(root, "style").map(text).collect::<String>();
    assert!(
        !sheet.contains("url(") && !sheet.contains("@import"),
        "{sheet}"
    );
    // The names of the two languages, which nobody fetches.
    let named = page
        .replace(SVG, "")
        .replace("http://www.w3.org/1999/xhtml", "");
    assert!(!named.contains("http"), "it names a place");
}

#[test]
fn its_colours_are_readable_on_light_and_dark() {
    let document = parsed(&page().1);
    let sheet = all(document.root_element(), "style")
        .map(text)
        .collect::<String>();
    let (light, dark) = sheet
        .split_once("@media(prefers-color-scheme:dark){")
        .expect("dark");
    let pages = [light, dark].map(|sheet| {
        let (_, body) = sheet.split_once("body{").expect("a body");
        let (_, page) = body.split_once("background:").expect("a background");
        let (_, ink) = body.split_once("color:").expect("a colour");
        assert!(contrast(&ink[..7], &page[..7]) >= 7.0);
        &page[..7]
    });
    let mut used = BTreeSet::new();
    for picture in all_svg(&document) {
        for node in picture.descendants() {
            used.extend(
                ["fill", "stroke"]
                    .into_iter()
                    .filter_map(|name| node.attribute(name)),
            );
        }
    }
    used.remove("none");
    used.remove(INK[1]);
    assert_eq!(
        used.len(),
        CONTESTANTS.len() + 2,
        "the contestants, the timing, the ink: {used:?}"
    );
    for colour in used {
        let least = if colour == INK[0] { 4.5 } else { 3.0 };
        let rules = ["fill", "stroke"].map(|name| format!("[{name}=\"{colour}\"]{{{name}:"));
        let [fill, stroke] = rules.map(|rule| {
            let (_, new) = dark
                .split_once(&rule)
                .unwrap_or_else(|| panic!("no {rule}"));
            &new[..7]
        });
        assert_eq!(fill, stroke);
        let ratios = [contrast(colour, pages[0]), contrast(fill, pages[1])];
        println!("{colour} {:.2}, {fill} {:.2}", ratios[0], ratios[1]);
        assert!(
            ratios.iter().all(|&ratio| ratio >= least),
            "{colour} {fill}: {ratios:?}"
        );
    }
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
