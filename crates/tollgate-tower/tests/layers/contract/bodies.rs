//! Bodies pass through: frames, errors, sizes and ends. Large frames come in pieces.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame, SizeHint};
use tollgate::{Concurrency, Denied, Limiter, Quota};
use tollgate_http::{Fields, Refusal};
use tollgate_tower::{CountedRequests, RateLimitLayer};
use tower::{Layer, Service};

/// What a body does next.
#[derive(Debug, Clone, Copy)]
enum Step {
    Waits,
    Data(&'static [u8]),
    Trailers,
    Fails,
}

#[derive(Debug, Clone)]
struct Steps {
    next: usize,
    all: &'static [Step],
    knows_its_size: bool,
}

impl Body for Steps {
    type Data = Bytes;
    type Error = usize;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, usize>>> {
        let step = self.all.get(self.next).copied();
        self.next += 1;
        match step {
            Some(Step::Waits) => Poll::Pending,
            Some(Step::Data(data)) => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(data))))),
            Some(Step::Trailers) => Poll::Ready(Some(Ok(Frame::trailers(trailers())))),
            Some(Step::Fails) => Poll::Ready(Some(Err(self.next))),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.knows_its_size && self.next >= self.all.len()
    }

    fn size_hint(&self) -> SizeHint {
        let left = self.all.iter().skip(self.next).map(|step| match step {
            Step::Data(data) => u64::try_from(data.len()).unwrap(),
            _ => 0,
        });
        let left = left.sum();
        match self.knows_its_size {
            true => SizeHint::with_exact(left),
            false => {
                let mut hint = SizeHint::new();
                hint.set_lower(left / 2);
                hint.set_upper(left * 2 + 7);
                hint
            }
        }
    }
}

fn trailers() -> HeaderMap {
    HeaderMap::from_iter([("x-sum".parse().unwrap(), "45".parse().unwrap())])
}

#[derive(Debug, Clone)]
struct Serves(Steps);

impl Service<Request<()>> for Serves {
    type Response = Response<Steps>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Steps>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        ready(Ok(Response::new(self.0.clone())))
    }
}

/// What a body shows of itself.
fn shown<B: Body<Data = Bytes, Error = usize>>(body: &B) -> (bool, u64, Option<u64>) {
    let hint = body.size_hint();
    (body.is_end_stream(), hint.lower(), hint.upper())
}

/// What a poll returns, in comparable form.
fn poll<B: Body<Data = Bytes, Error = usize>>(
    body: Pin<&mut B>,
) -> Poll<Option<Result<Result<Bytes, HeaderMap>, usize>>> {
    let mut context = Context::from_waker(Waker::noop());
    body.poll_frame(&mut context).map(|frame| {
        frame.map(|frame| {
            frame.map(|frame| {
                frame
                    .into_data()
                    .map_err(|frame| frame.into_trailers().expect("trailers"))
            })
        })
    })
}

/// The most bytes of a frame that are handed on at once.
const PIECE: usize = 64 * 1024;

const BODIES: [&[Step]; 9] = [
    &[],
    &[Step::Data(b"a page")],
    &[
        Step::Waits,
        Step::Data(b""),
        Step::Data(b"a"),
        Step::Waits,
        Step::Data(b"bc"),
    ],
    &[Step::Data(b"abc"), Step::Trailers],
    &[Step::Trailers],
    &[Step::Data(b"abc"), Step::Fails],
    &[Step::Fails, Step::Data(b"after an error"), Step::Waits],
    &[Step::Waits, Step::Waits, Step::Data(&[7; 100_000])],
    &[Step::Data(&[7; 100_000]), Step::Waits, Step::Trailers],
];

#[test]
fn each_frame_and_each_size() {
    for (all, knows_its_size) in BODIES
        .iter()
        .flat_map(|body| [(*body, true), (*body, false)])
    {
        let (next, places) = (0, Arc::new(Concurrency::new(1).unwrap()));
        let steps = Steps {
            next,
            all,
            knows_its_size,
        };
        let limiter = Limiter::token_bucket(Quota::per_hour(9)).unwrap();
        let limiter = RateLimitLayer::shared(limiter)
            .count(CountedRequests::Failures)
            .fields(Fields::LIST);
        let places = RateLimitLayer::concurrency(places);
        let mut service = places.layer(limiter.layer(Serves(steps.clone())));
        let mut context = Context::from_waker(Waker::noop());
        let answer = std::pin::pin!(service.call(Request::new(())));
        let Poll::Ready(Ok(answer)) = answer.poll(&mut context) else {
            panic!("it answers at once");
        };
        let mut through = std::pin::pin!(answer.into_body());
        let mut alone = std::pin::pin!(steps);
        // What a piece has left of a large frame.
        let mut rest = Bytes::new();
        for step in 0..all.len() + 4 {
            let (is_end, lower, upper) = shown(&*alone);
            let left = u64::try_from(rest.len()).unwrap();
            let upper = upper.map(|upper| upper + left);
            let expected = (is_end && left == 0, lower + left, upper);
            assert_eq!(shown(&*through), expected, "{all:?}, {step}");
            let mut expected = match rest.is_empty() {
                true => poll(alone.as_mut()),
                false => Poll::Ready(Some(Ok(Ok(std::mem::take(&mut rest))))),
            };
            if let Poll::Ready(Some(Ok(Ok(data)))) = &mut expected {
                rest = data.split_off(data.len().min(PIECE));
            }
            assert_eq!(poll(through.as_mut()), expected, "{all:?}, {step}");
        }
    }
}

/// The body of a refusal has a known size, and ends.
#[test]
fn the_body_of_a_refusal() {
    let steps = Steps {
        next: 0,
        all: &[],
        knows_its_size: true,
    };
    let busy = Refusal::of_denied(&Denied::busy(1)).rule("default");
    let text = tollgate_http::Answers::new().refuse(&busy).into_body();
    let text = std::str::from_utf8(&text).unwrap().to_owned();
    for (body, text) in [
        (tollgate_http::RefusalBody::Text, &*text),
        (tollgate_http::RefusalBody::Empty, ""),
    ] {
        let places = Arc::new(Concurrency::new(1).unwrap());
        let _guard = places.try_enter().unwrap();
        let layer = RateLimitLayer::concurrency(Arc::clone(&places)).body(body);
        let mut service = layer.layer(Serves(steps.clone()));
        let mut context = Context::from_waker(Waker::noop());
        let answer = std::pin::pin!(service.call(Request::new(())));
        let Poll::Ready(Ok(answer)) = answer.poll(&mut context) else {
            panic!("it answers at once");
        };
        assert_eq!(answer.status(), 503);
        let mut body = std::pin::pin!(answer.into_body());
        let size = u64::try_from(text.len()).unwrap();
        assert_eq!(shown(&*body), (size == 0, size, Some(size)));
        if size > 0 {
            let frame = Poll::Ready(Some(Ok(Ok(Bytes::from(text.to_owned())))));
            assert_eq!(poll(body.as_mut()), frame);
        }
        assert_eq!(shown(&*body), (true, 0, Some(0)));
        assert_eq!(poll(body.as_mut()), Poll::Ready(None));
    }
}

/// Futures and bodies are moved often. What a layer adds for the few requests that wait or settle
/// is in boxes. The values of fields and a refusal are not in a box of the future, which would be
/// allocated for each of these requests.
#[test]
fn a_layer_adds_two_values_or_a_refusal_to_futures_and_nothing_to_bodies() {
    fn added<S>(service: S) -> (usize, usize)
    where
        S: Service<Request<()>, Response = Response<axum::body::Body>, Error = Infallible> + Clone,
    {
        let limiter = Limiter::token_bucket(Quota::per_day(10)).unwrap();
        let mut own = service.clone();
        let mut limited = RateLimitLayer::shared(limiter).layer(service);
        let mut cx = Context::from_waker(Waker::noop());
        let own = own.call(Request::new(()));
        let mut future = Box::pin(limited.call(Request::new(())));
        let size = size_of_val(&*future);
        let Poll::Ready(Ok(answer)) = future.as_mut().poll(&mut cx) else {
            panic!("the service answers at once");
        };
        let body = size_of_val(answer.body());
        (
            size - size_of_val(&own),
            body - size_of::<axum::body::Body>(),
        )
    }

    let empty = |_: Request<()>| Ok::<_, Infallible>(Response::new(axum::body::Body::empty()));
    let at_once = tower::service_fn(move |request| ready(empty(request)));
    let values = size_of::<tollgate_http::FieldValues>();
    assert!(values <= 88, "{values}");
    assert_eq!(added(at_once), (values, 0));
    // A future that is a pointer has no room for a refusal.
    let (future, body) = added(tower::util::BoxCloneService::new(at_once));
    assert!(future <= size_of::<Response<Bytes>>(), "{future}");
    assert_eq!(body, 0);
}
