//! Which codes of gRPC a policy lists.

use std::borrow::Cow;

use super::GrpcCode;

/// The codes that a policy calls transient, why, and which of them mean "not processed".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Codes {
    listed: u32,
    reasons: Vec<(GrpcCode, Cow<'static, str>)>,
    rejected: Vec<(GrpcCode, Cow<'static, str>)>,
}

impl Codes {
    pub(super) const NONE: Codes = Codes { listed: 0, reasons: Vec::new(), rejected: Vec::new() };

    pub(super) fn list(&mut self, code: GrpcCode) {
        self.listed |= 1 << code as u32;
    }

    pub(super) fn list_because(&mut self, code: GrpcCode, reason: Cow<'static, str>) {
        self.list(code);
        self.reasons.push((code, reason));
    }

    pub(super) fn list_rejected(&mut self, code: GrpcCode, documented: Cow<'static, str>) {
        self.list(code);
        self.rejected.push((code, documented));
    }

    pub(super) fn unlist(&mut self, code: GrpcCode) {
        self.listed &= !(1 << code as u32);
        self.reasons.retain(|(listed, _)| *listed != code);
        self.rejected.retain(|(listed, _)| *listed != code);
    }

    pub(super) fn has(&self, code: GrpcCode) -> bool {
        self.listed & (1 << code as u32) != 0
    }

    pub(super) fn rejected_because(&self, code: GrpcCode) -> Option<Cow<'static, str>> {
        let (_, reason) = self.rejected.iter().find(|(rejected, _)| *rejected == code)?;
        Some(reason.clone())
    }

    /// What may not be listed, or not without a reason: the broken rule, and how to mend it.
    pub(super) fn broken(&self) -> Vec<(&'static str, String)> {
        use GrpcCode::*;
        let mut broken = Vec::new();
        let given = |code: GrpcCode| {
            let mut reasons = self.reasons.iter().chain(&self.rejected);
            reasons.any(|(listed, reason)| *listed == code && !reason.trim().is_empty())
        };
        for code in GrpcCode::ALL.into_iter().filter(|code| self.has(*code)) {
            match code {
                Ok => broken.push(("S5", "the code OK is not a failure: leave it out".to_owned())),
                Unavailable | ResourceExhausted | DeadlineExceeded | Internal | Unknown => {}
                _ if given(code) => {}
                _ => broken.push((
                    "S5",
                    format!(
                        "the code {code} is transient without a reason: say why with `code_because`, or leave it out"
                    ),
                )),
            }
        }
        for (code, reason) in &self.rejected {
            if matches!(code, Unknown | DeadlineExceeded) {
                let how = "listed with `rejected_code`, but by its own meaning it may have been processed: use `code`";
                broken.push(("S7", format!("the code {code} is {how}")));
            }
            if reason.trim().is_empty() {
                let how =
                    "`rejected_code` with an empty reason: say where the provider documents that it was not processed";
                broken.push(("S7", format!("the code {code} is {how}")));
            }
        }
        broken
    }
}
