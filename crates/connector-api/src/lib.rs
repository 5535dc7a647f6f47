//! Owns the contracts between the runtime and everything that plugs into it: [`ConnectorSpec`] and options,
//! [`Source`] with [`SplitEnumerator`] and [`SourceReader`], [`Sink`] with [`SinkWriter`], dead letters, and the
//! [`Registry`] of connectors.
//!
//! Must not know: any connector, the runtime.

mod check;
mod dead_letter;
mod options;
mod preview;
mod registry;
mod selector;
mod sink;
mod source;
mod spec;

pub use check::{Finding, Severity};
pub use dead_letter::{DeadLetter, DeadLetterQueue};
pub use options::{Options, nearest};
pub use preview::{Decoded, PreviewRecord, RawRecord, SinkPreview};
pub use registry::{Connector, Registry};
pub use selector::{RoutePattern, TableSelector};
pub use sink::{
    CommitPoint, CommitReport, Sink, SinkCapabilities, SinkContext, SinkRecovery, SinkWriter, SplitBegin,
    TablePlan, WriterContext,
};
pub use source::{
    Boundedness, NextSplit, Source, SourceContext, SourceEvent, SourceReader, SourceRestore, Split,
    SplitEnumerator, SplitMode, TableEstimate, Watermark,
};
pub use spec::{ConnectorSpec, DeliveryGuarantee, OptionSpec, OptionType, Role};
