//! nginx's limit_req, in milliseconds and thousandths of a request: a [`LeakyBucket::queue`].
//!
//! `rate`, truncated to thousandths a second, is our quota. nginx counts waiting requests beside
//! the one being served, so our burst is one larger, and its excess is the level of our bucket
//! before the call. It prints the excess in thousandths, rounded up, and the delay in milliseconds,
//! truncated. Several limits are several queues: a request is admitted if all admit it, otherwise
//! the grants of the first ones are returned. The longest delay counts.
//!
//! In real time, the limiter's own clock is `t_lim`. The other recorded times were measured
//! elsewhere and must fit: the arrival in the log is within a millisecond of the limiter's, the
//! client sent before that, and no delayed request finished early.

use tollgate::outcome::GrantInfo;
use tollgate_replay::prelude::*;

use super::classes::DRIFT;
use super::{Begun, MILLISECOND};

const EXCESS: [&str; 2] = ["excess_milli", "excess_milli of the second"];
const CODE: [&str; 2] = ["rc", "rc of the second"];

pub(super) fn begin(header: &Header) -> Begun {
    let limits = header.config.objects("limits")?;
    if !(1..=EXCESS.len()).contains(&limits.len()) {
        return Err(Malformed("not one limit or two".to_owned()));
    }
    let limits = limits.iter().map(Limit::new).collect::<Result<_, _>>()?;
    let answer = None;
    Ok(Box::new(NginxTrace { limits, answer }))
}

/// The state after an admission.
#[derive(Clone, Copy)]
struct State {
    t_ms: u64,
    /// In thousandths.
    excess: u64,
}

struct Limit {
    limiter: ReplayedLimiter<LeakyBucket>,
    burst: u64,
    /// Thousandths a second.
    rate: u64,
    /// Whether a delay was configured, and therefore printed.
    delays: bool,
    /// The state recorded at the last admission.
    last: Option<State>,
    /// How much lower our level is, in millionths: now, and at the admission before.
    cut: u64,
    cut_before: u64,
}

/// The answer of one limit.
struct Answer {
    /// Millionths of a request.
    millionths: u64,
    granted: Option<GrantInfo>,
    /// Returned if another limit refuses.
    grant: Option<Granted>,
}

impl Limit {
    fn new(config: &Fields) -> Result<Self, Malformed> {
        let (rate, burst) = (config.positive("rate_milli_per_s")?, config.u64("burst")?);
        let quota = Quota::per(rate, Duration::from_secs(1000)).burst(burst + 1);
        let mode = config.text("mode")?;
        let free = match (mode, mode.strip_prefix("delay=").map(str::parse)) {
            ("delay", _) => 0,
            ("nodelay", _) => u64::MAX,
            (_, Some(Ok(free))) => free,
            _ => return Err(Malformed(format!("a mode of {mode}"))),
        };
        Ok(Self {
            limiter: ReplayedLimiter::new(LeakyBucket::queue(quota).map(|queue| queue.free(free)))?,
            burst,
            rate,
            delays: mode != "nodelay",
            last: None,
            cut: 0,
            cut_before: 0,
        })
    }

    fn ask(&self, t_ms: u64) -> Answer {
        self.limiter.set_time(t_ms * MILLISECOND);
        // A millisecond makes whole millionths.
        let millionths = (self.limiter.limiter().level().as_f64() * 1e6).round() as u64;
        let answer = self.limiter.ask(1, t_ms * MILLISECOND);
        let grant = answer.decision.ok();
        Answer {
            millionths,
            granted: grant.as_ref().map(|grant| grant.info()),
            grant,
        }
    }

    /// Adopts the state after the last admitted request.
    fn take_over(&mut self) -> Result<bool, Malformed> {
        self.cut = 0;
        if let Some(State { t_ms, excess }) = self.last {
            let rate = self.rate as f64 / 1000.0;
            let left = self.burst as f64 - excess as f64 / 1000.0;
            self.limiter.hold(left, rate, t_ms * MILLISECOND)?;
        }
        Ok(self.last.is_some())
    }

    /// Returns the highest excess that is admitted.
    fn most_excess(&self) -> i128 {
        i128::from(self.burst) * 1000
    }
}

struct NginxTrace {
    limits: Vec<Limit>,
    /// The answer of the last limit that was asked.
    answer: Option<Answer>,
}

impl NginxTrace {
    /// Asks all limits or takes from none. Returns the answers of the limits that were asked.
    fn ask(&self, t_ms: u64) -> Vec<Answer> {
        let mut answers: Vec<Answer> = Vec::new();
        for limit in &self.limits {
            answers.push(limit.ask(t_ms));
            if answers
                .last()
                .is_some_and(|answer| answer.granted.is_none())
            {
                let granted = answers.iter_mut().map_while(|answer| answer.grant.take());
                let both = self.limits.iter().zip(granted);
                both.for_each(|(limit, granted)| limit.limiter.undo(granted));
                break;
            }
        }
        answers
    }

    /// Returns the status that the limits give when asked in order.
    fn code(&self, answers: &[Answer], index: usize) -> Option<&'static str> {
        let last = index + 1 == self.limits.len();
        Some(match (answers.get(index)?.granted, last) {
            (None, _) => "BUSY",
            (Some(_), true) => "OK",
            (Some(_), false) => "AGAIN",
        })
    }

    /// Remembers the recorded state of an admission.
    fn remember(&mut self, t_ms: u64, excess: &[u64], answers: &[Answer], ok: bool) {
        for ((limit, &excess), answer) in self.limits.iter_mut().zip(excess).zip(answers) {
            limit.cut_before = limit.cut;
            if ok {
                limit.last = Some(State { t_ms, excess });
                limit.cut = (excess * 1000).saturating_sub(answer.millionths);
            }
        }
    }
}

impl Replay for NginxTrace {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        op.must_be("request")?;
        let (t, t_lim) = (op.args.u64("t")?, op.args.optional_u64("t_lim")?);
        let t_ms = t_lim.unwrap_or(t);
        let mut answers = self.ask(t_ms);
        let delays = answers.iter().map(|answer| answer.granted);
        // A limit that refuses comes last, and then there is no delay.
        let delay: Option<Vec<_>> = delays.map(|it| it.map(|it| it.delay())).collect();
        let delay = delay.and_then(|delays| delays.into_iter().max());
        let delay = delay.map(|delay| in_nanos(delay) / MILLISECOND);

        let (ok, theirs) = (op.result.flag("ok")?, &op.result);
        let mut comparison = Comparison::decision(ok, delay.is_some());
        let excess = one_or_more(theirs, "excess_milli")?;
        for (index, field) in EXCESS.iter().enumerate().take(self.limits.len()) {
            let ours = answers.get(index).map(|it| it.millionths.div_ceil(1000));
            comparison = comparison.and(field, excess.get(index).copied(), ours);
        }
        if self.limits.len() > 1 {
            let codes = theirs.list("rc")?;
            for (index, field) in CODE.iter().enumerate() {
                let code = codes.get(index).map(code).transpose()?;
                comparison = comparison.and(field, code, self.code(&answers, index));
            }
        } else {
            let ours = delay.filter(|&ms| ms > 0 || self.limits[0].delays);
            comparison = comparison.and("delay_ms", theirs.optional_u64("delay_ms")?, ours);
        }
        self.remember(t_ms, &excess, &answers, ok);
        self.answer = answers.pop();
        match t_lim {
            Some(_) => in_real_time(comparison, op, t_ms, delay),
            None => Ok(comparison),
        }
    }

    fn class(&self, op: &Op, comparison: &Comparison, field: &str) -> Option<&'static Class> {
        let [limit] = &self.limits[..] else {
            return None;
        };
        let ours = self.answer.as_ref()?;
        let (theirs, ours_up) = comparison.numbers(EXCESS[0])?;
        let most = (ours.millionths + limit.cut_before).div_ceil(1000);
        let fits = match field {
            "excess_milli" => true,
            // No delay is printed in that case.
            "ok" | "delay_ms" => !op.result.flag("ok").ok()? && theirs > limit.most_excess(),
            _ => false,
        };
        let drifted = theirs == ours_up + 1 && theirs <= i128::from(most);
        (fits && drifted).then_some(&DRIFT)
    }

    fn take_over(&mut self, _: &Op) -> Result<bool, Malformed> {
        let mut taken = false;
        for limit in &mut self.limits {
            taken |= limit.take_over()?;
        }
        Ok(taken)
    }
}

/// Checks the times measured by the log and by the client.
fn in_real_time(
    comparison: Comparison,
    op: &Op,
    t_lim: u64,
    delay: Option<u64>,
) -> Result<Comparison, Malformed> {
    let (t, done) = (op.args.u64("t")?, op.args.u64("done")?);
    let (sent, latency) = (op.args.f64("sent")?, op.result.f64("latency_ms")?);
    let wait = delay.unwrap_or(0);
    let status = name(
        op.result.text("status")?,
        &["PASSED", "DELAYED", "REJECTED"],
    )?;
    let ours = match delay {
        None => "REJECTED",
        Some(0) => "PASSED",
        Some(_) => "DELAYED",
    };
    // Both clocks have whole milliseconds, so each may be off by one.
    let arrival = t_lim.saturating_sub(1)..=t_lim + 1;
    Ok(comparison
        .and("status", status, ours)
        .and("arrival within 1 ms of t_lim", arrival.contains(&t), true)
        .and("sent before it", sent <= (t + 1) as f64, true)
        .and("done after the delay", done + 1 >= t + wait, true)
        .and("waited for the delay", latency + 1.0 >= wait as f64, true))
}

/// Returns the one of these words that matches.
fn name(found: &str, words: &[&'static str]) -> Result<&'static str, Malformed> {
    let word = words.iter().find(|word| **word == found).copied();
    word.ok_or_else(|| Malformed(format!("`{found}` is none of {words:?}")))
}

fn code(value: &serde_json::Value) -> Result<&'static str, Malformed> {
    name(value.as_str().unwrap_or_default(), &["OK", "AGAIN", "BUSY"])
}

/// Returns a number, or a list of numbers.
fn one_or_more(fields: &Fields, key: &str) -> Result<Vec<u64>, Malformed> {
    let Ok(list) = fields.list(key) else {
        return Ok(vec![fields.u64(key)?]);
    };
    let numbers: Option<Vec<_>> = list.iter().map(serde_json::Value::as_u64).collect();
    numbers.ok_or_else(|| Malformed(format!("`{key}` should be numbers")))
}
