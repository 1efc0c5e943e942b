//! One request's call: its course, and what is kept to send the request again.

use http::{Extensions, Request, StatusCode, header};
use http_body::Body;
use tokio::time::Instant;

use super::{
    AttemptBody, Replay, course::Course, course::RequestLine, current::Restore, guard, head::Head, reading::Reading,
    source::Source,
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
    /// How far the client got with the current attempt's body.
    pub(super) reading: Reading,
}

impl<B: Replay> Call<B> {
    #[inline(always)]
    pub(super) fn new(plan: Plan, hints: &OutboundHints, request: Request<B>) -> (Self, Request<AttemptBody<B>>) {
        let outer = request.extensions().get().copied();
        let mut course = Course::of_request(plan, RequestLine::of(&request), outer);
        course.heed_caller(hints);
        let (head, content_length) = Head::keep(&request);
        let (parts, body) = request.into_parts();
        let reading = head.reading();
        let (body, source) = Source::split(body, content_length, reading.clone());
        (Call { course, head, source, reading }, Request::from_parts(parts, body))
    }

    /// The current attempt is called or polled, until the guard is dropped.
    pub(super) fn enter(&mut self) -> Restore {
        self.reading.enter(self.course.attempt_time())
    }

    /// The next attempt's request.
    pub(super) fn next(&mut self) -> Result<Request<AttemptBody<B>>, Error> {
        let now = Instant::now();
        if now >= self.course.deadline() {
            return Err(self.course.out_of_time());
        }
        self.reading = Reading::new();
        let (Some(body), Some(line)) = (self.source.again(self.reading.clone()), &self.course.line) else {
            let error = Error::unrepeatable();
            return Err(self.course.give_up(now, error, Class::Transient, StopReason::BodyTooLarge, None));
        };
        let mut request = self.head.rebuild(line, body);
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
