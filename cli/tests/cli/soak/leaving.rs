//! Clients that leave: in the middle of a request, before its answer, and without ending it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::counts::Counts;
use super::http2;

/// How many connections are there whose clients do not read.
const UNREAD: usize = 20;

/// The kinds of leaving.
const KINDS: u64 = 10;

/// Leaves again and again, in all ways.
pub(super) async fn leave(address: String, counts: Arc<Counts>, mut turn: u64) {
    let mut unread = VecDeque::new();
    while !counts.stops() {
        turn += 1;
        // The service may be faster than a client that leaves.
        if let Ok(kept) = once(&address, turn).await {
            unread.extend(kept);
        }
        if unread.len() > UNREAD {
            unread.pop_front();
        }
        counts.left.fetch_add(1, SeqCst);
        // Others should have more of the time.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Leaves once. Returns a connection that is to be left later.
async fn once(address: &str, turn: u64) -> Result<Option<TcpStream>, std::io::Error> {
    // Not twenty times the same for each of them.
    let client = format!("10.9.{}.{}", turn % 256, turn / KINDS % 5);
    let question = |path: &str, more: &str| {
        format!("{{\"facts\":{{\"client-ip\":\"{client}\",\"path\":\"/{path}\"}}{more}}}")
    };
    if turn % KINDS == 9 {
        let _ = http2::leave(address, &question("left", ",\"hold\":true")).await;
        return Ok(None);
    }
    let post = |body: &str| {
        let length = body.len();
        format!("POST /decide HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n{body}")
    };
    let list = || {
        let one = question("left", "");
        post(&format!("[{}]", vec![one; 64].join(",")))
    };
    let sent = match turn % KINDS {
        0 => String::new(),
        1 => "GET /nginx HTTP/1.1\r\nx-original-uri: /le".to_owned(),
        2 => {
            let whole = post(&question("left", ""));
            whole[..whole.len() - 10].to_owned()
        }
        3 | 4 => list(),
        5 | 6 => post(&question("left", ",\"hold\":true")),
        7 => post(&question("left-shared", "")),
        _ => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_owned(),
    };
    let mut stream = TcpStream::connect(address).await?;
    if !turn.is_multiple_of(16) {
        // Otherwise the system keeps the port for a minute, and has 28 000.
        stream.set_zero_linger()?;
    }
    stream.write_all(sent.as_bytes()).await?;
    match turn % KINDS {
        4 => return Ok(Some(stream)),
        // The decision is held, and no request ends it.
        6 => drop(timeout(Duration::from_secs(120), stream.read(&mut [0; 1000])).await),
        _ => {}
    }
    Ok(None)
}
