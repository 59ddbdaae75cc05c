//! A client of HTTP/1.1 that keeps its connection.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Far longer than any answer takes, even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);

/// A connection that only the client should close.
pub(super) struct Connection {
    stream: BufReader<TcpStream>,
    host: String,
}

/// An answer, which came whole.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    head: String,
    pub(super) body: String,
}

impl Connection {
    pub(super) async fn open(host: &str) -> Result<Self, String> {
        let stream = TcpStream::connect(host).await;
        let stream = stream.map_err(|error| format!("no connection to {host}: {error}"))?;
        let done = stream.set_nodelay(true);
        done.map_err(|error| error.to_string())?;
        let (stream, host) = (BufReader::new(stream), host.to_owned());
        Ok(Self { stream, host })
    }

    pub(super) async fn get(&mut self, path: &str, headers: &str) -> Result<Answer, String> {
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\n{headers}\r\n",
            self.host
        );
        self.ask(&request).await
    }

    pub(super) async fn post(
        &mut self,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Result<Answer, String> {
        let (host, length) = (&self.host, body.len());
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\n{headers}content-length: {length}\r\n\r\n{body}"
        );
        self.ask(&request).await
    }

    /// Sends a request and reads its answer. A connection that is closed is an error.
    pub(super) async fn ask(&mut self, request: &str) -> Result<Answer, String> {
        let line = || request.lines().next().unwrap_or_default();
        match timeout(DEADLINE, self.exchange(request)).await {
            Ok(answered) => answered.map_err(|error| format!("{}: {error}", line())),
            Err(_) => Err(format!("{}: no answer in {DEADLINE:?}", line())),
        }
    }

    async fn exchange(&mut self, request: &str) -> Result<Answer, String> {
        let sent = self.stream.get_mut().write_all(request.as_bytes()).await;
        sent.map_err(|error| format!("it can't be sent: {error}"))?;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = self.stream.read_line(&mut head).await;
            match read.map_err(|error| format!("no answer: {error}"))? {
                0 => return Err(format!("the connection was closed after {head:?}")),
                _ => continue,
            }
        }
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
        let status = status.ok_or_else(|| format!("no status in {head:?}"))?;
        let length = field(&head, "content-length").and_then(|it| it.parse().ok());
        let length: usize = length.ok_or_else(|| format!("no length in {head:?}"))?;
        if field(&head, "connection") == Some("close") {
            return Err(format!("it closes the connection: {head:?}"));
        }
        let mut body = vec![0; length];
        let read = self.stream.read_exact(&mut body).await;
        read.map_err(|error| format!("no whole body: {error}"))?;
        let body = String::from_utf8(body).map_err(|error| error.to_string())?;
        Ok(Answer { status, head, body })
    }
}

impl Answer {
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }
}

/// Returns the value of the field with this name, in small letters.
fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let found = fields.find(|(found, _)| found.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim())
}
