//! What one connection is doing: requests that are being answered, and answers that its client has
//! not taken.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::{Response, StatusCode};
use hyper::body::{Body, Frame, SizeHint};

use crate::budget::{Budget, Share};

/// The requests of one connection.
#[derive(Debug, Default)]
pub(super) struct Requests {
    begun: AtomicU64,
    /// How many are being answered.
    open: AtomicUsize,
    /// How many answers the client has not taken, by whether they were made in an even or an odd
    /// period.
    untaken: [AtomicUsize; 2],
    period: AtomicUsize,
}

impl Requests {
    pub(super) fn begin(self: &Arc<Self>) -> Open {
        self.begun.fetch_add(1, Relaxed);
        self.open.fetch_add(1, Relaxed);
        Open(Arc::clone(self))
    }

    /// Returns how many requests have begun.
    pub(super) fn begun(&self) -> u64 {
        self.begun.load(Relaxed)
    }

    /// Returns whether nothing is being answered, and all answers are taken.
    pub(super) fn is_quiet(&self) -> bool {
        let untaken = || self.untaken.iter().any(|it| it.load(Relaxed) > 0);
        self.open.load(Relaxed) == 0 && !untaken()
    }

    /// Begins another period. Returns whether the client has left an answer for a whole one.
    pub(super) fn next_period(&self) -> bool {
        let next = self.period.load(Relaxed).wrapping_add(1);
        // Those of the period before the last one are counted where the next one's will be.
        let old = self.untaken_in(next);
        let is_stalled = old.is_some_and(|old| old.load(Relaxed) > 0);
        self.period.store(next, Relaxed);
        is_stalled
    }

    fn untaken_in(&self, period: usize) -> Option<&AtomicUsize> {
        self.untaken.get(period % self.untaken.len())
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct Open(Arc<Requests>);

impl Open {
    /// Sends the answer, if there is memory for it.
    pub(super) fn answer<B: Body>(
        self,
        answer: Response<B>,
        budget: &Arc<Budget>,
    ) -> Response<Sent<B>> {
        let requests = Arc::clone(&self.0);
        let period = requests.period.load(Relaxed);
        if let Some(untaken) = requests.untaken_in(period) {
            untaken.fetch_add(1, Relaxed);
        }
        let untaken = Untaken { requests, period };
        let mut share = budget.share();
        let bytes = answer.body().size_hint().lower();
        let is_granted = usize::try_from(bytes).is_ok_and(|bytes| share.grow(bytes));
        if is_granted {
            return answer.map(|body| Sent {
                body: Some(body),
                rest: Bytes::new(),
                _untaken: untaken,
                _share: share,
            });
        }
        let why = "other answers that clients do not take need all memory that there is\n";
        let mut refused = Response::new(Sent {
            body: None,
            rest: Bytes::from_static(why.as_bytes()),
            _untaken: untaken,
            _share: share,
        });
        *refused.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        refused
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}

/// An answer that the client has not taken.
#[derive(Debug)]
struct Untaken {
    requests: Arc<Requests>,
    period: usize,
}

impl Drop for Untaken {
    fn drop(&mut self) {
        if let Some(untaken) = self.requests.untaken_in(self.period) {
            untaken.fetch_sub(1, Relaxed);
        }
    }
}

/// The body of an answer, which is sent in pieces as the client takes them: all that HTTP/2 is
/// given for a client that reads nothing is one piece.
#[derive(Debug)]
pub(super) struct Sent<B> {
    body: Option<B>,
    rest: Bytes,
    _untaken: Untaken,
    _share: Share,
}

const PIECE: usize = 16 * 1024;

impl<B: Body + Unpin> Body for Sent<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        loop {
            if !self.rest.is_empty() {
                let piece = self.rest.len().min(PIECE);
                let piece = self.rest.split_to(piece);
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            let Some(body) = &mut self.body else {
                return Poll::Ready(None);
            };
            let frame = match ready!(Pin::new(body).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            };
            match frame.into_data() {
                Ok(mut data) => self.rest = data.copy_to_bytes(data.remaining()),
                Err(frame) => {
                    let trailers = frame.into_trailers().ok();
                    return Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let rest = u64::try_from(self.rest.len()).unwrap_or(u64::MAX);
        let mut hint = match &self.body {
            Some(body) => body.size_hint(),
            None => SizeHint::with_exact(0),
        };
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint.set_lower(hint.lower().saturating_add(rest));
        hint
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::FutureExt;
    use http::HeaderMap;
    use http_body_util::{BodyExt, Full, StreamBody};

    use super::*;

    #[test]
    fn an_answer_that_is_left_for_a_period_is_stalled() {
        let requests = Arc::<Requests>::default();
        let budget = Arc::new(Budget::new(100));
        assert!(requests.is_quiet() && !requests.next_period());
        let answer = |bytes| {
            let open = requests.begin();
            open.answer(
                Response::new(Full::new(Bytes::from(vec![0; bytes]))),
                &budget,
            )
        };
        let first = answer(60);
        assert!(!requests.is_quiet() && !requests.next_period());
        drop(first);
        // One that was made in this period may stay for the whole next one.
        let second = answer(60);
        assert!(!requests.next_period());
        assert!(requests.next_period());
        assert_eq!(answer(41).status(), StatusCode::SERVICE_UNAVAILABLE);
        drop(second);
        assert!(requests.is_quiet() && !requests.next_period());
        assert_eq!((budget.used(), requests.begun()), (0, 3));
    }

    #[test]
    fn a_body_comes_whole_in_pieces() {
        let requests = Arc::<Requests>::default();
        let budget = Arc::new(Budget::new(100_000));
        let bytes: Bytes = (0..40_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        let answer = Response::new(Full::new(bytes.clone()));
        let mut sent = requests.begin().answer(answer, &budget).into_body();
        assert_eq!(sent.size_hint().exact(), Some(40_000));
        let mut all = Vec::new();
        while let Some(frame) = sent.frame().now_or_never().unwrap() {
            let data = frame.unwrap().into_data().unwrap();
            assert!(data.len() <= PIECE);
            all.extend_from_slice(&data);
            let left = 40_000 - all.len() as u64;
            assert_eq!(sent.size_hint().exact(), Some(left));
            assert_eq!(sent.is_end_stream(), left == 0);
        }
        assert_eq!(all, bytes);
    }

    #[test]
    fn trailers_follow_the_body() {
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", 0.into());
        let frames = [
            Frame::data(Bytes::from_static(b"a message")),
            Frame::trailers(trailers.clone()),
        ];
        let frames = futures_util::stream::iter(frames.map(Ok::<_, Infallible>));
        let answer = Response::new(StreamBody::new(frames));
        let requests = Arc::<Requests>::default();
        let budget = Arc::new(Budget::new(9));
        let sent = requests.begin().answer(answer, &budget).into_body();
        let all = sent.collect().now_or_never().unwrap().unwrap();
        assert_eq!(all.trailers(), Some(&trailers));
        assert_eq!(all.to_bytes(), "a message");
    }
}
