//! A page with a chart of each series.

use std::error::Error;
use std::fs;
use std::path::Path;

use tollgate_page::{Chart, Html, SHEET, Series, document};

use super::samples::Sample;

/// A number over time: its name for the page, its title, and where it is in a sample.
type OverTime = (&'static str, &'static str, fn(&Sample) -> f64);

const SERIES: [OverTime; 6] = [
    ("memory", "Memory, MiB", |it| it.memory_kib as f64 / 1024.0),
    ("files", "File descriptors", |it| it.descriptors as f64),
    ("connections", "Open connections", |it| {
        it.connections as f64
    }),
    ("rate", "Requests in a second", |it| it.rate),
    ("p50", "Half of the requests within, ms", |it| {
        it.p50_us as f64 / 1000.0
    }),
    ("p99", "99 % of the requests within, ms", |it| {
        it.p99_us as f64 / 1000.0
    }),
];

/// Writes a page that needs no other file.
pub(super) fn write_page(samples: &[Sample], path: &Path) -> Result<(), Box<dyn Error>> {
    let end = samples.last().map_or(0.0, |sample| sample.at_s);
    let mut body = Html::new();
    body.raw("<h1>A soak of the service</h1>\n");
    for (id, title, value) in SERIES {
        let points: Vec<_> = samples.iter().map(|it| (it.at_s, value(it))).collect();
        let values = points.iter().map(|(_, value)| *value);
        let (least, most) = values.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        let chart = Chart {
            id,
            title,
            about: &format!("From {least:.1} to {most:.1}."),
            series: &[Series {
                name: "the service",
                points: &points,
            }],
            from: "0 s",
            to: &format!("{end:.0} s"),
        };
        body.push(chart.svg());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let page = document("A soak of the service", Html::new().style(SHEET), &body);
    Ok(fs::write(path, page)?)
}
