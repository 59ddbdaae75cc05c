//! Charts of numbers over time.

use crate::html::Html;

const WIDTH: f64 = 720.0;
/// Where the lines are: beside the labels.
const LEFT: f64 = 64.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 150.0;

/// How the lines differ, by more than color.
const LOOKS: [&str; 3] = ["one", "two", "three"];

/// Lines over a common time, from zero up.
///
/// ```
/// use tollgate_page::{Chart, Series};
///
/// let allowed = Series { name: "allowed", points: &[(0.0, 5.0), (2.0, 8.0)] };
/// let chart = Chart {
///     id: "requests",
///     title: "Requests a second",
///     about: "It rose from 5 to 8.",
///     series: &[allowed],
///     from: "2 s ago",
///     to: "now",
/// };
/// assert!(chart.svg().as_str().contains("<polyline"));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Chart<'a> {
    /// Unique on the page.
    pub id: &'a str,
    /// What is drawn, with its unit.
    pub title: &'a str,
    /// The same in words, for those who do not see it.
    pub about: &'a str,
    /// The lines: at most three.
    pub series: &'a [Series<'a>],
    /// What the left end of the time is.
    pub from: &'a str,
    /// What the right end of the time is.
    pub to: &'a str,
}

/// A line: its points, in the order of their times.
#[derive(Debug, Clone, Copy)]
pub struct Series<'a> {
    /// What it is.
    pub name: &'a str,
    /// A time, and the number at that time.
    pub points: &'a [(f64, f64)],
}

impl Chart<'_> {
    /// Returns the chart, with its title and the names of the lines.
    #[must_use]
    pub fn svg(&self) -> Html {
        let most = most(self.series);
        let mut html = Html::new();
        html.raw("<figure>\n<svg class=\"chart\" viewBox=\"0 0 720 180\" role=\"img\" aria-labelledby=\"");
        html.text(self.id)
            .raw("-title ")
            .text(self.id)
            .raw("-about\">\n<title id=\"");
        html.text(self.id)
            .raw("-title\">")
            .text(self.title)
            .raw("</title>\n<desc id=\"");
        html.text(self.id)
            .raw("-about\">")
            .text(self.about)
            .raw("</desc>\n");
        for (share, number) in [(0.0, 0.0), (0.5, most / 2.0), (1.0, most)] {
            let y = BOTTOM - share * (BOTTOM - TOP);
            html.raw("<line class=\"grid\" x1=\"64\" x2=\"720\" y1=\"")
                .text(y);
            html.raw("\" y2=\"")
                .text(y)
                .raw("\"/><text text-anchor=\"end\" x=\"58\" y=\"");
            html.text(y + 4.0)
                .raw("\">")
                .text(short(number))
                .raw("</text>\n");
        }
        html.raw("<text x=\"64\" y=\"172\">").text(self.from);
        html.raw("</text><text text-anchor=\"end\" x=\"720\" y=\"172\">")
            .text(self.to);
        html.raw("</text>\n");
        let span = span(self.series);
        for (series, look) in self.series.iter().zip(LOOKS) {
            line(
                &mut html,
                look,
                series.points,
                span,
                (LEFT, WIDTH),
                (BOTTOM, TOP),
                most,
            );
        }
        html.raw("</svg>\n<figcaption>").text(self.title).raw(":");
        for (series, look) in self.series.iter().zip(LOOKS) {
            html.raw(" <span><span class=\"key ")
                .text(look)
                .raw("\"></span>")
                .text(series.name)
                .raw("</span>");
        }
        html.raw("</figcaption>\n</figure>\n");
        html
    }
}

/// Returns a small line without a scale, for a cell of a table. The numbers beside it say the same.
#[must_use]
pub fn spark(series: &[Series<'_>]) -> Html {
    let most = most(series);
    let mut html = Html::new();
    html.raw("<svg class=\"spark chart\" viewBox=\"0 0 100 20\" preserveAspectRatio=\"none\" aria-hidden=\"true\">");
    for (series, look) in series.iter().zip(LOOKS) {
        let span = span(std::slice::from_ref(series));
        line(
            &mut html,
            look,
            series.points,
            span,
            (0.0, 100.0),
            (19.0, 1.0),
            most,
        );
    }
    html.raw("</svg>");
    html
}

/// Returns the first and the last time.
fn span(series: &[Series<'_>]) -> (f64, f64) {
    let times = series
        .iter()
        .flat_map(|series| series.points)
        .map(|(time, _)| *time);
    times.fold((f64::INFINITY, f64::NEG_INFINITY), |(first, last), time| {
        (first.min(time), last.max(time))
    })
}

/// Returns a round number that none exceeds.
fn most(series: &[Series<'_>]) -> f64 {
    let numbers = series
        .iter()
        .flat_map(|series| series.points)
        .map(|(_, number)| *number);
    let most = numbers.filter(|it| it.is_finite()).fold(0.0, f64::max);
    if most <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(most.log10().floor());
    let round = [1.0, 2.0, 5.0].map(|digit| digit * power);
    round
        .into_iter()
        .find(|it| *it >= most)
        .unwrap_or(10.0 * power)
}

fn line(
    html: &mut Html,
    look: &'static str,
    points: &[(f64, f64)],
    (first, last): (f64, f64),
    (left, right): (f64, f64),
    (bottom, top): (f64, f64),
    most: f64,
) {
    html.raw("<polyline class=\"").raw(look).raw("\" points=\"");
    for (time, number) in points {
        let share = match last > first {
            true => (time - first) / (last - first),
            false => 1.0,
        };
        let height = if number.is_finite() {
            number / most
        } else {
            1.0
        };
        let x = left + share * (right - left);
        let y = bottom - height.clamp(0.0, 1.0) * (bottom - top);
        html.text(format_args!("{x:.1},{y:.1} "));
    }
    html.raw("\"/>\n");
}

/// Writes a number of a scale: at most four characters and a unit.
fn short(number: f64) -> String {
    let (number, unit) = match number {
        n if n >= 1e9 => (n / 1e9, " G"),
        n if n >= 1e6 => (n / 1e6, " M"),
        n if n >= 1e4 => (n / 1e3, " k"),
        n => (n, ""),
    };
    format!("{}{unit}", (number * 100.0).round() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::{Chart, Series, most, short, spark};

    #[test]
    fn scales_end_with_round_numbers() {
        let most_of = |number| {
            most(&[Series {
                name: "",
                points: &[(0.0, number)],
            }])
        };
        let numbers = [
            0.0,
            0.03,
            1.0,
            1.1,
            3.0,
            7.0,
            101.0,
            f64::NAN,
            f64::INFINITY,
        ];
        let ends = [1.0, 0.05, 1.0, 2.0, 5.0, 10.0, 200.0, 1.0, 1.0];
        for (number, end) in numbers.into_iter().zip(ends) {
            assert!(
                (most_of(number) - end).abs() < 1e-9,
                "{number}: {}",
                most_of(number)
            );
        }
        assert_eq!(
            [0.0, 0.25, 950.0, 25_000.0, 2e6].map(short),
            ["0", "0.25", "950", "25 k", "2 M"]
        );
    }

    #[test]
    fn charts_are_xml_and_stay_within_their_frame() {
        let points = [
            (5.0, f64::NAN),
            (7.0, f64::INFINITY),
            (9.0, -1.0),
            (9.0, 3.0),
        ];
        let series = [
            Series {
                name: "a<b",
                points: &points,
            },
            Series {
                name: "none",
                points: &[],
            },
        ];
        let chart = Chart {
            id: "c",
            title: "T & U",
            about: "",
            series: &series,
            from: "then",
            to: "now",
        };
        let svg = chart.svg();
        let page = roxmltree::Document::parse(svg.as_str()).unwrap();
        let spark = spark(&series);
        let small = roxmltree::Document::parse(spark.as_str()).unwrap();
        for (page, right, bottom) in [(&page, 720.0, 180.0), (&small, 100.0, 20.0)] {
            let lines = page
                .descendants()
                .filter_map(|node| node.attribute("points"));
            let points = lines.flat_map(str::split_whitespace);
            let points = points.map(|point| point.split_once(',').unwrap());
            let points: Vec<(f64, f64)> = points
                .map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()))
                .collect();
            assert_eq!(points.len(), 4);
            for (x, y) in points {
                assert!(
                    (0.0..=right).contains(&x) && (0.0..=bottom).contains(&y),
                    "{x}, {y}"
                );
            }
        }
    }
}
