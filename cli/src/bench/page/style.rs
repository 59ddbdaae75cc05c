//! The look of the pictures: readable on light and dark backgrounds, without a script.
//!
//! The pictures use the light colors, and the style sheet replaces each color on dark
//! backgrounds. Text has a contrast of at least 4.5 : 1 on both backgrounds, lines and marks at
//! least 3 : 1.

use std::fmt::Write;

use plotters::style::RGBColor;

/// Text and axes.
pub(crate) const INK: RGBColor = RGBColor(0x3D, 0x44, 0x4D);
const DARK_INK: RGBColor = RGBColor(0xC9, 0xD1, 0xD9);

/// Grid lines.
pub(crate) const GRID: RGBColor = RGBColor(0xD0, 0xD7, 0xDE);
const DARK_GRID: RGBColor = RGBColor(0x30, 0x36, 0x3D);

/// The shape of a line's points.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mark {
    Circle,
    Ring,
    Cross,
    Square,
    Diamond,
    Up,
    Down,
}

/// How a contestant is drawn.
#[derive(Debug)]
pub(crate) struct Look {
    /// The contestant's name.
    pub(crate) subject: &'static str,
    pub(crate) color: RGBColor,
    dark: RGBColor,
    pub(crate) mark: Mark,
    /// The dash pattern, as CSS.
    dashes: &'static str,
}

const fn look(
    subject: &'static str,
    color: u32,
    dark: u32,
    mark: Mark,
    dashes: &'static str,
) -> Look {
    Look {
        subject,
        color: rgb(color),
        dark: rgb(dark),
        mark,
        dashes,
    }
}

/// A color as CSS writes it.
const fn rgb(hex: u32) -> RGBColor {
    let [_, red, green, blue] = hex.to_be_bytes();
    RGBColor(red, green, blue)
}

/// The dashes of limiters that are not tollgate's.
const OTHER: &str = "8 3 2 3";

/// A different color for each: the style sheet selects lines by color.
static LOOKS: [Look; 17] = [
    look("floor", 0x57606A, 0xA0A9B3, Mark::Cross, "6 4"),
    look("private words", 0x58606A, 0xA1A9B3, Mark::Ring, "2 4"),
    look("the timing alone", 0x59606A, 0xA2A9B3, Mark::Down, "1 3"),
    look("token bucket", 0x0969DA, 0x58A6FF, Mark::Circle, ""),
    look("sharded", 0x1A7F37, 0x56D364, Mark::Up, ""),
    look("lease", 0x8250DF, 0xD2A8FF, Mark::Square, ""),
    look("60 slots", 0x0A7C86, 0x4CC9D6, Mark::Diamond, ""),
    look("log of 1000", 0xBF3989, 0xF778BA, Mark::Down, ""),
    look("keyed", 0x9A6700, 0xE3B341, Mark::Ring, ""),
    look("std mutex", 0xBC4C00, 0xF0883E, Mark::Square, OTHER),
    look("parking_lot", 0xA40E26, 0xFF7B72, Mark::Diamond, OTHER),
    look("governor", 0xCF222E, 0xFF9A94, Mark::Circle, OTHER),
    look("ratelimit", 0x0B7C88, 0x4DC9D8, Mark::Up, OTHER),
    look("leaky-bucket", 0xBF3A8B, 0xF779BC, Mark::Down, OTHER),
    look("counter window", 0x4D6A00, 0xB5CC5A, Mark::Diamond, OTHER),
    look("governor keyed", 0xCF232E, 0xFF9B94, Mark::Down, OTHER),
    look("locked map", 0xBC4D00, 0xF0893E, Mark::Diamond, OTHER),
];

/// The look of contestants that are not listed.
static PLAIN: Look = look("", 0x5A606A, 0xA3A9B3, Mark::Ring, "");

impl Look {
    pub(crate) fn of(subject: &str) -> &'static Self {
        let known = LOOKS.iter().find(|look| look.subject == subject);
        known.unwrap_or(&PLAIN)
    }
}

/// Returns the style sheet of the pictures.
pub(crate) fn sheet() -> String {
    let mut sheet = String::new();
    for look in LOOKS.iter().filter(|look| !look.dashes.is_empty()) {
        // Writing to a String can't fail. Marks are not dashed.
        let (color, dashes) = (hex(look.color), look.dashes);
        let _ = writeln!(
            sheet,
            "polyline[stroke=\"{color}\"]{{stroke-dasharray:{dashes}}}"
        );
    }
    sheet += "@media(prefers-color-scheme:dark){\n";
    let looks = LOOKS.iter().chain([&PLAIN]);
    let lines = looks.map(|look| (look.color, look.dark));
    for (light, dark) in lines.chain([(INK, DARK_INK), (GRID, DARK_GRID)]) {
        let (light, dark) = (hex(light), hex(dark));
        let _ = writeln!(sheet, "[fill=\"{light}\"]{{fill:{dark}}}");
        let _ = writeln!(sheet, "[stroke=\"{light}\"]{{stroke:{dark}}}");
    }
    sheet += "}\n";
    sheet
}

/// Formats a color as the picture writes it.
fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}
