//! Owns the schemas that are written: which Avro type a column gets, and the records of key, row and envelope.

use canalis_types::{Column, LogicalType, TableSchema};

use super::{
    AvroKind,
    names::{joined, valid},
    schema::Unit,
};
use crate::json::string::write_string;

/// How values of a column are written, where their physical form alone does not say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Out {
    Plain,
    /// A time between midnight and midnight.
    TimeOfDay,
    Timestamp(Unit),
    /// A text as in ISO 8601.
    Iso,
    /// One bit as true or false.
    Flag,
    /// So many bytes, little-endian.
    Bits(u8),
    Geometry,
}

/// Writes the schemas of a table.
pub(super) struct SchemaWriter {
    kind: AvroKind,
    out: Vec<u8>,
    /// A type is defined where it is first used, and named from then on.
    has_geometry: bool,
}

/// Schemas of a table, with the full names of their records.
#[derive(Debug)]
pub(super) struct Schemas {
    pub value: (String, String),
    pub key: (String, String),
}

const GEOMETRY: &str = "io.debezium.data.geometry.Geometry";

impl Out {
    pub(super) fn of(column: &Column, kind: AvroKind) -> Self {
        use LogicalType as L;
        let unit = |precision: u8| if precision <= 3 { Unit::Millis } else { Unit::Micros };
        match (&column.ty, kind) {
            (L::Time { .. }, AvroKind::Rows) => Self::TimeOfDay,
            (L::Timestamp { precision }, _) | (L::TimestampTz { precision }, AvroKind::Rows) => {
                Self::Timestamp(unit(*precision))
            }
            (L::TimestampTz { .. }, AvroKind::Debezium) => Self::Iso,
            (L::Bit { length: 1 }, _) => Self::Flag,
            (L::Bit { length }, _) => Self::Bits(length.div_ceil(8)),
            (L::Geometry, _) => Self::Geometry,
            _ => Self::Plain,
        }
    }
}

impl Schemas {
    /// The schemas of a table; records are named after it, and after the server in Debezium's form.
    pub(super) fn of(schema: &TableSchema, kind: AvroKind, server: &str) -> Self {
        let server = if kind == AvroKind::Debezium { server } else { "" };
        let id = &schema.id;
        let parts = [id.namespace.as_deref(), id.schema.as_deref()];
        let space = joined(
            std::iter::once(server)
                .chain(parts.into_iter().flatten())
                .chain(std::iter::once(id.table.as_str())),
        );
        let (value_name, key_name) = match kind {
            AvroKind::Rows => (format!("{space}.Value"), format!("{space}.Key")),
            AvroKind::Debezium => (format!("{space}.Envelope"), format!("{space}.Key")),
        };
        let mut value = SchemaWriter { kind, out: Vec::new(), has_geometry: false };
        match kind {
            AvroKind::Rows => value.record(&space, "Value", schema.columns.iter().map(|c| (c, c.nullable))),
            AvroKind::Debezium => value.envelope(&space, schema),
        }
        let mut key = SchemaWriter { kind, out: Vec::new(), has_geometry: false };
        let columns = schema.key_indexes().into_iter().map(|index| (&schema.columns[index], false));
        key.record(&space, "Key", columns);
        let text = |writer: SchemaWriter| String::from_utf8_lossy(&writer.out).into_owned();
        Self { value: (value_name, text(value)), key: (key_name, text(key)) }
    }
}

impl SchemaWriter {
    fn text(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn quoted(&mut self, text: &str) {
        write_string(&mut self.out, text.as_bytes());
    }

    fn record<'c>(&mut self, space: &str, name: &str, columns: impl Iterator<Item = (&'c Column, bool)>) {
        self.text("{\"type\":\"record\",\"name\":");
        self.quoted(name);
        self.text(",\"namespace\":");
        self.quoted(space);
        self.text(",\"fields\":[");
        for (index, (column, nullable)) in columns.enumerate() {
            if index > 0 {
                self.text(",");
            }
            let name = valid(&column.name);
            self.text("{\"name\":");
            self.quoted(&name);
            self.text(if nullable { ",\"type\":[\"null\"," } else { ",\"type\":" });
            self.column(column);
            self.text(if nullable { "],\"default\":null" } else { "" });
            if name != column.name {
                self.text(",\"canalis.column\":");
                self.quoted(&column.name);
            }
            self.text("}");
        }
        self.text("]");
        if self.kind == AvroKind::Debezium {
            self.text(",\"connect.name\":");
            self.quoted(&format!("{space}.{name}"));
        }
        self.text("}");
    }

    /// A primitive type with attributes, given as text behind it.
    fn with(&mut self, ty: &str, more: &str) {
        self.text(&format!("{{\"type\":\"{ty}\",{more}}}"));
    }

    /// A type with a semantic name.
    fn semantic(&mut self, ty: &str, name: &str, parameters: &[(&str, String)]) {
        self.text(&format!("{{\"type\":\"{ty}\",\"connect.version\":1,"));
        if !parameters.is_empty() {
            self.text("\"connect.parameters\":{");
            for (index, (key, value)) in parameters.iter().enumerate() {
                self.text(if index > 0 { "," } else { "" });
                self.quoted(key);
                self.text(":");
                self.quoted(value);
            }
            self.text("},");
        }
        self.text("\"connect.name\":");
        self.quoted(name);
        self.text("}");
    }

    fn decimal(&mut self, precision: u8, scale: u8) {
        if self.kind == AvroKind::Rows {
            let more = format!("\"logicalType\":\"decimal\",\"precision\":{precision},\"scale\":{scale}");
            return self.with("bytes", &more);
        }
        self.with(
            "bytes",
            &format!(
                "\"scale\":{scale},\"precision\":{precision},\"connect.version\":1,\
                 \"connect.parameters\":{{\"scale\":\"{scale}\",\"connect.decimal.precision\":\"{precision}\"}},\
                 \"connect.name\":\"org.apache.kafka.connect.data.Decimal\",\"logicalType\":\"decimal\""
            ),
        );
    }

    fn column(&mut self, column: &Column) {
        use LogicalType as L;
        let is_plain = self.kind == AvroKind::Rows;
        match &column.ty {
            L::Boolean | L::Bit { length: 1 } => self.text("\"boolean\""),
            L::Int8 if is_plain => self.with("int", "\"connect.type\":\"int8\""),
            L::Int8 | L::UInt8 | L::Int16 => self.with("int", "\"connect.type\":\"int16\""),
            L::UInt16 | L::Int32 => self.text("\"int\""),
            L::UInt32 | L::Int64 => self.text("\"long\""),
            L::UInt64 => self.decimal(20, 0),
            L::Float32 => self.text("\"float\""),
            L::Float64 => self.text("\"double\""),
            L::Decimal { precision, scale } => self.decimal(*precision, *scale),
            L::Date | L::Time { .. } | L::Timestamp { .. } | L::TimestampTz { .. } => self.temporal(&column.ty),
            L::Year => self.semantic("int", "io.debezium.time.Year", &[]),
            L::Char { .. } | L::Varchar { .. } | L::Text => self.text("\"string\""),
            L::Binary { .. } | L::Varbinary { .. } | L::Bytes => self.text("\"bytes\""),
            L::Bit { length } => {
                self.semantic("bytes", "io.debezium.data.Bits", &[("length", length.to_string())]);
            }
            L::Json => self.semantic("string", "io.debezium.data.Json", &[]),
            L::Enum { labels } => {
                self.semantic("string", "io.debezium.data.Enum", &[("allowed", allowed(labels))]);
            }
            L::Set { labels } => {
                self.semantic("string", "io.debezium.data.EnumSet", &[("allowed", allowed(labels))]);
            }
            L::Uuid if is_plain => self.with("string", "\"logicalType\":\"uuid\""),
            L::Uuid => self.semantic("string", "io.debezium.data.Uuid", &[]),
            L::Geometry if std::mem::replace(&mut self.has_geometry, true) => self.quoted(GEOMETRY),
            L::Geometry => self.text(
                "{\"type\":\"record\",\"name\":\"Geometry\",\"namespace\":\"io.debezium.data.geometry\",\"fields\":[\
                 {\"name\":\"wkb\",\"type\":\"bytes\"},{\"name\":\"srid\",\"type\":[\"null\",\"int\"],\"default\":null}],\
                 \"connect.version\":1,\"connect.name\":\"io.debezium.data.geometry.Geometry\"}",
            ),
        }
    }

    fn temporal(&mut self, ty: &LogicalType) {
        use LogicalType as L;
        let logical = |writer: &mut Self, ty: &str, name: &str| {
            writer.with(ty, &format!("\"logicalType\":\"{name}\""));
        };
        match (ty, self.kind) {
            (L::Date, AvroKind::Rows) => logical(self, "int", "date"),
            (L::Time { .. }, AvroKind::Rows) => logical(self, "long", "time-micros"),
            (L::Timestamp { precision: 0..=3 }, AvroKind::Rows) => {
                logical(self, "long", "local-timestamp-millis");
            }
            (L::Timestamp { .. }, AvroKind::Rows) => logical(self, "long", "local-timestamp-micros"),
            (L::TimestampTz { precision: 0..=3 }, AvroKind::Rows) => {
                logical(self, "long", "timestamp-millis");
            }
            (L::TimestampTz { .. }, AvroKind::Rows) => logical(self, "long", "timestamp-micros"),
            (L::Date, AvroKind::Debezium) => self.semantic("int", "io.debezium.time.Date", &[]),
            (L::Time { .. }, AvroKind::Debezium) => self.semantic("long", "io.debezium.time.MicroTime", &[]),
            (L::Timestamp { precision: 0..=3 }, AvroKind::Debezium) => {
                self.semantic("long", "io.debezium.time.Timestamp", &[]);
            }
            (L::Timestamp { .. }, AvroKind::Debezium) => {
                self.semantic("long", "io.debezium.time.MicroTimestamp", &[]);
            }
            _ => self.semantic("string", "io.debezium.time.ZonedTimestamp", &[]),
        }
    }

    fn envelope(&mut self, space: &str, schema: &TableSchema) {
        self.text("{\"type\":\"record\",\"name\":\"Envelope\",\"namespace\":");
        self.quoted(space);
        self.text(",\"fields\":[{\"name\":\"before\",\"type\":[\"null\",");
        self.record(space, "Value", schema.columns.iter().map(|c| (c, c.nullable)));
        self.text("],\"default\":null},{\"name\":\"after\",\"type\":[\"null\",\"Value\"],\"default\":null},");
        self.text(SOURCE);
        self.text(TAIL);
        self.quoted(&format!("{space}.Envelope"));
        self.text("}");
    }
}

fn allowed(labels: &[String]) -> String {
    labels.iter().map(|label| label.replace(',', "\\,")).collect::<Vec<_>>().join(",")
}

const SOURCE: &str = "{\"name\":\"source\",\"type\":{\"type\":\"record\",\"name\":\"Source\",\
\"namespace\":\"io.debezium.connector.mysql\",\"fields\":[{\"name\":\"version\",\"type\":\"string\"},\
{\"name\":\"connector\",\"type\":\"string\"},{\"name\":\"name\",\"type\":\"string\"},\
{\"name\":\"ts_ms\",\"type\":\"long\"},{\"name\":\"snapshot\",\"type\":[{\"type\":\"string\",\"connect.version\":1,\
\"connect.parameters\":{\"allowed\":\"true,first,first_in_data_collection,last_in_data_collection,last,false,incremental\"},\
\"connect.default\":\"false\",\"connect.name\":\"io.debezium.data.Enum\"},\"null\"],\"default\":\"false\"},\
{\"name\":\"db\",\"type\":\"string\"},{\"name\":\"sequence\",\"type\":[\"null\",\"string\"],\"default\":null},\
{\"name\":\"ts_us\",\"type\":[\"null\",\"long\"],\"default\":null},\
{\"name\":\"ts_ns\",\"type\":[\"null\",\"long\"],\"default\":null},\
{\"name\":\"table\",\"type\":[\"null\",\"string\"],\"default\":null},{\"name\":\"server_id\",\"type\":\"long\"},\
{\"name\":\"gtid\",\"type\":[\"null\",\"string\"],\"default\":null},{\"name\":\"file\",\"type\":\"string\"},\
{\"name\":\"pos\",\"type\":\"long\"},{\"name\":\"row\",\"type\":\"int\"},\
{\"name\":\"thread\",\"type\":[\"null\",\"long\"],\"default\":null},\
{\"name\":\"query\",\"type\":[\"null\",\"string\"],\"default\":null}],\"connect.version\":1,\
\"connect.name\":\"io.debezium.connector.mysql.Source\"}},";

const TAIL: &str = "{\"name\":\"transaction\",\"type\":[\"null\",{\"type\":\"record\",\"name\":\"block\",\
\"namespace\":\"event\",\"fields\":[{\"name\":\"id\",\"type\":\"string\"},{\"name\":\"total_order\",\"type\":\"long\"},\
{\"name\":\"data_collection_order\",\"type\":\"long\"}],\"connect.version\":1,\"connect.name\":\"event.block\"}],\
\"default\":null},{\"name\":\"op\",\"type\":\"string\"},\
{\"name\":\"ts_ms\",\"type\":[\"null\",\"long\"],\"default\":null},\
{\"name\":\"ts_us\",\"type\":[\"null\",\"long\"],\"default\":null},\
{\"name\":\"ts_ns\",\"type\":[\"null\",\"long\"],\"default\":null}],\"connect.version\":2,\"connect.name\":";
