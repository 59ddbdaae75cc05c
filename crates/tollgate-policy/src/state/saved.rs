//! The state of a policy's limits, saved for the next process.
//!
//! ```text
//! state   = magic, seed (16 bytes), { section }, checksum of all before it (CRC-32, 4 bytes)
//! section = rule, limit (4 bytes), keys, number of texts (4 bytes), { text }, snapshot
//! ```
//!
//! The section of a rule's bans has the largest number as its limit, and no texts. The section of
//! the denials that count towards a ban has the number before it, and one text: the number of
//! denials and their period, as a quota. States of older versions lack it. `rule`, `keys`, `text`
//! and `snapshot` are a length of 4 bytes (8 for a snapshot) and their bytes. All numbers are in
//! little endian. The snapshots are the core's, with checksums of their own.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::time::Duration;

use tollgate::AnyAlgorithm;
use tollgate::algorithm::ChangeQuota;
use tollgate::error::RestoreError;
use tollgate::keyed::KeyHasher;

use crate::file::Rule;
use crate::limit::{PolicyClock, RuleLimit, Spec, Table};
use crate::policy::Policy;
use crate::rule::strikes_text;

const MAGIC: &[u8; 8] = b"tgpolic1";

/// The reason why the state of a policy can't be read.
///
/// ```
/// use tollgate_policy::{Policy, StateError};
///
/// let error = Policy::builder().restore(&mut "no state".as_bytes()).unwrap_err();
/// assert!(matches!(error, StateError::NotAState));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum StateError {
    /// The state can't be read.
    Io(io::Error),
    /// The first bytes are not those of a policy's state.
    NotAState,
    /// The state is damaged: its checksum does not match, or it ends too early.
    Damaged,
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "the state can't be read: {error}"),
            Self::NotAState => f.write_str("this is not the state of a policy"),
            Self::Damaged => f.write_str("the state is damaged"),
        }
    }
}

impl std::error::Error for StateError {}

impl From<io::Error> for StateError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A state that was read.
#[derive(Debug, Clone)]
pub(crate) struct Saved {
    pub(crate) seed: [u64; 2],
    /// The sections of each rule.
    sections: HashMap<String, Vec<Section>>,
    /// How old it is, if the time of day does not say so.
    elapsed: Option<Duration>,
}

/// The state of one limit.
#[derive(Debug, Clone)]
struct Section {
    limit: u32,
    keys: String,
    texts: Vec<String>,
    snapshot: Vec<u8>,
}

fn put(bytes: &[u8], out: &mut Vec<u8>) {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(bytes);
}

/// What the keys of a rule mean.
fn keys(rule: &Rule) -> String {
    let names: Vec<&str> = rule.key.iter().map(|name| name.as_str()).collect();
    let plans = rule.plan.iter().flat_map(|plan| &plan.limits);
    let plans: Vec<&str> = plans.map(|(name, _)| name.as_str()).collect();
    let network = (rule.network.v4.value, rule.network.v6.value);
    format!("{names:?} {network:?} {plans:?}")
}

impl<C: PolicyClock> Policy<C> {
    /// Writes the state of all limits, for
    /// [`PolicyBuilder::restore`](crate::PolicyBuilder::restore). It contains the secret seed of
    /// the keys' hashes: keep it secret too. Decisions go on meanwhile; grants that they make may
    /// be missing from it.
    ///
    /// Bans are saved, and so are the denials that count towards a ban. Requests that are inside a
    /// concurrency limit, and limits that the program registered, are not.
    ///
    /// # Errors
    ///
    /// The error of the writer.
    pub fn snapshot(&self, writer: &mut impl io::Write) -> io::Result<()> {
        let mut out = Vec::from(MAGIC);
        for half in self.hasher.seed().unwrap_or_default() {
            out.extend_from_slice(&half.to_le_bytes());
        }
        let mut checksum = crc32fast::Hasher::new();
        let mut flush = |out: &mut Vec<u8>| {
            checksum.update(out);
            let written = writer.write_all(out);
            out.clear();
            written
        };
        for rule in &self.rules {
            for (index, (limit, specs)) in rule.limits.iter().zip(&rule.specs).enumerate() {
                let mut snapshot = Vec::new();
                match &**limit {
                    RuleLimit::Table(table) => {
                        table.snapshot(&mut snapshot)?;
                    }
                    RuleLimit::Single(limiter) => snapshot.extend_from_slice(&limiter.snapshot()),
                    RuleLimit::Slots(_)
                    | RuleLimit::OneSlots(_)
                    | RuleLimit::Own(_)
                    | RuleLimit::Remote(_) => continue,
                }
                let texts: Vec<String> = specs.iter().map(text).collect();
                let index = u32::try_from(index).unwrap_or(BANS);
                put_section(&rule.source, index, &texts, &mut snapshot, &mut out);
                flush(&mut out)?;
            }
            if let Some(ban) = &rule.ban {
                // A key that is banned meanwhile leaves its strikes. If they came second, the state
                // could have neither its strikes nor its ban.
                for (limit, texts, table) in [
                    (
                        STRIKES,
                        vec![strikes_text(ban.attempts.is_some(), ban.after, ban.within)],
                        &ban.strikes,
                    ),
                    (BANS, Vec::new(), &ban.bans),
                ] {
                    let mut snapshot = Vec::new();
                    table.snapshot(&mut snapshot)?;
                    put_section(&rule.source, limit, &texts, &mut snapshot, &mut out);
                    flush(&mut out)?;
                }
            }
        }
        flush(&mut out)?;
        writer.write_all(&checksum.finalize().to_le_bytes())?;
        writer.flush()
    }
}

/// Returns what the text of a rate says. Nothing is saved of other limits.
fn text(spec: &Spec) -> String {
    match spec {
        Spec::Rate(algorithm) => algorithm.to_string(),
        Spec::Concurrency(_) | Spec::Own { .. } | Spec::Fixed(_) => String::new(),
    }
}

/// Stands for the position of a limit in the section of a rule's bans.
pub(crate) const BANS: u32 = u32::MAX;
/// The same for the denials that count towards a ban.
pub(crate) const STRIKES: u32 = u32::MAX - 1;

/// Writes the section of a limit, of strikes or of bans.
fn put_section(
    rule: &Rule,
    limit: u32,
    texts: &[String],
    snapshot: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    put(rule.name.as_bytes(), out);
    out.extend_from_slice(&limit.to_le_bytes());
    put(keys(rule).as_bytes(), out);
    out.extend_from_slice(&u32::try_from(texts.len()).unwrap_or(u32::MAX).to_le_bytes());
    texts.iter().for_each(|text| put(text.as_bytes(), out));
    out.extend_from_slice(&(snapshot.len() as u64).to_le_bytes());
    out.append(snapshot);
}

/// Takes parts off the front of a state.
struct Parts<'b>(&'b [u8]);

impl<'b> Parts<'b> {
    fn take(&mut self, length: usize) -> Result<&'b [u8], StateError> {
        let (part, rest) = self.0.split_at_checked(length).ok_or(StateError::Damaged)?;
        self.0 = rest;
        Ok(part)
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N], StateError> {
        let part = self.take(N)?;
        part.try_into().map_err(|_| StateError::Damaged)
    }

    fn text(&mut self) -> Result<String, StateError> {
        let length = u32::from_le_bytes(self.number()?);
        let bytes = self.take(usize::try_from(length).unwrap_or(usize::MAX))?;
        String::from_utf8(bytes.to_vec()).map_err(|_| StateError::Damaged)
    }

    /// Returns a section, with the name of its rule.
    fn section(&mut self) -> Result<(String, Section), StateError> {
        let rule = self.text()?;
        let limit = u32::from_le_bytes(self.number()?);
        let keys = self.text()?;
        let count = u32::from_le_bytes(self.number()?);
        let texts = (0..count).map(|_| self.text()).collect::<Result<_, _>>()?;
        let length = u64::from_le_bytes(self.number()?);
        let snapshot = self.take(usize::try_from(length).unwrap_or(usize::MAX))?;
        let section = Section {
            limit,
            keys,
            texts,
            snapshot: snapshot.to_vec(),
        };
        Ok((rule, section))
    }
}

impl Saved {
    pub(crate) fn read(
        reader: &mut dyn io::Read,
        elapsed: Option<Duration>,
    ) -> Result<Self, StateError> {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes)?;
        Self::parse(&bytes, elapsed)
    }

    fn parse(bytes: &[u8], elapsed: Option<Duration>) -> Result<Self, StateError> {
        if !bytes.starts_with(MAGIC) {
            return Err(StateError::NotAState);
        }
        let (content, checksum) = bytes.split_last_chunk::<4>().ok_or(StateError::Damaged)?;
        if crc32fast::hash(content) != u32::from_le_bytes(*checksum) {
            return Err(StateError::Damaged);
        }
        let mut parts = Parts(content);
        parts.take(MAGIC.len())?;
        let seed = [parts.number()?, parts.number()?].map(u64::from_le_bytes);
        let mut sections = HashMap::<_, Vec<_>>::new();
        while !parts.0.is_empty() {
            let (rule, section) = parts.section()?;
            sections.entry(rule).or_default().push(section);
        }
        Ok(Self {
            seed,
            sections,
            elapsed,
        })
    }

    /// Returns whether there is the state of a rule.
    pub(crate) fn has(&self, rule: &Rule) -> bool {
        self.sections.contains_key(rule.name.as_str())
    }

    /// Returns the section of a limit, of strikes or of bans.
    fn section(&self, rule: &Rule, limit: u32) -> Option<&Section> {
        let sections = self.sections.get(rule.name.as_str())?;
        sections.iter().find(|section| {
            looked_at(section);
            section.limit == limit
        })
    }

    /// Restores a table of bans or strikes, if the rule's keys mean the same as before, and if as
    /// many denials in the same period ban a key: `texts` say that.
    pub(crate) fn restore_table<C: PolicyClock>(
        &self,
        rule: &Rule,
        limit: u32,
        texts: &[String],
        table: &mut Table<C>,
    ) {
        let section = self.section(rule, limit);
        let is_same = |section: &&Section| section.keys == keys(rule) && section.texts == texts;
        if let Some(section) = section.filter(is_same) {
            // If it is damaged, the table is empty; the rule's limits report that.
            let _ = self.restore_keys(section, table);
        }
    }

    fn restore_keys<C: PolicyClock>(
        &self,
        section: &Section,
        table: &mut Table<C>,
    ) -> Result<(), RestoreError> {
        let mut snapshot = section.snapshot.as_slice();
        let restored = match self.elapsed {
            None => table.restore(&mut snapshot),
            Some(elapsed) => table.restore_after(&mut snapshot, elapsed),
        };
        restored.map(drop)
    }

    /// Restores a limit. If it can't go on, returns why.
    pub(crate) fn restore<C: PolicyClock>(
        &self,
        rule: &Rule,
        index: usize,
        specs: &[Spec],
        clock: &C,
        limit: &mut RuleLimit<C>,
    ) -> Result<(), &'static str> {
        let index = u32::try_from(index).ok();
        let Some(section) = index.and_then(|index| self.section(rule, index)) else {
            return match limit {
                RuleLimit::Table(_) | RuleLimit::Single(_) => {
                    Err("there is no state of this limit")
                }
                // Requests end with the process, and registered limits save themselves.
                _ => Ok(()),
            };
        };
        if section.keys != keys(rule) {
            return Err("its key changed");
        }
        if section.texts.len() != specs.len() {
            return Err("its algorithm changed");
        }
        for (text, spec) in section.texts.iter().zip(specs) {
            let was = text
                .parse::<AnyAlgorithm>()
                .ok()
                .map(|was| was.with_utc_of(clock));
            let is_same = match (was, spec) {
                (Some(was), Spec::Rate(spec)) => was.with_quota(spec.quota()) == Ok(*spec),
                (_, Spec::Fixed(_)) => true,
                _ => false,
            };
            if !is_same {
                return Err("its algorithm changed");
            }
        }
        let restored = match (limit, self.elapsed) {
            (RuleLimit::Table(table), _) => self.restore_keys(section, table),
            (RuleLimit::Single(limiter), None) => limiter.restore(&section.snapshot).map(drop),
            (RuleLimit::Single(limiter), Some(elapsed)) => {
                limiter.restore_after(&section.snapshot, elapsed)
            }
            _ => return Err("its algorithm changed"),
        };
        restored.map_err(|_| "its state is damaged")
    }
}

#[cfg(not(test))]
fn looked_at(_: &Section) {}

#[cfg(test)]
use tests::looked_at;

#[cfg(test)]
mod tests;
