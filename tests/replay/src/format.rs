//! The recorded form: JSON Lines, plain or gzipped.
//!
//! A line with the key `source` is a [`Header`] and starts a trace with a fresh limiter. Every
//! other line is an [`Op`]: when (`t`), what (`op`), its arguments, and the `result`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use serde_json::{Map, Value};

/// A line that does not say what it should. Never skipped: it fails the file.
#[derive(Debug)]
pub struct Malformed(pub String);

impl std::error::Error for Malformed {}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A JSON object that knows which of its keys were read.
#[derive(Debug)]
pub struct Fields {
    map: Map<String, Value>,
    read: RefCell<BTreeSet<String>>,
}

impl Fields {
    fn new(value: Value, what: &str) -> Result<Self, Malformed> {
        match value {
            Value::Object(map) => Ok(Self {
                map,
                read: RefCell::default(),
            }),
            other => Err(Malformed(format!("{what} is no object: {other}"))),
        }
    }

    /// The value, unless the key is missing or null.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.read.borrow_mut().insert(key.to_owned());
        self.map.get(key).filter(|value| !value.is_null())
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

    /// A number that can't be below zero.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if there is none.
    pub fn u64(&self, key: &str) -> Result<u64, Malformed> {
        self.must(key, "a whole number from 0", Value::as_u64)
    }

    /// A number that something will be divided by, or one subtracted from.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if there is none.
    pub fn positive(&self, key: &str) -> Result<u64, Malformed> {
        self.must(key, "a whole number from 1", |value| {
            value.as_u64().filter(|&number| number > 0)
        })
    }

    /// The number, or nothing if the key is missing or null.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if it is something else.
    pub fn optional_u64(&self, key: &str) -> Result<Option<u64>, Malformed> {
        self.get(key).map(|_| self.u64(key)).transpose()
    }

    /// A number that may be below zero.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if there is none.
    pub fn i64(&self, key: &str) -> Result<i64, Malformed> {
        self.must(key, "a whole number", Value::as_i64)
    }

    /// Any number.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if there is none.
    pub fn f64(&self, key: &str) -> Result<f64, Malformed> {
        self.must(key, "a number", Value::as_f64)
    }

    /// Yes or no.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if there is none.
    pub fn flag(&self, key: &str) -> Result<bool, Malformed> {
        self.must(key, "true or false", Value::as_bool)
    }

    /// A string.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if there is none.
    pub fn text(&self, key: &str) -> Result<&str, Malformed> {
        self.must(key, "a string", Value::as_str)
    }

    /// A list of anything.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if there is none.
    pub fn list(&self, key: &str) -> Result<&[Value], Malformed> {
        self.must(key, "a list", |value| Some(value.as_array()?.as_slice()))
    }

    /// The objects in a list.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if there is no list, or something else in it.
    pub fn objects(&self, key: &str) -> Result<Vec<Fields>, Malformed> {
        let list = self.list(key)?.iter();
        list.map(|value| Self::new(value.clone(), key)).collect()
    }

    /// The keys that nobody asked for.
    pub fn unread(&self) -> Vec<&str> {
        let read = self.read.borrow();
        let keys = self.map.keys().map(String::as_str);
        keys.filter(|key| !read.contains(*key)).collect()
    }
}

/// The first line of a trace.
#[derive(Debug)]
pub struct Header {
    /// The recorded limiter: its name and version.
    pub source: String,
    /// Which of its algorithms.
    pub algorithm: String,
    /// The trace's name, of which its file has no other.
    pub trace: String,
    /// How many ops follow.
    pub ops: u64,
    /// Its configuration, in its own words.
    pub config: Fields,
    /// What some sources say beside their configuration.
    pub variant: Option<String>,
    /// When the limiter was made, on the trace's axis, where it says so.
    pub start: Option<u64>,
    /// What the limiter held then, in its own words; nothing where it does not say so.
    pub initial: Fields,
    /// How long after 1970-01-01 UTC the trace's times begin, where it says so in whole seconds or
    /// milliseconds.
    origin: Option<Duration>,
}

impl Header {
    /// When the limiter was made, on the trace's axis, which one that starts empty needs.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if the header does not say.
    pub fn time_zero(&self) -> Result<u64, Malformed> {
        self.start
            .ok_or_else(|| Malformed("it does not say when its limiter was made".to_owned()))
    }

    /// The origin, which windows that are aligned to the epoch need.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if there is none.
    pub fn origin(&self) -> Result<Duration, Malformed> {
        self.origin
            .ok_or_else(|| Malformed("it does not say where its times begin".to_owned()))
    }
}

/// One recorded call.
#[derive(Debug)]
pub struct Op {
    /// What was called.
    pub name: String,
    /// `t` and the arguments.
    pub args: Fields,
    /// What it answered.
    pub result: Fields,
}

impl Op {
    /// The call, for whoever reads a failure.
    pub fn asked(&self) -> String {
        let args = self.args.map.iter().filter(|(key, _)| *key != "op");
        let args: Vec<String> = args.map(|(key, value)| format!("{key} {value}")).collect();
        format!("{}({})", self.name, args.join(", "))
    }

    /// The error for an operation that an adapter has no verb for.
    pub fn unknown(&self) -> Malformed {
        Malformed(format!(
            "there is no operation `{}` in this source",
            self.name
        ))
    }
}

/// A line of a file.
#[derive(Debug)]
pub enum Line {
    /// It begins a trace.
    Header(Header),
    /// It is a call in the trace that was begun last.
    Op(Op),
}

impl Line {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if it is neither.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let value = serde_json::from_str(text).map_err(|e| Malformed(format!("no JSON: {e}")))?;
        let mut fields = Fields::new(value, "the line")?;
        if fields.map.contains_key("source") {
            return Ok(Self::Header(Header {
                source: fields.text("source")?.to_owned(),
                algorithm: fields.text("algorithm")?.to_owned(),
                trace: fields.text("trace")?.to_owned(),
                ops: fields.u64("ops")?,
                variant: match fields.get("variant") {
                    Some(_) => Some(fields.text("variant")?.to_owned()),
                    None => None,
                },
                origin: origin(&fields)?,
                start: fields.optional_u64("t0")?,
                initial: match fields.map.remove("initial") {
                    Some(initial) => Fields::new(initial, "`initial`")?,
                    None => Fields::new(Value::Object(Map::new()), "`initial`")?,
                },
                config: Fields::new(fields.map.remove("config").unwrap_or_default(), "`config`")?,
            }));
        }
        let name = fields.text("op")?.to_owned();
        fields.f64("t")?;
        let result = fields.map.remove("result").unwrap_or_default();
        Ok(Self::Op(Op {
            name,
            result: Fields::new(result, "`result`")?,
            args: fields,
        }))
    }
}

fn origin(header: &Fields) -> Result<Option<Duration>, Malformed> {
    let seconds = header.optional_u64("t_base_unix_s")?;
    let millis = header.optional_u64("t_base_unix_ms")?;
    Ok(seconds
        .map(Duration::from_secs)
        .or(millis.map(Duration::from_millis)))
}

/// Whether the runner reads a file of this name.
#[must_use]
pub fn is_trace_file(name: &str) -> bool {
    name.ends_with(".jsonl") || name.ends_with(".jsonl.gz")
}

/// The text of a file, unpacked if its name says that it is packed.
///
/// # Errors
///
/// The system's, and those of unpacking.
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
