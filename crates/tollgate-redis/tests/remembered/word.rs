//! The word of a denial: it is never remembered for too long, and never tells a wait that is too
//! short, or longer than said.

use std::time::Duration;

use tollgate::Limiter;

use super::super::tests::{Random, nanos};
use super::*;

const SECOND: u128 = 1_000_000_000;
const UNIT: u128 = 1 << 20;
/// The longest wait of a server.
const YEARS: u64 = 50 * 365 * 86_400 * 1_000_000_000;

/// A denial, and when its call was sent and answered, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Case {
    sent: u64,
    trip: u64,
    wait: u64,
    is_ban: bool,
}

impl Case {
    fn any(random: &mut Random) -> Self {
        Self {
            sent: random.upto(YEARS),
            trip: random.upto(2_000_000_000),
            wait: random.upto(YEARS),
            is_ban: random.one_in(3),
        }
    }

    fn received(&self) -> u64 {
        self.sent + self.trip
    }

    fn word(&self) -> Option<u64> {
        let wait = Duration::from_nanos(self.wait);
        let denied = match self.is_ban {
            true => Denied::banned(7, Some(wait)),
            false => Denied::later(7, wait),
        };
        word_of(&denied, nanos(self.sent), nanos(self.received()))
    }

    /// Returns the tick from which the denial is not remembered: at most this, and at least a unit
    /// before.
    fn latest_end(&self) -> u128 {
        u128::from(self.sent) + u128::from(self.wait).min(SECOND)
    }

    /// Returns the tick that callers are told, exactly.
    fn due(&self) -> u128 {
        u128::from(self.received()) + u128::from(self.wait)
    }
}

/// Returns what a step for 0 permits answers.
fn told(word: u64, now: u64) -> Option<Denied> {
    Remember.step(word, nanos(now), 0).err()
}

#[test]
fn a_denial_is_remembered_for_a_second_or_its_wait_and_tells_no_wait_that_is_too_short() {
    let mut random = Random(0xDE41_A150);
    let mut counts = [0_u32; 3];
    for _ in 0..400_000 {
        let case = Case::any(&mut random);
        let end = case.latest_end();
        let Some(word) = case.word() else {
            assert!(end < u128::from(case.received()) + UNIT, "{case:?}");
            counts[0] += 1;
            continue;
        };
        // As a table writes it when it has come.
        let (written, _) = Remember
            .step(
                random.upto(case.received() >> 20) << 23,
                nanos(case.received()),
                word,
            )
            .unwrap_or_else(|denied| panic!("{case:?}: {denied}"));
        assert_eq!(written, word, "{case:?}");
        let received = u128::from(case.received());
        let left = end - received;
        let ends = [0, 1, UNIT - 1, UNIT, UNIT + 1].map(|before| end.saturating_sub(before));
        let between = received + u128::from(random.next()) % (left + 1);
        for now in ends.into_iter().chain([received, between, end + 1]) {
            let now = now.max(received);
            match told(word, u64::try_from(now).unwrap()) {
                Some(denied) => {
                    assert!(now < end, "{case:?} at {now}: too long");
                    assert_eq!(matches!(denied, Denied::Banned { .. }), case.is_ban);
                    let wait = denied.retry_after().unwrap().as_nanos();
                    assert!(
                        now + wait >= case.due(),
                        "{case:?} at {now}: {wait} is too short"
                    );
                    let rounded = 2 * UNIT + u128::from(case.wait) / 65_536;
                    assert!(
                        now + wait <= case.due() + rounded,
                        "{case:?} at {now}: {wait}"
                    );
                    counts[1] += 1;
                }
                None => {
                    assert!(now + UNIT > end, "{case:?} at {now}: too short");
                    counts[2] += 1;
                }
            }
        }
    }
    assert!(counts.iter().all(|count| *count > 10_000), "{counts:?}");
}

#[test]
fn no_word_and_no_number_is_remembered_for_more_than_a_second() {
    let mut random = Random(0xDE41_A151);
    let mut written = 0;
    for _ in 0..200_000 {
        let now = nanos(random.upto(u64::MAX));
        let (word, n) = (random.upto(u64::MAX), random.upto(u64::MAX));
        let is_remembered = !Remember.is_idle(word, now);
        assert_eq!(Remember.available(word, now) == 0, is_remembered);
        assert_eq!(Remember.idle_at(word, now) > now, is_remembered);
        match Remember.step(word, now, n) {
            Err(_) => assert!(is_remembered),
            Ok((next, _)) => {
                assert!(!is_remembered && next >= word && next < u64::MAX);
                assert!(n > 0 || next == word);
                let later = now.saturating_add(Duration::from_secs(1));
                assert!(Remember.is_idle(next, later));
                written += u32::from(next != word);
            }
        }
        let all = Remember.take_up_to(0, now, u64::MAX).0;
        assert!(all < u64::MAX);
    }
    assert!(written > 1000, "{written}");
}

#[test]
fn what_has_no_wait_that_ends_is_not_remembered() {
    let (sent, received) = (nanos(5 << 30), nanos((5 << 30) + 1000));
    let word = |denied: Denied| word_of(&denied, sent, received);
    let some = Duration::from_millis(100);
    assert!(word(Denied::later(1, some)).is_some());
    assert!(word(Denied::banned(1, Some(some))).is_some());
    for denied in [
        Denied::later(1, Duration::ZERO),
        Denied::later(1, Duration::MAX),
        Denied::banned(1, None),
        Denied::busy(1),
        Denied::never(2, 1),
        Denied::stuck(1),
        Denied::no_room(1),
    ] {
        assert_eq!(word(denied), None, "{denied:?}");
    }
    // At the end of the clock, nothing fits.
    assert_eq!(word_of(&Denied::later(1, some), Tick::MAX, Tick::MAX), None);
}

#[test]
fn the_first_of_two_denials_stays() {
    let limiter = Limiter::unstarted(Remember, ());
    let received = nanos(9 << 30);
    let word = |millis| {
        let denied = Denied::later(1, Duration::from_millis(millis));
        word_of(&denied, received, received).unwrap()
    };
    let at = |millis| received.saturating_add(Duration::from_millis(millis));
    assert!(limiter.at(received).try_acquire_n(word(300)).is_ok());
    assert!(limiter.at(at(1)).try_acquire_n(word(900)).is_err());
    assert!(limiter.at(at(298)).try_acquire_n(0).is_err());
    assert!(limiter.at(at(300)).try_acquire_n(0).is_ok());
    assert!(limiter.at(at(300)).try_acquire_n(word(900)).is_ok());
    assert!(limiter.at(at(898)).try_acquire_n(0).is_err());
}
