//! The recorded format: JSON Lines, plain or gzipped.
//!
//! A line with the key `source` is a [`Header`] and starts a trace with a fresh limiter. Every
//! other line is an [`Op`]: the time (`t`), the call (`op`), its arguments, and the `result`.

use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use serde_json::{Map, Value};

/// A line that lacks a required value. It is never skipped: it fails the file.
#[derive(Debug)]
pub struct Malformed(pub String);

impl std::error::Error for Malformed {}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A JSON object that tracks which of its keys were read.
///
/// Every getter returns [`Malformed`] if the key is missing or its value has the wrong type.
#[derive(Debug)]
pub struct Fields(Vec<Field>);

#[derive(Debug)]
struct Field {
    key: String,
    value: Value,
    is_read: Cell<bool>,
}

impl Fields {
    fn new(value: Value, what: &str) -> Result<Self, Malformed> {
        let Value::Object(map) = value else {
            return Err(Malformed(format!("{what} is not an object: {value}")));
        };
        let fields = map.into_iter().map(|(key, value)| Field {
            key,
            value,
            is_read: Cell::new(false),
        });
        Ok(Self(fields.collect()))
    }

    /// Returns the value, unless the key is missing or null.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let field = self.0.iter().find(|field| field.key == key)?;
        field.is_read.set(true);
        (!field.value.is_null()).then_some(&field.value)
    }

    fn must<'a, T>(
        &'a self,
        key: &str,
        kind: &str,
        convert: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<T, Malformed> {
        let found = self.get(key);
        found.and_then(convert).ok_or_else(|| {
            let found = found.map_or_else(|| "nothing".to_owned(), Value::to_string);
            Malformed(format!("`{key}` should be {kind}, found {found}"))
        })
    }

    /// Returns a number that is not negative.
    pub fn u64(&self, key: &str) -> Result<u64, Malformed> {
        self.must(key, "a whole number from 0", Value::as_u64)
    }

    /// Returns a number above zero.
    pub fn positive(&self, key: &str) -> Result<u64, Malformed> {
        let positive = |value: &Value| value.as_u64().filter(|&number| number > 0);
        self.must(key, "a whole number from 1", positive)
    }

    /// Returns the number, or `None` if the key is missing or null.
    pub fn optional_u64(&self, key: &str) -> Result<Option<u64>, Malformed> {
        self.get(key).map(|_| self.u64(key)).transpose()
    }

    /// Returns a whole number that may be negative.
    pub fn i64(&self, key: &str) -> Result<i64, Malformed> {
        self.must(key, "a whole number", Value::as_i64)
    }

    /// Returns any number.
    pub fn f64(&self, key: &str) -> Result<f64, Malformed> {
        self.must(key, "a number", Value::as_f64)
    }

    /// Returns a boolean.
    pub fn flag(&self, key: &str) -> Result<bool, Malformed> {
        self.must(key, "true or false", Value::as_bool)
    }

    /// Returns a string.
    pub fn text(&self, key: &str) -> Result<&str, Malformed> {
        self.must(key, "a string", Value::as_str)
    }

    /// Returns a list of any values.
    pub fn list(&self, key: &str) -> Result<&[Value], Malformed> {
        self.must(key, "a list", |value| Some(value.as_array()?.as_slice()))
    }

    /// Returns the objects in a list.
    pub fn objects(&self, key: &str) -> Result<Vec<Fields>, Malformed> {
        let list = self.list(key)?.iter();
        list.map(|value| Self::new(value.clone(), key)).collect()
    }

    /// Returns the keys that were never read.
    pub fn unread(&self) -> impl Iterator<Item = &str> {
        let unread = self.0.iter().filter(|field| !field.is_read.get());
        unread.map(|field| field.key.as_str())
    }

    /// Takes the value out, so that it can be read on its own.
    fn take(&mut self, key: &str) -> Option<Value> {
        let position = self.0.iter().position(|field| field.key == key)?;
        Some(self.0.remove(position).value)
    }
}

/// The first line of a trace.
#[derive(Debug)]
pub struct Header {
    /// The name and version of the recorded limiter.
    pub source: String,
    /// The recorded limiter's algorithm.
    pub algorithm: String,
    /// The trace's name, unique in its file.
    pub trace: String,
    /// The number of ops that follow.
    pub ops: u64,
    /// The configuration, in the recorded limiter's own terms.
    pub config: Fields,
    /// A variant, for sources that have one beside their configuration.
    pub variant: Option<String>,
    /// When the limiter was created, on the trace's time axis, if recorded.
    pub start: Option<u64>,
    /// The limiter's initial state, in its own terms. Empty if not recorded.
    pub initial: Fields,
    /// The time from 1970-01-01 UTC to the trace's time zero, if it is recorded in whole seconds or
    /// milliseconds.
    origin: Option<Duration>,
}

impl Header {
    /// Returns when the limiter was created, on the trace's time axis. A limiter that starts empty
    /// needs it.
    pub fn time_zero(&self) -> Result<u64, Malformed> {
        required(self.start, "`t0`, the time when the limiter was created")
    }

    /// Returns the origin, which windows aligned to the epoch need.
    pub fn origin(&self) -> Result<Duration, Malformed> {
        required(self.origin, "`t_base_unix_s` or `t_base_unix_ms`")
    }
}

fn required<T>(value: Option<T>, name: &str) -> Result<T, Malformed> {
    value.ok_or_else(|| Malformed(format!("the header has no {name}")))
}

/// One recorded call.
#[derive(Debug)]
pub struct Op {
    /// The name of the call.
    pub name: String,
    /// `t` and the arguments.
    pub args: Fields,
    /// The recorded answer.
    pub result: Fields,
}

impl Op {
    /// Returns the time of the call in nanoseconds. `t` counts units of `unit_ns`.
    pub fn t_ns(&self, unit_ns: u64) -> Result<u64, Malformed> {
        Ok(self.args.u64("t")?.saturating_mul(unit_ns))
    }

    /// Formats the call for a failure message.
    pub(crate) fn asked(&self) -> String {
        let args = self.args.0.iter().filter(|field| field.key != "op");
        let args = args.map(|Field { key, value, .. }| format!("{key} {value}"));
        format!("{}({})", self.name, args.collect::<Vec<_>>().join(", "))
    }

    /// Returns an error if the call has another name than this one.
    pub fn must_be(&self, name: &str) -> Result<(), Malformed> {
        match self.name == name {
            true => Ok(()),
            false => Err(self.unknown()),
        }
    }

    /// Returns the error for an operation that an adapter does not know.
    pub fn unknown(&self) -> Malformed {
        let name = &self.name;
        Malformed(format!("unknown operation `{name}`"))
    }
}

/// A line of a file.
#[derive(Debug)]
pub(crate) enum Line {
    /// The header of a new trace.
    Header(Header),
    /// A call in the current trace.
    Op(Op),
}

impl Line {
    /// Parses a line.
    pub(crate) fn parse(text: &str) -> Result<Self, Malformed> {
        // Uses `parse` and not `serde_json::from_str`, which would be compiled here, without
        // optimizations.
        let value = text
            .parse()
            .map_err(|e| Malformed(format!("no JSON: {e}")))?;
        let mut fields = Fields::new(value, "the line")?;
        if fields.0.iter().any(|field| field.key == "source") {
            let seconds = fields
                .optional_u64("t_base_unix_s")?
                .map(Duration::from_secs);
            let millis = fields
                .optional_u64("t_base_unix_ms")?
                .map(Duration::from_millis);
            let variant = fields.get("variant").map(|_| fields.text("variant"));
            let variant = variant.transpose()?.map(str::to_owned);
            let nothing = || Value::Object(Map::new());
            let initial = fields.take("initial").unwrap_or_else(nothing);
            let config = fields.take("config").unwrap_or_default();
            return Ok(Self::Header(Header {
                source: fields.text("source")?.to_owned(),
                algorithm: fields.text("algorithm")?.to_owned(),
                trace: fields.text("trace")?.to_owned(),
                ops: fields.u64("ops")?,
                variant,
                origin: seconds.or(millis),
                start: fields.optional_u64("t0")?,
                initial: Fields::new(initial, "`initial`")?,
                config: Fields::new(config, "`config`")?,
            }));
        }
        let name = fields.text("op")?.to_owned();
        fields.f64("t")?;
        let result = fields.take("result").unwrap_or_default();
        Ok(Self::Op(Op {
            name,
            result: Fields::new(result, "`result`")?,
            args: fields,
        }))
    }
}

/// Returns whether the runner reads a file of this name.
pub(crate) fn is_trace_file(name: &str) -> bool {
    name.ends_with(".jsonl") || name.ends_with(".jsonl.gz")
}

/// Returns the text of a file, unzipped if its name ends with `.gz`.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut text = String::new();
    if path.extension().is_some_and(|extension| extension == "gz") {
        MultiGzDecoder::new(file).read_to_string(&mut text)?;
    } else {
        file.read_to_string(&mut text)?;
    }
    Ok(text)
}
