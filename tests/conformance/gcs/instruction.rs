//! The testbench's words for faults.

use super::{store::Upload, testbench::Head};

const KIB: usize = 1024;

/// What is to happen to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// `return-X`: answers X.
    Status(u16),
    /// `return-reset-connection`: reads the request, and resets.
    Reset,
    /// `return-X-after-YK`: answers X when so much of an upload is stored.
    StatusAfter { status: u16, stored: usize },
    /// `return-broken-stream`, after a few bytes, and `return-broken-stream-after-YK`: a download ends too early.
    BrokenStream { after: usize },
}

impl Instruction {
    pub fn parse(text: &str) -> Self {
        let words = text.strip_prefix("return-").unwrap_or_else(|| panic!("an instruction of {text}"));
        let number = |text: &str| text.parse::<usize>().unwrap_or_else(|_| panic!("a number of {text}"));
        let status = |text: &str| u16::try_from(number(text)).expect("a status");
        let kib = |text: &str| number(text.strip_suffix('K').expect("KiB")) * KIB;
        match words {
            "reset-connection" => Instruction::Reset,
            "broken-stream" => Instruction::BrokenStream { after: 10 },
            _ => match words.split_once("-after-") {
                Some(("broken-stream", after)) => Instruction::BrokenStream { after: kib(after) },
                Some((code, after)) => Instruction::StatusAfter { status: status(code), stored: kib(after) },
                None => Instruction::Status(status(words)),
            },
        }
    }

    /// Whether it is about this request: one about a body waits for the request with that body.
    pub fn concerns(&self, head: &Head, upload: Option<&Upload>, stored: usize) -> bool {
        match self {
            Instruction::Status(_) | Instruction::Reset => true,
            Instruction::StatusAfter { stored: after, .. } => {
                upload.is_some_and(|upload| stored < *after && *after <= upload.end)
            }
            Instruction::BrokenStream { .. } => head.is_download(),
        }
    }
}
