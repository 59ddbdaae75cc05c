//! Requests to the last byte, which no client library would send.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Reply {
    /// Returns the values of a field. Names are compared without case.
    pub(crate) fn fields(&self, name: &str) -> Vec<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .filter(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .collect()
    }

    /// Returns the value of a field that is there once.
    #[track_caller]
    pub(crate) fn field(&self, name: &str) -> &str {
        let [value] = self.fields(name)[..] else {
            panic!("{name} is not there once: {self:?}");
        };
        value
    }

    /// Returns the names of the rules that were asked.
    pub(crate) fn rules(&self) -> Vec<&str> {
        let fields = self.fields("ratelimit-policy").into_iter();
        let names = fields.flat_map(|field| field.split(", "));
        names.filter_map(|limit| limit.split('"').nth(1)).collect()
    }
}

/// Sends these bytes and reads one answer, up to the end of the connection or of its body.
pub(crate) async fn exchange(address: SocketAddr, request: impl AsRef<[u8]>) -> Reply {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // A server that has read enough may answer and close before it has read everything.
    let _ = stream.write_all(request.as_ref()).await;
    let mut read = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&read);
        let text = text.trim_start_matches("HTTP/1.1 100 Continue\r\n\r\n");
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
            let reply = Reply {
                status: status.unwrap_or_else(|| panic!("no status in {head}")),
                head: head.to_owned(),
                body: body.to_owned(),
            };
            let length = reply.fields("content-length").first().copied();
            if length.is_some_and(|length| length.parse() == Ok(body.len())) {
                return reply;
            }
        }
        match stream.read(&mut buffer).await {
            Ok(n @ 1..) => read.extend(&buffer[..n]),
            end => {
                let (head, body) = text
                    .split_once("\r\n\r\n")
                    .unwrap_or_else(|| panic!("the connection ended ({end:?}) after {text:?}"));
                return Reply {
                    status: head.split(' ').nth(1).unwrap().parse().unwrap(),
                    head: head.to_owned(),
                    body: body.to_owned(),
                };
            }
        }
    }
}
