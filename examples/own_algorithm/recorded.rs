//! Replays the recorded decisions of another limiter on [`Daily`].

use tollgate_replay::{
    Comparison, FileReport, Header, Malformed, Op, Replay, ReplayedLimiter, Source, run_text,
};

use crate::daily::Daily;

/// A turnstile that admits three people a day. Times are in seconds. An answer says how many more
/// may enter and, after a denial, how long to wait.
const RECORDED: &str = r#"{"source":"turnstile 1.0","algorithm":"daily","trace":"3 a day","config":{"limit":3},"ops":6}
{"t":86398,"op":"enter","n":2,"result":{"ok":true,"left":1}}
{"t":86398,"op":"enter","n":2,"result":{"ok":false,"left":1,"wait":2}}
{"t":86399,"op":"enter","n":4,"result":{"ok":false,"left":1}}
{"t":86400,"op":"enter","n":2,"result":{"ok":true,"left":1}}
{"t":864000,"op":"enter","n":3,"result":{"ok":true,"left":0}}
{"t":864001,"op":"enter","n":1,"result":{"ok":false,"left":0,"wait":86399}}
"#;

pub(crate) fn replayed() -> FileReport {
    run_text("turnstile.jsonl", RECORDED, &[&Turnstile])
}

struct Turnstile;

impl Source for Turnstile {
    fn knows(&self, header: &Header) -> bool {
        header.source.starts_with("turnstile ") && header.algorithm == "daily"
    }

    fn begin(&self, header: &Header) -> Result<Box<dyn Replay>, Malformed> {
        let limit = u32::try_from(header.config.u64("limit")?);
        let limit = limit.map_err(|error| Malformed(format!("`limit`: {error}")))?;
        Ok(Box::new(Trace(ReplayedLimiter::new(Ok::<_, Malformed>(
            Daily::new(limit),
        ))?)))
    }
}

struct Trace(ReplayedLimiter<Daily>);

impl Replay for Trace {
    /// Only translates seconds into nanoseconds.
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        if op.name != "enter" {
            return Err(op.unknown());
        }
        let t_ns = op.args.u64("t")?.saturating_mul(1_000_000_000);
        let ours = self.0.ask(op.args.u64("n")?, t_ns);
        let wait = ours.retry_ns().map(|ns| ns.div_ceil(1_000_000_000));
        let theirs = &op.result;
        Ok(Comparison::decision(theirs.flag("ok")?, ours.ok())
            .and("left", theirs.u64("left")?, ours.remaining)
            .and("wait", theirs.optional_u64("wait")?, wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn daily_decides_as_recorded() {
        let report = replayed();
        assert_eq!(report.failures, []);
        assert_eq!((report.traces, report.ops, report.fields), (1, 6, 18));
    }

    #[test]
    fn a_different_recorded_wait_is_a_failure() {
        let other = RECORDED.replace("86399}", "86398}");
        let failures = run_text("turnstile.jsonl", &other, &[&Turnstile]).failures;
        assert_eq!(failures.len(), 1);
        assert_eq!(failures[0].op, 6);
        assert!(failures[0].what.starts_with("`wait` differs"));
    }
}
