//! The words of HTTP/2 for why a stream or a connection ends.

/// Why a stream or a connection ends ([RFC 9113, 7]).
///
/// [RFC 9113, 7]: https://www.rfc-editor.org/rfc/rfc9113#section-7
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// `NO_ERROR`, 0x0.
    NoError,
    /// `PROTOCOL_ERROR`, 0x1.
    ProtocolError,
    /// `INTERNAL_ERROR`, 0x2.
    InternalError,
    /// `FLOW_CONTROL_ERROR`, 0x3.
    FlowControlError,
    /// `SETTINGS_TIMEOUT`, 0x4.
    SettingsTimeout,
    /// `STREAM_CLOSED`, 0x5.
    StreamClosed,
    /// `FRAME_SIZE_ERROR`, 0x6.
    FrameSizeError,
    /// `REFUSED_STREAM`, 0x7: not processed.
    RefusedStream,
    /// `CANCEL`, 0x8.
    Cancel,
    /// `COMPRESSION_ERROR`, 0x9.
    CompressionError,
    /// `CONNECT_ERROR`, 0xa.
    ConnectError,
    /// `ENHANCE_YOUR_CALM`, 0xb: less load, please.
    EnhanceYourCalm,
    /// `INADEQUATE_SECURITY`, 0xc.
    InadequateSecurity,
    /// `HTTP_1_1_REQUIRED`, 0xd.
    Http11Required,
    /// Any other number.
    Code(u32),
}

impl Reason {
    /// The number on the wire.
    pub const fn code(self) -> u32 {
        match self {
            Reason::NoError => 0x0,
            Reason::ProtocolError => 0x1,
            Reason::InternalError => 0x2,
            Reason::FlowControlError => 0x3,
            Reason::SettingsTimeout => 0x4,
            Reason::StreamClosed => 0x5,
            Reason::FrameSizeError => 0x6,
            Reason::RefusedStream => 0x7,
            Reason::Cancel => 0x8,
            Reason::CompressionError => 0x9,
            Reason::ConnectError => 0xa,
            Reason::EnhanceYourCalm => 0xb,
            Reason::InadequateSecurity => 0xc,
            Reason::Http11Required => 0xd,
            Reason::Code(code) => code,
        }
    }
}

/// The last stream that a `GOAWAY` lets live ([RFC 9113, 6.8]).
///
/// [RFC 9113, 6.8]: https://www.rfc-editor.org/rfc/rfc9113#section-6.8
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LastStream {
    /// The one before that of this request, which is left out and so not processed.
    Before,
    /// That of this request.
    This,
    /// All of them, those that are still to come too: the first `GOAWAY` of a graceful shutdown.
    Every,
    /// This one. A client's first request is on stream 1, its second on 3, and so on.
    Id(u32),
}

impl LastStream {
    /// The number on the wire, for a request on this stream.
    pub(super) const fn id(self, stream: u32) -> u32 {
        match self {
            LastStream::Before => stream.saturating_sub(2),
            LastStream::This => stream,
            LastStream::Every => 0x7fff_ffff,
            LastStream::Id(id) => id & 0x7fff_ffff,
        }
    }
}
