//! The bytes of a request's key.
//!
//! Each part of a key has a tag, its bytes, and, if there are several parts, its length. The length
//! comes last, so a key is read from its end, and different keys have different bytes.

use std::net::IpAddr;

use smallvec::SmallVec;
use tollgate::address::canonical;

use super::fact::{RuleFact, can_be_key};
use crate::facts::{FactKind, FactName, FactValue, FactValues, Facts, Kind};
use crate::file::{Networks, Override, Repeated, Rule};
use crate::when::{clean_path, lower_host, with_text};

/// The bytes of the keys of a request. Short ones need no allocation.
pub(crate) type Bytes = SmallVec<[u8; 64]>;

const MISSING: u8 = 0;
const TEXT: u8 = 1;
const V4: u8 = 4;
const V6: u8 = 6;

/// What makes the key of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeySpec {
    parts: Vec<RuleFact>,
    repeated: Repeated,
    v4: u8,
    v6: u8,
}

/// Why a request has no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoKey {
    /// A fact is missing. The key has a mark in place of its value.
    Missing,
    /// A fact has several values.
    Ambiguous,
}

impl KeySpec {
    pub(crate) fn of(rule: &Rule) -> Self {
        let Networks { v4, v6 } = &rule.network;
        Self {
            parts: rule
                .key
                .iter()
                .map(|name| RuleFact::of(rule, name))
                .collect(),
            repeated: rule.repeated,
            v4: v4.value,
            v6: v6.value,
        }
    }

    /// Returns whether requests have different keys.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Appends the key of a request.
    pub(crate) fn push(&self, facts: &impl Facts, bytes: &mut Bytes) -> Result<(), NoKey> {
        let mut is_missing = false;
        for part in &self.parts {
            let value = of_values(part.values(facts), self.repeated)?;
            // A text that is no address would be a key that the client can choose.
            let value = value.filter(|value| can_be_key(&part.name, value));
            is_missing |= value.is_none();
            self.push_part(&part.name, value, bytes);
        }
        match is_missing {
            true => Err(NoKey::Missing),
            false => Ok(()),
        }
    }

    /// Returns the key that has these values.
    pub(crate) fn of_values<'v>(&self, values: impl IntoIterator<Item = &'v str>) -> Bytes {
        let mut bytes = Bytes::new();
        for (part, value) in self.parts.iter().zip(values) {
            self.push_part(&part.name, Some(value.into()), &mut bytes);
        }
        bytes
    }

    /// Returns the override of a key of the rule.
    pub(crate) fn override_of<'r>(&self, rule: &'r Rule, key: &[u8]) -> Option<&'r Override> {
        let bytes = |own: &Override| self.of_values(own.key.iter().map(String::as_str));
        let mut overrides = rule.overrides.iter();
        overrides.find(|own| bytes(own).as_slice() == key)
    }

    #[inline]
    fn push_part(&self, fact: &FactName, value: Option<FactValue<'_>>, bytes: &mut Bytes) {
        let start = bytes.len();
        self.push_value(fact, value, bytes);
        if self.parts.len() > 1 {
            push_length(bytes.len().saturating_sub(start), bytes);
        }
    }

    fn push_value(&self, fact: &FactName, value: Option<FactValue<'_>>, bytes: &mut Bytes) {
        let address = match (&value, fact.kind()) {
            (Some(FactValue::Address(address)), _) => Some(canonical(*address)),
            (Some(value), FactKind::ClientIp) => value.as_address(),
            _ => None,
        };
        match (address, value) {
            (Some(IpAddr::V4(address)), _) => {
                let kept = mask(32, self.v4) as u32;
                bytes.push(V4);
                bytes.extend_from_slice(&(address.to_bits() & kept).to_be_bytes());
            }
            (Some(IpAddr::V6(address)), _) => {
                let kept = mask(128, self.v6);
                bytes.push(V6);
                bytes.extend_from_slice(&(address.to_bits() & kept).to_be_bytes());
            }
            (None, None) => bytes.push(MISSING),
            (None, Some(value)) => {
                bytes.push(TEXT);
                push_text(fact.kind(), &value, bytes);
            }
        }
    }
}

/// Returns the value that is a part of a key.
#[inline]
pub(crate) fn of_values(
    values: FactValues<'_>,
    repeated: Repeated,
) -> Result<Option<FactValue<'_>>, NoKey> {
    let several = match values.0 {
        Kind::None => return Ok(None),
        Kind::One(value) => return Ok(Some(value)),
        Kind::Several(several) => several,
    };
    let mut known = several.known.into_iter();
    let value = match repeated {
        Repeated::Deny => None,
        Repeated::First => known.next(),
        Repeated::Last => known.next_back().filter(|_| !several.more),
    };
    value.map_or(Err(NoKey::Ambiguous), |value| Ok(Some(value)))
}

fn push_text(kind: FactKind<'_>, value: &FactValue<'_>, bytes: &mut Bytes) {
    with_text(value, |text| match kind {
        // The same host and path in other spellings is the same key.
        FactKind::Host => lower_host(text, |host| bytes.extend_from_slice(host.as_bytes())),
        FactKind::Path => bytes.extend_from_slice(clean_path(text).as_str().as_bytes()),
        _ => bytes.extend_from_slice(text.as_bytes()),
    });
}

/// Returns a mask that keeps the first bits of a number with this many bits.
const fn mask(bits: u32, kept: u8) -> u128 {
    let dropped = bits.saturating_sub(kept as u32);
    match u128::MAX.checked_shl(dropped) {
        Some(mask) => mask,
        None => 0,
    }
}

fn push_length(length: usize, bytes: &mut Bytes) {
    match u8::try_from(length) {
        Ok(length) if length < u8::MAX => bytes.push(length),
        _ => {
            bytes.extend_from_slice(&(length as u64).to_le_bytes());
            bytes.push(255);
        }
    }
}

/// Returns the values of the parts of a key that a request of this rule has.
pub(crate) fn key_values(rule: &Rule, key: &[u8]) -> Vec<String> {
    let mut values = Vec::with_capacity(rule.key.len());
    let mut rest = key;
    for _ in 0..rule.key.len() {
        let part = match rule.key.len() {
            1 => rest,
            _ => pop_part(&mut rest),
        };
        values.push(value_of(part, &rule.network));
    }
    values.reverse();
    values
}

/// Takes the last part of a key of several.
fn pop_part<'k>(rest: &mut &'k [u8]) -> &'k [u8] {
    let read = |rest: &'k [u8]| {
        let (last, before) = rest.split_last()?;
        let (length, before) = match *last {
            255 => {
                let (before, length) = before.split_last_chunk::<8>()?;
                (usize::try_from(u64::from_le_bytes(*length)).ok()?, before)
            }
            length => (length.into(), before),
        };
        before.split_at_checked(before.len().checked_sub(length)?)
    };
    let (before, part) = read(rest).unwrap_or_default();
    *rest = before;
    part
}

/// Returns the value of a part: its text, its address or network, or an empty text if it is
/// missing.
fn value_of(part: &[u8], networks: &Networks) -> String {
    let address = |address: IpAddr| networks.text_of(address);
    match part.split_first() {
        Some((&TEXT, text)) => String::from_utf8_lossy(text).into_owned(),
        Some((&V4, bits)) => {
            let bits = <[u8; 4]>::try_from(bits).map(IpAddr::from);
            bits.map(address).unwrap_or_default()
        }
        Some((&V6, bits)) => {
            let bits = <[u8; 16]>::try_from(bits).map(IpAddr::from);
            bits.map(address).unwrap_or_default()
        }
        _ => String::new(),
    }
}
