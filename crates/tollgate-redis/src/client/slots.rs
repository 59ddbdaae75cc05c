//! Slots of a cluster: which slot a key is in, and which node has it.

use redis::Value;

/// How many slots a cluster has.
pub(super) const SLOTS: u16 = 16_384;

/// A range of slots, and the address of the node that has them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) first: u16,
    pub(super) last: u16,
    pub(super) address: Address,
}

/// Where a node listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
}

impl Address {
    /// Reads `host:port` as a redirect has it. An empty host means the node that answered, and `?`
    /// a node that it does not know.
    pub(super) fn of_redirect(text: &str, answering: &Self) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        Self::of(host, port.parse().ok()?, answering)
    }

    fn of(host: &str, port: u16, answering: &Self) -> Option<Self> {
        let host = match host {
            "?" => return None,
            "" => &answering.host,
            host => host,
        };
        Some(Self {
            host: host.to_owned(),
            port,
        })
    }
}

/// Returns the slot of a key: of what is in its first braces, or of the whole key.
pub(super) fn slot_of(key: &[u8]) -> u16 {
    let in_braces = || {
        let open = key.iter().position(|&byte| byte == b'{')?;
        let rest = key.get(open.checked_add(1)?..)?;
        let close = rest.iter().position(|&byte| byte == b'}')?;
        rest.get(..close).filter(|tag| !tag.is_empty())
    };
    crc16(in_braces().unwrap_or(key)) % SLOTS
}

/// CRC-16 with the polynomial 0x1021 (XMODEM).
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| {
        let crc = crc ^ u16::from(byte) << 8;
        (0..8).fold(crc, |crc: u16, _| match crc & 0x8000 {
            0 => crc << 1,
            _ => crc << 1 ^ 0x1021,
        })
    })
}

/// Reads the answer to `CLUSTER SLOTS`. What can't be read is left out.
pub(super) fn ranges(answer: Value, answering: &Address) -> Vec<Range> {
    list(answer)
        .into_iter()
        .filter_map(|range| {
            let mut fields = list(range).into_iter();
            let (first, last) = (number(fields.next()?)?, number(fields.next()?)?);
            // The first node is the primary. Replicas follow.
            let mut node = list(fields.next()?).into_iter();
            let host = match node.next()? {
                Value::BulkString(bytes) => String::from_utf8(bytes).ok()?,
                Value::SimpleString(text) => text,
                Value::Nil => String::new(),
                _ => return None,
            };
            let address = Address::of(&host, number(node.next()?)?, answering)?;
            (first <= last && last < SLOTS).then_some(Range {
                first,
                last,
                address,
            })
        })
        .collect()
}

fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(values) => values,
        _ => Vec::new(),
    }
}

fn number(value: Value) -> Option<u16> {
    match value {
        Value::Int(number) => u16::try_from(number).ok(),
        _ => None,
    }
}

#[cfg(test)]
#[path = "../../tests/slots/mod.rs"]
mod tests;
