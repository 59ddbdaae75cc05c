//! The picture of one algorithm: three loads side by side.

use std::error::Error;
use std::fmt::Write;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::figures;
use super::panel::{self, Area, Drawn, text};
use super::record::{Answered, Recorded};
use super::style::{self, ADMITTED, INK, LEAVES, LIMIT};

const SIZE: (u32, u32) = (960, 400);
const HEAD_HEIGHT: u32 = 56;

/// Returns the picture as SVG.
pub(crate) fn draw(recorded: &Recorded) -> Result<String, Box<dyn Error>> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let (head, body) = root.split_vertically(HEAD_HEIGHT);
        draw_head(&head, recorded)?;
        let columns = body.split_evenly((1, recorded.loads.len()));
        for (area, answered) in columns.iter().zip(&recorded.loads) {
            panel::draw(area, recorded, answered)?;
        }
        root.present()?;
    }
    Ok(with_words(&svg, recorded))
}

/// Draws the title and the legend.
fn draw_head(area: &Area<'_>, recorded: &Recorded) -> Drawn {
    let title = format!("{}: {}", recorded.title, recorded.algorithm);
    area.draw(&Text::new(title, (28, 8), text(17)))?;
    let key = text(14).pos(Pos::new(HPos::Left, VPos::Center));
    let mut x = 28;
    let mut entry = |label: &str, draw: &dyn Fn(i32) -> Drawn| -> Drawn {
        draw(x)?;
        area.draw(&Text::new(label.to_owned(), (x + 30, 44), key.clone()))?;
        // Wide enough for the letters of common fonts.
        x += 30 + 15 * label.len() as i32 / 2 + 20;
        Ok(())
    };
    let corners = |x: i32| [(x + 8, 38), (x + 20, 50)];
    entry("offered", &|x| {
        let style = INK.neutral.stroke_width(1);
        Ok(area.draw(&Rectangle::new(corners(x), style))?)
    })?;
    entry("admitted", &|x| {
        let style = ADMITTED.neutral.filled();
        Ok(area.draw(&Rectangle::new(corners(x), style))?)
    })?;
    let line = |x: i32| vec![(x, 44), (x + 24, 44)];
    entry("admitted in the last second", &|x| {
        let style = ADMITTED.neutral.stroke_width(2);
        Ok(area.draw(&PathElement::new(line(x), style))?)
    })?;
    entry("the limit", &|x| {
        let style = LIMIT.neutral.stroke_width(2);
        Ok(area.draw(&PathElement::new(line(x), style))?)
    })?;
    if recorded
        .loads
        .iter()
        .any(|load| figures::departures(load).is_some())
    {
        entry("leaves, and left in the last second", &|x| {
            let style = LEAVES.neutral.stroke_width(2);
            area.draw(&PathElement::new(line(x), style))?;
            let style = LEAVES.neutral.filled();
            Ok(area.draw(&Circle::new((x + 12, 44), 3, style))?)
        })?;
    }
    Ok(())
}

/// Adds a title and a description for screen readers, and colors for light and dark.
fn with_words(svg: &str, recorded: &Recorded) -> String {
    let named = "<svg role=\"img\" aria-labelledby=\"title about\" ";
    // Full opacity is the default. Writing it would add a tenth to the file.
    let svg = svg
        .replacen("<svg ", named, 1)
        .replace(" opacity=\"1\"", "");
    let words = format!(
        "<title id=\"title\">{}: what {} admits</title>\n<desc id=\"about\">{}</desc>\n<style>{}</style>\n",
        recorded.title,
        recorded.algorithm,
        about(recorded),
        style::sheet(),
    );
    match svg.split_once('\n') {
        Some((head, rest)) => format!("{head}\n{words}{rest}"),
        None => svg,
    }
}

/// Describes the picture in words.
fn about(recorded: &Recorded) -> String {
    let mut text = String::from("Three panels.");
    for load in &recorded.loads {
        // Writing to a String can't fail.
        let _ = write!(text, " {}", about_load(recorded, load));
    }
    text
}

fn about_load(recorded: &Recorded, load: &Answered) -> String {
    let admitted = figures::admissions(load);
    let most = |moments: &[u64]| {
        let counts = figures::running_count(moments, recorded.period_ns);
        figures::most(&counts)
    };
    let mut text = format!(
        "{}: {} of {} requests are admitted, at most {} within a second where the limit is {}",
        load.title,
        admitted.len(),
        load.requests.len(),
        most(&admitted),
        recorded.limit,
    );
    if let Some(departures) = figures::departures(load) {
        let _ = write!(
            text,
            "; at most {} leave within a second",
            most(&departures)
        );
    }
    text + "."
}
