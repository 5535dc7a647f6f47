//! Owns the sink: topics made, producers handed out.

mod producer;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use canalis_connector_api::Finding;
use canalis_messages::{Producer, ProducerContext, Progress, SinkBroker};
use canalis_types::{Code, Error, Result};

use crate::{client::Client, failure::Side, options::SinkOptions};
use producer::QueueProducer;

/// How long a topic that was made may take to appear at the name servers.
const APPEARS: Duration = Duration::from_secs(30);

/// A RocketMQ cluster as a sink.
pub(crate) struct RocketMqSink {
    options: Arc<SinkOptions>,
    client: Arc<Client>,
}

impl RocketMqSink {
    pub(crate) fn new(options: SinkOptions) -> Self {
        let client = Arc::new(Client::new(options.client.clone(), Side::Sink));
        Self { options: Arc::new(options), client }
    }

    /// Queues of a topic that can be written; `None` when there is no such topic.
    fn queues(&self, topic: &str) -> Result<Option<usize>> {
        Ok(self.client.queues(topic)?.map(|queues| queues.len()))
    }
}

/// Why no topic can have this name, if so.
fn wrong_name(topic: &str) -> Option<String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '%' | '|' | '-' | '_');
    if topic.is_empty() || topic.len() > 127 || !topic.chars().all(allowed) {
        return Some(format!(
            "`{topic}` cannot be a topic of RocketMQ: 1 to 127 letters, digits and `_`, `-`, `%`, `|`; see the option `topic`"
        ));
    }
    None
}

impl SinkBroker for RocketMqSink {
    fn check(&self, topics: &[String]) -> Vec<Finding> {
        let finding = |topic: &String| {
            let subject = format!("sink rocketmq: topic {topic}");
            if let Some(why) = wrong_name(topic) {
                return Finding::error(subject, why, "choose names with the option `topic`");
            }
            match self.queues(topic) {
                Ok(Some(queues)) => Finding::ok(subject, format!("{queues} queues")),
                Ok(None) => Finding::ok(subject, "is made when the job starts"),
                Err(error) => Finding::error(
                    subject,
                    error.to_string(),
                    "check `name-server` and the right PUB on the topic",
                ),
            }
        };
        topics.iter().map(finding).collect()
    }

    fn has_topic(&self, topic: &str) -> Result<bool> {
        Ok(self.queues(topic)?.is_some())
    }

    fn creation(&self, topic: &str) -> String {
        format!("create topic {topic} with {} queues on every broker", self.options.queues)
    }

    fn create_topic(&self, topic: &str) -> Result<()> {
        if let Some(why) = wrong_name(topic) {
            return Err(Error::new(Code::SinkFailed, why));
        }
        self.client.create_topic(topic, self.options.queues)?;
        // Brokers tell the name servers in their own time.
        let began = Instant::now();
        while self.queues(topic)?.is_none() {
            if began.elapsed() > APPEARS {
                let why = format!("RocketMQ: topic `{topic}` was made and does not appear");
                return Err(Error::new(Code::SinkUnreachable, why));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn exactly_once(&self) -> bool {
        // A transaction of RocketMQ holds one message, and nothing else.
        false
    }

    fn recover(&self, _job: &str, _writers: usize, _prefix: &str) -> Result<Progress> {
        Ok(Progress::new())
    }

    fn producer(&self, _context: ProducerContext) -> Result<Box<dyn Producer>> {
        Ok(Box::new(QueueProducer::new(self.options.clone(), self.client.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_topics_are_checked() {
        assert_eq!(wrong_name("shop_orders-1"), None);
        for wrong in ["", "shop.orders", "a b", "täble", &"x".repeat(128)] {
            assert!(wrong_name(wrong).is_some(), "{wrong}");
        }
    }
}
