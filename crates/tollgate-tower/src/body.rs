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

pin_project! {
    /// The body of an answer: the service's own, or that of a refusal.
    ///
    /// The service's own passes through unchanged. Its end, or its being dropped, ends the request
    /// for its limits.
    pub struct ResponseBody<B, A: Admission> {
        #[pin]
        kind: Kind<B, A>,
    }
}

pin_project! {
    #[project = KindProject]
    enum Kind<B, A: Admission> {
        Served {
            #[pin]
            body: B,
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
        let (head, body) = answer.into_parts();
        let ticket = Ticket::empty();
        let kind = Kind::Served { body, ticket };
        Response::from_parts(head, Self { kind })
    }

    pub(crate) fn served(body: B, mut ticket: Ticket<A>) -> Self {
        if body.is_end_stream() {
            ticket.end(End::Complete);
        }
        Self {
            kind: Kind::Served { body, ticket },
        }
    }

    #[inline]
    pub(crate) fn refused(body: Bytes) -> Self {
        let body = Some(body).filter(|body| !body.is_empty());
        Self {
            kind: Kind::Refused { body },
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

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        match self.project().kind.project() {
            KindProject::Served { mut body, ticket } => {
                let frame = ready!(body.as_mut().poll_frame(cx));
                match &frame {
                    Some(Ok(frame)) => {
                        if let Some(data) = frame.data_ref() {
                            ticket.sent(data.remaining());
                        }
                        if let Some(trailers) = frame.trailers_ref() {
                            ticket.grpc_status(trailers);
                        }
                        // It may not be polled again.
                        if frame.is_trailers() || body.is_end_stream() {
                            ticket.end(End::Complete);
                        }
                    }
                    Some(Err(_)) => ticket.end(End::Failed),
                    None => ticket.end(End::Complete),
                }
                Poll::Ready(frame)
            }
            KindProject::Refused { body } => {
                let data = body.take().map(|body| Frame::data(body.into()));
                Poll::Ready(data.map(Ok))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Served { body, .. } => body.is_end_stream(),
            Kind::Refused { body } => body.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Served { body, .. } => body.size_hint(),
            Kind::Refused { body } => {
                let bytes = body.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(u64::try_from(bytes).unwrap_or(u64::MAX))
            }
        }
    }
}

impl<B, A: Admission> fmt::Debug for ResponseBody<B, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            Kind::Served { .. } => "Served",
            Kind::Refused { .. } => "Refused",
        };
        f.debug_tuple("ResponseBody").field(&kind).finish()
    }
}
