//! What operators send, and why it is refused.

use std::fmt::{self, Display};
use std::time::Duration;

use http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value};
use tollgate::Quota;
use tollgate_policy::operate::KeyError;

use crate::json::json;
use crate::service::Answer;

/// Why a request is refused. Programs read the field, and what it could be.
#[derive(Debug, Serialize)]
pub(super) struct Refused {
    #[serde(skip)]
    status: StatusCode,
    error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// The names that are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    known: Vec<String>,
}

impl Refused {
    pub(super) fn new(status: StatusCode, error: impl Display) -> Self {
        Self {
            status,
            error: error.to_string(),
            field: None,
            known: Vec::new(),
        }
    }

    fn malformed(error: impl Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    pub(super) fn of(self, field: impl Into<String>) -> Self {
        let field = Some(field.into());
        Self { field, ..self }
    }

    /// These names are known.
    pub(super) fn knowing(self, known: Vec<String>) -> Self {
        Self { known, ..self }
    }

    pub(super) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// There is no such field, parameter or path.
    pub(super) fn unknown(what: &str, name: &str, known: &[&str]) -> Self {
        let listed = known.join(", ");
        let listed = match known.is_empty() {
            true => "there is none".to_owned(),
            false => format!("known: {listed}"),
        };
        let error = format!("unknown {what} `{name}`; {listed}");
        let known = known.iter().map(|&name| name.to_owned()).collect();
        Self {
            known,
            ..Self::malformed(error).of(name)
        }
    }

    pub(super) fn missing(what: &str, name: &str) -> Self {
        Self::malformed(format_args!("missing {what} `{name}`")).of(name)
    }

    pub(super) fn answer(&self) -> Answer {
        json(self.status, self)
    }
}

impl From<KeyError> for Refused {
    fn from(error: KeyError) -> Self {
        let status = match &error {
            KeyError::UnknownRule { .. } => StatusCode::NOT_FOUND,
            KeyError::Store { .. } => StatusCode::BAD_GATEWAY,
            KeyError::NoRoom { .. } => StatusCode::INSUFFICIENT_STORAGE,
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        };
        let refused = Self::new(status, &error);
        let (field, known) = match error {
            KeyError::UnknownRule { known, .. } => ("rule", known),
            KeyError::Values { parts, .. } => ("values", parts),
            KeyError::Address { part, .. } => ("values", vec![part]),
            KeyError::NoKey { .. } | KeyError::Unable { .. } => ("rule", Vec::new()),
            _ => return refused,
        };
        Self {
            known,
            ..refused.of(field)
        }
    }
}

/// An object in JSON, of known fields.
#[derive(Debug)]
pub(super) struct Fields(Map<String, Value>);

impl Fields {
    pub(super) fn read(body: &[u8], known: &[&str]) -> Result<Self, Refused> {
        let fields: Map<String, Value> =
            serde_json::from_slice(body).map_err(Refused::malformed)?;
        match fields.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(Refused::unknown("field", name, known)),
            None => Ok(Self(fields)),
        }
    }

    pub(super) fn text(&self, name: &str) -> Result<&str, Refused> {
        let value = self.value(name)?;
        value.as_str().ok_or_else(|| wrong(name, value, "a text"))
    }

    pub(super) fn texts(&self, name: &str) -> Result<Vec<&str>, Refused> {
        let value = self.value(name)?;
        let texts = value.as_array().and_then(|all| {
            let texts = all.iter().map(Value::as_str);
            texts.collect()
        });
        texts.ok_or_else(|| wrong(name, value, "a list of texts"))
    }

    pub(super) fn is_set(&self, name: &str) -> Result<bool, Refused> {
        let value = self.value(name)?;
        let wrong = || wrong(name, value, "true or false");
        value.as_bool().ok_or_else(wrong)
    }

    pub(super) fn time(&self, name: &str) -> Result<Duration, Refused> {
        let value = self.value(name)?;
        let wrong = || {
            let what = "a length of time, such as \"10m\": a number, and ms, s, m, h or d";
            wrong(name, value, what)
        };
        value.as_str().and_then(time).ok_or_else(wrong)
    }

    fn value(&self, name: &str) -> Result<&Value, Refused> {
        let value = self.0.get(name);
        value.ok_or_else(|| Refused::missing("field", name))
    }
}

fn wrong(name: &str, value: &Value, what: &str) -> Refused {
    Refused::malformed(format_args!(
        "`{name}` is {}, but must be {what}",
        Short(value)
    ))
    .of(name)
}

/// A value as JSON, of which a long one is not shown.
struct Short<'v>(&'v Value);

impl Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        match text.len() <= 60 {
            true => f.write_str(&text),
            false => f.write_str("something else"),
        }
    }
}

/// Reads a length of time, with the units of quotas.
fn time(text: &str) -> Option<Duration> {
    let is_length = text.starts_with(|char: char| char.is_ascii_digit())
        && text.ends_with(|char: char| char.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let quota = is_length.then(|| format!("1/{text}").parse::<Quota>());
    let time = quota?.ok()?.period();
    (!time.is_zero()).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_have_the_units_of_quotas() {
        for (text, ms) in [
            ("250ms", 250),
            ("1s", 1000),
            ("10m", 600_000),
            ("10min", 600_000),
            ("2h", 7_200_000),
            ("7d", 604_800_000),
        ] {
            assert_eq!(time(text), Some(Duration::from_millis(ms)), "{text}");
        }
        for text in [
            "",
            "10",
            "m",
            "0s",
            "-1s",
            "1.5s",
            "1s burst 3",
            "1/s",
            "1fortnight",
        ] {
            assert_eq!(time(text), None, "{text}");
        }
        assert_eq!(time("99999999999999999999d"), None);
    }
}
