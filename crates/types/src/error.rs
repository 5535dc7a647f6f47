//! Owns the one error that crosses crate borders: a stable code, a kind that decides retry and
//! fault once for everybody, a message and the cause. Each code has a page in `docs/errors/`.

use std::fmt;

/// Result of everything that may cross a crate border.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can be done about an error; decides retry and fault in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The definition given by the user is wrong; trying again cannot help.
    Definition,
    /// The source refused or delivered something that cannot be handled.
    Source,
    /// The sink refused something that cannot be handled.
    Sink,
    /// One row cannot be handled; the others can.
    Row,
    /// A connection broke, a lock was not granted, a server is away: worth another try.
    Transient,
    /// Saved state is missing, damaged or belongs to another definition.
    State,
    /// A defect of Canalis itself.
    Internal,
}

/// Whose fault an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The user's definition.
    User,
    /// The system that is read.
    Source,
    /// The system that is written.
    Sink,
    /// Canalis.
    Canalis,
}

impl ErrorKind {
    /// Whether the restart strategy may try again.
    pub fn is_retryable(self) -> bool {
        matches!(self, ErrorKind::Transient)
    }

    /// Whose fault it is.
    pub fn fault(self) -> Fault {
        match self {
            ErrorKind::Definition => Fault::User,
            ErrorKind::Source | ErrorKind::Transient => Fault::Source,
            ErrorKind::Sink | ErrorKind::Row => Fault::Sink,
            ErrorKind::State | ErrorKind::Internal => Fault::Canalis,
        }
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $kind:ident, $title:literal;)*) => {
        /// Stable code of a user-visible error, shown as `CNL-nnnn`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $($(#[$doc])* $name = $number,)* }

        impl Code {
            /// Every code, in order; `cargo xtask tidy` wants a page for each.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// The kind that errors of this code have.
            pub fn kind(self) -> ErrorKind {
                match self { $(Code::$name => ErrorKind::$kind,)* }
            }

            /// A short title, as on the code's page.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }
        }
    };
}

codes! {
    /// The file is not YAML or JSON.
    PipelineSyntax = 1001, Definition, "pipeline file cannot be parsed";
    /// The file breaks the grammar of pipeline definitions.
    PipelineInvalid = 1002, Definition, "pipeline definition is invalid";
    /// A known key or value whose behaviour is not built yet.
    NotSupportedYet = 1003, Definition, "not supported yet";
    /// `${env:…}` or `${file:…}` could not be resolved.
    SecretUnresolved = 1004, Definition, "secret cannot be resolved";
    /// A projection, filter or route does not fit the table.
    ExpressionInvalid = 1005, Definition, "expression is invalid";
    /// The source cannot be reached, or the connection broke.
    SourceUnreachable = 2001, Transient, "source cannot be reached";
    /// The source refuses the account or a right is missing.
    SourceAccessDenied = 2002, Source, "source denies access";
    /// A setting of the source makes a correct copy impossible.
    SourceMisconfigured = 2003, Source, "source is configured wrongly";
    /// The change log no longer holds the position to go on from.
    PositionLost = 2004, Source, "position lost";
    /// An event or value of the source that is not known.
    SourceEventUnknown = 2005, Source, "unknown event in the source";
    /// Bytes of the source that do not decode.
    SourceUndecodable = 2006, Source, "source data cannot be decoded";
    /// No table matches, or a captured table has gone.
    TableNotFound = 2007, Source, "table not found";
    /// A change of the table structure that the declared behaviour does not let through.
    SchemaChangeRefused = 2008, Source, "schema change refused";
    /// The sink cannot be reached, or the connection broke.
    SinkUnreachable = 3001, Transient, "sink cannot be reached";
    /// The sink refuses the account or a right is missing.
    SinkAccessDenied = 3002, Sink, "sink denies access";
    /// The sink cannot hold one row.
    RowRefused = 3003, Row, "row refused by the sink";
    /// An existing target table does not fit the data.
    TargetIncompatible = 3004, Sink, "target table does not fit";
    /// More rows were dead-lettered than the declared limit.
    DeadLetterLimit = 3005, Sink, "dead-letter limit reached";
    /// A deadlock or lock time-out at the sink.
    SinkContention = 3006, Transient, "lock contention at the sink";
    /// The sink failed in a way that trying again cannot mend.
    SinkFailed = 3007, Sink, "sink failed";
    /// A checkpoint is damaged.
    CheckpointDamaged = 4001, State, "checkpoint is damaged";
    /// Saved state belongs to another definition.
    StateIncompatible = 4002, State, "saved state does not fit";
    /// Rows read are not the sum of rows written, filtered and dead-lettered.
    LedgerMismatch = 4003, Internal, "ledger does not add up";
    /// The restart strategy gave up.
    RestartsExhausted = 4004, State, "restart strategy gave up";
    /// Another process owns the state directory.
    StateLocked = 4005, State, "state directory is in use";
    /// The local disk failed.
    LocalIo = 4006, State, "local file cannot be read or written";
    /// A defect.
    Internal = 9001, Internal, "internal error";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CNL-{}", *self as u16)
    }
}

/// An error with code, message and cause. The text is lower case and says what was being done to what.
#[derive(Debug)]
pub struct Error {
    code: Code,
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error of `code` with the code's own kind.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, kind: code.kind(), message: message.into(), source: None }
    }

    /// A defect of Canalis.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::Internal, message)
    }

    /// Keeps the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Overrides the kind, for example to make an otherwise transient error final.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.kind = kind;
        self
    }

    /// Puts what was being done in front of the message.
    #[must_use]
    pub fn context(mut self, doing: impl fmt::Display) -> Self {
        self.message = format!("{doing}: {}", self.message);
        self
    }

    /// The stable code.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The message without the code.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut whole = format!("{}: {}", self.code, self.message);
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let text = error.to_string();
            // Drivers often repeat their cause in their own text.
            if !whole.contains(&text) {
                whole.push_str(": ");
                whole.push_str(&text);
            }
            cause = error.source();
        }
        f.write_str(&whole)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|s| &**s as &(dyn std::error::Error + 'static))
    }
}
