//! Owns the source around a broker's consumer, and the contract of that consumer.

mod enumerator;
mod history;
mod metadata;
mod preview;
mod reader;
mod replay;
mod worker;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use canalis_connector_api::{
    Boundedness, Finding, PreviewRecord, Source, SourceContext, SourceRestore, SplitEnumerator,
};
use canalis_formats::message::Message;
use canalis_types::{Position, Result, TableSchema};

use crate::{Formats, Lanes, Place, blocking};
use enumerator::Enumerator;
use metadata::Metadata;
pub use metadata::{MetadataColumn, headers_text};

/// A lane and the place where reading begins.
pub type LaneStart = (String, Place);

/// Messages that were gone before they were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostRange {
    /// The lane.
    pub lane: String,
    /// Place that was to be read next.
    pub wanted: Place,
    /// First place that is still there, or the end of the lane when the place is beyond it.
    pub available: Place,
}

/// A lane and the stretch of it that holds its newest messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentLane {
    /// The lane.
    pub name: String,
    /// Place where the stretch begins.
    pub from: Place,
    /// Where the lane ends now.
    pub end: Place,
    /// Whether nothing older could be had.
    pub is_whole: bool,
}

/// What to do when messages are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnLost {
    /// The job stops with `CNL-2004`.
    Fail,
    /// Goes on at the oldest message there is; the gap is logged.
    Earliest,
    /// Goes on behind the newest message; the gap is logged.
    Latest,
}

/// A message that a consumer lends.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// Index of its lane, in the order of assignment.
    pub lane: usize,
    /// Place to go on from behind it.
    pub next: Place,
    /// The message.
    pub message: Message<'a>,
    /// Its headers as a JSON object, where the consumer was asked for them and there are some.
    pub headers: Option<&'a str>,
}

/// A broker as a source, configured. Methods may block.
pub trait Broker: Send + Sync {
    /// Looks at the live system. Never fails.
    fn check(&self) -> Vec<Finding>;

    /// All lanes with the place where the start-up mode begins.
    ///
    /// # Errors
    /// When the broker cannot be asked, or has no such topic.
    fn start(&self) -> Result<Vec<LaneStart>>;

    /// Where the lanes end now, for a bounded read.
    ///
    /// # Errors
    /// When the broker cannot be asked.
    fn ends(&self, lanes: &Lanes) -> Result<Lanes>;

    /// All lanes, each with a stretch at its end of about as many messages. By itself everything from the start-up mode's
    /// beginning on.
    ///
    /// # Errors
    /// When the broker cannot be asked, or has no such topic.
    fn recent(&self, messages: u64) -> Result<Vec<RecentLane>> {
        let _ = messages;
        let start = self.start()?;
        let mut ends = self.ends(&Lanes { count: 0, lanes: start.iter().cloned().collect() })?.lanes;
        let recent = start.into_iter().map(|(name, from)| {
            let end = ends.remove(&name).unwrap_or(from);
            RecentLane { name, from, end, is_whole: true }
        });
        Ok(recent.collect())
    }

    /// Lanes whose place is no longer there.
    ///
    /// # Errors
    /// When the broker cannot be asked.
    fn lost(&self, lanes: &Lanes) -> Result<Vec<LostRange>>;

    /// A consumer without lanes.
    ///
    /// # Errors
    /// When it cannot be made.
    fn consumer(&self) -> Result<Box<dyn Consumer>>;

    /// Tells the broker how far a durable checkpoint is, for the tools that watch lag.
    ///
    /// # Errors
    /// When the broker refuses; the job only logs it.
    fn acknowledge(&self, lanes: &Lanes) -> Result<()>;
}

/// Reads lanes. Used by one thread.
pub trait Consumer: Send {
    /// Adds lanes, which get the next indexes.
    ///
    /// # Errors
    /// When the broker cannot be asked.
    fn assign(&mut self, lanes: &[LaneStart]) -> Result<()>;

    /// Lanes that have appeared and are not assigned, each from its oldest message.
    ///
    /// # Errors
    /// When the broker cannot be asked.
    fn discover(&mut self) -> Result<Vec<LaneStart>>;

    /// Whether there is no message between two places of a lane, of which the second was an end of the lane once: what stood
    /// there was removed, or was never a message for readers.
    ///
    /// # Errors
    /// When the broker cannot be asked.
    fn is_empty_between(&mut self, lane: usize, from: Place, to: Place) -> Result<bool>;

    /// Delivers at most one message, and waits at most so long for it; false when none came.
    ///
    /// # Errors
    /// Transient ones when the connection is lost; `CNL-2004` when messages are gone; those of `take`.
    fn poll(&mut self, wait: Duration, take: &mut dyn FnMut(Delivery<'_>) -> Result<()>) -> Result<bool>;
}

/// How a source around a broker reads.
#[derive(Debug, Clone)]
pub struct SourceSettings {
    /// The formats of values and the declared structure.
    pub formats: Formats,
    /// Ends at the places where the lanes end when the job first starts.
    pub bounded: bool,
    /// How often new lanes are looked for.
    pub discovery: Duration,
    /// What to do when messages are gone.
    pub on_lost: OnLost,
}

/// A source around a broker.
pub struct MessageSource {
    broker: Arc<dyn Broker>,
    settings: Arc<SourceSettings>,
}

impl MessageSource {
    /// A source that reads from `broker`.
    pub fn new(broker: impl Broker + 'static, settings: SourceSettings) -> Self {
        Self { broker: Arc::new(broker), settings: Arc::new(settings) }
    }
}

#[async_trait]
impl Source for MessageSource {
    fn boundedness(&self) -> Boundedness {
        if self.settings.bounded { Boundedness::Bounded } else { Boundedness::Unbounded }
    }

    async fn check(&self) -> Vec<Finding> {
        blocking(|| self.broker.check())
    }

    async fn tables(&self) -> Result<Vec<Arc<TableSchema>>> {
        blocking(|| worker::sample(&*self.broker, &self.settings))
    }

    async fn open(
        &self,
        _ctx: SourceContext,
        restore: Option<SourceRestore>,
    ) -> Result<Box<dyn SplitEnumerator>> {
        let (broker, settings) = (self.broker.clone(), self.settings.clone());
        let enumerator = blocking(move || match restore {
            Some(restore) => Enumerator::restore(broker, settings, restore),
            None => Enumerator::fresh(broker, settings),
        })?;
        Ok(Box::new(enumerator))
    }

    async fn preview(&self, rows: usize) -> Result<Vec<PreviewRecord>> {
        blocking(|| preview::preview(&*self.broker, &self.settings, rows))
    }
}

/// The position of a message: what was taken before it, and itself by name.
fn message_position(lanes: &Lanes, lane: &str, next: Place) -> Position {
    let Place([first, second, third]) = next;
    let name = match (second, third) {
        (0, 0) => format!("{lane}@{}", first.saturating_sub(1)),
        _ => format!("{lane}@{first}:{second}:{third}"),
    };
    Position::new([lanes.count, 0, 0], name)
}
