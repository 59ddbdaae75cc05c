//! Colours that are readable on light and dark.
//!
//! Whoever draws writes the colours of this file as they are, each of them as readable on white as
//! on nearly black: more than 4.3 : 1 on both. The style sheet that goes into each picture replaces
//! them, by what they are, where the reader says whether the page is light or dark. Those have 6.3
//! : 1 on their own kind of page and still 3 : 1 on the other, since a page may be dark where the
//! system says light.

use std::fmt::Write;

use plotters::style::RGBColor;

/// A colour, and what takes its place.
pub(crate) struct Colour {
    pub(crate) neutral: RGBColor,
    light: RGBColor,
    dark: RGBColor,
    /// As CSS, besides the colour: so that lines do not differ by colour alone.
    stroke: &'static str,
}

/// Text, axes and requests.
pub(crate) const INK: Colour = Colour {
    neutral: RGBColor(0x71, 0x7A, 0x84),
    light: RGBColor(0x59, 0x61, 0x68),
    dark: RGBColor(0x8D, 0x96, 0x9E),
    stroke: "",
};

/// What is admitted.
pub(crate) const ADMITTED: Colour = Colour {
    neutral: RGBColor(0x0C, 0x7A, 0xDB),
    light: RGBColor(0x09, 0x61, 0xAE),
    dark: RGBColor(0x30, 0x99, 0xF4),
    stroke: "",
};

/// The limit.
pub(crate) const LIMIT: Colour = Colour {
    neutral: RGBColor(0xD0, 0x50, 0x05),
    light: RGBColor(0xA6, 0x3F, 0x04),
    dark: RGBColor(0xF9, 0x67, 0x13),
    stroke: "stroke-dasharray:6 4",
};

/// What leaves.
pub(crate) const LEAVES: Colour = Colour {
    neutral: RGBColor(0xAA, 0x55, 0xC6),
    light: RGBColor(0x8F, 0x39, 0xAB),
    dark: RGBColor(0xBD, 0x7C, 0xD3),
    stroke: "",
};

/// The style sheet.
pub(crate) fn sheet() -> String {
    let mut sheet = String::from("text{font-variant-numeric:tabular-nums}");
    type Theme = (&'static str, fn(&Colour) -> RGBColor);
    let themes: [Theme; 2] = [("light", |one| one.light), ("dark", |one| one.dark)];
    for (name, pick) in themes {
        // Writing to a String can't fail.
        let _ = write!(sheet, "\n@media(prefers-color-scheme:{name}){{");
        for colour in [INK, ADMITTED, LIMIT, LEAVES] {
            let (old, new) = (hex(colour.neutral), hex(pick(&colour)));
            let _ = write!(sheet, "[fill=\"{old}\"]{{fill:{new}}}");
            let _ = write!(sheet, "[stroke=\"{old}\"]{{stroke:{new}}}");
        }
        sheet.push('}');
    }
    for colour in [INK, ADMITTED, LIMIT, LEAVES] {
        if !colour.stroke.is_empty() {
            let (old, more) = (hex(colour.neutral), colour.stroke);
            let _ = write!(sheet, "\n[stroke=\"{old}\"]{{{more}}}");
        }
    }
    sheet
}

/// As it is written in the picture.
fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}
