//! All sequential orders of the verbs of several threads.

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
