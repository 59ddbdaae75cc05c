//! What an operator should know at once.

use super::Admin;
use crate::history::History;

/// Something that is wrong, or will be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Alert {
    pub(super) what: String,
    /// Since when, in seconds since 1970, if that is known.
    pub(super) since: Option<u64>,
}

/// A number that no rule has: its name, what it says, and its value.
type Value = (&'static str, &'static str, u64);

/// The state should be saved within this time, in seconds.
const SAVED_WITHIN_S: u64 = 60;

impl Admin {
    pub(super) fn alerts(&self, values: &[Value], now_s: u64) -> Vec<Alert> {
        let refused = self.reloader.refused().map(|refused| refused.since);
        alerts(values, &self.history, refused, now_s)
    }
}

fn alerts(values: &[Value], history: &History, refused: Option<u64>, now_s: u64) -> Vec<Alert> {
    let find = |name: &str| values.iter().position(|(known, _, _)| *known == name);
    let value = |name| {
        find(name)
            .and_then(|place| values.get(place))
            .map(|(_, _, value)| *value)
    };
    let rose = |name| find(name).map_or(0, |place| history.rose(place));
    let mut alerts = Vec::new();
    let mut alert = |what: String, since| alerts.push(Alert { what, since });
    if value("store_down") == Some(1) {
        let what = "The store does not answer: fallbacks decide for its rules";
        alert(what.to_owned(), history.store_down_since());
    }
    if let Some(since) = refused {
        let what = "The policy's file has errors: an older policy decides";
        alert(what.to_owned(), Some(since));
    }
    if value("draining") == Some(1) {
        let what = "An operator drains the service: load balancers should send elsewhere";
        alert(what.to_owned(), None);
    }
    if let Some(saved) = value("state_saved_timestamp_seconds") {
        let late = now_s.saturating_sub(saved) > SAVED_WITHIN_S && saved > 0;
        if late || rose("state_failures_total") > 0 {
            let what = "The state is not saved: a crash would forget what was granted since";
            alert(what.to_owned(), Some(saved).filter(|saved| *saved > 0));
        }
    }
    for (name, what) in [
        (
            "connections_refused_total",
            "connections were refused: all places are taken",
        ),
        (
            "pending_refused_total",
            "requests were refused: there is no memory for their bodies",
        ),
        (
            "held_refused_total",
            "decisions were denied: too many are held",
        ),
        (
            "store_failed_total",
            "calls were not answered by the store in time",
        ),
        (
            "admin_refused_total",
            "requests at this address had a wrong token, or none",
        ),
        ("reloads_failed_total", "reloads failed"),
    ] {
        match rose(name) {
            0 => {}
            // That is said above.
            _ if refused.is_some() && name == "reloads_failed_total" => {}
            count => alert(format!("{count} {what}, in the last minute"), None),
        }
    }
    alerts
}
