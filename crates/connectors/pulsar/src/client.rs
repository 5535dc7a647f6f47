//! Owns the connection to a cluster: a runtime of its own for a client that is asynchronous, and questions of both roles.
//!
//! Callers block, the client does not: its connections are kept alive by one thread, also while a caller is busy or held up by
//! what comes behind it. That thread does nothing but the network, and buffers are bounded.

use std::{future::Future, sync::Arc, time::Duration};

use canalis_types::{Code, Error, Result};
use futures::executor::block_on;
use pulsar::{
    Authentication, ConnectionRetryOptions, OperationRetryOptions, TokioExecutor,
    message::proto::command_get_topics_of_namespace::Mode,
};
use tokio::runtime::{Builder, EnterGuard, Runtime};

use crate::{
    failure::{Side, failure, timeout},
    names,
};

/// How long one question to the cluster may take, what the client tries again by itself included.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// How to get to a cluster.
#[derive(Clone)]
pub(crate) struct Settings {
    pub url: String,
    pub token: Option<String>,
    /// PEM certificates of those who vouch for brokers, beside the public ones.
    pub certificates: Option<String>,
}

/// The client's own type.
pub(crate) type Client = pulsar::Pulsar<TokioExecutor>;

/// A connected client and the thread that drives it.
pub(crate) struct Cluster {
    client: Client,
    runtime: Option<Runtime>,
    side: Side,
}

impl Cluster {
    /// Connects.
    pub(crate) fn connect(settings: &Settings, side: Side) -> Result<Arc<Self>> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("pulsar")
            .enable_all()
            .build()
            .map_err(|error| Error::internal("cannot start the client's thread").with_source(error))?;
        let misconfigured = |why: String| {
            let code = if side == Side::Source { Code::SourceMisconfigured } else { Code::SinkFailed };
            Error::new(code, why)
        };
        let mut builder = pulsar::Pulsar::builder(&settings.url, TokioExecutor)
            .with_connection_retry_options(ConnectionRetryOptions {
                max_backoff: Duration::from_secs(1),
                max_retries: 6,
                connection_timeout: Duration::from_secs(5),
                keep_alive: Duration::from_secs(10),
                ..ConnectionRetryOptions::default()
            })
            .with_operation_retry_options(OperationRetryOptions {
                operation_timeout: Duration::from_secs(15),
                retry_delay: Duration::from_millis(200),
                max_retries: Some(50),
            });
        if let Some(token) = &settings.token {
            builder = builder
                .with_auth(Authentication { name: "token".to_owned(), data: token.clone().into_bytes() });
        }
        if let Some(path) = &settings.certificates {
            builder = builder.with_certificate_chain_file(path).map_err(|error| {
                misconfigured(format!("`tls.ca-certificates`: cannot read {path}: {error}"))
            })?;
        }
        let connected = {
            let _guard = runtime.enter();
            block_on(tokio::time::timeout(PATIENCE, builder.build()))
        };
        let doing = format!("connect to {}", settings.url);
        let client = match connected {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => {
                runtime.shutdown_background();
                return Err(failure(side, &doing, &error));
            }
            Err(_) => {
                runtime.shutdown_background();
                return Err(timeout(side, &doing));
            }
        };
        Ok(Arc::new(Self { client, runtime: Some(runtime), side }))
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Everything of the client that starts or ends tasks has to happen under this.
    pub(crate) fn enter(&self) -> Option<EnterGuard<'_>> {
        self.runtime.as_ref().map(Runtime::enter)
    }

    /// Waits for the client so long at most; `None` when it is not done then.
    pub(crate) fn wait_at_most<T>(&self, most: Duration, work: impl Future<Output = T>) -> Option<T> {
        let _guard = self.enter();
        block_on(tokio::time::timeout(most, work)).ok()
    }

    /// Asks something.
    pub(crate) fn ask<T>(
        &self,
        doing: &str,
        work: impl Future<Output = std::result::Result<T, pulsar::Error>>,
    ) -> Result<T> {
        match self.wait_at_most(PATIENCE, work) {
            Some(answer) => answer.map_err(|error| failure(self.side, doing, &error)),
            None => Err(timeout(self.side, doing)),
        }
    }

    /// The topics of a namespace, partitions each by itself.
    pub(crate) fn topics(&self, namespace: &str) -> Result<Vec<String>> {
        let doing = format!("ask for the topics of namespace `{namespace}`");
        self.ask(&doing, self.client.get_topics_of_namespace(namespace.to_owned(), Mode::Persistent))
    }

    /// How many partitions a topic has: 0 when it is not partitioned, `None` when it is not there.
    pub(crate) fn partitions(&self, topic: &str) -> Result<Option<u32>> {
        let doing = format!("ask for the partitions of topic `{topic}`");
        let number = self.ask(&doing, self.client.lookup_partitioned_topic_number(topic))?;
        if number > 0 || self.topics(names::namespace(topic))?.iter().any(|name| name == topic) {
            return Ok(Some(number));
        }
        Ok(None)
    }

    /// The names by which the messages of a topic are read and written: those of its partitions, or its own.
    pub(crate) fn parts(&self, topic: &str) -> Result<Option<Vec<String>>> {
        Ok(self.partitions(topic)?.map(|number| match number {
            0 => vec![topic.to_owned()],
            number => (0..number).map(|n| names::partition(topic, n)).collect(),
        }))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // It may be dropped inside another runtime, where waiting is not allowed.
            runtime.shutdown_background();
        }
    }
}
