//! Servers and callers that do what the layer does not expect.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use tokio::time::{Instant, sleep, timeout};
use tollgate::{Limiter, Quota, TokenBucket};
use tollgate_client::{ClientLimitError, ClientLimitLayer};
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::clock::RuntimeClock;
use crate::served::{answer, get};

const API: &str = "https://api.example.com/";

/// The limit `a`, used up, and a wait of 20 seconds.
const EMPTY: &[(&str, &str)] = &[
    ("ratelimit-policy", r#""a";q=100;w=20"#),
    ("ratelimit", r#""a";r=0;t=20"#),
    ("retry-after", "20"),
];

/// The same limit, with permits left.
const ROOM: &[(&str, &str)] = &[
    ("ratelimit-policy", r#""a";q=100;w=20"#),
    ("ratelimit", r#""a";r=90;t=2"#),
];

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// What a request is answered, and after which time.
type Answer = (Result<Response<()>, io::Error>, Duration);

/// A server that notes when it is asked, from when it was made.
#[derive(Clone)]
struct Server {
    answers: Arc<dyn Fn(usize, Duration) -> Answer + Send + Sync>,
    began: Instant,
    asked: Arc<Mutex<Vec<Duration>>>,
}

impl Server {
    /// Answers by a function of how many requests came before, and of the time.
    fn new(answers: impl Fn(usize, Duration) -> Answer + Send + Sync + 'static) -> Self {
        Self {
            answers: Arc::new(answers),
            began: Instant::now(),
            asked: Arc::default(),
        }
    }

    fn service(
        &self,
    ) -> impl Service<Request<()>, Response = Response<()>, Error = io::Error, Future: Send>
    + Clone
    + Send
    + 'static {
        let this = self.clone();
        service_fn(move |_: Request<()>| {
            let mut asked = this.asked.lock().unwrap();
            let now = this.began.elapsed();
            let (answer, late) = (this.answers)(asked.len(), now);
            asked.push(now);
            async move {
                sleep(late).await;
                answer
            }
        })
    }

    /// Returns when requests came, from this time on.
    fn asked_from(&self, from: Duration) -> Vec<Duration> {
        let asked = self.asked.lock().unwrap();
        asked.iter().copied().filter(|at| *at >= from).collect()
    }
}

/// An answer after 10 ms.
fn soon(status: u16, fields: &[(&str, &str)]) -> Answer {
    (Ok(answer(status, fields)), Duration::from_millis(10))
}

/// Sends requests one after the other, of this many callers, until the end.
fn callers<S>(client: &S, callers: usize)
where
    S: Service<Request<()>, Response = Response<()>, Future: Send> + Clone + Send + 'static,
    S::Error: Send,
{
    for _ in 0..callers {
        let client = client.clone();
        tokio::spawn(async move {
            loop {
                if client.clone().oneshot(get(API)).await.is_err() {
                    sleep(seconds(1)).await;
                }
            }
        });
    }
}

#[tokio::test(start_paused = true)]
async fn callers_that_wait_out_a_hold_do_not_fail_while_one_tries() {
    for (fields, room) in [(&EMPTY[2..], &[] as &[_]), (EMPTY, ROOM)] {
        let server = Server::new(move |before, _| match before {
            0 => soon(429, fields),
            _ => soon(200, room),
        });
        let client = ClientLimitLayer::new().layer(server.service());
        let tasks: Vec<_> = (0..40)
            .map(|number| {
                let client = client.clone();
                tokio::spawn(async move {
                    // The others come when the first one has been refused.
                    sleep(Duration::from_millis(20) * number.min(1)).await;
                    client.oneshot(get(API)).await
                })
            })
            .collect();
        let mut failed = 0;
        for task in tasks {
            failed += u32::from(task.await.unwrap().is_err());
        }
        // The hold is 20 seconds, the answer comes 10 ms later, and `max_wait` is 30 seconds.
        assert_eq!(failed, 0, "of 40 requests, {fields:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_comes_while_another_one_tries_waits_for_its_answer() {
    let server = Server::new(|before, _| match before {
        0 => soon(429, &[("retry-after", "60")]),
        _ => soon(200, &[]),
    });
    let client = ClientLimitLayer::new()
        .max_attempts(1)
        .layer(server.service());
    client.clone().oneshot(get(API)).await.unwrap();
    sleep(seconds(70)).await;
    let tries = tokio::spawn(client.clone().oneshot(get(API)));
    sleep(Duration::from_millis(5)).await;
    let second = client.oneshot(get(API)).await;
    assert!(second.is_ok(), "{second:?}");
    tries.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_answers_take_longer_than_its_waits_is_used_again() {
    const SHORT: &[(&str, &str)] = &[("retry-after", "1"), EMPTY[0], EMPTY[1]];
    for fields in [&SHORT[..1], SHORT] {
        let room = if fields.len() > 1 { ROOM } else { &[] };
        // It refuses in the first two seconds. Each other answer takes three seconds.
        let server = Server::new(move |_, now| match now.as_secs() {
            0..2 => soon(429, fields),
            _ => (Ok(answer(200, room)), seconds(3)),
        });
        let client = ClientLimitLayer::new().layer(server.service());
        callers(&client, 50);
        sleep(seconds(120)).await;
        // 50 callers get an answer every three seconds, or the limit is used: 5 a second.
        let asked = server.asked_from(seconds(60)).len();
        assert!(asked >= 60 * 4, "{asked} requests in a minute, {fields:?}");
    }
}

/// A server that grants 10 requests a second, and names only waits.
fn ten_a_second() -> Server {
    let bucket = TokenBucket::new(Quota::per_second(10)).unwrap();
    let limiter = Limiter::with_clock(bucket, RuntimeClock::new());
    Server::new(move |_, _| match limiter.try_acquire() {
        Ok(_) => soon(200, &[]),
        Err(_) => soon(429, &[("retry-after", "1")]),
    })
}

#[tokio::test(start_paused = true)]
async fn a_burst_after_an_idle_hour_does_not_make_a_client_slow() {
    let server = ten_a_second();
    let client = ClientLimitLayer::new().layer(server.service());
    client.clone().oneshot(get(API)).await.unwrap();
    sleep(seconds(3600)).await;
    callers(&client, 20);
    sleep(seconds(300)).await;
    // In the last of the five minutes.
    let asked = server.asked_from(seconds(3600 + 240)).len();
    assert!(asked >= 60 * 10 / 2, "{asked} requests in a minute");
}

#[tokio::test(start_paused = true)]
async fn a_second_burst_after_an_idle_hour_does_not_make_a_client_slow() {
    let server = ten_a_second();
    let client = ClientLimitLayer::new().layer(server.service());
    let mut used = [0; 2];
    for used in &mut used {
        let from = server.began.elapsed();
        let tasks: Vec<_> = (0..20)
            .map(|_| {
                let client = client.clone();
                tokio::spawn(async move {
                    let until = Instant::now() + seconds(300);
                    while Instant::now() < until {
                        if client.clone().oneshot(get(API)).await.is_err() {
                            sleep(Duration::from_millis(100)).await;
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        *used = server.asked_from(from).len();
        sleep(seconds(3600)).await;
    }
    assert!(used[0] >= 1500 && used[1] >= 1500, "{used:?} of 3000");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_rounds_its_waits_down_to_zero_is_not_asked_much_too_often() {
    let counts = Arc::new(Mutex::new((0_u32, 0_u32)));
    let server = {
        let limiter = Limiter::with_clock(
            TokenBucket::new(Quota::per_second(10)).unwrap(),
            RuntimeClock::new(),
        );
        let counts = Arc::clone(&counts);
        Server::new(move |_, _| {
            let mut counts = counts.lock().unwrap();
            match limiter.try_acquire() {
                Ok(_) => {
                    counts.0 += 1;
                    soon(200, &[])
                }
                Err(_) => {
                    counts.1 += 1;
                    soon(429, &[("retry-after", "0")])
                }
            }
        })
    };
    let client = ClientLimitLayer::new().layer(server.service());
    callers(&client, 20);
    sleep(seconds(60)).await;
    *counts.lock().unwrap() = (0, 0);
    sleep(seconds(120)).await;
    let (granted, refused) = *counts.lock().unwrap();
    assert!(
        refused * 10 <= granted,
        "{refused} refused, {granted} granted"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_all_and_names_no_wait_is_asked_less_and_less() {
    for fields in [&[] as &[_], &[("retry-after", "0")]] {
        let server = Server::new(move |_, _| soon(429, fields));
        let client = ClientLimitLayer::new().layer(server.service());
        callers(&client, 20);
        sleep(seconds(120)).await;
        let asked = server.asked_from(seconds(60)).len();
        // The longest backoff is 10 seconds. One a second would be ten times as many.
        assert!(asked <= 60, "{asked} requests in a minute, {fields:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_request_that_tries_does_not_stop_the_others_for_as_long_again() {
    let server = Server::new(|before, _| match before {
        0 => soon(429, &[("retry-after", "60")]),
        1 => (
            Err(io::Error::from(io::ErrorKind::ConnectionReset)),
            Duration::from_millis(10),
        ),
        _ => soon(200, &[]),
    });
    let client = ClientLimitLayer::new().layer(server.service());
    client.clone().oneshot(get(API)).await.unwrap();
    sleep(seconds(70)).await;
    let tries = client.clone().oneshot(get(API)).await;
    // The server is open, but this one and those of the next minute fail.
    assert!(
        !matches!(tries, Err(ClientLimitError::WaitTooLong { .. })),
        "{tries:?}"
    );
    sleep(seconds(10)).await;
    let next = client.clone().oneshot(get(API)).await;
    assert!(next.is_ok(), "{next:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_dropped_while_it_tries_lets_another_one_try() {
    let server = Server::new(|before, _| match before {
        0 => soon(429, &[("retry-after", "25")]),
        1 => (Ok(answer(200, &[])), seconds(100)),
        _ => soon(200, &[]),
    });
    let client = ClientLimitLayer::new().layer(server.service());
    let layer_is_held = client.clone().oneshot(get(API));
    _ = timeout(Duration::from_millis(20), layer_is_held).await;
    sleep(seconds(35)).await;
    let tries = timeout(seconds(5), client.clone().oneshot(get(API))).await;
    assert!(tries.is_err(), "it takes too long");
    let begun = Instant::now();
    client.oneshot(get(API)).await.unwrap();
    let waited = begun.elapsed();
    assert!(waited <= seconds(10), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hold_of_one_kind_ends_with_an_answer_of_the_other() {
    // What is answered first, and what to the request that tries after that.
    type Said = (u16, &'static [(&'static str, &'static str)]);
    const OF_A_LIMIT: &[(&str, &str)] = &[EMPTY[0], EMPTY[1], ("retry-after", "1")];
    let kinds: [[Said; 2]; 2] = [
        [(503, &[("retry-after", "20")]), (429, OF_A_LIMIT)],
        [(429, EMPTY), (503, &[("retry-after", "1")])],
    ];
    for said in kinds {
        let server = Server::new(move |before, _| match said.get(before) {
            Some((status, fields)) => soon(*status, fields),
            None => soon(200, ROOM),
        });
        let client = ClientLimitLayer::new()
            .max_attempts(1)
            .layer(server.service());
        for _ in 0..3 {
            client.clone().oneshot(get(API)).await.unwrap();
        }
        let asked = server.asked_from(Duration::ZERO);
        let wait = asked[2] - asked[1];
        assert!(
            wait <= seconds(10),
            "{wait:?} after a wait of a second was named: {said:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_learns_at_once_that_another_one_has_tried_their_limit() {
    const EMPTY: &[(&str, &str)] = &[
        ("ratelimit-policy", r#""a";q=100;w=20;pk=:AAAA:"#),
        ("ratelimit", r#""a";r=0;t=20;pk=:AAAA:"#),
        ("retry-after", "14"),
    ];
    const ROOM: &[(&str, &str)] = &[
        ("ratelimit-policy", r#""a";q=100;w=20;pk=:AAAA:"#),
        ("ratelimit", r#""a";r=90;t=2;pk=:AAAA:"#),
    ];
    let server = Server::new(|before, _| match before {
        0 => soon(200, ROOM),
        1 => soon(200, ROOM),
        2 => soon(429, EMPTY),
        _ => soon(200, ROOM),
    });
    let client = ClientLimitLayer::new()
        .max_attempts(1)
        .layer(server.service());
    let with_key = |key: &str| {
        let request = Request::get(API).header("authorization", key);
        client.clone().oneshot(request.body(()).unwrap())
    };
    with_key("one").await.unwrap();
    with_key("two").await.unwrap();
    with_key("one").await.unwrap();
    let begun = Instant::now();
    let tasks = ["one", "two"].map(|key| tokio::spawn(with_key(key)));
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    let waited = begun.elapsed();
    assert!(waited <= seconds(24), "{waited:?} for a wait of 14 seconds");
}

#[tokio::test(start_paused = true)]
async fn a_503_without_a_wait_does_not_let_all_go() {
    let server = Server::new(|before, _| match before {
        0 => soon(503, &[("retry-after", "10")]),
        _ => soon(503, &[]),
    });
    let client = ClientLimitLayer::new()
        .max_attempts(1)
        .layer(server.service());
    client.clone().oneshot(get(API)).await.unwrap();
    for _ in 0..100 {
        tokio::spawn(client.clone().oneshot(get(API)));
    }
    sleep(seconds(20)).await;
    let asked = server.asked_from(seconds(1));
    let within = asked.iter().filter(|at| **at <= asked[0] + seconds(1));
    assert!(
        within.clone().count() <= 10,
        "{} in a second",
        within.count()
    );
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_kept_of_a_limit_that_is_one_too_many() {
    let server = Server::new(|before, _| {
        let names = |field: fn(usize) -> String| (0..64).map(field).collect::<Vec<_>>().join(", ");
        if before == 0 {
            let policy = names(|limit| format!("\"{limit}\";q=10;w=1"));
            let state = names(|limit| format!("\"{limit}\";r=9;t=1"));
            return soon(200, &[("ratelimit-policy", &policy), ("ratelimit", &state)]);
        }
        soon(429, EMPTY)
    });
    let client = ClientLimitLayer::new().layer(server.service());
    client.clone().oneshot(get(API)).await.unwrap();
    callers(&client, 4);
    sleep(seconds(15)).await;
    let asked = server.asked_from(Duration::ZERO).len();
    // Those that are on their way when the first answer comes.
    assert!(asked <= 6, "{asked} requests, in a wait of 20 seconds");
}

/// Fields of a limit with this much left.
fn left(remaining: u64, reset: u64) -> Vec<(&'static str, String)> {
    vec![
        ("ratelimit-policy", r#""a";q=100;w=20"#.to_owned()),
        ("ratelimit", format!("\"a\";r={remaining};t={reset}")),
    ]
}

/// Returns how many requests came within a wait that an earlier answer had named in time.
fn too_many(asked: &[Duration], waits: &[Duration], late: Duration) -> usize {
    let is_told = |at: Duration, before: usize| {
        let known = asked[before] + late;
        known < at && at < asked[before] + waits[before]
    };
    (0..asked.len())
        .filter(|now| (0..*now).any(|before| is_told(asked[*now], before)))
        .count()
}

#[tokio::test(start_paused = true)]
async fn a_shut_server_gets_one_request_for_each_wait_of_the_whole_layer() {
    let mut report = Vec::new();
    for seed in 0..60_u64 {
        let waits = Arc::new(Mutex::new(Vec::new()));
        let late = Duration::from_millis([1, 50, 700, 2500][seed as usize % 4]);
        let random = Mutex::new(crate::fleet::Random(seed));
        let named = Arc::clone(&waits);
        let server = Server::new(move |_, _| {
            let mut random = random.lock().unwrap();
            let wait = match seed % 3 {
                0 => 5,
                1 => 1 + random.draw() % 20,
                _ => 2,
            };
            named.lock().unwrap().push(seconds(wait));
            let status = match seed % 5 {
                0 => 503,
                1 => [429, 503][random.draw() as usize % 2],
                _ => 429,
            };
            let mut fields = match (seed / 2) % 4 {
                0 => vec![],
                1 => left(0, wait),
                2 if random.draw() & 1 == 0 => left(0, wait),
                2 => vec![],
                _ => left(random.draw() % 3, wait),
            };
            fields.push(("retry-after", wait.to_string()));
            let fields: Vec<_> = fields.iter().map(|(k, v)| (*k, v.as_str())).collect();
            (Ok(answer(status, &fields)), late)
        });
        let client = ClientLimitLayer::new().layer(server.service());
        callers(&client, 20);
        sleep(seconds(200)).await;
        let asked = server.asked_from(Duration::ZERO);
        let waits = waits.lock().unwrap();
        let most = too_many(&asked, &waits, late);
        report.push((seed, late, asked.len(), most));
    }
    for it in report.iter().filter(|it| it.3 > 0) {
        println!("{it:?}");
    }
    assert!(report.iter().all(|it| it.3 == 0));
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_fields_name_later_is_used() {
    // First it names only waits. Then it names a limit that has room.
    let server = Server::new(move |before, now| match (now.as_secs(), before % 2) {
        (0..300, 0) => soon(429, &[("retry-after", "10")]),
        (0..300, _) => soon(200, &[]),
        _ => soon(200, ROOM),
    });
    let client = ClientLimitLayer::new().layer(server.service());
    callers(&client, 20);
    sleep(seconds(600)).await;
    let asked = server.asked_from(seconds(540)).len();
    assert!(asked >= 60 * 4, "{asked} requests in a minute");
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_refuses_now_and_then_does_not_make_a_client_slow() {
    // Each hundredth answer is a gateway's, and says nothing of the limit.
    let server = Server::new(move |before, _| match before % 100 {
        99 => soon(429, &[("retry-after", "1")]),
        _ => soon(200, ROOM),
    });
    let client = ClientLimitLayer::new().layer(server.service());
    callers(&client, 20);
    sleep(seconds(600)).await;
    let asked = server.asked_from(seconds(540)).len();
    assert!(asked >= 60 * 4, "{asked} requests in a minute");
}

#[tokio::test(start_paused = true)]
async fn a_window_that_has_just_ended_does_not_hold_for_another_one() {
    // Windows of a minute. The server rounds `reset` and `Retry-After` down.
    let server = Server::new(|before, now| {
        let reset = 59 - now.as_secs() % 60;
        let is_empty = now.as_millis() % 60_000 > 30_000 && now.as_secs() < 60;
        let (status, remaining) = match is_empty {
            true => (429, 0),
            false => (200, 90_u64.saturating_sub(before as u64)),
        };
        let state = format!("\"a\";r={remaining};t={reset}");
        let wait = reset.to_string();
        let fields = [
            ("ratelimit-policy", r#""a";q=100;w=60"#),
            ("ratelimit", &state),
            ("retry-after", &wait),
        ];
        soon(status, if is_empty { &fields } else { &fields[..2] })
    });
    let client = ClientLimitLayer::new()
        .max_attempts(1)
        .layer(server.service());
    for _ in 0..10 {
        client.clone().oneshot(get(API)).await.unwrap();
    }
    sleep(Duration::from_millis(59_500).saturating_sub(server.began.elapsed())).await;
    let refused = client.clone().oneshot(get(API)).await.unwrap();
    assert_eq!(refused.status(), 429);
    let begun = Instant::now();
    let next = client.oneshot(get(API)).await;
    assert!(
        next.is_ok() && begun.elapsed() < seconds(10),
        "{next:?} after {:?}",
        begun.elapsed()
    );
}
