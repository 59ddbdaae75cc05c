//! Programs ask over HTTP, in JSON, and are answered as a policy decides.

mod asks;
mod documented;
mod holds;
mod refused;
mod same_as_policy;

use std::fs;
use std::net::SocketAddr;

use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tollgate_server::{Server, Settings};

/// A service on a port of its own, which ends with the test.
struct Running {
    address: SocketAddr,
    admin: SocketAddr,
    client: reqwest::Client,
    /// The service ends when it is dropped.
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

impl Running {
    /// Serves a policy.
    async fn start(policy: &str) -> Self {
        Self::start_with(policy, |_| {}).await
    }

    async fn start_with(policy: &str, set: impl FnOnce(&mut Settings)) -> Self {
        let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        fs::write(file.path(), policy).unwrap();
        let mut settings = Settings::default();
        settings.policy = Some(file.path().to_owned());
        settings.watch = false;
        settings.listen = "127.0.0.1:0".parse().unwrap();
        settings.admin = Some(settings.listen);
        set(&mut settings);
        let server = Server::bind(settings).await.unwrap();
        let (stop, stopped) = oneshot::channel();
        Self {
            address: server.address(),
            admin: server.admin_address().unwrap(),
            client: reqwest::Client::new(),
            stop: Some(stop),
            serving: tokio::spawn(server.run(async { drop(stopped.await) })),
        }
    }

    async fn post(&self, path: &str, body: impl Into<reqwest::Body>) -> (u16, Value) {
        let url = format!("http://{}{path}", self.address);
        let response = self.client.post(url).body(body).send().await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        let value = serde_json::from_str(&text);
        (status, value.unwrap_or(Value::String(text)))
    }

    /// Asks, and expects an answer.
    async fn decide(&self, ask: Value) -> Value {
        let (status, said) = self.post("/decide", ask.to_string()).await;
        assert_eq!(status, 200, "{said}");
        said
    }

    async fn metrics(&self) -> String {
        let url = format!("http://{}/metrics", self.admin);
        let response = self.client.get(url).send().await.unwrap();
        response.text().await.unwrap()
    }

    /// Ends the service, and waits until it has ended.
    async fn end(mut self) {
        drop(self.stop.take());
        self.serving.await.unwrap();
    }
}
