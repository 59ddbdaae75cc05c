//! What an operator should know at once.

use std::sync::atomic::Ordering::Relaxed;

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

impl Admin {
    pub(super) fn alerts(&self, values: &[Value], now_s: u64) -> Vec<Alert> {
        let refused = self.reloader.refused().map(|refused| refused.since);
        let certificate = self.reloader.certificate_refused.load(Relaxed);
        let certificate = Some(certificate).filter(|since| *since > 0);
        let due_s = self.saver.as_ref().map_or(u64::MAX, |saver| saver.due_s());
        alerts(values, &self.history, [refused, certificate], due_s, now_s)
    }
}

/// Makes the list. `refused` has since when the policy and the certificate are older than their
/// files, and `due_s` how old a saved state may be.
fn alerts(
    values: &[Value],
    history: &History,
    refused: [Option<u64>; 2],
    due_s: u64,
    now_s: u64,
) -> Vec<Alert> {
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
    let files = [
        "The policy's file has errors: an older policy decides",
        "The certificate's files can't be used: an older one is in use",
    ];
    for (what, since) in files.into_iter().zip(refused) {
        if since.is_some() {
            alert(what.to_owned(), since);
        }
    }
    if value("draining") == Some(1) {
        let what = "The service drains: /readyz answers 503, so that load balancers send elsewhere";
        alert(what.to_owned(), None);
    }
    if let Some(saved) = value("state_saved_timestamp_seconds") {
        let late = now_s.saturating_sub(saved) > due_s && saved > 0;
        if late || rose("state_failures_total") > 0 {
            let what = "The state is not saved (a crash would forget newer grants)";
            alert(what.to_owned(), Some(saved).filter(|saved| *saved > 0));
        }
    }
    for (name, what) in [
        (
            "connections_refused_total",
            "Connections were refused, because all places are taken",
        ),
        (
            "pending_refused_total",
            "Requests were refused, because the memory for bodies and answers was full",
        ),
        (
            "held_refused_total",
            "Decisions were denied, because too many are held",
        ),
        (
            "store_failed_total",
            "The store did not answer calls in time",
        ),
        (
            "admin_refused_total",
            "Requests to this address had a wrong token, or none where one is needed",
        ),
    ] {
        match rose(name) {
            0 => {}
            count => alert(format!("{what}: {count} in the last minute"), None),
        }
    }
    alerts
}

#[cfg(test)]
mod tests {
    use super::alerts;
    use crate::history::{History, Values};

    #[test]
    fn each_alert_comes_and_goes() {
        let quiet = [
            ("store_down", 0),
            ("draining", 0),
            ("state_saved_timestamp_seconds", 1000),
            ("state_failures_total", 5),
            ("connections_refused_total", 7),
            ("pending_refused_total", 7),
            ("held_refused_total", 7),
            ("store_failed_total", 7),
            ("admin_refused_total", 7),
        ];
        let said = |values: [(&'static str, u64); 9], refused, now_s| -> Vec<_> {
            let history = History::default();
            for (at, values) in [(0, quiet), (2000, values)] {
                let values = Values {
                    others: values.iter().map(|(_, value)| *value).collect(),
                    ..Values::default()
                };
                history.sample(at, |_| {}, values, at > 0);
            }
            let values = values.map(|(name, value)| (name, "", value));
            let alerts = alerts(&values, &history, refused, 60, now_s);
            alerts.into_iter().map(|it| (it.what, it.since)).collect()
        };
        let with = |place: usize, value| {
            let mut values = quiet;
            values[place].1 = value;
            values
        };
        assert_eq!(said(quiet, [None; 2], 1060), []);
        for (values, refused, now_s, what, since) in [
            (
                with(0, 1),
                [None; 2],
                1000,
                "The store does not answer",
                Some(2),
            ),
            (with(1, 1), [None; 2], 1000, "The service drains", None),
            (quiet, [None; 2], 1061, "The state is not saved", Some(1000)),
            (
                with(3, 6),
                [None; 2],
                1000,
                "The state is not saved",
                Some(1000),
            ),
            (
                with(4, 9),
                [None; 2],
                1000,
                "Connections were refused, because all places are taken: 2 in the last minute",
                None,
            ),
            (with(5, 9), [None; 2], 1000, "Requests were refused", None),
            (with(6, 9), [None; 2], 1000, "Decisions were denied", None),
            (
                with(7, 9),
                [None; 2],
                1000,
                "The store did not answer calls",
                None,
            ),
            (
                with(8, 9),
                [None; 2],
                1000,
                "Requests to this address",
                None,
            ),
            (
                quiet,
                [Some(9), None],
                1000,
                "The policy's file has errors",
                Some(9),
            ),
            (
                quiet,
                [None, Some(9)],
                1000,
                "The certificate's files",
                Some(9),
            ),
        ] {
            let said = said(values, refused, now_s);
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(
                said[0].0.starts_with(what) && said[0].1 == since,
                "{what}: {said:?}"
            );
        }
    }
}
