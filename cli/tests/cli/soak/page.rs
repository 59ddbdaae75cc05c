//! A page with a picture of each series.

use std::error::Error;
use std::fs;
use std::path::Path;

use plotters::prelude::*;

use super::samples::Sample;

type Series = (&'static str, fn(&Sample) -> f64);

const SERIES: [Series; 6] = [
    ("memory, MiB", |it| it.memory_kib as f64 / 1024.0),
    ("file descriptors", |it| it.descriptors as f64),
    ("open connections", |it| it.connections as f64),
    ("requests in a second", |it| it.rate),
    ("p50 of requests, ms", |it| it.p50_us as f64 / 1000.0),
    ("p99 of requests, ms", |it| it.p99_us as f64 / 1000.0),
];

/// Writes a page that needs no other file.
pub(super) fn write_page(samples: &[Sample], path: &Path) -> Result<(), Box<dyn Error>> {
    let mut page = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <title>A soak of the service</title>\n<h1>A soak of the service</h1>\n",
    );
    for (name, value) in SERIES {
        let points = samples.iter().map(|sample| (sample.at_s, value(sample)));
        page += &format!("<h2>{name}</h2>\n{}\n", svg(points.collect())?);
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    Ok(fs::write(path, page + "</html>\n")?)
}

fn svg(points: Vec<(f64, f64)>) -> Result<String, Box<dyn Error>> {
    let end = points.last().map_or(1.0, |point| point.0);
    let most = points.iter().map(|point| point.1).fold(1.0, f64::max);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (900, 220)).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .margin(8)
            .x_label_area_size(34)
            .y_label_area_size(56)
            .build_cartesian_2d(0.0..end, 0.0..most * 1.1)?;
        chart.configure_mesh().x_desc("seconds").draw()?;
        let style = RGBColor(0x0C, 0x7A, 0xDB).stroke_width(2);
        chart.draw_series([PathElement::new(points, style)])?;
        area.present()?;
    }
    Ok(svg)
}
