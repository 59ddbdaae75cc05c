//! What operators ask: metrics, and whether the service is well.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use http::{Method, Request, StatusCode};
use hyper::body::Incoming;

use crate::connections::Connections;
use crate::counters::head;
use crate::service::{Answer, Service, of_kind, text};

/// What the address of operators knows.
#[derive(Debug)]
pub(crate) struct Admin {
    pub(crate) service: Arc<Service>,
    /// The connections of those who ask for decisions.
    pub(crate) connections: Arc<Connections>,
}

/// Answers a request to the address of operators.
pub(crate) async fn answer(admin: Arc<Admin>, request: Request<Incoming>) -> Answer {
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => metrics(admin).await,
        (&Method::GET, "/healthz") => text(StatusCode::OK, "ok"),
        (&Method::GET, "/readyz") => admin.service.readiness(),
        _ => text(StatusCode::NOT_FOUND, KNOWN),
    }
}

const KNOWN: &str = "there is GET /metrics, /healthz and /readyz";

async fn metrics(admin: Arc<Admin>) -> Answer {
    // It visits all slots of all tables.
    let written = tokio::task::spawn_blocking(move || {
        let mut out = String::new();
        admin.write(&mut out).map(|()| out)
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
        let stats = self.service.policy.load().stats();
        // The names of rules differ, so no two metrics are the same.
        stats
            .write_prometheus(out, "tollgate", &[])
            .map_err(|_| fmt::Error)?;
        let held = u64::try_from(self.service.held.len()).unwrap_or(u64::MAX);
        let connections = &self.connections;
        let open = u64::try_from(connections.open.load(Relaxed)).unwrap_or(u64::MAX);
        let values = [
            (
                "held",
                "gauge",
                "Decisions that are held for their callers.",
                held,
            ),
            ("connections", "gauge", "Connections that are open.", open),
            (
                "connections_total",
                "counter",
                "Connections that were accepted.",
                connections.accepted.load(Relaxed),
            ),
            (
                "connections_refused_total",
                "counter",
                "Connections that were closed at once, because too many were open.",
                connections.refused.load(Relaxed),
            ),
            (
                "connections_idle_total",
                "counter",
                "Connections that were closed because no request came in time.",
                connections.idle.load(Relaxed),
            ),
        ];
        for (name, kind, help, value) in values {
            let name = format!("tollgate_{name}");
            head(out, &name, kind, help)?;
            writeln!(out, "{name} {value}")?;
        }
        Ok(())
    }
}
