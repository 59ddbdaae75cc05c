//! A browser needs nothing but the page, and its colors stand out from the background.

use std::collections::BTreeSet;

use roxmltree::Node;

use super::{INK, PAGE, all, parsed, subjects, texts};
use crate::{after, contrast, replacement};

const SVG: &str = "http://www.w3.org/2000/svg";
const XHTML: &str = "http://www.w3.org/1999/xhtml";

#[test]
fn the_page_is_self_contained() {
    let page = &PAGE.1;
    let document = parsed(page);
    let root = document.root_element();
    for node in root.descendants().filter(Node::is_element) {
        let name = node.tag_name().name();
        let fetched = "script link img iframe object image use a";
        assert!(fetched.split(' ').all(|fetched| fetched != name), "{name}");
        for attribute in node.attributes() {
            let name = attribute.name();
            let is_harmless = !name.starts_with("on") && !["src", "href", "style"].contains(&name);
            assert!(is_harmless, "{name} of {node:?}");
        }
    }
    let sheet = texts(root, "style").concat();
    assert!(!sheet.contains("url("), "{sheet}");
    assert!(!sheet.contains("@import"), "{sheet}");
    // Namespace names are URLs, but browsers do not fetch them.
    let named = page.replace(SVG, "").replace(XHTML, "");
    assert!(!named.contains("http"), "the page names a URL");
}

/// Nothing is wider than a phone, apart from what scrolls by itself.
#[test]
fn it_fits_a_phone() {
    let document = parsed(&PAGE.1);
    let root = document.root_element();
    let is_viewport = |meta: &Node<'_, '_>| meta.attribute("name") == Some("viewport");
    assert_eq!(all(root, "meta").filter(is_viewport).count(), 1);
    for name in ["table", "svg"] {
        for node in all(root, name) {
            let outside = node.parent_element().expect("a parent");
            let is_scrolled =
                outside.has_tag_name("figure") || outside.attribute("class") == Some("wide");
            assert!(is_scrolled, "{name} in {outside:?}");
        }
    }
    let sheet = texts(root, "style").concat();
    for scrolled in ["figure{", ".wide{"] {
        let rule = after(&sheet, scrolled).split('}').next();
        assert!(
            rule.is_some_and(|rule| rule.contains("overflow-x:auto")),
            "{sheet}"
        );
    }
}

#[test]
fn its_colors_are_readable_on_light_and_dark() {
    let document = parsed(&PAGE.1);
    let sheet = texts(document.root_element(), "style").concat();
    let sheets = sheet.split_once("@media(prefers-color-scheme:dark){");
    let (light, dark) = sheets.expect("dark");
    let pages = [light, dark].map(|sheet| {
        let (page, ink) = (after(sheet, "--paper:"), after(sheet, "--ink:"));
        assert!(contrast(&ink[..7], &page[..7]) >= 7.0);
        &page[..7]
    });
    let pictures = all(document.root_element(), "svg");
    let nodes = pictures.flat_map(|picture| picture.descendants());
    let colors = nodes.flat_map(|node| [node.attribute("fill"), node.attribute("stroke")]);
    let mut used: BTreeSet<_> = colors.flatten().collect();
    used.remove("none");
    used.remove(INK[1]);
    assert_eq!(
        used.len(),
        subjects().len() + 2,
        "subjects, timing and ink: {used:?}"
    );
    for color in used {
        let least = if color == INK[0] { 4.5 } else { 3.0 };
        let new = replacement(dark, color);
        let ratios = [contrast(color, pages[0]), contrast(new, pages[1])];
        assert!(
            ratios.iter().all(|&ratio| ratio >= least),
            "{color} {new}: {ratios:?}"
        );
    }
}
