//! One request's call: its course, and what is kept to send the request again.

use http::{Extensions, Request, StatusCode, header, request::Parts};
use http_body::Body;
use tokio::time::Instant;

use super::{
    AttemptBody, Replay, course::Course, course::RequestLine, current::Restore, guard, head::Head, source::Source,
};
use crate::{
    BoxError, Error,
    hints::OutboundHints,
    policy::{Class, Plan, StopReason},
};

pub(super) struct Call<B: Body> {
    pub(super) course: Course,
    pub(super) head: Head,
    pub(super) source: Source<B>,
}

impl<B: Replay> Call<B> {
    #[inline]
    pub(super) fn new(plan: Plan, parts: &Parts, body: B, hints: &OutboundHints) -> (Self, AttemptBody<B>) {
        let outer = parts.extensions.get().copied();
        let mut course = Course::of_request(plan, RequestLine::of(parts), outer);
        course.heed_caller(hints);
        let (head, content_length) = Head::keep(parts);
        let (body, source) = Source::split(body, content_length, head.reading());
        (Call { course, head, source }, body)
    }

    /// The first attempt begins.
    #[inline]
    pub(super) fn begin(&mut self, extensions: &mut Extensions) {
        self.course.begin_first();
        guard::mark(extensions, self.course.attempt);
        self.tell_end(extensions);
    }

    /// The current attempt is called or polled, until the guard is dropped.
    pub(super) fn enter(&mut self) -> Restore {
        self.head.flags().enter(self.course.attempt_time())
    }

    /// The next attempt's request.
    pub(super) fn next(&mut self) -> Result<Request<AttemptBody<B>>, Error> {
        let now = Instant::now();
        if now >= self.course.deadline() {
            return Err(self.course.out_of_time());
        }
        self.head.next_turn();
        let (Some(body), Some(line)) = (self.source.again(self.head.reading()), &self.course.line) else {
            let error = Error::unrepeatable();
            return Err(self.course.give_up(now, error, Class::Transient, StopReason::BodyTooLarge, None));
        };
        let trail = self.course.trail.get_or_insert_default();
        let unpacked = trail.unpacked.get_or_insert_with(|| self.head.unpack());
        let mut request = self.head.rebuild(unpacked, line, &self.course.plan.operation.names, body);
        if self.course.was_answered(StatusCode::EXPECTATION_FAILED) {
            // Again, and without the expectation that nobody meets (RFC 9110, 10.1.1).
            request.headers_mut().remove(header::EXPECT);
        }
        self.course.begin(now);
        guard::mark(request.extensions_mut(), self.course.attempt);
        self.tell_end(request.extensions_mut());
        Ok(request)
    }

    /// Where the attempt tells its server: when it ends.
    pub(super) fn tell_end(&mut self, extensions: &mut Extensions) {
        if self.course.plan.grpc {
            extensions.insert(guard::AttemptEnds(self.course.attempt_is_over_by()));
        }
    }

    /// The inner service failed to become ready again.
    pub(super) fn not_ready(&mut self, error: BoxError) -> Error {
        let error = Error::not_ready(error);
        self.course.give_up(Instant::now(), error, Class::Transient, StopReason::NotReady, None)
    }
}
