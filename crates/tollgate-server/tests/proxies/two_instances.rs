//! Two instances behind one nginx share their limits on one server.

use crate::redis_server::on_each_server;
use crate::support::guide::replace;
use crate::support::{App, Service, Site};

/// Sends requests one after the other, and returns how many had each of these statuses.
async fn statuses<const N: usize>(site: &Site, requests: usize, known: [u16; N]) -> [usize; N] {
    let mut counts = [0; N];
    for _ in 0..requests {
        let reply = site.get("/").await;
        let place = known.iter().position(|known| *known == reply.status);
        counts[place.unwrap_or_else(|| panic!("{reply:?}"))] += 1;
    }
    counts
}

/// The limit holds over both, and in an outage each instance grants what its fallback may.
#[test]
fn the_limit_holds_over_both_and_through_an_outage() {
    on_each_server(|mut private| {
        private.start(true);
        // A denial that is remembered would also answer at the beginning of the outage.
        let policy = format!(
            "[store]\nredis = '{}'\nbudget = '20s'\nfallback = {{ open = {{ at_most = 3, per = '1d' }} }}\n\
             [[rule]]\nname = 'client'\nkey = 'client-ip'\nlimit = '20/365d'\nremember = false",
            private.url()
        );
        let runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(async {
            let other = Service::start(&policy).await;
            let address = other.address;
            let both = move |service: &Service, app: &App| {
                super::nginx::nginx_with(service, app, |page, listen| {
                    let one = format!("server {};", service.address);
                    let two = format!("{one}\n    server {address};");
                    super::nginx::listen(&replace(page, &one, two), listen)
                })
            };
            let Some(site) = Site::start(&policy, both).await else {
                return;
            };
            let (one, two) = tokio::join!(
                statuses(&site, 20, [200, 429]),
                statuses(&site, 20, [200, 429]),
            );
            assert_eq!(one[0] + two[0], 20);
            assert_eq!(site.app.served(), 20);

            private.kill();
            let [open, closed] = statuses(&site, 20, [200, 503]).await;
            // Each instance has three a day: with `per`, a call that fails before the outage has
            // begun counts too. nginx may leave an instance alone that is slow.
            assert!((3..=6).contains(&open), "{open} of {}", open + closed);

            private.start(true);
            // Both decide again when both deny again for the limit's sake.
            let mut denied = 0;
            while denied < 10 {
                let [of_limit, _] = statuses(&site, 1, [429, 503]).await;
                denied = if of_limit == 1 { denied + 1 } else { 0 };
            }
            assert_eq!(site.app.served(), 20 + open);
        });
    });
}
