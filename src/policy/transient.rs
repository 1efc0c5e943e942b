//! What may pass by itself: the statuses, codes and faults that a policy lists as transient.

use std::borrow::Cow;

use http::StatusCode;

use super::{GrpcCode, codes::Codes};
use crate::fault::FaultKind;

/// The statuses, codes of gRPC and faults that a policy calls transient, and nothing else (S1).
///
/// There is no default: name [`Transient::usual`] to begin with, or build the list from [`Transient::none`].
///
/// ```
/// use redial::Transient;
///
/// let transient = Transient::usual().without_status(500).rejected(429, "API guide, section 4: refused before work");
/// assert!(transient.has_status(503) && !transient.has_status(500));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transient {
    statuses: Statuses,
    faults: u16,
    reasons: Vec<(u16, Cow<'static, str>)>,
    rejected: Vec<(u16, Cow<'static, str>)>,
    /// Named, but no status of HTTP: refused when a policy is built.
    no_status: Vec<u16>,
    codes: Codes,
}

/// One bit a status, 100 to 611: looked up for every answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Statuses([u64; 8]);

impl Statuses {
    fn place(status: u16) -> Option<(usize, u64)> {
        let index = usize::from(status.checked_sub(100)?);
        (index < 512).then_some((index / 64, 1 << (index % 64)))
    }

    fn set(&mut self, status: u16, on: bool) {
        if let Some((word, bit)) = Self::place(status) {
            if on { self.0[word] |= bit } else { self.0[word] &= !bit }
        }
    }

    fn has(&self, status: u16) -> bool {
        Self::place(status).is_some_and(|(word, bit)| self.0[word] & bit != 0)
    }
}

impl Transient {
    /// Nothing is transient.
    pub const fn none() -> Self {
        Transient {
            statuses: Statuses([0; 8]),
            faults: 0,
            reasons: Vec::new(),
            rejected: Vec::new(),
            no_status: Vec::new(),
            codes: Codes::NONE,
        }
    }

    /// The documented starting set (D10): the statuses 408, 425, 429, 500, 502, 503 and 504, and the faults
    /// `connect`, `dns`, `tls` (without a verdict on a certificate), `reset`, `closed`, `timeout`, `refused-stream`
    /// and `goaway`. A 425 needs no evidence: it says that the request was refused before it was processed (RFC 8470,
    /// section 5.2).
    ///
    /// 501, 505 and everything else say that a repeat would meet the same answer (RFC 9110, sections 15.5 and 15.6).
    pub fn usual() -> Self {
        use FaultKind::*;
        let mut usual = Self::none();
        for status in [408, 429, 500, 502, 503, 504] {
            usual.statuses.set(status, true);
        }
        usual = usual.rejected(425, "RFC 8470, section 5.2: refused before it was processed");
        [Connect, Dns, Tls, Reset, Closed, Timeout, RefusedStream, Goaway].into_iter().fold(usual, Self::fault)
    }

    /// This status is transient as well. A status below 500 other than 408, 425 and 429 needs a reason: see
    /// [`status_because`](Self::status_because), or the policy is refused (S5).
    pub fn status(mut self, status: u16) -> Self {
        if Statuses::place(status).is_none() {
            self.no_status.push(status);
        }
        self.statuses.set(status, true);
        self
    }

    /// This status is transient, although statuses of its kind are not, for a written reason.
    pub fn status_because(mut self, status: u16, reason: impl Into<Cow<'static, str>>) -> Self {
        self.reasons.push((status, reason.into()));
        self.status(status)
    }

    /// This status is not transient.
    pub fn without_status(mut self, status: u16) -> Self {
        self.statuses.set(status, false);
        self.reasons.retain(|(with_reason, _)| *with_reason != status);
        self.rejected.retain(|(rejected, _)| *rejected != status);
        self
    }

    /// This status is transient, and the provider documents that it means "not processed": a repeat needs no
    /// evidence (D11). The reason says where that is documented.
    pub fn rejected(mut self, status: u16, documented: impl Into<Cow<'static, str>>) -> Self {
        self.rejected.push((status, documented.into()));
        self.status(status)
    }

    /// This code of gRPC is transient as well. No set of codes is listed to begin with, [`usual`](Self::usual) included.
    ///
    /// `UNAVAILABLE`, `RESOURCE_EXHAUSTED`, `DEADLINE_EXCEEDED`, `INTERNAL` and `UNKNOWN` may be listed as they are;
    /// every other needs a reason: see [`code_because`](Self::code_because), or the policy is refused (S5).
    ///
    /// A code does not say that the call was not processed, `UNAVAILABLE` neither ([status codes]); and gRPC's calls are
    /// all `POST`. So a listed code is repeated only with evidence, or as [`rejected_code`](Self::rejected_code).
    ///
    /// [status codes]: https://github.com/grpc/grpc/blob/master/doc/statuscodes.md
    pub fn code(mut self, code: GrpcCode) -> Self {
        self.codes.list(code);
        self
    }

    /// This code of gRPC is transient, although codes of its kind are not, for a written reason.
    pub fn code_because(mut self, code: GrpcCode, reason: impl Into<Cow<'static, str>>) -> Self {
        self.codes.list_because(code, reason.into());
        self
    }

    /// This code of gRPC is transient, and the provider documents that it means "not processed": a repeat needs no
    /// evidence. The reason says where that is documented. `UNKNOWN` and `DEADLINE_EXCEEDED` cannot mean that. A status of
    /// HTTP that stands for this code, such as a proxy's 503 for `UNAVAILABLE`, does not mean it either.
    pub fn rejected_code(mut self, code: GrpcCode, documented: impl Into<Cow<'static, str>>) -> Self {
        self.codes.list_rejected(code, documented.into());
        self
    }

    /// This code of gRPC is not transient.
    pub fn without_code(mut self, code: GrpcCode) -> Self {
        self.codes.unlist(code);
        self
    }

    /// Whether this code of gRPC is listed.
    pub fn has_code(&self, code: GrpcCode) -> bool {
        self.codes.has(code)
    }

    /// This fault is transient as well.
    pub fn fault(mut self, kind: FaultKind) -> Self {
        self.faults |= 1 << kind as u16;
        self
    }

    /// This fault is not transient.
    pub fn without_fault(mut self, kind: FaultKind) -> Self {
        self.faults &= !(1 << kind as u16);
        self
    }

    /// Whether this status is listed.
    pub fn has_status(&self, status: u16) -> bool {
        self.statuses.has(status)
    }

    /// Whether this fault is listed.
    pub fn has_fault(&self, kind: FaultKind) -> bool {
        self.faults & (1 << kind as u16) != 0
    }

    pub(crate) fn rejected_because(&self, status: StatusCode) -> Option<Cow<'static, str>> {
        let (_, reason) = self.rejected.iter().find(|(rejected, _)| *rejected == status.as_u16())?;
        Some(reason.clone())
    }

    pub(crate) fn code_rejected_because(&self, code: GrpcCode) -> Option<Cow<'static, str>> {
        self.codes.rejected_because(code)
    }

    /// What may not be listed, or not without a reason: the broken rule, and how to mend it.
    pub(crate) fn broken(&self) -> Vec<(&'static str, String)> {
        let mut broken = Vec::new();
        if self.has_fault(FaultKind::Unclassified) {
            let how =
                "the fault `unclassified` is listed: name what failed; an error that nobody knows is never repeated";
            broken.push(("S1", how.to_owned()));
        }
        for status in &self.no_status {
            broken.push(("S5", format!("{status} is no status of HTTP: 100 to 599, or a vendor's own up to 611")));
        }
        let filled = |list: &[(u16, Cow<'static, str>)], status| {
            list.iter().any(|(listed, reason)| *listed == status && !reason.trim().is_empty())
        };
        for status in (100..612).filter(|status| self.has_status(*status)) {
            match status {
                408 | 425 | 429 | 500.. => {}
                400..500 if filled(&self.reasons, status) || filled(&self.rejected, status) => {}
                400..500 => broken.push((
                    "S5",
                    format!(
                        "status {status} is transient without a reason: say why with `status_because`, or leave it out"
                    ),
                )),
                _ => broken.push(("S5", format!("status {status} is not a failure: leave it out"))),
            }
        }
        for (status, reason) in &self.rejected {
            if reason.trim().is_empty() {
                let how = "`rejected` with an empty reason: say where the provider documents that it was not processed";
                broken.push(("S7", format!("status {status} is {how}")));
            }
        }
        broken.extend(self.codes.broken());
        broken
    }
}
