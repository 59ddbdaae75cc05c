//! Rules of different stores and algorithms that decide together: all or nothing, from many
//! threads, and no bound is exceeded.

use std::sync::Arc;
use std::thread;

use tollgate::clock::SystemClock;
use tollgate::{Gcra, Keyed, ManualClock, Quota, SlidingWindow, TokenBucket};
use tollgate_audit::{Audit, Bounded, Log};
use tollgate_policy::{LimitSpec, OwnLimit, Policy, PolicyClock, Store};

/// A store of the program's own: GCRAs in a table.
fn gcras<C: PolicyClock>(spec: &LimitSpec<'_, C>) -> Result<Box<dyn OwnLimit<C>>, String> {
    let [text] = spec.limits.as_slice() else {
        return Err("must not be a plan".into());
    };
    let quota: Quota = text.parse().map_err(|_| "must be a rate")?;
    let gcra = Gcra::new(quota).map_err(|error| error.to_string())?;
    let table = Keyed::with_clock(gcra, spec.capacity, spec.clock.clone());
    let table = table.map_err(|error| error.to_string())?;
    Ok(Box::new(table.with_hasher(spec.hasher.clone())))
}

fn policy<C: PolicyClock>(clock: C, user: &str, tenant: &str, service: &str) -> Policy<C> {
    let text = format!(
        "[[rule]]\nname = 'user'\nkey = 'user'\nlimit = '{user}'\nalso = ['tenant', 'service']\n\
         [[rule]]\nname = 'tenant'\nwhen = 'never'\nkey = 'tenant'\nlimit = '{tenant}'\n\
         store = 'gcras'\nfallback = 'closed'\n\
         [[rule]]\nname = 'service'\nwhen = 'never'\nlimit = '{service}'\n"
    );
    let builder = Policy::builder()
        .clock(clock)
        .store("gcras", Store::here(gcras));
    builder.build_toml(&text).expect("a policy")
}

const USERS: [&str; 4] = ["ann", "bob", "carol", "dan"];

#[test]
fn no_limit_exceeds_its_bound_from_four_threads() {
    let policy = policy(
        SystemClock,
        "800/s burst 40",
        "1500/s burst 60",
        "sliding-window 200/100ms",
    );
    let logs = thread::scope(|scope| {
        let threads = USERS.map(|_| {
            scope.spawn(|| {
                let mut logs: [Log; 3] = Default::default();
                for n in 0..30_000 {
                    // All threads use each user.
                    let user = USERS[n % USERS.len()];
                    let decision = policy.decide(&[("user", user), ("tenant", "acme")]);
                    let granted: Vec<_> = decision.asked().filter_map(|it| it.grant()).collect();
                    assert_eq!(granted.len(), if decision.is_allowed() { 3 } else { 0 });
                    for (asked, log) in decision.asked().zip(&mut logs) {
                        let is_logged = asked.rule() != "user" || user == "ann";
                        if let (Some(granted), true) = (asked.grant(), is_logged) {
                            log.grant(granted.at(), granted.n());
                        }
                    }
                }
                logs
            })
        });
        threads.map(|thread| thread.join().expect("no panic"))
    });
    let audit = |limit: usize| -> Audit { logs.iter().map(|logs| logs[limit].clone()).collect() };
    let quota = |text: &str| text.parse::<Quota>().expect("a quota");
    let user = TokenBucket::new(quota("800/s burst 40")).expect("a bucket");
    let tenant = Gcra::new(quota("1500/s burst 60")).expect("a GCRA");
    let service = SlidingWindow::new(quota("200/100ms")).expect("a window");
    let bounds = [user.bound(), tenant.bound(), service.bound()];
    for (limit, bound) in bounds.iter().enumerate() {
        let summary = audit(limit).check(bound);
        let summary = summary.unwrap_or_else(|excess| panic!("limit {limit}: {excess}"));
        assert!(summary.granted > 0);
    }
}

#[test]
fn a_denied_request_takes_nothing_and_an_undone_one_gives_all_back() {
    let clock = ManualClock::new();
    let policy = Arc::new(policy(clock, "1000/h", "2500/h", "fixed-window 2000/h"));
    // The clock stands still: 2000 permits of the service are all there are.
    let threads = USERS.map(|_| {
        let policy = Arc::clone(&policy);
        thread::spawn(move || {
            let mut kept = [0; 4];
            for n in 0..8_000 {
                let which = n % USERS.len();
                let request = [("user", USERS[which]), ("tenant", "acme")];
                let decision = policy.decide_owned(&request);
                match decision.is_allowed() && n % 3 == 0 {
                    true => assert_eq!(decision.undo(), 3),
                    false => kept[which] += u64::from(decision.is_allowed()),
                }
            }
            kept
        })
    });
    let kept = threads.map(|thread| thread.join().expect("no panic"));
    let total: u64 = kept.iter().flatten().sum();
    assert_eq!(total, 2000);
    for (which, user) in USERS.iter().enumerate() {
        let denied = policy.decide(&[("user", *user), ("tenant", "acme")]);
        let remaining: Vec<_> = denied.asked().map(|it| it.remaining()).collect();
        let of_user: u64 = kept.iter().map(|kept| kept[which]).sum();
        assert_eq!(remaining, [1000 - of_user, 500, 0], "{user}");
        assert_eq!(denied.denied_by(), Some("service"));
    }
}
