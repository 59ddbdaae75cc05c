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

use flate2::read::MultiGzDecoder;
use serde_json::{Map, Value};

/// A line that does not say what it should. Never skipped: it fails the file.
#[derive(Debug)]
pub(crate) struct Malformed(pub(crate) String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A JSON object that knows which of its keys were read.
#[derive(Debug)]
pub(crate) struct Fields {
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
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
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

    pub(crate) fn u64(&self, key: &str) -> Result<u64, Malformed> {
        self.must(key, "a whole number from 0", Value::as_u64)
    }

    /// A number that something will be divided by, or one subtracted from.
    pub(crate) fn positive(&self, key: &str) -> Result<u64, Malformed> {
        self.must(key, "a whole number from 1", |value| {
            value.as_u64().filter(|&number| number > 0)
        })
    }

    /// The number, or nothing if the key is missing or null.
    pub(crate) fn optional_u64(&self, key: &str) -> Result<Option<u64>, Malformed> {
        self.get(key).map(|_| self.u64(key)).transpose()
    }

    pub(crate) fn i64(&self, key: &str) -> Result<i64, Malformed> {
        self.must(key, "a whole number", Value::as_i64)
    }

    pub(crate) fn f64(&self, key: &str) -> Result<f64, Malformed> {
        self.must(key, "a number", Value::as_f64)
    }

    pub(crate) fn flag(&self, key: &str) -> Result<bool, Malformed> {
        self.must(key, "true or false", Value::as_bool)
    }

    pub(crate) fn text(&self, key: &str) -> Result<&str, Malformed> {
        self.must(key, "a string", Value::as_str)
    }

    pub(crate) fn list(&self, key: &str) -> Result<&[Value], Malformed> {
        self.must(key, "a list", |value| Some(value.as_array()?.as_slice()))
    }

    /// The objects in a list.
    pub(crate) fn objects(&self, key: &str) -> Result<Vec<Fields>, Malformed> {
        let list = self.list(key)?.iter();
        list.map(|value| Self::new(value.clone(), key)).collect()
    }

    /// The keys that nobody asked for.
    pub(crate) fn unread(&self) -> Vec<&str> {
        let read = self.read.borrow();
        let keys = self.map.keys().map(String::as_str);
        keys.filter(|key| !read.contains(*key)).collect()
    }
}

/// The first line of a trace.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) source: String,
    pub(crate) algorithm: String,
    pub(crate) trace: String,
    /// How many ops follow.
    pub(crate) ops: u64,
    pub(crate) config: Fields,
    /// What some sources say beside their configuration.
    pub(crate) variant: Option<String>,
}

/// One recorded call.
#[derive(Debug)]
pub(crate) struct Op {
    pub(crate) name: String,
    /// `t` and the arguments.
    pub(crate) args: Fields,
    pub(crate) result: Fields,
}

impl Op {
    /// The call, for whoever reads a failure.
    pub(crate) fn asked(&self) -> String {
        let args = self.args.map.iter().filter(|(key, _)| *key != "op");
        let args: Vec<String> = args.map(|(key, value)| format!("{key} {value}")).collect();
        format!("{}({})", self.name, args.join(", "))
    }

    /// The error for an operation that an adapter has no verb for.
    pub(crate) fn unknown(&self) -> Malformed {
        Malformed(format!(
            "there is no operation `{}` in this source",
            self.name
        ))
    }
}

#[derive(Debug)]
pub(crate) enum Line {
    Header(Header),
    Op(Op),
}

impl Line {
    pub(crate) fn parse(text: &str) -> Result<Self, Malformed> {
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

/// Whether the runner reads a file of this name.
pub(crate) fn is_trace_file(name: &str) -> bool {
    name.ends_with(".jsonl") || name.ends_with(".jsonl.gz")
}

/// The text of a file, unpacked if its name says that it is packed.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut text = String::new();
    if path.extension().is_some_and(|extension| extension == "gz") {
        MultiGzDecoder::new(file).read_to_string(&mut text)?;
    } else {
        file.read_to_string(&mut text)?;
    }
    Ok(text)
}
