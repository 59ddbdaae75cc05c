//! Colors that are readable on light and dark.
//!
//! The code draws in the colors of this file. Each has a contrast above 4.3 : 1 on white and on
//! nearly black. The style sheet in each picture replaces them if the reader's system asks for
//! light or dark. The replacements have 6.3 : 1 on their own kind of page and at least 3 : 1 on the
//! other kind, since a page may be dark on a system that asks for light.

use std::fmt::Write;

use plotters::style::RGBColor;

/// A color and its replacements.
pub(crate) struct Color {
    pub(crate) neutral: RGBColor,
    light: RGBColor,
    dark: RGBColor,
    /// Further CSS, so that lines differ by more than color.
    stroke: &'static str,
}

/// Text, axes and requests.
pub(crate) const INK: Color = Color {
    neutral: RGBColor(0x71, 0x7A, 0x84),
    light: RGBColor(0x59, 0x61, 0x68),
    dark: RGBColor(0x8D, 0x96, 0x9E),
    stroke: "",
};

/// Admitted requests.
pub(crate) const ADMITTED: Color = Color {
    neutral: RGBColor(0x0C, 0x7A, 0xDB),
    light: RGBColor(0x09, 0x61, 0xAE),
    dark: RGBColor(0x30, 0x99, 0xF4),
    stroke: "",
};

/// The limit.
pub(crate) const LIMIT: Color = Color {
    neutral: RGBColor(0xD0, 0x50, 0x05),
    light: RGBColor(0xA6, 0x3F, 0x04),
    dark: RGBColor(0xF9, 0x67, 0x13),
    stroke: "stroke-dasharray:6 4",
};

/// Departing requests.
pub(crate) const LEAVES: Color = Color {
    neutral: RGBColor(0xAA, 0x55, 0xC6),
    light: RGBColor(0x8F, 0x39, 0xAB),
    dark: RGBColor(0xBD, 0x7C, 0xD3),
    stroke: "",
};

/// Returns the style sheet.
pub(crate) fn sheet() -> String {
    let mut sheet = String::from("text{font-variant-numeric:tabular-nums}");
    type Theme = (&'static str, fn(&Color) -> RGBColor);
    let themes: [Theme; 2] = [("light", |one| one.light), ("dark", |one| one.dark)];
    for (name, pick) in themes {
        // Writing to a String can't fail.
        let _ = write!(sheet, "\n@media(prefers-color-scheme:{name}){{");
        for color in [INK, ADMITTED, LIMIT, LEAVES] {
            let (old, new) = (hex(color.neutral), hex(pick(&color)));
            let _ = write!(sheet, "[fill=\"{old}\"]{{fill:{new}}}");
            let _ = write!(sheet, "[stroke=\"{old}\"]{{stroke:{new}}}");
        }
        sheet.push('}');
    }
    for color in [INK, ADMITTED, LIMIT, LEAVES] {
        if !color.stroke.is_empty() {
            let (old, more) = (hex(color.neutral), color.stroke);
            let _ = write!(sheet, "\n[stroke=\"{old}\"]{{{more}}}");
        }
    }
    sheet
}

/// Formats a color as the picture writes it.
fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}
