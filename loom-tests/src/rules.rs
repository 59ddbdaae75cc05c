//! Rules that hold for every algorithm: what each kind of verb may write, that each lost exchange
//! has a winner, the balance of permits, and the bound.

use tollgate::Tick;
use tollgate::store::UNSTARTED;
use tollgate_audit::Bound;

use crate::traced_word::TracedWord;
use crate::verbs::{Answer, Kind};

/// Checks what one verb wrote. The write that starts a limiter does not count.
pub(crate) fn check_writes(kind: Kind, answer: Answer, changes: &[(u64, u64)]) {
    let wrote: Vec<_> = changes
        .iter()
        .filter(|(from, _)| *from != UNSTARTED)
        .collect();
    assert!(wrote.len() <= 1, "one verb wrote twice: {wrote:?}");
    let took_nothing = match answer {
        Answer::Denied(_) => true,
        Answer::Granted(granted) => granted.n() == 0,
        _ => false,
    };
    match kind {
        Kind::Takes if took_nothing => assert!(wrote.is_empty(), "a refusal wrote {wrote:?}"),
        Kind::Takes | Kind::Charges => assert!(
            wrote.iter().all(|(from, to)| from <= to),
            "an admission lowered the word: {wrote:?}"
        ),
        Kind::Looks => assert!(wrote.is_empty(), "a look wrote {wrote:?}"),
        Kind::Resets => assert!(
            changes.len() == 1 && changes[0].1 == 0,
            "a reset wrote {changes:?}"
        ),
        Kind::GivesBack => {}
    }
}

/// Checks that each lost exchange is matched by one that another thread won. So no thread can retry
/// forever.
pub(crate) fn check_losses(traced_words: &[&TracedWord]) {
    let writes: usize = traced_words.iter().map(|traced| traced.writes()).sum();
    for traced in traced_words {
        let others = (writes - traced.writes()) as u64;
        assert!(
            traced.lost() <= others,
            "{} exchanges were lost where others won {others}",
            traced.lost()
        );
    }
}

/// Checks that at a single tick the permits available at the end are those at the beginning, less
/// those taken, plus those that were returned. (Does not apply to resets and charges.)
pub(crate) fn check_balance(before: u64, answers: &[Vec<Answer>], after: u64) {
    let (mut taken, mut returned) = (0, 0);
    for answer in answers.iter().flatten() {
        match answer {
            Answer::Granted(granted) => taken += granted.n(),
            Answer::Returned(n) => returned += n,
            _ => {}
        }
    }
    let all = format!(
        "{before} available before, {taken} taken, {returned} returned, {after} available after"
    );
    assert!(
        before + returned <= after + taken,
        "permits were lost: {all}"
    );
    assert!(
        before + returned >= after + taken,
        "permits were granted twice: {all}"
    );
}

/// Visits every interval that begins and ends with one of these grants, with its permits.
pub fn each_interval<T: Ord + Copy>(grants: &[(T, u64)], check: impl Fn(T, T, u64)) {
    for &(from, _) in grants {
        for &(to, _) in grants.iter().filter(|(to, _)| *to >= from) {
            let inside = grants.iter().filter(|(at, _)| (from..=to).contains(at));
            check(from, to, inside.map(|(_, n)| n).sum());
        }
    }
}

/// Returns the ticks at which permits were granted, and their numbers.
pub fn grants<'a>(answers: impl IntoIterator<Item = &'a Answer>) -> Vec<(Tick, u64)> {
    let grants = answers.into_iter().filter_map(|answer| match answer {
        Answer::Granted(granted) => Some((granted.at(), granted.n())),
        _ => None,
    });
    grants.collect()
}

/// Checks that every interval between two grants keeps the bound. (Does not apply if permits come
/// back.)
pub(crate) fn check_bound(bound: &Bound, answers: &[Vec<Answer>]) {
    each_interval(&grants(answers.iter().flatten()), |from, to, granted| {
        let allowed = bound.allows_between(from, to);
        assert!(
            u128::from(granted) <= allowed,
            "more than was promised: {granted} from {from:?} to {to:?}, not {allowed}"
        );
    });
}
