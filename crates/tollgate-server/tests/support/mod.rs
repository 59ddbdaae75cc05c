//! A service that runs for a test.

#![allow(dead_code, reason = "each test uses some of it")]

use std::fs;
use std::net::SocketAddr;

use serde_json::Value;
use tempfile::NamedTempFile;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tollgate_server::{Handle, Server, Settings};

/// A service on a port of its own, which ends with the test.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) client: reqwest::Client,
    pub(crate) handle: Handle,
    /// The policy.
    pub(crate) file: NamedTempFile,
    /// The service ends when it is dropped.
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

impl Running {
    /// Serves a policy.
    pub(crate) async fn start(policy: &str) -> Self {
        Self::start_with(policy, |_| {}).await
    }

    pub(crate) async fn start_with(policy: &str, set: impl FnOnce(&mut Settings)) -> Self {
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
            handle: server.handle(),
            file,
            stop: Some(stop),
            serving: tokio::spawn(server.run(async { drop(stopped.await) })),
        }
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<reqwest::Body>) -> (u16, Value) {
        let url = format!("http://{}{path}", self.address);
        let response = self.client.post(url).body(body).send().await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        let value = serde_json::from_str(&text);
        (status, value.unwrap_or(Value::String(text)))
    }

    /// Asks, and expects an answer.
    pub(crate) async fn decide(&self, ask: Value) -> Value {
        let (status, said) = self.post("/decide", ask.to_string()).await;
        assert_eq!(status, 200, "{said}");
        said
    }

    pub(crate) async fn metrics(&self) -> String {
        let url = format!("http://{}/metrics", self.admin);
        let response = self.client.get(url).send().await.unwrap();
        response.text().await.unwrap()
    }

    /// Returns the value of a metric without labels.
    pub(crate) async fn metric(&self, name: &str) -> u64 {
        let text = self.metrics().await;
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        let line = lines.find(|(known, _)| *known == name);
        line.unwrap_or_else(|| panic!("no {name} in {text}"))
            .1
            .parse()
            .unwrap()
    }

    /// Asks at the address of operators, with a token if there is one. Returns the status, the
    /// headers and the body.
    pub(crate) async fn admin(
        &self,
        request: &str,
        token: Option<&str>,
        body: &str,
    ) -> (u16, reqwest::header::HeaderMap, String) {
        let (method, path) = request.split_once(' ').unwrap();
        let url = format!("http://{}{path}", self.admin);
        let request = self.client.request(method.parse().unwrap(), url);
        let request = request.body(body.to_owned());
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let answer = request.send().await.unwrap();
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        (status, headers, answer.text().await.unwrap())
    }

    /// Asks until this many connections of those who ask for decisions are open.
    pub(crate) async fn until_open(&self, connections: u64) {
        while self.metric("tollgate_connections").await != connections {
            tokio::task::yield_now().await;
        }
    }

    /// Tells the service to end, as a signal does.
    pub(crate) fn begin_end(&mut self) {
        drop(self.stop.take());
    }

    /// Ends the service, and waits until it has ended.
    pub(crate) async fn end(mut self) {
        self.begin_end();
        self.serving.await.unwrap();
    }
}
