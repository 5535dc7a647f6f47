//! Owns [`Schema`]: an Avro schema, parsed into a flat list of nodes that refer to each other by index.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// A parsed schema. Named types may contain themselves, so nodes hold indexes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Schema {
    nodes: Vec<Node>,
    pub root: usize,
}

/// A type in a schema.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub kind: Kind,
    pub logical: Logical,
    /// What the value means by Kafka Connect (`connect.name`).
    pub semantic: String,
    /// What `connect.type` says: narrower than Avro's own types.
    pub width: String,
    pub parameters: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    Array(usize),
    Map(usize),
    Union(Vec<usize>),
    Enum(Vec<String>),
    Fixed(usize),
    Record(Vec<Field>),
}

/// Meaning of a primitive type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Logical {
    Nothing,
    Decimal {
        precision: u8,
        scale: u8,
    },
    Date,
    Time(Unit),
    /// An instant.
    Timestamp(Unit),
    LocalTimestamp(Unit),
    Uuid,
}

/// Unit of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Millis,
    Micros,
    Nanos,
}

/// A field of a record.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    /// Name of the field, or of the column that it says it is of.
    pub name: String,
    pub node: usize,
    pub default: Option<Value>,
}

impl Node {
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

impl Schema {
    /// # Errors
    /// Why the text is no Avro schema.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        // A schema that is one primitive name may stand without quotes.
        let value = serde_json::from_str(text)
            .or_else(|e| if primitive(text.trim()).is_some() { Ok(Value::from(text.trim())) } else { Err(e) })
            .map_err(|why| format!("the schema is not JSON: {why}"))?;
        let mut parser = Parser { nodes: Vec::new(), names: HashMap::new() };
        let root = parser.node(&value, "")?;
        Ok(Self { nodes: parser.nodes, root })
    }

    pub(super) fn node(&self, index: usize) -> &Node {
        &self.nodes[index]
    }

    /// Fields of a node that is a record, or a union of null and one.
    pub(super) fn record(&self, index: usize) -> Option<(usize, &[Field])> {
        match &self.node(index).kind {
            Kind::Record(fields) => Some((index, fields)),
            Kind::Union(branches) => {
                let mut records = branches.iter().filter_map(|b| match &self.node(*b).kind {
                    Kind::Record(fields) => Some((*b, fields.as_slice())),
                    _ => None,
                });
                records.next().filter(|_| records.next().is_none())
            }
            _ => None,
        }
    }
}

/// Checks that a text is a schema of records.
///
/// # Errors
/// Why it is none.
pub fn check_schema(text: &str) -> Result<(), String> {
    let schema = Schema::parse(text)?;
    schema.record(schema.root).map(|_| ()).ok_or_else(|| "the schema is not that of a record".to_owned())
}

struct Parser {
    nodes: Vec<Node>,
    names: HashMap<String, usize>,
}

fn primitive(name: &str) -> Option<Kind> {
    Some(match name {
        "null" => Kind::Null,
        "boolean" => Kind::Boolean,
        "int" => Kind::Int,
        "long" => Kind::Long,
        "float" => Kind::Float,
        "double" => Kind::Double,
        "bytes" => Kind::Bytes,
        "string" => Kind::String,
        _ => return None,
    })
}

fn text<'v>(object: &'v Map<String, Value>, key: &str) -> Option<&'v str> {
    object.get(key).and_then(Value::as_str)
}

fn full_name(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() { name.to_owned() } else { format!("{namespace}.{name}") }
}

impl Parser {
    fn push(&mut self, kind: Kind) -> usize {
        let node = Node {
            kind,
            logical: Logical::Nothing,
            semantic: String::new(),
            width: String::new(),
            parameters: Vec::new(),
        };
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn node(&mut self, value: &Value, namespace: &str) -> Result<usize, String> {
        match value {
            Value::String(name) => match primitive(name) {
                Some(kind) => Ok(self.push(kind)),
                None => self
                    .names
                    .get(&full_name(name, namespace))
                    .or_else(|| self.names.get(name))
                    .copied()
                    .ok_or_else(|| format!("the schema names the type `{name}`, which it does not define")),
            },
            Value::Array(branches) => {
                let branches = branches.iter().map(|b| self.node(b, namespace)).collect::<Result<_, _>>()?;
                Ok(self.push(Kind::Union(branches)))
            }
            Value::Object(object) => self.object(object, namespace),
            _ => Err("a type in the schema is neither a name, a list nor an object".to_owned()),
        }
    }

    fn object(&mut self, object: &Map<String, Value>, namespace: &str) -> Result<usize, String> {
        let Some(Value::String(ty)) = object.get("type") else {
            // A type inside of a type, as some tools write it.
            let inner = object.get("type").ok_or("a type in the schema has no `type`")?;
            return self.node(inner, namespace);
        };
        let child = |key: &str| object.get(key).ok_or_else(|| format!("the type `{ty}` has no `{key}`"));
        let index = match ty.as_str() {
            "record" | "error" => self.record(object, namespace)?,
            "enum" => {
                let symbols = child("symbols")?.as_array().ok_or("`symbols` is no list")?;
                let symbols = symbols.iter().map(|s| s.as_str().map(str::to_owned)).collect::<Option<_>>();
                self.named(object, namespace, Kind::Enum(symbols.ok_or("a symbol is no text")?))?.0
            }
            "fixed" => {
                let size = child("size")?.as_u64().and_then(|n| usize::try_from(n).ok());
                self.named(object, namespace, Kind::Fixed(size.ok_or("`size` is no size")?))?.0
            }
            "array" => {
                let items = self.node(child("items")?, namespace)?;
                self.push(Kind::Array(items))
            }
            "map" => {
                let values = self.node(child("values")?, namespace)?;
                self.push(Kind::Map(values))
            }
            name => match primitive(name) {
                Some(kind) => self.push(kind),
                None => return self.node(&object["type"], namespace),
            },
        };
        let node = &mut self.nodes[index];
        node.logical = logical(object, &node.kind)?;
        node.semantic = text(object, "connect.name").unwrap_or_default().to_owned();
        node.width = text(object, "connect.type").unwrap_or_default().to_owned();
        if let Some(Value::Object(parameters)) = object.get("connect.parameters") {
            let pair = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
            node.parameters = parameters.iter().filter_map(pair).collect();
        }
        Ok(index)
    }

    /// Adds a named type; its index and the namespace inside of it.
    fn named(
        &mut self,
        object: &Map<String, Value>,
        namespace: &str,
        kind: Kind,
    ) -> Result<(usize, String), String> {
        let name = text(object, "name").ok_or("a record, enum or fixed in the schema has no name")?;
        let name = full_name(name, text(object, "namespace").unwrap_or(namespace));
        let inside = name.rsplit_once('.').map_or("", |(space, _)| space).to_owned();
        let index = self.push(kind);
        if self.names.insert(name.clone(), index).is_some() {
            return Err(format!("the schema defines the type `{name}` twice"));
        }
        Ok((index, inside))
    }

    fn record(&mut self, object: &Map<String, Value>, namespace: &str) -> Result<usize, String> {
        let (index, inside) = self.named(object, namespace, Kind::Record(Vec::new()))?;
        let list =
            object.get("fields").and_then(Value::as_array).ok_or("a record has no list of `fields`")?;
        let mut fields: Vec<Field> = Vec::with_capacity(list.len());
        for field in list {
            let field = field.as_object().ok_or("a field of a record is no object")?;
            let name = text(field, "name").ok_or("a field of a record has no name")?;
            let name = text(field, "canalis.column").unwrap_or(name).to_owned();
            let ty = field.get("type").ok_or_else(|| format!("field `{name}` has no type"))?;
            let node = self.node(ty, &inside).map_err(|why| format!("field `{name}`: {why}"))?;
            if fields.iter().any(|f| f.name == name) {
                return Err(format!("field `{name}` is there twice"));
            }
            fields.push(Field { name, node, default: field.get("default").cloned() });
        }
        self.nodes[index].kind = Kind::Record(fields);
        Ok(index)
    }
}

/// The meaning of a type. By the specification, one that is unknown or does not go with its type is passed over.
fn logical(object: &Map<String, Value>, kind: &Kind) -> Result<Logical, String> {
    use Unit::{Micros, Millis, Nanos};
    Ok(match (text(object, "logicalType").unwrap_or_default(), kind) {
        ("decimal", Kind::Bytes | Kind::Fixed(_)) => return decimal(object),
        ("date", Kind::Int) => Logical::Date,
        ("time-millis", Kind::Int) => Logical::Time(Millis),
        ("time-micros", Kind::Long) => Logical::Time(Micros),
        ("time-nanos", Kind::Long) => Logical::Time(Nanos),
        ("timestamp-millis", Kind::Long) => Logical::Timestamp(Millis),
        ("timestamp-micros", Kind::Long) => Logical::Timestamp(Micros),
        ("timestamp-nanos", Kind::Long) => Logical::Timestamp(Nanos),
        ("local-timestamp-millis", Kind::Long) => Logical::LocalTimestamp(Millis),
        ("local-timestamp-micros", Kind::Long) => Logical::LocalTimestamp(Micros),
        ("local-timestamp-nanos", Kind::Long) => Logical::LocalTimestamp(Nanos),
        ("uuid", Kind::String | Kind::Fixed(16)) => Logical::Uuid,
        _ => Logical::Nothing,
    })
}

fn decimal(object: &Map<String, Value>) -> Result<Logical, String> {
    let digits = |key: &str| object.get(key).map(|v| v.as_u64().and_then(|n| u8::try_from(n).ok()));
    let (Some(precision), Some(scale)) =
        (digits("precision").unwrap_or(None), digits("scale").unwrap_or(Some(0)))
    else {
        return Err("the schema has a decimal whose precision or scale is no small number".to_owned());
    };
    if precision == 0 || precision > 76 || scale > precision {
        return Err(format!("decimals of {precision} digits, {scale} after the point, are not supported"));
    }
    Ok(Logical::Decimal { precision, scale })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_types_are_found_by_their_namespace_and_may_hold_themselves() {
        let text = r#"{"type":"record","name":"a.b.Node","fields":[
            {"name":"next","type":["null","Node"]},
            {"name":"kind","type":{"type":"enum","name":"Kind","symbols":["X","Y"]}},
            {"name":"other","type":"a.b.Kind"}]}"#;
        let schema = Schema::parse(text).unwrap();
        let (root, fields) = schema.record(schema.root).unwrap();
        assert_eq!(schema.record(fields[0].node).unwrap().0, root);
        assert_eq!(fields[1].node, fields[2].node);
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        for text in [
            "",
            "{",
            "{}",
            "17",
            r#"{"type":"record","name":"x"}"#,
            r#"{"type":"record","fields":[]}"#,
            r#"{"type":"record","name":"x","fields":[{"name":"a"}]}"#,
            r#"{"type":"record","name":"x","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}"#,
            r#"{"type":"enum","name":"x"}"#,
            r#"{"type":"bytes","logicalType":"decimal","precision":77}"#,
            r#"{"type":"bytes","logicalType":"decimal","precision":4,"scale":5}"#,
            r#""unknown""#,
            "\"int\"",
        ] {
            assert!(check_schema(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_meaning_that_does_not_go_with_its_type_is_passed_over() {
        let schema = Schema::parse(r#"{"type":"string","logicalType":"date"}"#).unwrap();
        assert_eq!(schema.node(schema.root).logical, Logical::Nothing);
    }
}
