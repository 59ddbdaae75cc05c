//! While the service's store is down, Envoy gets the answer of the rule's fallback. A denial that
//! is remembered would answer in its place.

use crate::redis_server::on_each_server;
use crate::support::Service;
use crate::support::proxy::{Application, Browser, Envoy, program};

/// Envoy waits longer than the page says, so that a busy machine fails no test.
const PATIENT: (&str, &str) = ("timeout: 0.1s", "timeout: 60s");

#[test]
fn while_the_store_is_down_envoy_gets_the_answer_of_the_fallback() {
    let Some(program) = program() else { return };
    on_each_server(|private| {
        let runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        for (fallback, expected) in [("open", 200), ("closed", 429)] {
            let mut private = private.another();
            private.start(true);
            let policy = format!(
                "[store]\nredis = '{}'\nbudget = '20s'\nfallback = '{fallback}'\n\
                 [[rule]]\nname = 'client'\nkey = 'client-ip'\nlimit = '3/365d'\n\
                 remember = false",
                private.url()
            );
            runtime.block_on(async {
                let service = Service::start(&policy);
                let application = Application::start().await;
                let (own, application) = (service.address, application.address);
                let envoy = Envoy::start(program.clone(), own, application, &[PATIENT]).await;
                let browser = Browser::http1(envoy.address);
                // A fallback that counts nothing has no fields to say.
                let ask = async || {
                    let answer = browser.get("/items").await;
                    let has_fields = answer.headers().contains_key("ratelimit-policy");
                    (answer.status().as_u16(), has_fields)
                };
                for status in [200, 200, 200, 429] {
                    assert_eq!(ask().await, (status, true));
                }
                private.kill();
                for _ in 0..5 {
                    assert_eq!(ask().await, (expected, false), "{fallback}");
                }
                private.start(true);
                let mut answer = ask().await;
                while answer == (expected, false) {
                    answer = ask().await;
                }
                // The server has kept what was taken.
                assert_eq!(answer, (429, true), "{fallback}");
            });
        }
    });
}
