//! Clients of HTTP/2: one that keeps its connection, and one that leaves.

use std::io::Cursor;
use std::sync::Arc;
use std::time::Instant;

use h2::client::SendRequest;
use h2::{Reason, client};
use http::Request;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::clients::{Question, read};
use super::counts::Counts;

type Sender = SendRequest<Cursor<Vec<u8>>>;

/// Connects. The task ends with the connection.
async fn connect(address: &str) -> Result<(Sender, JoinHandle<Result<(), h2::Error>>), String> {
    let stream = TcpStream::connect(address).await;
    let stream = stream.map_err(|error| format!("no connection to {address}: {error}"))?;
    // The one that leaves does so often: its ports are free at once.
    let set = stream.set_zero_linger();
    set.map_err(|error| error.to_string())?;
    let done = client::Builder::new().handshake(stream).await;
    let (sender, connection) = done.map_err(|error| format!("HTTP/2: {error}"))?;
    Ok((sender, tokio::spawn(connection)))
}

fn decide() -> Result<Request<()>, String> {
    let request = Request::post("http://tollgate/decide").body(());
    request.map_err(|error| error.to_string())
}

/// Asks one question after the other. The connection must last until all ends.
pub(super) async fn single(
    address: String,
    counts: Arc<Counts>,
    mut turn: u64,
) -> Result<(), String> {
    let (mut sender, connection) = connect(&address).await?;
    while !counts.stops() {
        turn += 1;
        let (question, start) = (Question::of(turn), Instant::now());
        let asked = ask(sender, question.json("")).await;
        let (next, status, body) = asked.map_err(|error| format!("HTTP/2: {error}"))?;
        sender = next;
        counts.took(start.elapsed());
        let said = read(status, &body)?;
        question.count(&counts, &said)?;
    }
    drop(sender);
    match connection.await {
        Ok(Ok(())) => Ok(()),
        ended => Err(format!("HTTP/2: the connection ended with {ended:?}")),
    }
}

async fn ask(sender: Sender, question: String) -> Result<(Sender, u16, String), String> {
    let text = |error: h2::Error| error.to_string();
    let mut sender = sender.ready().await.map_err(text)?;
    let (answer, mut body) = sender.send_request(decide()?, false).map_err(text)?;
    let sent = body.send_data(Cursor::new(question.into_bytes()), true);
    sent.map_err(text)?;
    let answer = answer.await.map_err(text)?;
    let status = answer.status().as_u16();
    let (mut body, mut all) = (answer.into_body(), Vec::new());
    while let Some(data) = body.data().await {
        let data = data.map_err(text)?;
        let released = body.flow_control().release_capacity(data.len());
        released.map_err(text)?;
        all.extend_from_slice(&data);
    }
    let all = String::from_utf8(all).map_err(|error| error.to_string())?;
    Ok((sender, status, all))
}

/// Begins some requests, resets half of them, and leaves. It does not care whether that works.
pub(super) async fn leave(address: &str, question: &str) -> Result<(), String> {
    let (mut sender, connection) = connect(address).await?;
    let mut answers = Vec::new();
    for n in 0..6 {
        sender = sender.ready().await.map_err(|error| error.to_string())?;
        let Ok((answer, mut body)) = sender.send_request(decide()?, false) else {
            break;
        };
        match n % 2 {
            0 => drop(body.send_data(Cursor::new(question.as_bytes().to_vec()), true)),
            _ => body.send_reset(Reason::CANCEL),
        }
        answers.push(answer);
    }
    // One answer comes, so the service has read some of the requests.
    if let Some(answer) = answers.into_iter().next() {
        let _ = answer.await;
    }
    connection.abort();
    Ok(())
}
