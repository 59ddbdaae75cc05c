//! What to send for each verb, and what the replies mean. Any reply is accepted or refused; none
//! panics.
//!
//! A call asks about several different keys in one slot.

use std::time::Duration;

use tollgate::Denied;
use tollgate::outcome::Charged;

use crate::client::Reply;
use crate::lease::held::MOST_HELD;
use crate::lease::holder::{Answer, Ask};
use crate::limit::bounds::SPAN;
use crate::limit::kind::{Kind, Mark, Seen, Taken};
use crate::script::packed::{self, BadReply, Packed, pack};
use crate::script::{self, Kinds, Script, Verb};

/// What a client sends: a script, its keys and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) script: &'static Script,
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) args: Vec<Vec<u8>>,
}

/// One key of a call: `n` permits of the limit that is stored under `key`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) kind: &'a Kind,
    pub(crate) n: u64,
}

/// Takes the permits of all parts, or of none. [`taken`] reads the reply.
///
/// # Errors
///
/// A part that asks for more than fits is never granted, so the server is not asked.
pub(crate) fn take(parts: &[Part<'_>]) -> Result<Call, (usize, Denied)> {
    for (i, part) in parts.iter().enumerate() {
        let limit = part.kind.most();
        if part.n > limit {
            return Err((i, Denied::never(part.n, limit)));
        }
    }
    let kinds = kinds(parts);
    let takes = parts.iter().all(|part| part.n > 0);
    let script = match (kinds, parts) {
        (Kinds::Bucket, [_]) if takes => script::take_one_bucket(),
        (Kinds::Bucket, _) if takes => script::take_buckets(),
        _ => script::script(Verb::Take, kinds),
    };
    let args = parts.iter().map(|part| part.kind.argument(part.n));
    Ok(call(script, parts.iter(), args))
}

/// Takes the permits of a bucket that are due within `wait` microseconds. [`reserved`] reads the
/// reply.
///
/// # Errors
///
/// As for [`take`].
pub(crate) fn reserve(part: Part<'_>, wait: u64) -> Result<Call, Denied> {
    let limit = part.kind.most();
    if part.n > limit {
        return Err(Denied::never(part.n, limit));
    }
    let arg = part.kind.reserving(part.n, wait);
    Ok(call(script::reserve(), [part].iter(), [arg].into_iter()))
}

/// Reads the state of the parts' keys. [`seen`] reads the reply.
pub(crate) fn look(parts: &[Part<'_>]) -> Call {
    let args = parts.iter().map(|part| part.kind.argument(part.n));
    call(script::script(Verb::Look, kinds(parts)), parts.iter(), args)
}

/// Gives permits back: those of a grant with its mark (an undo), or any (a refund, without a mark).
/// [`given`] reads the reply.
pub(crate) fn give(parts: &[(Part<'_>, Option<Mark>)]) -> Call {
    let args = parts
        .iter()
        .map(|(part, mark)| part.kind.giving(part.n, *mark));
    let parts: Vec<_> = parts.iter().map(|(part, _)| *part).collect();
    call(
        script::script(Verb::Give, kinds(&parts)),
        parts.iter(),
        args,
    )
}

/// Takes permits unconditionally. [`charged`] reads the reply.
pub(crate) fn charge(parts: &[Part<'_>]) -> Call {
    let args = parts.iter().map(|part| part.kind.argument(part.n));
    call(
        script::script(Verb::Charge, kinds(parts)),
        parts.iter(),
        args,
    )
}

/// Bans the parts' keys for at most 50 years. [`banned`] reads the reply.
pub(crate) fn ban(parts: &[Part<'_>], long: Duration) -> Call {
    let args = parts.iter().map(|part| part.kind.banning(long));
    call(script::script(Verb::Ban, kinds(parts)), parts.iter(), args)
}

/// Begins the leases of a grant again. [`given`] reads the reply: how many were still held.
pub(crate) fn renew(part: Part<'_>, mark: Mark) -> Call {
    let arg = part.kind.renewing(part.n, mark);
    call(script::renew(), [part].iter(), [arg].into_iter())
}

/// Makes the parts' keys idle again, and ends their bans. The reply is an integer.
pub(crate) fn reset(parts: &[Part<'_>]) -> Call {
    let args = parts.iter().map(|part| part.kind.argument(0));
    call(
        script::script(Verb::Reset, kinds(parts)),
        parts.iter(),
        args,
    )
}

/// The longest life of a lease: a minute.
pub(crate) const LONGEST_LIFE: u64 = 60_000_000;

/// A node's message about its lease of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) node: [u8; 8],
    pub(crate) ask: Ask,
    /// Microseconds.
    pub(crate) life: u64,
}

/// What the server says of a key's leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leased {
    pub(crate) answer: Answer,
    /// How long it takes until there is a permit, in microseconds, if the node got fewer than it
    /// wants. 0 if that is not known.
    pub(crate) wait: u64,
    /// How long it takes until it is the node's turn to ask again, in microseconds, if nothing was
    /// left.
    pub(crate) turn: u64,
    /// How long the key is still banned, in microseconds.
    pub(crate) ban: u64,
}

/// Sends a message about a lease. [`leased`] reads the reply. Nothing is sent about logs, which
/// have no leases.
pub(crate) fn ask(part: Part<'_>, message: &Message) -> Option<Call> {
    let Message { node, ask, life } = message;
    let mut arg = Vec::with_capacity(56);
    arg.extend(node);
    pack(&mut arg, &[ask.number, ask.keeps, ask.returns, ask.wants]);
    pack(&mut arg, &[(*life).min(LONGEST_LIFE), part.kind.most()]);
    Some(Call {
        script: script::ask(part.kind.kinds())?,
        keys: leased_keys(part.key),
        args: vec![part.kind.argument(0), arg],
    })
}

/// Takes permits of a key that has leases. [`taken`] reads the reply. Nothing is sent about logs.
pub(crate) fn take_beside(part: Part<'_>) -> Option<Call> {
    let mut arg = Vec::with_capacity(16);
    pack(&mut arg, &[part.n, part.kind.most()]);
    // Holders of slots have names.
    let named = match part.kind {
        Kind::Slots(_) => part.n,
        _ => 0,
    };
    Some(Call {
        script: script::take_beside(part.kind.kinds())?,
        keys: leased_keys(part.key),
        args: vec![part.kind.argument(named), arg],
    })
}

/// Takes permits of a key that has leases unconditionally. [`charged`] reads the reply. Slots that
/// are out and those that holders have are counted apart, so that nothing is different for them.
pub(crate) fn charge_beside(part: Part<'_>) -> Call {
    let script = match part.kind {
        Kind::Slots(_) => None,
        _ => script::charge_beside(part.kind.kinds()),
    };
    let Some(script) = script else {
        return charge(&[part]);
    };
    let mut most = Vec::with_capacity(8);
    pack(&mut most, &[part.kind.most()]);
    Call {
        script,
        keys: leased_keys(part.key),
        args: vec![part.kind.argument(part.n), most],
    }
}

/// Returns the keys of a limit and of its leases. Both have the same hash tag.
fn leased_keys(key: &[u8]) -> Vec<Vec<u8>> {
    vec![key.to_vec(), [key, b":leases"].concat()]
}

/// Reads the reply to [`ask`].
pub(crate) fn leased(reply: &Reply) -> Result<Leased, BadReply> {
    let Reply::Bytes(bytes) = reply else {
        return Err(BadReply);
    };
    let mut told = Packed::new(bytes);
    let answer = Answer {
        number: told.next(packed::MOST)?,
        keeps: told.next(MOST_HELD)?,
        granted: told.next(MOST_HELD)?,
    };
    let wait = told.next(4 * SPAN)?;
    let turn = told.next(4 * SPAN)?;
    let ban = told.next(2 * SPAN)?;
    told.end(Leased {
        answer,
        wait,
        turn,
        ban,
    })
}

fn call<'a>(
    script: &'static Script,
    parts: impl Iterator<Item = &'a Part<'a>>,
    args: impl Iterator<Item = Vec<u8>>,
) -> Call {
    Call {
        script,
        keys: parts.map(|part| part.key.to_vec()).collect(),
        args: args.collect(),
    }
}

fn kinds(parts: &[Part<'_>]) -> Kinds {
    let mut kinds = parts.iter().map(|part| part.kind.kinds());
    match kinds.next() {
        Some(first) if kinds.all(|other| other == first) => first,
        _ => Kinds::All,
    }
}

/// Reads the reply to [`take`]: the grant of each part, or the part that is refused longest.
pub(crate) fn taken(
    parts: &[Part<'_>],
    reply: &Reply,
) -> Result<Result<Vec<Taken>, (usize, Denied)>, BadReply> {
    let (granted, states) = match (parts, reply) {
        ([part], Reply::Bytes(bytes)) => {
            let (granted, seen) = part.kind.see_one(bytes, part.n)?;
            (granted, vec![seen])
        }
        (_, Reply::Bytes(bytes)) => (true, all_granted(parts, bytes)?),
        _ => {
            let (head, told) = head::<2>(reply)?;
            let [granted, now] = head;
            if granted > 1 {
                return Err(BadReply);
            }
            (granted == 1, states(parts, told, now)?)
        }
    };
    let asked = parts.iter().zip(&states);
    if granted {
        let taken = asked.map(|(part, seen)| part.kind.taken(seen, part.n, 0));
        return taken.collect::<Result<_, _>>().map(Ok);
    }
    longest(parts, &states).map(Err).ok_or(BadReply)
}

/// Reads for how long the reply to [`take_beside`] says that the key is still banned.
pub(crate) fn ban_beside(part: Part<'_>, reply: &Reply) -> Option<Duration> {
    let ([_, now], told) = head::<2>(reply).ok()?;
    let seen = states(&[part], told, now).ok()?;
    seen.first()?.banned_for()
}

/// Returns the part that is refused longest, if one is.
pub(crate) fn longest(parts: &[Part<'_>], states: &[Seen]) -> Option<(usize, Denied)> {
    let asked = parts.iter().zip(states).enumerate();
    let refused = asked.filter_map(|(i, (part, seen))| {
        let (due, denied) = part.kind.refused(seen, part.n, 0)?;
        Some((due, i, denied))
    });
    // With equal waits, the first part is named.
    let longest = refused.max_by(|one, other| one.0.cmp(&other.0).then(other.1.cmp(&one.1)));
    longest.map(|(_, i, denied)| (i, denied))
}

/// Reads the reply to [`reserve`].
pub(crate) fn reserved(
    part: Part<'_>,
    wait: u64,
    reply: &Reply,
) -> Result<Result<Taken, Denied>, BadReply> {
    let ([now], told) = head::<1>(reply)?;
    let read = |part: &Part<'_>, told: &[u8]| {
        let (granted, told) = told.split_at_checked(8).ok_or(BadReply)?;
        let granted = Packed::new(granted).next(1)?;
        let seen = part.kind.see(told, now)?;
        match granted {
            1 => part.kind.taken(&seen, part.n, wait).map(Ok),
            _ => match part.kind.refused(&seen, part.n, wait) {
                Some((_, denied)) => Ok(Err(denied)),
                None => Err(BadReply),
            },
        }
    };
    let answer = each([part].iter(), told, read)?;
    answer.into_iter().next().ok_or(BadReply)
}

/// Reads the reply to [`look`].
pub(crate) fn seen(parts: &[Part<'_>], reply: &Reply) -> Result<Vec<Seen>, BadReply> {
    let ([now], told) = head::<1>(reply)?;
    states(parts, told, now)
}

/// Reads the reply to [`give`]: how many permits each part got back, rounded up.
pub(crate) fn given(
    parts: &[(Part<'_>, Option<Mark>)],
    reply: &Reply,
) -> Result<Vec<u64>, BadReply> {
    let (_, told) = head::<1>(reply)?;
    let parts = parts.iter().map(|(part, _)| part);
    each(parts, told, |part, told| part.kind.given(told, part.n))
}

/// Reads the reply to [`charge`].
pub(crate) fn charged(parts: &[Part<'_>], reply: &Reply) -> Result<Vec<Charged>, BadReply> {
    let ([now], told) = head::<1>(reply)?;
    each(parts, told, |part, told| {
        part.kind.charged(told, part.n, now)
    })
}

/// Reads the reply to [`ban`]: how long each part's key is banned from now.
pub(crate) fn banned(parts: &[Part<'_>], reply: &Reply) -> Result<Vec<Duration>, BadReply> {
    let ([now], told) = head::<1>(reply)?;
    each(parts, told, |_, told| {
        let mut told = Packed::new(told);
        let until = told.next(4 * SPAN)?;
        told.end(Duration::from_micros(until.saturating_sub(now)))
    })
}

/// Reads the new values of several buckets. All values have the same length.
fn all_granted(parts: &[Part<'_>], bytes: &[u8]) -> Result<Vec<Seen>, BadReply> {
    let size = bytes.len().checked_div(parts.len()).unwrap_or(0);
    let values = bytes.chunks_exact(size.max(1));
    if values.len() != parts.len() || !values.remainder().is_empty() {
        return Err(BadReply);
    }
    let read = |(part, value): (&Part<'_>, &[u8])| match part.kind.see_one(value, part.n)? {
        (true, seen) => Ok(seen),
        (false, _) => Err(BadReply),
    };
    parts.iter().zip(values).map(read).collect()
}

fn states(parts: &[Part<'_>], told: &[Reply], now: u64) -> Result<Vec<Seen>, BadReply> {
    each(parts, told, |part, told| part.kind.see(told, now))
}

/// Returns the integers at the beginning of a reply, and the rest. The last integer is the server's
/// clock.
fn head<const N: usize>(reply: &Reply) -> Result<([u64; N], &[Reply]), BadReply> {
    let Reply::List(list) = reply else {
        return Err(BadReply);
    };
    let (head, told) = list.split_first_chunk::<N>().ok_or(BadReply)?;
    let mut numbers = [0; N];
    for (number, reply) in numbers.iter_mut().zip(head) {
        *number = match reply {
            Reply::Int(int) => u64::try_from(*int).map_err(|_| BadReply)?,
            _ => return Err(BadReply),
        };
    }
    match numbers.last() {
        Some(now) if *now <= SPAN => Ok((numbers, told)),
        _ => Err(BadReply),
    }
}

/// Reads what a script told about each part.
fn each<'a, T>(
    parts: impl IntoIterator<Item = &'a Part<'a>>,
    told: &[Reply],
    read: impl Fn(&Part<'_>, &[u8]) -> Result<T, BadReply>,
) -> Result<Vec<T>, BadReply> {
    let mut told = told.iter();
    let mut all = Vec::with_capacity(told.len());
    for part in parts {
        match told.next() {
            Some(Reply::Bytes(bytes)) => all.push(read(part, bytes)?),
            _ => return Err(BadReply),
        }
    }
    match told.next() {
        None => Ok(all),
        Some(_) => Err(BadReply),
    }
}
