//! One picture: a panel for each time source, a line for each contestant, on a logarithmic scale.

use std::error::Error;
use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use tollgate_page::escaped;

use super::style::{GRID, INK, Look, Mark};

const WIDTH: u32 = 1080;
const KEY_ROW: u32 = 26;
const KEY_ENTRY: u32 = 180;
const PANEL_TITLE: u32 = 26;
const PANEL: u32 = 330;

/// The contents of a picture.
pub(crate) struct Figure<'a> {
    /// Unique on the page.
    pub(crate) id: String,
    pub(crate) title: String,
    /// A text alternative to the picture.
    pub(crate) about: String,
    /// The labels along the horizontal axes.
    pub(crate) places: &'a [String],
    pub(crate) across: &'static str,
    pub(crate) up: &'static str,
    pub(crate) panels: Vec<Panel>,
}

pub(crate) struct Panel {
    pub(crate) title: &'static str,
    pub(crate) lines: Vec<Line>,
}

/// A contestant's figures, one for each place on the horizontal axis.
pub(crate) struct Line {
    pub(crate) look: &'static Look,
    pub(crate) figures: Vec<f64>,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn Error>>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, LogCoord<f64>>>;

impl Figure<'_> {
    /// Returns the picture as SVG, with title and description.
    pub(crate) fn svg(&self) -> Result<String, Box<dyn Error>> {
        let looks = self.looks();
        let abreast = (WIDTH / KEY_ENTRY) as usize;
        let key = KEY_ROW * looks.len().div_ceil(abreast) as u32;
        let mut svg = String::new();
        {
            let size = (WIDTH, key + PANEL_TITLE + PANEL);
            let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            let (head, body) = root.split_vertically(key);
            for (i, look) in looks.iter().enumerate() {
                let (row, column) = (i / abreast, i % abreast);
                let x = 8 + KEY_ENTRY as i32 * column as i32;
                draw_key(&head, look, (x, KEY_ROW as i32 * row as i32 + 12))?;
            }
            let areas = body.split_evenly((1, self.panels.len()));
            for (area, panel) in areas.iter().zip(&self.panels) {
                self.draw_panel(area, panel)?;
            }
            root.present()?;
        }
        Ok(self.with_words(&svg))
    }

    /// Returns the looks of all lines in all panels, each once.
    fn looks(&self) -> Vec<&'static Look> {
        let mut looks: Vec<&Look> = Vec::new();
        for line in self.panels.iter().flat_map(|panel| &panel.lines) {
            if !looks.iter().any(|look| look.subject == line.look.subject) {
                looks.push(line.look);
            }
        }
        looks
    }

    fn draw_panel(&self, area: &Area<'_>, panel: &Panel) -> Drawn {
        let (head, body) = area.split_vertically(PANEL_TITLE);
        let middle = text(15).pos(Pos::new(HPos::Center, VPos::Center));
        let (width, height) = head.dim_in_pixel();
        let at = (width as i32 / 2 + 20, height as i32 / 2);
        head.draw(&Text::new(panel.title, at, middle))?;
        let (low, places) = (self.decades().start, self.places.len() as f64);
        let mut chart = ChartBuilder::on(&body)
            .margin_left(6)
            .margin_right(14)
            .margin_top(6)
            .y_label_area_size(58)
            .x_label_area_size(44)
            .build_cartesian_2d(-0.5..places - 0.5, self.decades().log_scale())?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(0)
            .set_tick_mark_size(LabelAreaPosition::Bottom, 0)
            .y_labels(self.decades_high())
            .max_light_lines(1)
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(INK)
            .label_style(text(13))
            .axis_desc_style(text(13))
            .x_desc(self.across)
            .y_desc(self.up)
            .x_label_formatter(&|_| String::new())
            .y_label_formatter(&|figure| format!("{figure}"))
            .draw()?;
        // plotters would also put labels between the places.
        let below = text(13).pos(Pos::new(HPos::Center, VPos::Top));
        for (i, place) in self.places.iter().enumerate() {
            let (x, y) = chart.backend_coord(&(i as f64, low));
            let label = Text::new(place.as_str(), (x, y + 8), below.clone());
            area.use_screen_coord().draw(&label)?;
        }
        for line in &panel.lines {
            draw_line(&mut chart, line)?;
        }
        Ok(())
    }

    /// Returns the range of whole powers of ten that contains all figures.
    fn decades(&self) -> Range<f64> {
        let lines = self.panels.iter().flat_map(|panel| &panel.lines);
        let figures = lines.flat_map(|line| &line.figures).copied();
        let figures = figures.filter(|&figure| is_drawn(figure));
        let (low, high) = figures.fold((f64::INFINITY, 0.0_f64), |(low, high), figure| {
            (low.min(figure), high.max(figure))
        });
        if high == 0.0 {
            return 1.0..10.0;
        }
        let low = 10_f64.powf(low.log10().floor());
        low..10_f64.powf(high.log10().ceil()).max(low * 10.0)
    }

    fn decades_high(&self) -> usize {
        let Range { start, end } = self.decades();
        (end / start).log10().round() as usize + 1
    }

    /// Adds a title and a description for screen readers, and makes the picture as wide as the
    /// page.
    fn with_words(&self, svg: &str) -> String {
        let id = &self.id;
        let named = format!("<svg role=\"img\" aria-labelledby=\"{id}-title {id}-about\" ");
        // Full opacity is the default.
        let svg = svg
            .replacen("<svg ", &named, 1)
            .replace(" opacity=\"1\"", "");
        let words = format!(
            "<title id=\"{id}-title\">{}</title>\n<desc id=\"{id}-about\">{}</desc>\n",
            escaped(&self.title),
            escaped(&self.about),
        );
        match svg.split_once('\n') {
            Some((head, rest)) => format!("{head}\n{words}{rest}"),
            None => svg,
        }
    }
}

fn draw_line(chart: &mut Chart<'_, '_>, line: &Line) -> Drawn {
    let points = line.figures.iter().enumerate();
    let points = points.filter(|(_, figure)| is_drawn(**figure));
    let points: Vec<_> = points.map(|(i, &figure)| (i as f64, figure)).collect();
    let style = line.look.color.stroke_width(2);
    chart.draw_series([PathElement::new(points.clone(), style)])?;
    let screen = chart.plotting_area().use_screen_coord();
    for point in points {
        draw_mark(&screen, line.look, chart.backend_coord(&point))?;
    }
    Ok(())
}

/// Returns whether a logarithmic scale can show the figure.
fn is_drawn(figure: f64) -> bool {
    figure.is_finite() && figure > 0.0
}

/// Draws a legend entry: a short line, its mark, and the contestant's name.
fn draw_key(area: &Area<'_>, look: &Look, (x, y): (i32, i32)) -> Drawn {
    let line = vec![(x, y), (x + 32, y)];
    area.draw(&PathElement::new(line, look.color.stroke_width(2)))?;
    draw_mark(area, look, (x + 16, y))?;
    let left = text(14).pos(Pos::new(HPos::Left, VPos::Center));
    area.draw(&Text::new(look.subject, (x + 40, y), left))?;
    Ok(())
}

/// Draws a mark. Each contestant has a shape, so that lines differ by more than color.
fn draw_mark(area: &Area<'_>, look: &Look, (x, y): (i32, i32)) -> Drawn {
    let filled = look.color.filled();
    let around = |points: &[(i32, i32)]| -> Vec<_> {
        let points = points.iter();
        points.map(|&(right, down)| (x + right, y + down)).collect()
    };
    match look.mark {
        Mark::Circle => area.draw(&Circle::new((x, y), 4, filled))?,
        Mark::Ring => area.draw(&Circle::new((x, y), 4, look.color.stroke_width(2)))?,
        Mark::Cross => area.draw(&Cross::new((x, y), 4, look.color.stroke_width(2)))?,
        Mark::Square => area.draw(&Rectangle::new([(x - 4, y - 4), (x + 4, y + 4)], filled))?,
        Mark::Up => area.draw(&Polygon::new(around(&[(0, -5), (5, 4), (-5, 4)]), filled))?,
        Mark::Down => area.draw(&Polygon::new(around(&[(0, 5), (5, -4), (-5, -4)]), filled))?,
        Mark::Diamond => {
            let points = around(&[(0, -6), (5, 0), (0, 6), (-5, 0)]);
            area.draw(&Polygon::new(points, filled))?;
        }
    }
    Ok(())
}

fn text(size: u32) -> TextStyle<'static> {
    // plotters takes a line height and writes a smaller font size.
    let size = f64::from(size) * 1.24;
    ("sans-serif", size).into_font().color(&INK)
}
