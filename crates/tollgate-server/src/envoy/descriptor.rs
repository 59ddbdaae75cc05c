//! A descriptor, as a set of facts.

use std::hash::{Hash, Hasher};

use tollgate_http::{AddressPrefix, PathForm};
use tollgate_policy::{FactKind, FactName, FactValue, FactValues, Facts};

use super::frame::Status;
use super::messages::{Entry, RateLimitDescriptor, RateLimitRequest};
use crate::overrides::{Override, Unit};

/// The most descriptors of a request. Each may add to the fields of the answer.
const MOST: usize = 100;

/// The entry that says what becomes of a descriptor's hits.
const HITS_MODE: &str = "hits-mode";

/// The fact that says a descriptor's hits.
const HITS: &str = "hits-addend";

/// The fact that says the limit which a descriptor brings.
const LIMIT_OVERRIDE: &str = "limit-override";

/// The entries that say the client's address.
const CLIENT: [&str; 2] = ["client-ip", "remote_address"];

/// What becomes of a descriptor's hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// They are taken if they are available. 0 hits only look.
    Take,
    /// They are given back.
    Refund,
    /// They are taken, whether they are available or not.
    Charge,
}

/// A descriptor that was checked.
#[derive(Debug)]
pub(super) struct Descriptor<'r> {
    domain: &'r str,
    entries: &'r [Entry],
    pub(super) hits: u64,
    pub(super) mode: Mode,
    pub(super) own: Option<Override>,
    own_text: Option<String>,
    form: PathForm,
}

/// A descriptor, and its position.
pub(super) type Placed<'a, 'r> = (usize, &'a Descriptor<'r>);

/// Reads the descriptors of a request.
///
/// # Errors
///
/// The field that can't be used.
pub(super) fn read(
    request: &RateLimitRequest,
    form: PathForm,
) -> Result<Vec<Descriptor<'_>>, Status> {
    if request.domain.is_empty() {
        return Err(Status::invalid("domain is empty"));
    }
    if request.descriptors.is_empty() {
        return Err(Status::invalid("descriptors is empty"));
    }
    let count = request.descriptors.len();
    if count > MOST {
        let message = format!("descriptors has {count} elements, but there are at most {MOST}");
        return Err(Status::invalid(message));
    }
    let descriptors = request.descriptors.iter().enumerate();
    let read = descriptors.map(|(index, descriptor)| {
        let read = Descriptor::read(request, descriptor, form);
        read.map_err(|why| Status::invalid(format!("descriptors[{index}].{why}")))
    });
    read.collect()
}

impl<'r> Descriptor<'r> {
    fn read(
        request: &'r RateLimitRequest,
        descriptor: &'r RateLimitDescriptor,
        form: PathForm,
    ) -> Result<Self, String> {
        let entries = &descriptor.entries;
        if entries.is_empty() {
            return Err("entries is empty".to_owned());
        }
        let mut mode = match descriptor.is_negative_hits {
            true => Mode::Refund,
            false => Mode::Take,
        };
        for (index, entry) in entries.iter().enumerate() {
            match (&*entry.key, &*entry.value, mode) {
                ("", ..) => return Err(format!("entries[{index}].key is empty")),
                (HITS_MODE, "charge", Mode::Refund) => {
                    return Err("is_negative_hits is set, but its hits are charged".to_owned());
                }
                (HITS_MODE, "charge", _) => mode = Mode::Charge,
                (HITS_MODE, value, _) => {
                    return Err(format!(
                        "entries[{index}].value is {value:?}, not \"charge\""
                    ));
                }
                _ => {}
            }
        }
        let own = match descriptor.limit {
            None => None,
            Some(limit) => Some(Override {
                requests: limit.requests_per_unit,
                unit: Unit::of_number(limit.unit)
                    .ok_or_else(|| format!("limit.unit is {}, which is no unit", limit.unit))?,
            }),
        };
        Ok(Self {
            domain: &request.domain,
            entries,
            hits: match (descriptor.hits_addend, request.hits_addend) {
                (Some(hits), _) => hits,
                (None, 0) => 1,
                (None, hits) => u64::from(hits),
            },
            mode,
            own,
            own_text: own.map(|own| format!("{}/{}", own.requests, own.unit.name())),
            form,
        })
    }

    /// Returns the values of the entries with one of these keys.
    fn entries(&self, keys: [&str; 2]) -> impl Iterator<Item = &'r str> {
        let entries = self.entries.iter();
        let found = entries.filter(move |entry| keys.contains(&&*entry.key));
        found.map(|entry| &*entry.value)
    }
}

impl Facts for Descriptor<'_> {
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        self.values(name).single()
    }

    fn values(&self, name: &FactName) -> FactValues<'_> {
        // What Envoy's request says itself can't be said by an entry too: a client may choose that.
        match (name.kind(), name.as_str()) {
            (FactKind::ClientIp, _) => {
                let addresses = self.entries(CLIENT);
                FactValues::of(addresses.map(FactValue::from))
            }
            // Envoy's path has the query.
            (FactKind::Path, _) => {
                let paths = self.entries(["path", ":path"]).map(|path| {
                    let end = path.find(['?', '#']);
                    let path = end.and_then(|end| path.get(..end)).unwrap_or(path);
                    FactValue::from(self.form.of(path))
                });
                FactValues::of(paths)
            }
            (FactKind::Method, _) => {
                FactValues::of(self.entries(["method", ":method"]).map(FactValue::from))
            }
            (FactKind::Host, _) => {
                FactValues::of(self.entries(["host", ":authority"]).map(FactValue::from))
            }
            (_, "domain") => FactValue::from(self.domain).into(),
            (_, HITS) => FactValue::from(self.hits).into(),
            (_, LIMIT_OVERRIDE) => self.own_text.as_ref().map(FactValue::from).into(),
            (_, name) => FactValues::of(self.entries([name; 2]).map(FactValue::from)),
        }
    }

    fn permits(&self) -> Option<u64> {
        Some(self.hits)
    }
}

/// The key of a limit that the descriptor brings: its domain and its entries.
impl Hash for Descriptor<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.domain.hash(state);
        for entry in self.entries.iter().filter(|entry| entry.key != HITS_MODE) {
            entry.key.hash(state);
            // A client has many addresses of one network, and they share its limit.
            let is_client = CLIENT.contains(&&*entry.key);
            match entry.value.parse() {
                Ok(address) if is_client => AddressPrefix::default().network(address).hash(state),
                _ => entry.value.hash(state),
            }
        }
    }
}
