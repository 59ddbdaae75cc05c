//! What is asked in a trace of x/time/rate, and what was recorded.

use tollgate_replay::{Fields, Malformed, Op};

use super::xtime_theirs::{Said, Theirs};

/// A limit in tokens a second.
pub(super) fn limit(fields: &Fields) -> Result<f64, Malformed> {
    match fields.get("limit").and_then(|value| value.as_str()) {
        Some("Inf") => Ok(f64::INFINITY),
        _ => fields.f64("limit"),
    }
}

/// A call that asks for permits.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) n: u64,
    /// None of one that does not wait.
    pub(super) max_ns: Option<u64>,
    pub(super) id: Option<u64>,
}

impl Asked {
    /// None if it asks for none.
    pub(super) fn of(op: &Op) -> Result<Option<Self>, Malformed> {
        let (max_ns, reserves) = match op.name.as_str() {
            "allow_n" => (None, false),
            "reserve_n" => (Some(u64::MAX), true),
            "reserve_within" => (Some(op.args.u64("max_ns")?), true),
            _ => return Ok(None),
        };
        Ok(Some(Self {
            n: op.args.u64("n")?,
            max_ns,
            id: if reserves {
                Some(op.args.u64("id")?)
            } else {
                None
            },
        }))
    }

    pub(super) fn said_by(&self, theirs: &mut Theirs, t: u64) -> Said {
        let max = i128::from(self.max_ns.unwrap_or(0)).min(Said::NEVER);
        theirs.take(t.into(), self.n, max, self.id)
    }
}

/// What was recorded.
pub(super) fn recorded(op: &Op) -> Result<Said, Malformed> {
    let tokens = op.result.f64("tokens")?;
    let ok = match op.result.get("ok") {
        Some(_) => op.result.flag("ok")?,
        None => false,
    };
    let delay = match op.result.get("delay_ns") {
        None => ok.then_some(0),
        Some(value) if value.as_str() == Some("Inf") => ok.then_some(Said::NEVER),
        Some(_) => Some(op.result.u64("delay_ns")?.into()),
    };
    Ok(Said { ok, delay, tokens })
}
