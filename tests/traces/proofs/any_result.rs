//! Every change of a recorded result is noticed.

use tollgate_replay::proof;

use crate::{OWN_COPY, own_copy, sources};

#[test]
fn every_changed_result_is_noticed() {
    let (changed, failed) =
        proof::changed_results_are_noticed(&own_copy(), &OWN_COPY, sources::all());
    assert!(changed > 2000, "{changed} changes");
    // Nearly all fail at once. The rest are ties, where either answer is right.
    assert!(failed * 50 > changed * 49, "{failed} of {changed}");
}
