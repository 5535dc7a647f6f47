//! Owns the structure of a table from the schema in its messages: semantic names to types and forms.

use canalis_types::{Column, LogicalType};

use super::{
    BinaryMode, DebeziumDecoderOptions, DecimalMode, TimeMode,
    connect_schema::Field,
    types::{Form, Spelling, Unit},
};

/// Precision of decimals whose schema does not tell it: MySQL's longest where it fits, else ours.
const DECIMAL_DIGITS: (u8, u8, u8) = (65, 30, 76);

/// A column and how its values look.
#[derive(Debug, Clone)]
pub(super) struct Derived {
    pub column: Column,
    pub form: Form,
}

/// The column of a field. A column that is known already stays as it is where its values look the same: what it is
/// beyond that (length, unsigned, the source's own type) the schema does not tell.
///
/// # Errors
/// When the schema says something that no column can be.
pub(super) fn derive(
    field: &Field,
    known: Option<&Column>,
    options: &DebeziumDecoderOptions,
) -> Result<Derived, String> {
    let (ty, form) = type_of(field).map_err(|why| format!("column `{}`: {why}", field.field))?;
    if let Some(known) = known
        && known.nullable == field.optional
    {
        if known.ty == ty {
            return Ok(Derived { column: known.clone(), form });
        }
        if let Some(form) = form_for(&known.ty, &ty, form, options) {
            return Ok(Derived { column: known.clone(), form });
        }
    }
    Ok(Derived { column: Column::new(field.field.clone(), ty, field.optional), form })
}

fn type_of(field: &Field) -> Result<(LogicalType, Form), String> {
    use LogicalType as L;
    let micros = 6;
    Ok(match field.semantic.as_str() {
        "org.apache.kafka.connect.data.Decimal" => (decimal(field)?, Form::Decimal(Spelling::Unscaled)),
        "io.debezium.data.VariableScaleDecimal" => (L::Text, Form::VariableDecimal),
        "io.debezium.time.Date" | "org.apache.kafka.connect.data.Date" | "io.debezium.time.IsoDate" => {
            (L::Date, Form::Days)
        }
        "io.debezium.time.Time" | "org.apache.kafka.connect.data.Time" => {
            (L::Time { precision: 3 }, Form::Time(Unit::Millis))
        }
        "io.debezium.time.MicroTime" | "io.debezium.time.IsoTime" => {
            (L::Time { precision: micros }, Form::Time(Unit::Micros))
        }
        "io.debezium.time.NanoTime" => (L::Time { precision: micros }, Form::Time(Unit::Nanos)),
        "io.debezium.time.Timestamp" | "org.apache.kafka.connect.data.Timestamp" => {
            (L::Timestamp { precision: 3 }, Form::Timestamp(Unit::Millis))
        }
        "io.debezium.time.MicroTimestamp" | "io.debezium.time.IsoTimestamp" => {
            (L::Timestamp { precision: micros }, Form::Timestamp(Unit::Micros))
        }
        "io.debezium.time.NanoTimestamp" => {
            (L::Timestamp { precision: micros }, Form::Timestamp(Unit::Nanos))
        }
        "io.debezium.time.ZonedTimestamp" => (L::TimestampTz { precision: micros }, Form::Instant),
        "io.debezium.time.Year" => (L::Year, Form::Year),
        "io.debezium.data.Bits" => bits(field)?,
        "io.debezium.data.Enum" => (L::Enum { labels: labels(field) }, Form::Text),
        "io.debezium.data.EnumSet" => (L::Set { labels: labels(field) }, Form::Text),
        "io.debezium.data.Json" => (L::Json, Form::Document),
        "io.debezium.data.Uuid" => (L::Uuid, Form::Text),
        "io.debezium.data.geometry.Geometry"
        | "io.debezium.data.geometry.Geography"
        | "io.debezium.data.geometry.Point" => (L::Geometry, Form::Geometry),
        _ => literal(&field.literal)?,
    })
}

fn literal(literal: &str) -> Result<(LogicalType, Form), String> {
    use LogicalType as L;
    Ok(match literal {
        "int8" => (L::Int8, Form::Whole),
        "int16" => (L::Int16, Form::Whole),
        "int32" => (L::Int32, Form::Whole),
        "int64" => (L::Int64, Form::Whole),
        "float" | "float32" => (L::Float32, Form::Float),
        "double" | "float64" => (L::Float64, Form::Float),
        "boolean" => (L::Boolean, Form::Boolean),
        "string" => (L::Text, Form::Text),
        "bytes" => (L::Bytes, Form::Bytes(BinaryMode::Bytes)),
        // Arrays, maps and structs that have no type of ours are kept as the JSON that they are.
        "array" | "map" | "struct" => (L::Json, Form::Document),
        other => return Err(format!("its schema has the unknown type `{other}`")),
    })
}

fn number<T: std::str::FromStr>(field: &Field, name: &str) -> Result<Option<T>, String> {
    let parse = |text: &str| {
        text.parse().map_err(|_| format!("parameter `{name}` of its schema is no number of that kind"))
    };
    field.parameter(name).map(parse).transpose()
}

fn decimal(field: &Field) -> Result<LogicalType, String> {
    let scale: i16 = number(field, "scale")?.ok_or("its schema is a decimal without a scale")?;
    // Oracle has negative scales: numbers with zeros at the end.
    let scale = u8::try_from(scale).map_err(|_| format!("decimals of scale {scale} are not supported"))?;
    let (mysql, mysql_scale, most) = DECIMAL_DIGITS;
    let fallback = if scale <= mysql_scale { mysql } else { most };
    let precision = number::<u8>(field, "connect.decimal.precision")?.unwrap_or(fallback);
    if scale > precision || precision == 0 || precision > most {
        return Err(format!("decimals of {precision} digits, {scale} after the point, are not supported"));
    }
    Ok(LogicalType::Decimal { precision, scale })
}

fn bits(field: &Field) -> Result<(LogicalType, Form), String> {
    Ok(match number::<u32>(field, "length")? {
        Some(length @ 1..=64) => {
            let length = u8::try_from(length).map_err(|e| e.to_string())?;
            (LogicalType::Bit { length }, Form::Bits)
        }
        _ => (LogicalType::Bytes, Form::Bytes(BinaryMode::Bytes)),
    })
}

/// The labels of `a,b\,c`: commas inside of labels have a backslash before them.
pub(crate) fn labels_of(text: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut escaped = false;
    for character in text.chars() {
        match character {
            '\\' if !escaped => {
                escaped = true;
                continue;
            }
            ',' if !escaped => out.push(String::new()),
            _ => {
                let last = out.last_mut().expect("there is always one");
                if escaped && character != ',' {
                    last.push('\\');
                }
                last.push(character);
            }
        }
        escaped = false;
    }
    if escaped {
        out.last_mut().expect("there is always one").push('\\');
    }
    if text.is_empty() { Vec::new() } else { out }
}

fn labels(field: &Field) -> Vec<String> {
    labels_of(field.parameter("allowed").unwrap_or_default())
}

/// The form that values of a known type have whose schema says `derived`; `None` when they are not of that type.
fn form_for(
    known: &LogicalType,
    derived: &LogicalType,
    form: Form,
    options: &DebeziumDecoderOptions,
) -> Option<Form> {
    use LogicalType as L;
    let same = match (known, derived) {
        (L::UInt8, L::Int8 | L::Int16) | (L::Int8, L::Int16) => true,
        (L::UInt16 | L::UInt32, L::Int32) | (L::UInt32 | L::UInt64, L::Int64) => true,
        (L::UInt64, L::Decimal { precision: 20, scale: 0 }) => true,
        (L::Bit { length: 1 }, L::Boolean) => true,
        (L::Char { .. } | L::Varchar { .. }, L::Text) => form == Form::Text,
        (L::Decimal { .. }, L::Text) if form == Form::VariableDecimal => true,
        (L::Decimal { .. }, L::Text) if options.decimal_mode == DecimalMode::String => {
            return Some(Form::Decimal(Spelling::Text));
        }
        (L::Decimal { .. }, L::Float64) if options.decimal_mode == DecimalMode::Double => {
            return Some(Form::Decimal(Spelling::Text));
        }
        (L::Binary { .. } | L::Varbinary { .. }, L::Bytes) => true,
        (L::Binary { .. } | L::Varbinary { .. } | L::Bytes, L::Text) => {
            let is_text = form == Form::Text && options.binary_mode != BinaryMode::Bytes;
            return is_text.then_some(Form::Bytes(options.binary_mode));
        }
        (L::Time { precision: a }, L::Time { precision: b })
        | (L::Timestamp { precision: a }, L::Timestamp { precision: b }) => {
            // Elsewhere the precision decides the unit, so another unit is another type.
            let adaptive = options.time_mode == TimeMode::Adaptive
                || (options.time_mode == TimeMode::AdaptiveMicros && matches!(known, L::Timestamp { .. }));
            !adaptive || (*a <= 3) == (*b <= 3)
        }
        (L::TimestampTz { .. }, L::TimestampTz { .. }) => true,
        _ => false,
    };
    same.then_some(form)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(text: &str) -> Vec<String> {
        let parameters = vec![("allowed".to_owned(), text.to_owned())];
        labels(&Field { parameters, ..Field::default() })
    }

    #[test]
    fn labels_may_hold_commas() {
        assert_eq!(allowed("new,paid,done"), ["new", "paid", "done"]);
        assert_eq!(allowed(r"a\,b,c,"), ["a,b", "c", ""]);
        assert_eq!(allowed(r"a\b,\\"), [r"a\b", r"\\"]);
        assert!(allowed("").is_empty());
    }
}
