//! A clock of tokio's paused time counts all time of a runtime that was made before its first
//! reading. The clock's origin belongs to the process, so this test has a process of its own.

use std::time::Duration;

use tollgate::clock::{Clock, TokioClock};

#[test]
fn a_runtime_made_before_the_first_reading_loses_no_time() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    // Outside of a runtime, tokio's time is the system's, which is later than the paused one.
    let _ = TokioClock.now();
    runtime.block_on(async {
        let before = TokioClock.now();
        let minute = Duration::from_secs(60);
        tokio::time::advance(minute).await;
        assert_eq!(TokioClock.now().saturating_since(before), minute);
    });
}
