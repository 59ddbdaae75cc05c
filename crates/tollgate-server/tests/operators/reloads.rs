//! Policies are exchanged while the service decides.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use serde_json::json;

use crate::Running;

fn policy(other: usize) -> String {
    format!(
        "[[rule]]\nname = 'user'\nkey = 'user'\nlimit = '1000000/365d'\n\
         [[rule]]\nname = 'other'\nkey = 'user'\nlimit = '{}/s'\nshadow = true\n",
        other + 1
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_reloads_lose_nothing() {
    let service = Running::start(&policy(0)).await;
    let ends = AtomicBool::new(false);
    let asking = async {
        let ann = json!({"facts": {"user": "ann"}});
        let ask = json!(vec![ann; 20]);
        let mut allowed = 0_u64;
        while !ends.load(SeqCst) {
            let said = service.decide(ask.clone()).await;
            let said = said.as_array().unwrap().iter();
            assert!(said.clone().all(|it| it["allowed"] == true));
            allowed += said.count() as u64;
        }
        allowed
    };
    let reloading = async {
        let (handle, file) = (service.handle.clone(), service.file.path().to_owned());
        let reloads = tokio::task::spawn_blocking(move || {
            let bad = [
                "",
                "[[rule]]",
                "[[rule]]\nname = 'user'\nlimit = '5/fortnight'",
                "\u{0}",
            ];
            for n in 0..1000 {
                let text = match n % 5 {
                    0 => bad[n / 5 % 4].to_owned(),
                    _ => policy(n),
                };
                fs::write(&file, text).unwrap();
                assert_eq!(handle.reload().is_ok(), n % 5 != 0, "{n}");
            }
        });
        reloads.await.unwrap();
        ends.store(true, SeqCst);
    };
    let (allowed, ()) = tokio::join!(asking, reloading);
    let said = service.decide(json!({"facts": {"user": "ann"}})).await;
    assert_eq!(said["limits"][0]["remaining"], 1_000_000 - allowed - 1);
    assert_eq!(service.metric("tollgate_reloads_total").await, 800);
    assert_eq!(service.metric("tollgate_reloads_failed_total").await, 200);
    service.end().await;
}
