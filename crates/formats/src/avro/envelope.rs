//! Owns Debezium's envelope in Avro: where the images stand in a message, and what it says of its origin.

use super::{
    read::{DEPTH, Outcome, Reader},
    schema::{Field, Kind, Schema},
};

/// What a field of the envelope is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Before,
    After,
    Source,
    Operation,
    Other,
}

/// The envelope by its schema.
#[derive(Debug)]
pub(super) struct Envelope {
    roles: Vec<(Role, usize)>,
    /// Record of the images.
    pub row: usize,
}

/// What a message did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Create,
    Update,
    Delete,
    Truncate,
    /// Messages without rows.
    Aside,
}

/// One message, opened.
#[derive(Debug, Default)]
pub(super) struct Payload<'a> {
    pub operation: Option<Operation>,
    /// Bytes of the image, if it is not null.
    pub before: Option<&'a [u8]>,
    pub after: Option<&'a [u8]>,
    pub database: Option<&'a str>,
    pub schema: Option<&'a str>,
    pub table: Option<&'a str>,
    pub is_postgres: bool,
    pub is_snapshot: bool,
    pub ts_ms: Option<i64>,
}

impl Envelope {
    /// # Errors
    /// When the schema is not that of an envelope.
    pub(super) fn of(schema: &Schema) -> Result<Self, String> {
        const NONE: &str = "the schema is not that of a Debezium envelope";
        let (_, fields) = schema.record(schema.root).ok_or(NONE)?;
        let role = |field: &Field| match field.name.as_str() {
            "before" => Role::Before,
            "after" => Role::After,
            "source" => Role::Source,
            "op" => Role::Operation,
            _ => Role::Other,
        };
        let image = |name: &str| fields.iter().find(|f| f.name == name).and_then(|f| schema.record(f.node));
        let row = image("after").or_else(|| image("before")).map(|(node, _)| node);
        if !fields.iter().any(|f| role(f) == Role::Operation) {
            return Err(format!("{NONE}: it has no field `op`"));
        }
        let row = row.ok_or_else(|| format!("{NONE}: it has no record `after`"))?;
        Ok(Self { roles: fields.iter().map(|f| (role(f), f.node)).collect(), row })
    }

    /// Opens a message.
    pub(super) fn open<'a>(&self, schema: &Schema, bytes: &'a [u8]) -> Outcome<Payload<'a>> {
        let mut reader = Reader::new(bytes);
        let mut payload = Payload::default();
        for (role, node) in &self.roles {
            match role {
                Role::Before => payload.before = self.image(schema, *node, &mut reader, bytes)?,
                Role::After => payload.after = self.image(schema, *node, &mut reader, bytes)?,
                Role::Source => source(schema, *node, &mut reader, &mut payload)?,
                Role::Operation => {
                    payload.operation = Some(match scalar(schema, *node, &mut reader)? {
                        Scalar::Text("c" | "r") => Operation::Create,
                        Scalar::Text("u") => Operation::Update,
                        Scalar::Text("d") => Operation::Delete,
                        Scalar::Text("t") => Operation::Truncate,
                        Scalar::Text("m") => Operation::Aside,
                        _ => return Err("`op` is none that Debezium has"),
                    });
                }
                Role::Other => reader.skip(schema, *node, DEPTH)?,
            }
        }
        if reader.left() > 0 {
            return Err("there are bytes behind the envelope");
        }
        Ok(payload)
    }

    fn image<'a>(
        &self,
        schema: &Schema,
        node: usize,
        reader: &mut Reader<'a>,
        bytes: &'a [u8],
    ) -> Outcome<Option<&'a [u8]>> {
        let mut inner = node;
        if let Kind::Union(branches) = &schema.node(node).kind {
            inner = branches[reader.index(branches.len())?];
        }
        if matches!(schema.node(inner).kind, Kind::Null) {
            return Ok(None);
        }
        if inner != self.row {
            return Err("`before` and `after` are of different records");
        }
        let start = reader.position();
        reader.skip(schema, inner, DEPTH)?;
        Ok(Some(&bytes[start..reader.position()]))
    }
}

enum Scalar<'a> {
    Text(&'a str),
    Number(i64),
    Other,
}

/// A text or number, or null in place of it; anything else is passed over.
fn scalar<'a>(schema: &Schema, node: usize, reader: &mut Reader<'a>) -> Outcome<Scalar<'a>> {
    match &schema.node(node).kind {
        Kind::Union(branches) => {
            let branch = branches[reader.index(branches.len())?];
            if matches!(schema.node(branch).kind, Kind::Union(_)) {
                return Err("a union stands inside of a union");
            }
            scalar(schema, branch, reader)
        }
        Kind::String => {
            std::str::from_utf8(reader.bytes()?).map(Scalar::Text).map_err(|_| "text is not UTF-8")
        }
        Kind::Int | Kind::Long => Ok(Scalar::Number(reader.long()?)),
        _ => {
            reader.skip(schema, node, DEPTH)?;
            Ok(Scalar::Other)
        }
    }
}

fn source<'a>(
    schema: &Schema,
    node: usize,
    reader: &mut Reader<'a>,
    payload: &mut Payload<'a>,
) -> Outcome<()> {
    let mut inner = node;
    if let Kind::Union(branches) = &schema.node(node).kind {
        inner = branches[reader.index(branches.len())?];
    }
    let Kind::Record(fields) = &schema.node(inner).kind else { return reader.skip(schema, inner, DEPTH) };
    for field in fields {
        if !matches!(field.name.as_str(), "db" | "schema" | "table" | "connector" | "snapshot" | "ts_ms") {
            reader.skip(schema, field.node, DEPTH)?;
            continue;
        }
        match (field.name.as_str(), scalar(schema, field.node, reader)?) {
            ("db", Scalar::Text(text)) => payload.database = Some(text),
            ("schema", Scalar::Text(text)) => payload.schema = Some(text),
            ("table", Scalar::Text(text)) => payload.table = Some(text),
            ("connector", Scalar::Text(text)) => payload.is_postgres = text == "postgresql",
            ("snapshot", Scalar::Text(text)) => payload.is_snapshot = text != "false",
            ("ts_ms", Scalar::Number(number)) => payload.ts_ms = Some(number),
            _ => {}
        }
    }
    Ok(())
}
