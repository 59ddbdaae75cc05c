//! What tollgate and the client crate `redis` tell each other: commands, replies and errors.

use redis::{Cmd, ErrorKind, RedisError, Value};

use super::{ClientError, Command, Reply};

/// The longest text of an error.
const MOST_CHARS: usize = 200;

/// Returns an error about a URL that quotes no part of the URL.
pub(super) fn bad_url(field: &str, error: &RedisError) -> ClientError {
    let why = error.to_string();
    // What follows can quote the URL.
    let why = why.split(" - InvalidClientConfig").next().unwrap_or(&why);
    ClientError::Url(format!(
        "{field} is not accepted: {why}. It must be like `redis://user:password@host:6379/0`, or \
         begin with `unix://`, or with `rediss://` if this crate's feature `tls` is on"
    ))
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

/// Returns an error's text as one line of a log, cut: an unknown server may send a long text.
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
