//! A large frame of a body is handed on in pieces, so that a client that does not read it is still
//! served, and what it does not take is not counted as sent.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::{Pin, pin};

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use tollgate::{Concurrency, Limiter, ManualClock, Quota, TokenBucket};
use tollgate_tower::{End, RateLimitLayer};
use tower::{Layer, Service, service_fn};

/// The most bytes of a piece.
const PIECE: usize = 64 * 1024;

const LARGE: usize = 8 * 1024 * 1024;

/// Polls a body once. It is ready.
fn next<B: Body<Error: std::fmt::Debug>>(body: Pin<&mut B>) -> Option<Frame<B::Data>> {
    let mut context = Context::from_waker(Waker::noop());
    match body.poll_frame(&mut context) {
        Poll::Ready(frame) => frame.map(|frame| frame.expect("no error")),
        Poll::Pending => panic!("it is ready"),
    }
}

/// Returns the answer of a service that answers at once.
fn answer<S, B>(mut service: S) -> Response<B>
where
    S: Service<Request<()>, Response = Response<B>, Error = Infallible>,
{
    let mut context = Context::from_waker(Waker::noop());
    match pin!(service.call(Request::new(()))).poll(&mut context) {
        Poll::Ready(Ok(answer)) => answer,
        _ => panic!("it answers at once"),
    }
}

/// Serves a body.
fn serves<B: Clone>(
    body: B,
) -> impl Service<
    Request<()>,
    Response = Response<B>,
    Error = Infallible,
    Future = Ready<Result<Response<B>, Infallible>>,
> + Clone {
    service_fn(move |_: Request<()>| ready(Ok(Response::new(body.clone()))))
}

/// A client that has not read a body of one frame is inside.
fn is_inside_until_the_last_piece<B>(body: B)
where
    B: Body<Data = Bytes, Error: std::fmt::Debug> + Clone,
{
    let places = Arc::new(Concurrency::new(1).expect("places"));
    let layer = RateLimitLayer::concurrency(Arc::clone(&places));
    let answer = answer(layer.layer(serves(body)));
    let mut body = pin!(answer.into_body());
    let mut left = LARGE;
    while left > 0 {
        assert_eq!(places.inside(), 1, "{left} bytes were not handed on");
        assert!(!body.is_end_stream());
        let exact = u64::try_from(left).expect("a number");
        assert_eq!(body.size_hint().exact(), Some(exact));
        let data = next(body.as_mut()).expect("there is more").into_data();
        let len = data.expect("data").len();
        assert!((1..=PIECE).contains(&len), "{len}");
        left -= len;
    }
    assert_eq!(places.inside(), 0);
    assert!(body.is_end_stream());
    assert_eq!(body.size_hint().exact(), Some(0));
    assert!(next(body.as_mut()).is_none());
}

#[test]
fn a_body_of_one_frame_counts_until_its_last_piece() {
    let text = "a".repeat(LARGE);
    is_inside_until_the_last_piece(Full::new(Bytes::from(text.clone())));
    is_inside_until_the_last_piece(text);
}

/// `Json`, `Vec` and `String` of axum are such bodies.
#[test]
fn the_bodies_of_axum_count_until_their_last_piece() {
    use axum::response::IntoResponse;

    let all = [
        "a".repeat(LARGE).into_response(),
        vec![7; LARGE].into_response(),
        Bytes::from(vec![7; LARGE]).into_response(),
    ];
    for answered in all {
        let places = Arc::new(Concurrency::new(1).expect("places"));
        let layer = RateLimitLayer::concurrency(Arc::clone(&places));
        let slot = &Mutex::new(Some(answered));
        let service = service_fn(move |_: Request<()>| {
            let answered = slot.lock().expect("one thread").take();
            ready(Ok::<_, Infallible>(answered.expect("one request")))
        });
        let body = answer(layer.layer(service)).into_body();
        let mut body = pin!(body);
        assert!(next(body.as_mut()).is_some());
        assert_eq!(places.inside(), 1);
        while next(body.as_mut()).is_some() {}
        assert_eq!(places.inside(), 0);
    }
}

#[test]
fn what_was_not_handed_on_was_not_sent() {
    let size = u64::try_from(LARGE).expect("a number");
    for pieces in [0, 1, 2, 1000] {
        let sent = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&sent);
        let bucket = TokenBucket::new(Quota::per_second(1).burst(1 << 30)).expect("a bucket");
        let limiter = Arc::new(Limiter::with_clock(bucket, ManualClock::new()));
        let layer = RateLimitLayer::shared(Arc::clone(&limiter)).settle(move |ended| {
            seen.lock()
                .expect("one thread")
                .push((ended.bytes(), ended.end()));
            ended.bytes()
        });
        let answer = answer(layer.layer(serves(Full::new(Bytes::from(vec![7; LARGE])))));
        {
            let mut body = Box::pin(answer.into_body());
            for _ in 0..pieces {
                let _ = next(body.as_mut());
            }
        }
        let expected = (pieces * 64 * 1024).min(size);
        let end = match expected == size {
            true => End::Complete,
            false => End::Dropped,
        };
        let sent = sent.lock().expect("one thread");
        assert_eq!(*sent, [(expected, end)]);
        assert_eq!(limiter.available(), (1 << 30) - expected);
    }
}

/// Pieces are parts of the frame, and no copies.
#[test]
fn pieces_are_not_copied() {
    let all = Bytes::from(vec![7; 3 * PIECE + 5]);
    let layer = RateLimitLayer::concurrency(Concurrency::new(1).expect("places"));
    let answer = answer(layer.layer(serves(Full::new(all.clone()))));
    let mut body = pin!(answer.into_body());
    let mut from = 0;
    while let Some(frame) = next(body.as_mut()) {
        let data = frame.into_data().expect("data");
        assert_eq!(data.as_ptr(), all.slice(from..).as_ptr());
        from += data.len();
    }
    assert_eq!(from, all.len());
}

/// A frame that fits a piece is handed on as it is.
#[test]
fn small_frames_stay_whole() {
    for size in [0, 1, PIECE - 1, PIECE] {
        let places = Arc::new(Concurrency::new(1).expect("places"));
        let layer = RateLimitLayer::concurrency(Arc::clone(&places));
        let body = Frames::new([Ok(Frame::data(Data::of(size)))]);
        let answer = answer(layer.layer(serves(body)));
        let mut body = pin!(answer.into_body());
        let data = next(body.as_mut()).and_then(|frame| frame.into_data().ok());
        let data = data.expect("data");
        assert_eq!((data.remaining(), data.copies), (size, 0));
        assert_eq!(places.inside(), 0);
    }
}

/// Data of a type of its own, which says how often it was copied.
#[derive(Debug, Clone, Default)]
struct Data {
    bytes: Bytes,
    copies: u32,
}

impl Data {
    fn of(size: usize) -> Self {
        Self {
            bytes: Bytes::from(vec![7; size]),
            copies: 0,
        }
    }
}

impl From<Bytes> for Data {
    fn from(bytes: Bytes) -> Self {
        Self { bytes, copies: 1 }
    }
}

impl Buf for Data {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }
}

/// A body that has these frames.
#[derive(Debug, Clone)]
struct Frames<D>(VecDeque<Result<Step<D>, &'static str>>);

#[derive(Debug, Clone)]
enum Step<D> {
    Data(D),
    Trailers(HeaderMap),
}

impl<D: Buf> Frames<D> {
    fn new(frames: impl IntoIterator<Item = Result<Frame<D>, &'static str>>) -> Self {
        let step = |frame: Frame<D>| match frame.into_data() {
            Ok(data) => Step::Data(data),
            Err(frame) => Step::Trailers(frame.into_trailers().ok().expect("trailers")),
        };
        let frames = frames.into_iter().map(|frame| frame.map(step));
        Self(frames.collect())
    }
}

impl<D: Buf + Unpin> Body for Frames<D> {
    type Data = D;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<D>, &'static str>>> {
        let frame = self.0.pop_front();
        Poll::Ready(frame.map(|frame| {
            frame.map(|step| match step {
                Step::Data(data) => Frame::data(data),
                Step::Trailers(trailers) => Frame::trailers(trailers),
            })
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = SizeHint::new();
        hint.set_lower(self.0.iter().map(|step| size(step.as_ref().ok())).sum());
        hint
    }
}

fn size<D: Buf>(step: Option<&Step<D>>) -> u64 {
    match step {
        Some(Step::Data(data)) => u64::try_from(data.remaining()).expect("a size"),
        _ => 0,
    }
}

/// Trailers and errors come after the last piece of what was before them. A size that is not exact
/// has what is kept in its bounds.
#[test]
fn trailers_and_errors_keep_their_places() {
    let trailers = HeaderMap::from_iter([("x-sum".parse().unwrap(), "45".parse().unwrap())]);
    let large = || Ok(Frame::data(Data::of(PIECE + 7)));
    for fails in [false, true] {
        let last = match fails {
            false => Ok(Frame::trailers(trailers.clone())),
            true => Err("it broke"),
        };
        let places = Arc::new(Concurrency::new(1).expect("places"));
        let layer = RateLimitLayer::concurrency(Arc::clone(&places));
        let frames = Frames::new([large(), Ok(Frame::data(Data::of(3))), large(), last]);
        let answer = answer(layer.layer(serves(frames)));
        let mut body = pin!(answer.into_body());
        let (mut left, mut context) = (2 * PIECE + 17, Context::from_waker(Waker::noop()));
        for size in [PIECE, 7, 3, PIECE, 7] {
            let hint = body.size_hint();
            let lower = u64::try_from(left).expect("a size");
            assert_eq!((hint.lower(), hint.upper()), (lower, None));
            assert_eq!(places.inside(), 1);
            let data = next(body.as_mut()).expect("data").into_data();
            assert_eq!(data.expect("data").remaining(), size);
            left -= size;
        }
        assert!(!body.is_end_stream());
        assert_eq!(places.inside(), 1);
        match body.as_mut().poll_frame(&mut context) {
            Poll::Ready(Some(Ok(frame))) => {
                assert_eq!(frame.into_trailers().ok(), Some(trailers.clone()));
            }
            Poll::Ready(Some(Err(error))) => assert_eq!((error, fails), ("it broke", true)),
            _ => panic!("the trailers are missing"),
        }
        assert_eq!(places.inside(), 0);
    }
}
