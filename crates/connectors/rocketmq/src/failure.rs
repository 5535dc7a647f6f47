//! Owns what failures of brokers and name servers mean to a job.

use std::io;

use canalis_types::{Code, Error};

use crate::protocol::{answer, frame::Answer};

/// Which side of a job an error is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Source,
    Sink,
}

impl Side {
    fn unreachable(self) -> Code {
        if self == Side::Source { Code::SourceUnreachable } else { Code::SinkUnreachable }
    }

    fn denied(self) -> Code {
        if self == Side::Source { Code::SourceAccessDenied } else { Code::SinkAccessDenied }
    }

    fn missing(self) -> Code {
        if self == Side::Source { Code::TableNotFound } else { Code::SinkFailed }
    }

    fn wrong(self) -> Code {
        if self == Side::Source { Code::SourceMisconfigured } else { Code::SinkFailed }
    }
}

/// The error of something that was tried over a connection, for example `ask for the route of topic a`.
pub(crate) fn broken(side: Side, doing: &str, error: io::Error) -> Error {
    Error::new(side.unreachable(), format!("RocketMQ: cannot {doing}: {error}")).with_source(error)
}

/// The error of an answer that is no success.
pub(crate) fn refused(side: Side, doing: &str, answer: &Answer) -> Error {
    let code = match answer.code {
        answer::NO_PERMISSION => side.denied(),
        // Brokers before 5.3 give no code of their own to a wrong key or signature.
        answer::SYSTEM_ERROR if answer.remark.contains("Acl") => side.denied(),
        answer::TOPIC_NOT_EXIST => side.missing(),
        answer::GROUP_NOT_EXIST => side.wrong(),
        answer::PULL_OFFSET_MOVED => Code::PositionLost,
        _ => side.unreachable(),
    };
    Error::new(code, format!("RocketMQ: cannot {doing}: {}", answer.text()))
}

/// The error of an answer that says nothing that can be used.
pub(crate) fn senseless(side: Side, doing: &str, why: &str) -> Error {
    let code = if side == Side::Source { Code::SourceUndecodable } else { Code::SinkFailed };
    Error::new(code, format!("RocketMQ: cannot {doing}: {why}"))
}

/// Whether a broker asks to try again later, having done nothing.
pub(crate) fn is_busy(answer: &Answer) -> bool {
    matches!(answer.code, answer::SYSTEM_BUSY | answer::SERVICE_NOT_AVAILABLE | answer::FLOW_CONTROL)
}
