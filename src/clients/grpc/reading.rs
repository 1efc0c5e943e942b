//! An answer whose head is there, and of which more is read until it is the caller's.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Response, StatusCode, response::Parts};
use http_body::{Body, Frame};
use tokio::time::Instant;

use super::{
    Commit,
    answer::{self, AnswerFailed, GRPC_STATUS, ResponseBody},
    commit::{HELD, PATIENCE},
};
use crate::{BoxError, policy::GrpcCode};

/// What an empty frame costs of what may be held.
const FRAME: usize = 64;

pub(super) struct Reading<RB> {
    head: Parts,
    held: VecDeque<Frame<Bytes>>,
    cost: usize,
    rest: RB,
    pub(super) patient_until: Instant,
    /// The caller's own deadline, beyond the attempt's end.
    asked: Option<Instant>,
}

impl<RB: Body<Data = Bytes, Error: Into<BoxError>> + Unpin> Reading<RB> {
    /// `ends`: the end of the attempt.
    pub(super) fn new(response: Response<RB>, ends: Option<Instant>, asked: Option<Instant>) -> Self {
        let (head, rest) = response.into_parts();
        let now = Instant::now();
        // Well before the attempt's timeout, which is no business of a silent stream's.
        let patience = ends.map_or(PATIENCE, |ends| PATIENCE.min(ends.saturating_duration_since(now) / 2));
        Reading { head, held: VecDeque::new(), cost: 0, rest, patient_until: now + patience, asked }
    }

    /// The head says all: a status alone, or one of HTTP that is somebody else's.
    pub(super) fn is_known(&self) -> bool {
        self.head.status != StatusCode::OK || self.head.headers.contains_key(GRPC_STATUS)
    }

    /// Reads until the answer is the caller's.
    pub(super) fn poll(&mut self, commit: Commit, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        loop {
            let frame = match ready!(Pin::new(&mut self.rest).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Poll::Ready(Err(AnswerFailed::new(error).into())),
                None => {
                    if self.held.is_empty() {
                        answer::lift(&mut self.head, None);
                    }
                    return Poll::Ready(Ok(()));
                }
            };
            let size = frame.data_ref().map(Bytes::len);
            match (size, frame.trailers_ref()) {
                (_, Some(trailers)) => {
                    // Behind a message only for what they say of a failure: nobody asks them about a success.
                    let failed = GrpcCode::said(trailers).is_some_and(|code| code != GrpcCode::Ok);
                    if self.held.is_empty() || failed {
                        answer::lift(&mut self.head, Some(trailers));
                    }
                    self.held.push_back(frame);
                    return Poll::Ready(Ok(()));
                }
                (Some(size), _) => {
                    self.cost += size.max(FRAME);
                    // An empty frame is no message, and says nothing.
                    if size > 0 {
                        self.held.push_back(frame);
                    }
                    let is_message = size > 0 && commit != Commit::Status;
                    if is_message || self.cost > HELD {
                        return Poll::Ready(Ok(()));
                    }
                }
                (None, None) => {}
            }
        }
    }

    pub(super) fn hand_on(self) -> Response<ResponseBody<RB>> {
        Response::from_parts(self.head, ResponseBody::new(self.held, self.rest, self.asked))
    }
}
