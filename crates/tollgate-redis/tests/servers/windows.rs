//! Windows on a real server, alone and beside a bucket.

use std::sync::Arc;
use std::time::Duration;

use tollgate::{Denied, Quota};
use tollgate_redis::client::connect_lazily;
use tollgate_redis::{Fallback, Keys, Limit, RedisAll, RedisLimiter, RedisServer};

use crate::server::on_each_server;

/// The longest period. Windows of it began in 2020, and will begin in 2070.
const PERIOD: Duration = Duration::from_secs(50 * 36_525 * 864);

#[test]
fn windows_have_all_verbs_and_can_be_beside_a_bucket() {
    let quota = Quota::per(10, PERIOD);
    on_each_server(|mut server| {
        server.start(false);
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let client = connect_lazily(server.url()).expect("an address");
            let server = Arc::new(RedisServer::new(client).with_budget(Duration::from_secs(30)));
            let keys = Keys::new("test").expect("a namespace");
            let limiter = |name, limit: Limit| {
                RedisLimiter::new(Arc::clone(&server), &keys, name, limit, Fallback::Closed)
                    .expect("a limit")
            };
            let bucket = limiter("bucket", Limit::token_bucket(quota).expect("a bucket"));
            for (name, limit) in [
                ("fixed", Limit::fixed_window(quota)),
                ("first", Limit::first_hit_window(quota)),
                ("sliding", Limit::sliding_window(quota)),
            ] {
                let limiter = limiter(name, limit.expect("a window"));
                let alice = limiter.key("alice");
                let grant = alice.try_acquire_n(4).await.expect("a grant");
                assert_eq!(grant.granted().remaining(), 6);
                assert!(alice.check_n(7).await.is_err());
                assert_eq!(alice.settle(grant, 3).await.map(|s| s.returned), Ok(1));
                assert_eq!(alice.refund(1).await, Ok(1));
                assert_eq!(alice.available().await, Ok(8));

                let both = vec![bucket.key("alice"), alice];
                let both = RedisAll::new(both).expect("one slot");
                let denial = both.try_acquire_n(9).await.expect_err("a denial");
                assert_eq!(denial.index(), 1);
                let grants = both.try_acquire_n(8).await.expect("grants");
                assert_eq!(both.undo(grants).await, Ok(vec![8, 8]));

                let alice = limiter.key("alice");
                let charged = alice.charge(10).await.expect("an answer");
                assert_eq!((charged.n(), charged.debt()), (10, 2));
                let minute = Duration::from_secs(60);
                assert_eq!(alice.ban_for(minute).await, Ok(minute));
                let denial = alice.try_acquire().await.expect_err("a denial");
                assert!(matches!(denial.denied(), Denied::Banned { .. }));
                alice.reset().await.expect("an answer");
                assert_eq!(alice.available().await, Ok(10));
            }
            assert_eq!(server.stats().failed, 0);
        });
    });
}
