//! Owns what the connectors of message brokers share: lanes and positions, formats by option, and the source and the sink
//! around a broker's client. A connector brings a [`Broker`] and its [`Consumer`] and [`Producer`]; how rows, positions, dead
//! letters and structures behave is the same for all of them.
//!
//! Must not know: any broker, the runtime.

mod blocking;
mod format;
mod lanes;
mod options;
mod registry;
mod sink;
mod source;

pub use blocking::blocking;
pub use format::{FORMAT_OPTIONS, Formats, MessageFormat, Problem};
pub use lanes::{Lanes, Place};
pub use options::{Reading, TopicChoice, invalid, with_formats};
pub use registry::{Registry, RegistryOptions};
pub use sink::{
    MessageSink, Partitioner, Producer, ProducerContext, Progress, Record, SinkBroker, SinkSettings,
    TopicRule, Topics, Unsent,
};
pub use source::{
    Broker, Consumer, Delivery, LaneStart, LostRange, MessageSource, MetadataColumn, OnLost, RecentLane,
    SourceSettings, headers_text,
};
