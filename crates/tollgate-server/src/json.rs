//! Answers in JSON.

use std::fmt::Display;

use http::StatusCode;
use serde::Serialize;

use crate::service::{Answer, of_kind};

pub(crate) const JSON: &str = "application/json";

/// An answer in JSON.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Answer {
    let mut out = Vec::new();
    write(&mut out, value);
    of_kind(status, JSON, out)
}

pub(crate) fn write(out: &mut Vec<u8>, value: &impl Serialize) {
    // Neither the types nor the memory can refuse it.
    let _ = serde_json::to_writer(out, value);
}

/// Says why there is no other answer.
pub(crate) fn failure(status: StatusCode, error: &(impl Display + ?Sized)) -> Answer {
    #[derive(Serialize)]
    struct Failure {
        error: String,
    }

    let error = error.to_string();
    json(status, &Failure { error })
}

/// Says why a body is not what is asked for.
pub(crate) fn malformed(error: &serde_json::Error) -> Answer {
    failure(StatusCode::BAD_REQUEST, error)
}
