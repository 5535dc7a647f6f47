//! Owns what errors of the client mean to a job.

use canalis_types::{Code, Error};
use pulsar::{
    error::{AuthenticationError, ConnectionError, ConsumerError, ProducerError, ServiceDiscoveryError},
    message::proto::ServerError as S,
};

/// Which side of a job an error is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Source,
    Sink,
}

/// The error of something that was tried, for example `ask for the partitions of topic a`.
pub(crate) fn failure(side: Side, doing: &str, error: &pulsar::Error) -> Error {
    let source = side == Side::Source;
    let code = match server(error) {
        Some(S::AuthenticationError | S::AuthorizationError) if source => Code::SourceAccessDenied,
        Some(S::AuthenticationError | S::AuthorizationError) => Code::SinkAccessDenied,
        Some(S::TopicNotFound | S::TopicTerminatedError | S::InvalidTopicName) if source => {
            Code::TableNotFound
        }
        Some(S::NotAllowedError | S::IncompatibleSchema) if source => Code::SourceMisconfigured,
        Some(
            S::TopicNotFound
            | S::TopicTerminatedError
            | S::InvalidTopicName
            | S::NotAllowedError
            | S::IncompatibleSchema,
        ) => Code::SinkFailed,
        _ if is_denied(error) && source => Code::SourceAccessDenied,
        _ if is_denied(error) => Code::SinkAccessDenied,
        _ if source => Code::SourceUnreachable,
        _ => Code::SinkUnreachable,
    };
    // The client's errors are no `Send + Sync`, so only their text goes on.
    Error::new(code, format!("Pulsar: cannot {doing}: {error}"))
}

/// The error of something that took too long.
pub(crate) fn timeout(side: Side, doing: &str) -> Error {
    let code = if side == Side::Source { Code::SourceUnreachable } else { Code::SinkUnreachable };
    Error::new(code, format!("Pulsar: cannot {doing}: no answer in time"))
}

/// Whether somebody else has the subscription.
pub(crate) fn is_busy(error: &pulsar::Error) -> bool {
    server(error) == Some(S::ConsumerBusy)
}

/// What the broker said.
fn server(error: &pulsar::Error) -> Option<S> {
    match error {
        pulsar::Error::Connection(error)
        | pulsar::Error::Consumer(ConsumerError::Connection(error))
        | pulsar::Error::Producer(ProducerError::Connection(error))
        | pulsar::Error::ServiceDiscovery(ServiceDiscoveryError::Connection(error)) => of_connection(error),
        pulsar::Error::ServiceDiscovery(ServiceDiscoveryError::Query(kind, _)) => *kind,
        pulsar::Error::Producer(ProducerError::Batch(error)) => server(error),
        _ => None,
    }
}

fn of_connection(error: &ConnectionError) -> Option<S> {
    match error {
        ConnectionError::PulsarError(kind, _) => *kind,
        _ => None,
    }
}

fn is_denied(error: &pulsar::Error) -> bool {
    matches!(
        error,
        pulsar::Error::Authentication(AuthenticationError::Custom(_))
            | pulsar::Error::Connection(ConnectionError::Authentication(AuthenticationError::Custom(_)))
    )
}
