//! Owns what errors of the client mean to a job.

use canalis_types::{Code, Error};
use rdkafka::{
    error::{KafkaError, RDKafkaErrorCode as C},
    types::RDKafkaErrorCode,
};

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
}

/// The error of something that was tried, for example `ask for the partitions of topic a`.
pub(crate) fn failure(side: Side, doing: &str, error: KafkaError) -> Error {
    let code =
        match error.rdkafka_error_code() {
            Some(
                C::TopicAuthorizationFailed
                | C::GroupAuthorizationFailed
                | C::ClusterAuthorizationFailed
                | C::TransactionalIdAuthorizationFailed
                | C::SaslAuthenticationFailed
                | C::Authentication,
            ) => side.denied(),
            Some(C::UnknownTopic | C::UnknownTopicOrPartition | C::UnknownPartition) => {
                if side == Side::Source { Code::TableNotFound } else { Code::SinkFailed }
            }
            Some(C::OffsetOutOfRange | C::AutoOffsetReset) => Code::PositionLost,
            Some(C::ProducerFenced | C::Fenced | C::InvalidProducerEpoch) => Code::SinkContention,
            Some(C::InvalidConfig | C::UnsupportedFeature | C::UnsupportedVersion) => {
                if side == Side::Source { Code::SourceMisconfigured } else { Code::SinkFailed }
            }
            _ => side.unreachable(),
        };
    Error::new(code, format!("Kafka: cannot {doing}: {}", text(&error))).with_source(error)
}

/// What an error says, without the names of the client's types.
fn text(error: &KafkaError) -> String {
    match error {
        KafkaError::ClientConfig(_, why, key, value) if !key.contains("password") => {
            format!("setting `{key}` to `{value}`: {why}")
        }
        KafkaError::ClientConfig(_, why, key, _) => format!("setting `{key}`: {why}"),
        KafkaError::Transaction(error) => error.string(),
        error => match error.rdkafka_error_code() {
            Some(code) => code.to_string(),
            None => error.to_string(),
        },
    }
}

/// Whether an error only says that a connection is down, which the client mends by itself.
pub(crate) fn is_passing(error: &KafkaError) -> bool {
    use RDKafkaErrorCode as C;
    matches!(
        error.rdkafka_error_code(),
        Some(
            C::BrokerTransportFailure
                | C::AllBrokersDown
                | C::Resolve
                | C::OperationTimedOut
                | C::RequestTimedOut
                | C::NotLeaderForPartition
                | C::LeaderNotAvailable
        )
    )
}
