//! A proxy, the service that it asks, and the program behind it.

use super::{App, Process, Reply, Service, exchange};

/// A site that clients visit.
pub(crate) struct Site {
    pub(crate) service: Service,
    pub(crate) app: App,
    pub(crate) proxy: Process,
    /// Whether the proxy gives the fields to clients whose request is allowed.
    pub(crate) has_fields: bool,
}

/// How a proxy is started: by the service and the program behind it. `None` if it is not installed.
pub(crate) type Kind = fn(&Service, &App) -> Option<Process>;

impl Site {
    /// Starts a service by a policy, a program, and a proxy. `None` if the proxy is not installed.
    pub(crate) async fn start(
        policy: &str,
        proxy: impl FnOnce(&Service, &App) -> Option<Process>,
    ) -> Option<Self> {
        let service = Service::start_alone(policy).await;
        let app = App::start().await;
        let proxy = proxy(&service, &app)?;
        Some(Self {
            service,
            app,
            has_fields: proxy.name != "traefik",
            proxy,
        })
    }

    /// Sends a request with these lines in addition, each with its end.
    pub(crate) async fn ask(&self, method: &str, target: &str, lines: &str) -> Reply {
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: site.example\r\nContent-Length: 0\r\n\
             Connection: close\r\n{lines}\r\n"
        );
        exchange(self.proxy.address, request).await
    }

    pub(crate) async fn get(&self, target: &str) -> Reply {
        self.ask("GET", target, "").await
    }
}
