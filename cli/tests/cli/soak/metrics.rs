//! What the service says of itself.

use std::collections::BTreeMap;

use super::http::Connection;

/// The values of a scrape, by name and labels.
#[derive(Debug, Clone, Default)]
pub(super) struct Metrics(BTreeMap<String, f64>);

impl Metrics {
    pub(super) async fn fetch(admin: &mut Connection) -> Result<Self, String> {
        let answer = admin.get("/metrics", "").await?;
        match answer.status {
            200 => Self::read(&answer.body),
            status => Err(format!("/metrics answers {status}: {}", answer.body)),
        }
    }

    pub(super) fn read(text: &str) -> Result<Self, String> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let values = lines.map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        });
        let values: Option<BTreeMap<_, _>> = values.collect();
        let values = values.ok_or_else(|| format!("a metric is not readable in {text}"))?;
        // A name that is there twice would be lost.
        let lines = text.lines().filter(|line| !line.starts_with('#')).count();
        match values.len() == lines {
            true => Ok(Self(values)),
            false => Err(format!("a metric is there twice in {text}")),
        }
    }

    /// Returns the value of a metric, by its name without `tollgate_`.
    pub(super) fn get(&self, name: &str) -> Result<u64, String> {
        let value = self.0.get(&format!("tollgate_{name}"));
        let value = value.ok_or_else(|| format!("no metric tollgate_{name}"))?;
        Ok(*value as u64)
    }

    /// Returns how many requests a rule decided in this way.
    pub(super) fn requests(&self, rule: &str, decision: &str) -> Result<u64, String> {
        self.get(&format!(
            "requests_total{{rule=\"{rule}\",decision=\"{decision}\"}}"
        ))
    }

    /// Returns a counter that was higher before.
    pub(super) fn fallen(&self, before: &Self) -> Option<String> {
        let is_counter = |name: &str| {
            let name = name.split('{').next().unwrap_or_default();
            ["_total", "_count", "_sum", "_bucket"]
                .iter()
                .any(|end| name.ends_with(end))
        };
        let mut counters = self.0.iter().filter(|(name, _)| is_counter(name));
        counters.find_map(|(name, now)| {
            let was = before.0.get(name).filter(|was| now < *was)?;
            Some(format!("{name} fell from {was} to {now}"))
        })
    }
}

#[test]
fn counters_do_not_fall() {
    let read = |text| Metrics::read(text).expect("metrics");
    let before = read("# HELP\na_total 5\nb 5\nc_bucket{le=\"1\"} 5\n");
    let after = read("a_total 6\nb 4\nc_bucket{le=\"1\"} 4\nd_total 0\n");
    let fallen = after.fallen(&before).expect("one fell");
    assert_eq!(fallen, "c_bucket{le=\"1\"} fell from 5 to 4");
    assert_eq!(read("a_total 6").fallen(&before), None);
    assert!(Metrics::read("a_total 6\na_total 6").is_err());
    assert!(Metrics::read("a_total six").is_err());
}
