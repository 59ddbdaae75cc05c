//! The body of an answer.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::Response;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::admission::Admission;
use crate::answered::End;
use crate::ticket::Ticket;

/// The most bytes of a frame that are handed on at once, if the end of the body matters.
///
/// A body that is a `String`, a `Vec` or `Bytes` is a single frame. A server that has taken it
/// holds all of it, however slowly the client reads, and asks the body for nothing more. In pieces,
/// the body is asked again each time the server has room.
const PIECE: usize = 64 * 1024;

pin_project! {
    /// The body of an answer: the service's own, or that of a refusal.
    ///
    /// The service's own body passes through. When it ends or is dropped, the request ends for its
    /// limits. If a limit needs this end, as a concurrency or a limit that settles does, frames of
    /// more than 64 KiB are handed on in pieces. So the end comes when the client has read nearly
    /// everything. Pieces of `Bytes` are not copied. Pieces of other types are copied by
    /// [`Buf::copy_to_bytes`].
    pub struct ResponseBody<B: Body, A: Admission> {
        #[pin]
        kind: Kind<B, A>,
    }
}

pin_project! {
    /// Most bodies are free. The others keep what they need in a box, so that a free body is as
    /// small as the service's own.
    #[project = KindProject]
    enum Kind<B: Body, A: Admission> {
        /// The service's own, whose end does not matter.
        Free {
            #[pin]
            body: B,
        },
        Limited {
            limited: Pin<Box<Limited<B, A>>>,
        },
    }
}

pin_project! {
    #[project = LimitedProject]
    enum Limited<B: Body, A: Admission> {
        Served {
            #[pin]
            body: B,
            // What is left of the last frame.
            rest: Option<B::Data>,
            ticket: Ticket<A>,
        },
        Refused {
            body: Option<Bytes>,
        },
    }
}

impl<B: Body, A: Admission> ResponseBody<B, A> {
    /// An answer whose end does not matter.
    #[inline]
    pub(crate) fn free(answer: Response<B>) -> Response<Self> {
        answer.map(|body| Self {
            kind: Kind::Free { body },
        })
    }

    /// What the service has answered, or its error.
    pub(crate) fn of_answer<E>(
        result: Result<Response<B>, E>,
        ticket: &mut Ticket<A>,
    ) -> Result<Response<Self>, E> {
        match result {
            Ok(mut response) => {
                ticket.write(&mut response);
                let ticket = std::mem::replace(ticket, Ticket::empty());
                Ok(response.map(|body| Self::served(body, ticket)))
            }
            Err(error) => {
                ticket.end(End::Failed);
                Err(error)
            }
        }
    }

    fn served(body: B, mut ticket: Ticket<A>) -> Self {
        if body.is_end_stream() {
            ticket.end(End::Complete);
        }
        let kind = match ticket.is_over() {
            true => Kind::Free { body },
            false => Kind::Limited {
                limited: Box::pin(Limited::Served {
                    body,
                    rest: None,
                    ticket,
                }),
            },
        };
        Self { kind }
    }

    pub(crate) fn refused(body: Bytes) -> Self {
        let body = Some(body).filter(|body| !body.is_empty());
        let limited = Box::pin(Limited::Refused { body });
        Self {
            kind: Kind::Limited { limited },
        }
    }
}

impl<B, A> Body for ResponseBody<B, A>
where
    B: Body,
    B::Data: From<Bytes>,
    A: Admission,
{
    type Data = B::Data;
    type Error = B::Error;

    #[inline]
    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        match self.project().kind.project() {
            KindProject::Free { body } => body.poll_frame(cx),
            KindProject::Limited { limited } => limited.as_mut().poll_frame(cx),
        }
    }

    #[inline]
    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Free { body } => body.is_end_stream(),
            Kind::Limited { limited } => limited.is_end_stream(),
        }
    }

    #[inline]
    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Free { body } => body.size_hint(),
            Kind::Limited { limited } => limited.size_hint(),
        }
    }
}

impl<B, A> Body for Limited<B, A>
where
    B: Body,
    B::Data: From<Bytes>,
    A: Admission,
{
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        match self.project() {
            LimitedProject::Served {
                mut body,
                rest,
                ticket,
            } => {
                let frame = match rest.take() {
                    Some(data) => Some(Ok(piece_of(data, rest))),
                    None => match ready!(body.as_mut().poll_frame(cx)) {
                        Some(Ok(frame)) => Some(Ok(match frame.into_data() {
                            Ok(data) => piece_of(data, rest),
                            Err(frame) => frame,
                        })),
                        end => end,
                    },
                };
                match &frame {
                    Some(Ok(frame)) => {
                        if let Some(data) = frame.data_ref() {
                            ticket.sent(data.remaining());
                        }
                        if let Some(trailers) = frame.trailers_ref() {
                            ticket.grpc_status(trailers);
                        }
                        // Now, because the server may never poll the body again.
                        if frame.is_trailers() || (rest.is_none() && body.is_end_stream()) {
                            ticket.end(End::Complete);
                        }
                    }
                    Some(Err(_)) => ticket.end(End::Failed),
                    None => ticket.end(End::Complete),
                }
                Poll::Ready(frame)
            }
            LimitedProject::Refused { body } => {
                let data = body.take().map(|body| Frame::data(body.into()));
                Poll::Ready(data.map(Ok))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Served { body, rest, .. } => rest.is_none() && body.is_end_stream(),
            Self::Refused { body } => body.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Served { body, rest, .. } => match rest {
                Some(rest) => with(rest.remaining(), &body.size_hint()),
                None => body.size_hint(),
            },
            Self::Refused { body } => {
                let bytes = body.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(u64::try_from(bytes).unwrap_or(u64::MAX))
            }
        }
    }
}

/// Returns as much of the data as a piece may have, and keeps the rest.
fn piece_of<D: Buf + From<Bytes>>(mut data: D, rest: &mut Option<D>) -> Frame<D> {
    if data.remaining() <= PIECE {
        return Frame::data(data);
    }
    let piece = data.copy_to_bytes(PIECE).into();
    *rest = Some(data);
    Frame::data(piece)
}

/// Adds bytes that come before the rest of a body to the hint of its size.
fn with(bytes: usize, hint: &SizeHint) -> SizeHint {
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    let mut sum = SizeHint::new();
    let upper = hint.upper().map(|upper| upper.saturating_add(bytes));
    if let Some(upper) = upper {
        sum.set_upper(upper);
    }
    sum.set_lower(hint.lower().saturating_add(bytes));
    sum
}

impl<B: Body, A: Admission> fmt::Debug for ResponseBody<B, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            Kind::Free { .. } => "Served",
            Kind::Limited { limited } => match &**limited {
                Limited::Served { .. } => "Served",
                Limited::Refused { .. } => "Refused",
            },
        };
        f.debug_tuple("ResponseBody").field(&kind).finish()
    }
}
