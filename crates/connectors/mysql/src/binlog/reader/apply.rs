//! Owns [`Follower`]: what each event means for position, transaction, rows and structure.

mod rows;
mod statement;

use std::sync::Arc;

use canalis_types::{Code, Error, Position};

use super::{
    ReaderConfig, SchemaTracker,
    failure::{Failure, Session, position_lost},
    follow::{is_executed, position},
    moved::Moved,
    pending::Pending,
    queue::Queue,
    server::Begin,
    tables::Tables,
    transaction::{Place, Transaction},
};
use crate::{
    binlog::{
        BinlogPosition, FIRST_OFFSET,
        compressed::{Payload, PayloadReader},
        cursor::{DecodeError, Decoded},
        event::{self, EventHeader, FLAG_IGNORABLE, Format, GtidEvent, HEADER_LEN, event_type as t},
        gtid::{Executed, GtidSet},
    },
    charset::Charsets,
};

/// Reads events one by one and delivers what they mean.
pub struct Follower {
    config: ReaderConfig,
    tracker: Box<dyn SchemaTracker>,
    charsets: Charsets,
    tables: Tables,
    pending: Pending,
    executed: Option<Executed>,
    server: Option<String>,
    /// How often the server has changed.
    term: u32,
    /// Cuts of the log of another server, until all are met.
    moved: Option<Moved>,
    place: Place,
    format: Option<Format>,
    transaction: Option<Transaction>,
    /// Row events of the first transaction that were consumed before this session.
    resume: u64,
    /// Events that end up to here are passed over: the dump command could not ask for an offset so high.
    pass_until: u64,
    /// File time that the position to go on from tells; compared with the first format description.
    expected_file_time: Option<u32>,
    /// Commit time of the newest finished transaction.
    time_ms: Option<i64>,
    /// Grows with every event that is in a file.
    events: u64,
    payloads: Option<PayloadReader>,
    /// Expanded part of a compressed event.
    expanded: Vec<u8>,
}

impl Follower {
    /// A follower that has read nothing.
    pub fn new(
        config: ReaderConfig,
        tracker: Box<dyn SchemaTracker>,
        queue: Arc<Queue>,
        executed: Option<Executed>,
    ) -> Self {
        let pending = Pending::new(queue, config.cuts.clone());
        Self {
            config,
            tracker,
            charsets: Charsets::new(),
            tables: Tables::default(),
            pending,
            executed,
            server: None,
            term: 0,
            moved: None,
            place: Place::default(),
            format: None,
            transaction: None,
            resume: 0,
            pass_until: 0,
            expected_file_time: None,
            time_ms: None,
            events: 0,
            payloads: None,
            expanded: Vec::new(),
        }
    }

    /// The configuration.
    pub fn config(&self) -> &ReaderConfig {
        &self.config
    }

    /// A number that grows when events are read.
    pub fn progress(&self) -> u64 {
        self.events
    }

    /// A new session begins.
    pub fn begin(&mut self, server: &str, begin: &Begin) -> Session<()> {
        self.server = Some(server.to_owned());
        self.format = None;
        self.transaction = None;
        self.tables.forget_announcements();
        self.place = Place::default();
        let begin = match begin {
            Begin::At(begin) => begin,
            Begin::Told => return Ok(()),
            Begin::After(left) => return self.go_on_elsewhere(left),
        };
        self.term = begin.term;
        self.expected_file_time = begin.file_time;
        self.resume = begin.events;
        self.time_ms = self.time_ms.or(begin.time_ms);
        let asked = u32::try_from(begin.offset).map_or(FIRST_OFFSET, u64::from);
        self.pass_until = if asked == begin.offset { 0 } else { begin.offset };
        self.place = Place { file: begin.file.clone(), offset: asked, file_time: None, is_exact: true };
        self.pending.begin_at(&position(begin.clone())?);
        Ok(())
    }

    /// The session is with another server than the one that `left` belongs to.
    fn go_on_elsewhere(&mut self, left: &BinlogPosition) -> Session<()> {
        (self.resume, self.pass_until, self.expected_file_time) = (0, 0, None);
        self.term = left.term + 1;
        self.time_ms = self.time_ms.or(left.time_ms);
        self.pending.begin_at(&position(left.clone())?);
        let cuts = self.pending.take_cuts();
        if cuts.is_empty() {
            return Ok(());
        }
        match Moved::new(cuts, self.config.flavor)? {
            Ok(moved) => self.moved = Some(moved),
            Err(cut) => {
                let why = "the sink holds rows up to there, and without GTIDs or inside a transaction this place \
                           cannot be found in the log of another server";
                return Err(Failure::Fatal(position_lost(&cut.to_string(), None, why)));
            }
        }
        Ok(())
    }

    /// The session is lost: delivers what is complete and tells where to go on; `None` when nothing was read yet.
    pub fn interrupted(&mut self) -> Session<Option<BinlogPosition>> {
        if !self.place.is_exact {
            return Ok(None);
        }
        if self.transaction.as_ref().is_some_and(|transaction| transaction.xa) {
            // Its rows are not known to be committed. They are all that is pending, and are read again.
            self.pending.forget(&mut self.tables);
            if let Some(transaction) = &mut self.transaction {
                transaction.consumed = 0;
                transaction.skip = 0;
            }
        }
        if let Some(transaction) = &mut self.transaction {
            // Row events that were still to be passed over stay consumed.
            transaction.consumed += transaction.skip;
            transaction.skip = 0;
        } else if self.resume > 0 || self.pass_until > self.place.offset {
            // The transaction to go on in was not even reached.
            let begin = self.pass_until.max(self.place.offset);
            let mut again = self.here();
            (again.offset, again.events) = (begin, self.resume);
            return Ok(Some(again));
        }
        if self.pending.has_rows() {
            self.watermark()?;
        }
        Ok(Some(self.here()))
    }

    /// Nothing more can be read without waiting.
    pub fn drained(&mut self) -> Session<()> {
        match &self.transaction {
            None if self.pending.has_rows() || self.pending.is_idle_due() => self.watermark(),
            Some(transaction) if !transaction.xa && self.pending.is_late() => self.watermark(),
            _ => Ok(()),
        }
    }

    /// Where the stream is.
    fn here(&self) -> BinlogPosition {
        let (offset, events) = match &self.transaction {
            Some(transaction) => (transaction.begin, transaction.consumed),
            None => (self.place.offset, 0),
        };
        BinlogPosition {
            file: self.place.file.clone(),
            offset,
            events,
            gtid_set: self.executed.as_ref().map(ToString::to_string).filter(|set| !set.is_empty()),
            server: self.server.clone(),
            term: self.term,
            file_time: self.place.file_time.or(self.expected_file_time),
            time_ms: self.time_ms,
        }
    }

    /// Where the stream is, for messages.
    pub fn place_text(&self) -> String {
        let here = self.here();
        if here.file.is_empty() {
            return format!("after {}", here.gtid_set.as_deref().unwrap_or("nothing"));
        }
        match here.events {
            0 => format!("{}:{}", here.file, here.offset),
            events => format!("{}:{} after {events} row events", here.file, here.offset),
        }
    }

    /// Whether what is being read comes before where the stream was to begin, or is not known to come after.
    fn is_behind(&self) -> bool {
        !self.place.is_exact
            || self.place.offset < self.pass_until
            || self.resume > 0
            || self.transaction.as_ref().is_some_and(|transaction| transaction.skip > 0)
    }

    fn watermark(&mut self) -> Session<()> {
        if self.is_behind() {
            return Ok(());
        }
        if self.moved.is_some() {
            // Whoever calls may drop what is pending.
            return self.pending.deliver_all(&mut self.tables);
        }
        let position = position(self.here())?;
        let time_ms = self.transaction.as_ref().map(|transaction| transaction.time_ms).or(self.time_ms);
        self.pending.watermark(&mut self.tables, position, time_ms)
    }

    /// Sends a watermark if one must stand exactly here.
    fn cut(&mut self) -> Session<()> {
        if let (Some(moved), Some(executed)) = (&mut self.moved, &self.executed) {
            while let Some(cut) = moved.met(executed) {
                self.pending.watermark(&mut self.tables, cut, self.time_ms)?;
            }
            if moved.is_done() {
                self.moved = None;
            }
            return Ok(());
        }
        if self.pending.has_cuts() && !self.is_behind() {
            let here: Position = position(self.here())?;
            if self.pending.take_cut(&here)? {
                self.watermark()?;
            }
        }
        Ok(())
    }

    fn located<T>(&self, decoded: Decoded<T>) -> Session<T> {
        decoded.map_err(|error| Failure::Fatal(error.into_error(self.place_text())))
    }

    fn fail<T>(&self, code: Code, what: impl Into<String>) -> Session<T> {
        Err(Failure::Fatal(Error::new(code, format!("{} at {}", what.into(), self.place_text()))))
    }

    /// Takes the next event of the stream, with header and checksum.
    pub fn event(&mut self, raw: &[u8]) -> Session<()> {
        let header = self.located(EventHeader::parse(raw))?;
        if header.len() != raw.len() {
            return self.fail(Code::SourceUndecodable, "event is not as long as it says");
        }
        match header.kind {
            t::FORMAT_DESCRIPTION => return self.format_description(&header, raw),
            t::ROTATE => return self.rotate(&header, raw),
            t::HEARTBEAT | t::HEARTBEAT_V2 => return Ok(()),
            _ => {}
        }
        let Some(format) = self.format else {
            return self.fail(Code::SourceUndecodable, "log does not begin with its format");
        };
        let event = if format.checksum { self.located(event::verified(raw))? } else { raw };
        let before = self.place.offset;
        if !header.is_artificial() {
            self.place.advance(header.log_pos);
            self.events += 1;
        }
        if self.place.offset <= self.pass_until {
            return Ok(());
        }
        let begin = self.place.offset.saturating_sub(u64::from(header.size)).max(before);
        self.content(&header, &event[HEADER_LEN..], format, begin)?;
        if self.transaction.is_none() { self.cut() } else { Ok(()) }
    }

    fn format_description(&mut self, header: &EventHeader, raw: &[u8]) -> Session<()> {
        self.format = Some(self.located(event::parse_format(raw))?);
        if let Some(expected) = self.expected_file_time.take()
            && expected != header.timestamp
        {
            let why = "the server has another file of this name now: its log was begun anew";
            return Err(Failure::Fatal(position_lost(&self.place_text(), None, why)));
        }
        self.place.file_time = Some(header.timestamp);
        if !header.is_artificial() {
            self.place.advance(header.log_pos);
            self.events += 1;
        }
        self.cut()
    }

    /// The log goes on in another file; or, made up, the server tells the file at the beginning of a dump.
    fn rotate(&mut self, header: &EventHeader, raw: &[u8]) -> Session<()> {
        // Before the first format description it is not known whether there are checksums.
        let event = match self.format {
            Some(Format { checksum: true, .. }) | None => match event::verified(raw) {
                Ok(event) => event,
                Err(_) if header.is_artificial() => raw,
                Err(error) => return self.located(Err(error)),
            },
            Some(_) => raw,
        };
        let (file, offset) = self.located(event::parse_rotate(&event[HEADER_LEN..]))?;
        if file == self.place.file {
            return Ok(());
        }
        if self.transaction.is_some() {
            return self.fail(Code::SourceUndecodable, "log changes its file inside a transaction");
        }
        let is_exact = self.place.is_exact;
        self.place = Place { file: file.to_owned(), offset, file_time: None, is_exact };
        self.expected_file_time = None;
        self.pass_until = 0;
        self.cut()
    }

    /// An event of a file, or one inside a transaction payload. `begin` is where the event in the file begins.
    fn content(&mut self, header: &EventHeader, body: &[u8], format: Format, begin: u64) -> Session<()> {
        match header.kind {
            t::GTID | t::ANONYMOUS_GTID | t::GTID_TAGGED | t::MARIADB_GTID => {
                let gtid = self.located(gtid_event(header, body))?;
                self.begin_transaction(header, begin, Some(gtid))
            }
            t::QUERY => {
                let query = self.located(event::parse_query(body))?;
                self.query(header, &query, query.statement, begin)
            }
            t::MARIADB_QUERY_COMPRESSED => {
                let query = self.located(event::parse_query(body))?;
                let mut statement = std::mem::take(&mut self.expanded);
                let expanded = crate::binlog::compressed::event_part(query.statement, &mut statement);
                let done = self.located(expanded).and_then(|()| self.query(header, &query, &statement, begin));
                self.expanded = statement;
                done
            }
            t::EXECUTE_LOAD_QUERY => {
                let query = self.located(event::parse_execute_load(body))?;
                self.query(header, &query, query.statement, begin)
            }
            t::XID => self.commit(),
            t::XA_PREPARE => self.xa_prepare(body),
            t::TABLE_MAP => self.table_map(body, format),
            t::TRANSACTION_PAYLOAD => self.payload(body, format, begin),
            t::PREVIOUS_GTIDS => {
                if self.executed.is_none() {
                    self.executed = Some(Executed::MySql(self.located(GtidSet::decode(body))?));
                }
                Ok(())
            }
            t::MARIADB_GTID_LIST => {
                if self.executed.is_none() {
                    self.executed = Some(Executed::MariaDb(self.located(event::parse_gtid_list(body))?));
                }
                Ok(())
            }
            t::INCIDENT => self.fail(
                Code::PositionLost,
                "the server has written an incident into its log: changes before it may be missing in the log",
            ),
            // What a statement behind them needs, comments, and the bookkeeping of servers and groups. An encrypted
            // log is decrypted by the server.
            t::STOP | t::INTVAR | t::RAND | t::USER_VAR | t::APPEND_BLOCK | t::DELETE_FILE | t::BEGIN_LOAD_QUERY
            | t::IGNORABLE | t::ROWS_QUERY | t::TRANSACTION_CONTEXT | t::VIEW_CHANGE | t::MARIADB_ANNOTATE_ROWS
            | t::MARIADB_BINLOG_CHECKPOINT | t::MARIADB_START_ENCRYPTION => Ok(()),
            kind => match rows::form(kind) {
                Some(form) => self.rows(header, body, format, form, begin),
                None if header.flags & FLAG_IGNORABLE != 0 => Ok(()),
                None => self.fail(Code::SourceEventUnknown, format!("event type {kind} is not known")),
            },
        }
    }

    /// The events inside a compressed transaction, one after another.
    fn payload(&mut self, body: &[u8], format: Format, begin: u64) -> Session<()> {
        let mut payload = self.located(Payload::parse(body))?;
        let mut reader = match self.payloads.take() {
            Some(reader) => reader,
            None => PayloadReader::new()
                .map_err(|e| Failure::Fatal(Error::internal("making a zstd decoder").with_source(e)))?,
        };
        self.located(reader.begin())?;
        while let Some(event) = self.located(reader.next(&mut payload))? {
            let header = self.located(EventHeader::parse(event))?;
            if header.kind == t::TRANSACTION_PAYLOAD {
                return self.fail(Code::SourceUndecodable, "transaction payload inside another");
            }
            self.content(&header, &event[HEADER_LEN..], format, begin)?;
        }
        self.payloads = Some(reader);
        Ok(())
    }

    fn begin_transaction(
        &mut self,
        header: &EventHeader,
        begin: u64,
        event: Option<GtidEvent>,
    ) -> Session<()> {
        if self.transaction.is_some() {
            return self.fail(Code::SourceUndecodable, "transaction begins inside another");
        }
        self.tables.trim();
        let event_ms = i64::from(header.timestamp) * 1000;
        let mut transaction = Transaction::new(begin, event_ms);
        if let Some(event) = event {
            if let Some(micros) = event.commit_micros {
                transaction.time_ms = i64::try_from(micros / 1000).unwrap_or(event_ms);
            }
            // MariaDB has no BEGIN behind it: what is not a single statement ends with a commit.
            transaction.explicit = header.kind == t::MARIADB_GTID && !event.standalone;
            transaction.xa = event.prepared_xa;
            transaction.without_effect = event.alter_without_effect;
            transaction.gtid = event.gtid;
        }
        transaction.skip = std::mem::take(&mut self.resume);
        transaction.has_rows = transaction.skip > 0;
        transaction.discard = self.config.not_before_ms.is_some_and(|time| transaction.time_ms < time)
            || is_executed(self.executed.as_ref(), transaction.gtid.as_ref());
        self.place.is_exact = true;
        let xa = transaction.xa;
        if xa && self.pending.has_rows() {
            // So that only its own rows are pending until it is known to be committed.
            self.watermark()?;
        }
        self.transaction = Some(transaction);
        Ok(())
    }

    /// The transaction is complete.
    fn commit(&mut self) -> Session<()> {
        let Some(transaction) = self.transaction.take() else { return Ok(()) };
        if transaction.skip > 0 {
            let why =
                format!("the transaction has {} row events less than were read before", transaction.skip);
            return Err(Failure::Fatal(position_lost(&self.place_text(), None, &why)));
        }
        if transaction.has_rows
            && let Some(cut) =
                self.moved.as_ref().and_then(|moved| moved.overtaken(transaction.gtid.as_ref()))
        {
            let why = "this server has executed transactions in another order than the one before, so that it has no \
                       place up to which the sink holds rows";
            return Err(Failure::Fatal(position_lost(&cut.to_string(), None, why)));
        }
        if let (Some(executed), Some(gtid)) = (&mut self.executed, &transaction.gtid) {
            executed.add(gtid);
        }
        self.time_ms = Some(transaction.time_ms);
        if self.pending.is_due_between_transactions() {
            self.watermark()?;
        }
        self.cut()
    }

    fn xa_prepare(&mut self, body: &[u8]) -> Session<()> {
        let one_phase = self.located(event::parse_xa_prepare(body))?;
        let Some(transaction) = &mut self.transaction else { return Ok(()) };
        if !one_phase && transaction.has_rows {
            return self.fail(
                Code::SourceEventUnknown,
                "rows of captured tables are in an XA transaction that is prepared and committed later, which is not \
                 supported; let the application commit in one phase, or without XA,",
            );
        }
        transaction.xa = false;
        self.commit()
    }
}

fn gtid_event(header: &EventHeader, body: &[u8]) -> Decoded<GtidEvent> {
    match header.kind {
        t::GTID => event::parse_gtid(body),
        t::GTID_TAGGED => event::parse_tagged_gtid(body),
        t::MARIADB_GTID => event::parse_mariadb_gtid(body, header.server_id),
        t::ANONYMOUS_GTID => event::parse_gtid(body).map(|event| GtidEvent { gtid: None, ..event }),
        _ => Err(DecodeError::malformed("event is no gtid")),
    }
}
