//! Values of facts, in the form in which patterns are compared with them.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::fmt::{self, Write};
use std::net::IpAddr;

use smallvec::SmallVec;
use tollgate::address::canonical;

use crate::facts::{FactKind, FactName, FactValue, Facts, Kind};

use super::path::segments;

/// The value of a fact. A host is in lower case and has no port, and a path has no query.
pub(super) enum Input<'v> {
    Text(Cow<'v, str>),
    /// A text that had to be changed or made.
    Made(Buffer),
    /// The address of a client, which is compared with networks only.
    Address(IpAddr),
}

/// The values of a fact.
pub(super) enum Inputs<'v> {
    None,
    One(Input<'v>),
    Several {
        known: Vec<Input<'v>>,
        /// Whether there can be others.
        more: bool,
    },
}

impl<'v> Inputs<'v> {
    /// Reads a fact.
    #[inline]
    pub(super) fn read(facts: &'v (impl Facts + ?Sized), name: &FactName) -> Self {
        let several = match facts.values(name).0 {
            Kind::None => return Self::None,
            Kind::One(value) => return Self::One(Input::new(name, value)),
            Kind::Several(several) => several,
        };
        let known = several.known.into_iter();
        Self::Several {
            known: known.map(|value| Input::new(name, value)).collect(),
            more: several.more,
        }
    }
}

/// A place for each fact of a request. It is large, so it is not moved.
pub(super) type Places<'v> = SmallVec<[OnceCell<Inputs<'v>>; 12]>;

/// The facts of a request, each read at most once.
pub(super) struct Request<'m, 'v, F: ?Sized> {
    names: &'m [FactName],
    facts: &'v F,
    inputs: &'m [OnceCell<Inputs<'v>>],
    /// Whether a fact that was read has several values.
    several: Cell<bool>,
}

impl<'m, 'v, F: Facts + ?Sized> Request<'m, 'v, F> {
    #[inline]
    pub(super) fn new(names: &'m [FactName], facts: &'v F, inputs: &'m mut Places<'v>) -> Self {
        inputs.resize_with(names.len(), OnceCell::new);
        Self {
            names,
            facts,
            inputs,
            several: Cell::new(false),
        }
    }

    /// Returns a fact by its number.
    pub(super) fn inputs(&self, fact: usize) -> Option<&Inputs<'v>> {
        let name = self.names.get(fact)?;
        let inputs = self.inputs.get(fact)?;
        Some(inputs.get_or_init(|| {
            let inputs = Inputs::read(self.facts, name);
            if matches!(inputs, Inputs::Several { .. }) {
                self.several.set(true);
            }
            inputs
        }))
    }

    /// Returns a fact by its name.
    pub(super) fn of(&self, name: &FactName) -> Option<&Inputs<'v>> {
        self.inputs(self.names.iter().position(|known| known.is_same(name))?)
    }

    /// Returns whether a fact that was read has several values.
    pub(super) fn has_several(&self) -> bool {
        self.several.get()
    }
}

/// A text that does not allocate if it has at most 64 bytes, as numbers and addresses have.
#[derive(Default)]
pub(crate) struct Buffer(SmallVec<[u8; 64]>);

impl Write for Buffer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

impl Buffer {
    fn of(value: impl fmt::Display) -> Self {
        let mut buffer = Self::default();
        // Writing to memory never fails.
        let _ = write!(buffer, "{value}");
        buffer
    }

    fn lower_case(text: &str) -> Self {
        let mut buffer = Self(SmallVec::from_slice(text.as_bytes()));
        buffer.0.make_ascii_lowercase();
        buffer
    }

    fn as_str(&self) -> &str {
        // Only texts were written.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl<'v> Input<'v> {
    #[inline]
    pub(super) fn new(name: &FactName, value: FactValue<'v>) -> Self {
        let text = match value {
            FactValue::Text(text) => text,
            FactValue::Number(number) => return Self::Made(Buffer::of(number)),
            FactValue::Address(address) => {
                let address = canonical(address);
                return match name.kind() {
                    FactKind::ClientIp => Self::Address(address),
                    _ => Self::Made(Buffer::of(address)),
                };
            }
        };
        match name.kind() {
            FactKind::ClientIp => match FactValue::Text(Cow::Borrowed(&text)).as_address() {
                Some(address) => Self::Address(address),
                None => Self::Text(text),
            },
            FactKind::Host => Self::host(text),
            _ => Self::Text(text),
        }
    }

    #[inline]
    fn host(text: Cow<'v, str>) -> Self {
        match text {
            Cow::Borrowed(text) => {
                let host = bare_host(text);
                if !has_upper_case(host) {
                    return Self::Text(Cow::Borrowed(host));
                }
                Self::Made(Buffer::lower_case(host))
            }
            Cow::Owned(text) => Self::Made(Buffer::lower_case(bare_host(&text))),
        }
    }

    /// The value as text.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Made(buffer) => buffer.as_str(),
            Self::Address(_) => "",
        }
    }

    /// The value as an address, if it is one.
    pub(super) fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Address(address) => Some(*address),
            text => FactValue::from(text.text()).as_address(),
        }
    }
}

/// Whether a text has a letter in upper case. It reads all bytes, which is faster than to stop.
fn has_upper_case(text: &str) -> bool {
    text.bytes()
        .fold(false, |has, byte| has | byte.is_ascii_uppercase())
}

/// A host without its port, and without the dot that can end a full name. A bare host stays as it
/// is, so that the value of a key is the value of the same key.
fn bare_host(host: &str) -> &str {
    let address = host.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let host = address.map_or(host, |(address, _)| address);
    // An address of version 6 without brackets has several colons.
    let host = match host.bytes().filter(|byte| *byte == b':').count() {
        1 => host.split_once(':').map_or(host, |(host, _)| host),
        _ => host,
    };
    host.trim_end_matches('.')
}

/// Passes a value as text to `use_text`. Numbers and addresses need no allocation.
pub(crate) fn with_text<T>(value: &FactValue<'_>, use_text: impl FnOnce(&str) -> T) -> T {
    match value {
        FactValue::Text(text) => use_text(text),
        FactValue::Number(number) => use_text(Buffer::of(number).as_str()),
        FactValue::Address(address) => use_text(Buffer::of(canonical(*address)).as_str()),
    }
}

/// Passes a host in lower case and without its port to `use_host`.
pub(crate) fn lower_host(host: &str, use_host: impl FnOnce(&str)) {
    use_host(Input::host(Cow::Borrowed(host)).text());
}

/// A path with single slashes, without one at its end, and without the query.
pub(crate) fn clean_path(path: &str) -> CleanPath<'_> {
    let text = path.split_once('?').map_or(path, |(path, _)| path);
    let clean = text.starts_with('/') && !text.contains("//");
    if clean && (text.len() == 1 || !text.ends_with('/')) {
        return CleanPath::Borrowed(text);
    }
    let mut made = Buffer::default();
    for segment in segments(text) {
        let _ = made.write_str("/").and_then(|()| made.write_str(segment));
    }
    if made.0.is_empty() {
        return CleanPath::Borrowed("/");
    }
    CleanPath::Made(made)
}

/// A path that is compared as a text.
pub(crate) enum CleanPath<'p> {
    Borrowed(&'p str),
    Made(Buffer),
}

impl CleanPath<'_> {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(path) => path,
            Self::Made(buffer) => buffer.as_str(),
        }
    }
}
