//! `/metrics`, in the text format of Prometheus.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use http::StatusCode;
use tollgate_policy::Policy;

use super::Admin;
use crate::counters::head;
use crate::service::{Answer, of_kind, text};
use crate::state::unix_seconds;

pub(super) async fn answer(admin: Arc<Admin>) -> Answer {
    // It visits all slots of all tables, so one does it at a time.
    let _one = admin.scrapes.lock().await;
    let all = Arc::clone(&admin);
    let written = tokio::task::spawn_blocking(move || {
        let mut out = String::new();
        all.write(&mut out).map(|()| out)
    });
    match written.await {
        Ok(Ok(out)) => of_kind(StatusCode::OK, "text/plain; version=0.0.4", out),
        _ => text(
            StatusCode::INTERNAL_SERVER_ERROR,
            "no metrics can be written",
        ),
    }
}

impl Admin {
    fn write(&self, out: &mut String) -> fmt::Result {
        self.service.counters.write(out)?;
        let policy = self.service.policy.load();
        // The names of rules differ, so no two metrics are the same.
        let stats = policy.stats();
        stats
            .write_prometheus(out, "tollgate", &[])
            .map_err(|_| fmt::Error)?;
        for (name, help, value) in self.values(&policy) {
            let kind = match name.ends_with("_total") {
                true => "counter",
                false => "gauge",
            };
            let name = format!("tollgate_{name}");
            head(out, &name, kind, help)?;
            writeln!(out, "{name} {value}")?;
        }
        head(
            out,
            "tollgate_build_info",
            "gauge",
            "The version of the service.",
        )?;
        let version = env!("CARGO_PKG_VERSION");
        writeln!(out, "tollgate_build_info{{version=\"{version}\"}} 1")
    }

    /// Returns the numbers that no rule has: names, what they say, and their values. The names and
    /// their order stay the same while the service runs.
    pub(super) fn values(&self, policy: &Policy) -> Vec<(&'static str, &'static str, u64)> {
        let number = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let connections = &self.connections;
        let reloads = &self.reloader;
        let mut values = vec![
            (
                "rules",
                "Rules of the policy.",
                number(policy.rules().len()),
            ),
            (
                "held",
                "Decisions that are held for their callers.",
                number(self.service.held.len()),
            ),
            (
                "held_refused_total",
                "Decisions that were denied, because too many were held.",
                self.service.held.refused.load(Relaxed),
            ),
            (
                "connections",
                "Connections that are open.",
                number(connections.open.load(Relaxed)),
            ),
            (
                "connections_total",
                "Connections that were accepted.",
                connections.accepted.load(Relaxed),
            ),
            (
                "connections_refused_total",
                "Connections that were closed at once, because too many were open.",
                connections.refused.load(Relaxed),
            ),
            (
                "connections_idle_total",
                "Connections that were closed because no request came in time, or because others \
                 needed the place.",
                connections.idle.load(Relaxed),
            ),
            (
                "connections_stalled_total",
                "Connections that were closed because the client did not take an answer.",
                connections.stalled.load(Relaxed),
            ),
            (
                "connections_not_encrypted_total",
                "Connections that were closed because they were not encrypted in time, or wrongly.",
                connections.not_encrypted.load(Relaxed),
            ),
            (
                "connections_limit",
                "How many connections can be open at once.",
                number(self.service.limits.connections),
            ),
            (
                "pending_bytes",
                "Bytes of bodies that are read, and of answers that clients have not taken.",
                number(self.service.budget.used()),
            ),
            (
                "pending_refused_total",
                "Requests that were refused because there was no memory for bodies or answers.",
                self.service.budget.refused(),
            ),
            (
                "draining",
                "1 if /readyz answers 503.",
                self.service.drains.load(Relaxed).into(),
            ),
            (
                "start_timestamp_seconds",
                "When the service began, since 1970.",
                unix_seconds(self.since),
            ),
            (
                "reloads_total",
                "Policies that took the place of another one.",
                reloads.done.load(Relaxed),
            ),
            (
                "reloads_failed_total",
                "Policies and certificates with errors, or that could not be read.",
                reloads.failed.load(Relaxed),
            ),
            (
                "reload_timestamp_seconds",
                "When the policy was last read without errors, since 1970.",
                reloads.done_at.load(Relaxed),
            ),
            (
                "admin_refused_total",
                "Requests that need the token, and had a wrong one or none.",
                self.strangers.load(Relaxed),
            ),
        ];
        if let Some(saver) = &self.saver {
            values.push((
                "state_saved_timestamp_seconds",
                "When the state was last saved, since 1970.",
                saver.saved_at.load(Relaxed),
            ));
            values.push((
                "state_saves_total",
                "Times that the state was saved.",
                saver.saves.load(Relaxed),
            ));
            values.push((
                "state_failures_total",
                "Times that the state could not be saved.",
                saver.failures.load(Relaxed),
            ));
        }
        if let Some(server) = self.store.as_ref().map(|store| &store.server) {
            let stats = server.stats();
            values.extend([
                (
                    "store_down",
                    "Whether the store does not answer.",
                    u64::from(server.is_down()),
                ),
                (
                    "store_calls_total",
                    "Calls that the store answered.",
                    stats.server,
                ),
                (
                    "store_failed_total",
                    "Calls that the store did not answer in time.",
                    stats.failed,
                ),
                (
                    "store_lost_total",
                    "Calls without an answer that may have taken effect.",
                    stats.lost,
                ),
                (
                    "store_outages_total",
                    "Outages of the store that have begun.",
                    stats.outages,
                ),
                (
                    "store_remembered_total",
                    "Decisions for which the store was not asked, because it denied before.",
                    stats.remembered,
                ),
            ]);
        }
        values
    }
}
