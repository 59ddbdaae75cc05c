//! The client crate `redis`: its connections are clients.

use redis::{Cmd, ErrorKind, IntoConnectionInfo, RedisError, Value};

use super::{Client, ClientError, Command, Connection, Reply};

/// The longest text of an error.
const MOST_CHARS: usize = 200;

/// Creates a client that connects when it is first used, and again after it has lost its
/// connection: see [`Connection`].
///
/// So a program can start while the server is down.
///
/// ```no_run
/// use tollgate_redis::client::connect_lazily;
///
/// # async fn connect() -> Result<(), tollgate_redis::client::ClientError> {
/// let client = connect_lazily("redis://127.0.0.1/")?;
/// # Ok(())
/// # }
/// ```
///
/// With the feature `tls`, a URL can begin with `rediss://`. The client then trusts the system's
/// certificate authorities, or those in the file that the environment variable `SSL_CERT_FILE`
/// names. To trust your own authority, or to present a client certificate, pass what `redis` makes
/// of them:
///
/// ```no_run
/// # #[cfg(feature = "tls")]
/// # async fn connect(root: Vec<u8>) -> Result<(), Box<dyn std::error::Error>> {
/// use redis::TlsCertificates;
/// use tollgate_redis::client::connect_lazily;
///
/// let certificates = TlsCertificates { client_tls: None, root_cert: Some(root) };
/// let redis = redis::Client::build_with_tls("rediss://limits.example/", certificates)?;
/// let client = connect_lazily(redis.get_connection_info().clone())?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`ClientError::Url`] if the URL is invalid. The message does not contain the URL, which may
/// have a password.
pub fn connect_lazily(url: impl IntoConnectionInfo) -> Result<Connection, ClientError> {
    Connection::new(url).map_err(|error| bad_url("url", &error))
}

/// Returns an error about a URL, which has no part of it.
pub(super) fn bad_url(field: &str, error: &RedisError) -> ClientError {
    let why = error.to_string();
    // What follows can quote the URL.
    let why = why.split(" - InvalidClientConfig").next().unwrap_or(&why);
    ClientError::Url(format!(
        "{field} is not accepted: {why}. It must be like `redis://user:password@host:6379/0`, or \
         begin with `unix://`, or with `rediss://` if this crate's feature `tls` is on"
    ))
}

impl Client for Connection {
    async fn send(&self, command: &Command<'_>) -> Result<Reply, ClientError> {
        let mut open = self.open(command.waiting).await?;
        let value = open.connection.send_packed_command(&packed(command)).await;
        reply(open.ended(value.and_then(Value::extract_error))?)
    }
}

/// Returns the command as `redis` sends it.
pub(super) fn packed(command: &Command<'_>) -> Cmd {
    let (count, size) = command
        .parts()
        .fold((0, 0), |(count, size), part| (count + 1, size + part.len()));
    let mut packed = Cmd::with_capacity(count, size);
    for part in command.parts() {
        packed.arg(part);
    }
    packed
}

pub(super) fn reply(value: Value) -> Result<Reply, ClientError> {
    Ok(match value {
        Value::Nil => Reply::Nil,
        Value::Int(number) => Reply::Int(number),
        Value::BulkString(bytes) => Reply::Bytes(bytes),
        Value::SimpleString(text) => Reply::Bytes(text.into_bytes()),
        Value::Okay => Reply::Bytes(b"OK".to_vec()),
        Value::Array(values) => {
            Reply::List(values.into_iter().map(reply).collect::<Result<_, _>>()?)
        }
        _ => {
            return Err(ClientError::Unknown(
                "the reply has an unexpected type".into(),
            ));
        }
    })
}

/// Returns a text of an error as one line of a log, which may be long if a stranger has answered.
pub(super) fn one_line(text: &str) -> String {
    let lines = text.split(char::is_control).map(str::trim);
    let lines: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
    lines.join(", ").chars().take(MOST_CHARS).collect()
}

/// Returns what an error of `redis` says about the command.
pub(super) fn refused(error: RedisError) -> ClientError {
    let why = || one_line(&error.to_string());
    match error.kind() {
        ErrorKind::Server(_) | ErrorKind::Extension => ClientError::Refused {
            code: error.code().unwrap_or("ERR").into(),
            message: one_line(error.detail().unwrap_or_default()),
        },
        ErrorKind::AuthenticationFailed
        | ErrorKind::InvalidClientConfig
        | ErrorKind::Client
        | ErrorKind::RESP3NotSupported
        | ErrorKind::ClusterConnectionNotFound => ClientError::NotSent(why()),
        _ if error.is_connection_refusal() => ClientError::NotSent(why()),
        _ => ClientError::Unknown(why()),
    }
}
