//! All sequential orders of the verbs of several threads, and all pairs of their verbs.

/// Returns every sequence of thread numbers in which thread `i` occurs `lengths[i]` times.
pub(crate) fn orders(lengths: &[usize]) -> Vec<Vec<usize>> {
    if lengths.iter().all(|length| *length == 0) {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for first in (0..lengths.len()).filter(|thread| lengths[*thread] > 0) {
        let mut rest = lengths.to_vec();
        rest[first] -= 1;
        for mut order in orders(&rest) {
            order.insert(0, first);
            all.push(order);
        }
    }
    all
}

/// Returns every pair of verbs, one of those at `now` and one of those at each of the ticks `then`.
/// At the first of these ticks, which is the same or makes no difference, a pair is not repeated in
/// the other order.
pub fn pairs<T: Clone, const N: usize>(
    verbs: impl Fn(u64) -> [T; N],
    now: u64,
    then: &[u64],
) -> Vec<(T, T)> {
    let mut pairs = Vec::new();
    for (first, one) in verbs(now).into_iter().enumerate() {
        for (place, tick) in then.iter().enumerate() {
            let skipped = if place == 0 { first } else { 0 };
            let others = verbs(*tick).into_iter().skip(skipped);
            pairs.extend(others.map(|other| (one.clone(), other)));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::orders;

    #[test]
    fn the_number_of_orders_is_right() {
        assert_eq!(orders(&[1, 1]), [[0, 1], [1, 0]]);
        assert_eq!(orders(&[2, 2]).len(), 6);
        assert_eq!(orders(&[2, 2, 2]).len(), 90);
    }
}
