//! Owns functions on JSON. There are no array, map and row types: lists and records are JSON, with numbers as exact as
//! their digits.

use std::sync::Arc;

use arrow_array::{ArrayRef, builder::StringBuilder, cast::AsArray};
use canalis_types::LogicalType;
use datafusion_common::ScalarValue;

use super::{
    Function, MANY,
    row::{LONGEST, boolean_rows, integer_rows, text_rows, whole},
};
use crate::{
    call::{Argument, Kernel, Volatility, refuse},
    compile::{
        Context, Typed,
        coerce::{as_integer, as_text},
        typed::call,
        types::Family,
    },
    json::{Path, document, items, member, members, scalar, string},
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("PARSE_JSON", 1, 2, |c, a| parse("PARSE_JSON", c, a, Misread::Refused)),
    Function::new("TRY_PARSE_JSON", 1, 2, |c, a| parse("TRY_PARSE_JSON", c, a, Misread::Null)),
    Function::new("JSON_VALID", 1, 1, valid),
    Function::new("JSON_VALUE", 2, 2, |c, a| at_path("JSON_VALUE", c, a, LogicalType::Text)),
    Function::new("JSON_QUERY", 2, 2, |c, a| at_path("JSON_QUERY", c, a, LogicalType::Json)),
    Function::new("JSON_EXISTS", 2, 2, exists),
    Function::new("JSON_QUOTE", 1, 1, quote),
    Function::new("JSON_UNQUOTE", 1, 1, unquote),
    Function::new("JSON_STRING", 1, 1, stringify),
    // ARRAY[…], ROW(…).
    Function::new("JSON_ARRAY", 0, MANY, array),
    Function::new("ROW", 1, MANY, array),
    Function::new("JSON_OBJECT", 0, MANY, object),
    Function::new("STR_TO_MAP", 1, 3, str_to_map),
    Function::new("CARDINALITY", 1, 1, cardinality),
    Function::new("ELEMENT", 1, 1, element),
    Function::new("ARRAY_CONTAINS", 2, 2, contains),
    Function::new("ARRAY_POSITION", 2, 2, position),
    // x[i], x['name'].
    Function::new("JSON_ITEM", 2, 2, item),
];

/// What a text that is not JSON gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Misread {
    Refused,
    Null,
}

/// Writes a text as a JSON string.
pub(super) fn write_text(text: &str, out: &mut String) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

fn parse(
    name: &str,
    context: &Context,
    mut arguments: Vec<Typed>,
    misread: Misread,
) -> Result<Typed, String> {
    let twice = match arguments.get(1).map(|a| &a.value) {
        None => false,
        Some(Some(ScalarValue::Boolean(Some(twice)))) => *twice,
        Some(_) => return Err("the second argument is TRUE or FALSE: whether a key may stand twice".into()),
    };
    let text = as_text(arguments.swap_remove(0), context.zone)?;
    text_rows(name, &[text], LogicalType::Json, move |row| match document(row.text(0), !twice) {
        Some(value) => Ok(Some(value.into())),
        None if misread == Misread::Null => Ok(None),
        None => Err(refuse("text is not JSON")),
    })
}

fn valid(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let text = as_text(arguments.swap_remove(0), context.zone)?;
    boolean_rows("JSON_VALID", &[text], |row| Ok(Some(document(row.text(0), false).is_some())))
}

fn path(argument: &Typed) -> Result<Path, String> {
    Path::parse(argument.literal_text().ok_or("the path must be a text constant")?)
}

/// A scalar (JSON_VALUE) or an array or object (JSON_QUERY) at a path; NULL when there is no such thing or the text is
/// not JSON.
fn at_path(
    name: &str,
    context: &Context,
    mut arguments: Vec<Typed>,
    ty: LogicalType,
) -> Result<Typed, String> {
    let path = path(&arguments[1])?;
    let text = as_text(arguments.swap_remove(0), context.zone)?;
    let wants_scalar = ty == LogicalType::Text;
    text_rows(name, &[text], ty, move |row| {
        let found = document(row.text(0), false).and_then(|value| path.find(value));
        Ok(match found {
            Some(value) if wants_scalar => scalar(value),
            Some(value) if value.starts_with(['[', '{']) => Some(value.into()),
            _ => None,
        })
    })
}

fn exists(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let path = path(&arguments[1])?;
    let text = as_text(arguments.swap_remove(0), context.zone)?;
    boolean_rows("JSON_EXISTS", &[text], move |row| {
        Ok(Some(document(row.text(0), false).is_some_and(|value| path.find(value).is_some())))
    })
}

fn quote(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let text = as_text(arguments.swap_remove(0), context.zone)?;
    text_rows("JSON_QUOTE", &[text], LogicalType::Text, |row| {
        let mut out = String::with_capacity(row.text(0).len() + 2);
        write_text(row.text(0), &mut out);
        Ok(Some(out.into()))
    })
}

/// The text of a JSON string; what is not quoted stays as it is.
fn unquote(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let text = as_text(arguments.swap_remove(0), context.zone)?;
    text_rows("JSON_UNQUOTE", &[text], LogicalType::Text, |row| {
        let text = row.text(0);
        if text.len() < 2 || !(text.starts_with('"') && text.ends_with('"')) {
            return Ok(Some(text.into()));
        }
        let value = document(text, false).and_then(string);
        value.map(Some).ok_or_else(|| refuse("text is not a JSON string"))
    })
}

/// How the text of a value becomes JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As it is.
    Plain,
    Quoted,
}

/// The text of a value and how it is written in JSON.
fn as_json(value: Typed, context: &Context) -> Result<(Typed, Form), String> {
    let form = match (value.family(), &value.ty) {
        _ if value.untyped => Form::Plain,
        (Family::Binary, _) => return Err("bytes are not JSON; write TO_BASE64 or HEX around them".into()),
        (Family::Boolean | Family::Integer | Family::Decimal | Family::Float, _) | (_, LogicalType::Json) => {
            Form::Plain
        }
        _ => Form::Quoted,
    };
    Ok((as_text(value, context.zone)?, form))
}

fn write(
    argument: &Argument,
    form: Form,
    row: usize,
    out: &mut String,
) -> Result<(), arrow_schema::ArrowError> {
    if argument.is_null(row) {
        out.push_str("null");
        return Ok(());
    }
    let text = argument.array.as_string::<i32>().value(argument.at(row));
    match form {
        Form::Quoted => write_text(text, out),
        Form::Plain if document(text, false).is_some() => out.push_str(text),
        // Infinity and NaN of FLOAT columns, or JSON that the source did not check.
        Form::Plain => return Err(refuse("the value is not JSON")),
    }
    if out.len() > LONGEST {
        return Err(refuse("the resulting text is too long"));
    }
    Ok(())
}

/// A JSON text written from all arguments of a row, NULL among them.
fn written(
    name: &str,
    context: &Context,
    arguments: Vec<Typed>,
    ty: LogicalType,
    compute: impl Fn(&[Argument], &[Form], usize, &mut String) -> Result<(), arrow_schema::ArrowError>
    + Send
    + Sync
    + 'static,
) -> Result<Typed, String> {
    let mut typed = Vec::with_capacity(arguments.len());
    let mut forms = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let (argument, form) = as_json(argument, context)?;
        typed.push(argument);
        forms.push(form);
    }
    let kernel: Kernel = Arc::new(move |arguments, rows| {
        let mut out = StringBuilder::with_capacity(rows, rows * 16);
        let (mut text, mut bytes) = (String::new(), 0_usize);
        for row in 0..rows {
            text.clear();
            compute(arguments, &forms, row, &mut text)?;
            bytes += text.len();
            if i32::try_from(bytes).is_err() {
                return Err(refuse("the resulting text is too long"));
            }
            out.append_value(&text);
        }
        Ok(Arc::new(out.finish()) as ArrayRef)
    });
    call(name, &typed, ty, Volatility::Pure, kernel)
}

/// A value as a JSON text; NULL of NULL.
fn stringify(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let (value, form) = as_json(arguments.swap_remove(0), context)?;
    text_rows("JSON_STRING", &[value], LogicalType::Text, move |row| {
        let text = row.text(0);
        if form == Form::Plain {
            return match document(text, false) {
                Some(value) => Ok(Some(value.into())),
                None => Err(refuse("the value is not JSON")),
            };
        }
        let mut out = String::with_capacity(text.len() + 2);
        write_text(text, &mut out);
        Ok(Some(out.into()))
    })
}

fn array(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    written("JSON_ARRAY", context, arguments, LogicalType::Json, |arguments, forms, row, out| {
        out.push('[');
        for (index, (argument, form)) in arguments.iter().zip(forms).enumerate() {
            if index > 0 {
                out.push(',');
            }
            write(argument, *form, row, out)?;
        }
        out.push(']');
        Ok(())
    })
}

/// Pairs of names and values; a name that is NULL refuses the row.
fn object(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    if !arguments.len().is_multiple_of(2) {
        return Err("names and values come in pairs".into());
    }
    let mut texts = Vec::with_capacity(arguments.len());
    for (index, argument) in arguments.into_iter().enumerate() {
        texts.push(if index % 2 == 0 {
            as_text(argument, context.zone)?.retyped(LogicalType::Text)
        } else {
            argument
        });
    }
    written("JSON_OBJECT", context, texts, LogicalType::Json, |arguments, forms, row, out| {
        out.push('{');
        for (index, (pair, forms)) in arguments.chunks(2).zip(forms.chunks(2)).enumerate() {
            if index > 0 {
                out.push(',');
            }
            if pair[0].is_null(row) {
                return Err(refuse("a name in an object is NULL"));
            }
            write(&pair[0], Form::Quoted, row, out)?;
            out.push(':');
            write(&pair[1], forms[1], row, out)?;
        }
        out.push('}');
        Ok(())
    })
}

/// An object of texts from `name=value,name=value`; both separators may be given. A name without a value has null, the
/// last of two equal names counts where the first stands.
fn str_to_map(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let mut arguments: Vec<Typed> =
        arguments.into_iter().map(|a| as_text(a, context.zone)).collect::<Result<_, _>>()?;
    for separator in [",", "="].into_iter().skip(arguments.len() - 1) {
        arguments.push(Typed::text(separator));
    }
    text_rows("STR_TO_MAP", &arguments, LogicalType::Json, |row| {
        let (text, between, within) = (row.text(0), row.text(1), row.text(2));
        if between.is_empty() || within.is_empty() {
            return Err(refuse("a separator is empty"));
        }
        let mut object = serde_json::Map::new();
        for pair in text.split(between).filter(|_| !text.is_empty()) {
            match pair.split_once(within) {
                Some((name, value)) => object.insert(name.to_owned(), value.into()),
                None => object.insert(pair.to_owned(), serde_json::Value::Null),
            };
        }
        Ok(Some(serde_json::Value::Object(object).to_string().into()))
    })
}

fn checked(text: &str) -> Result<&str, arrow_schema::ArrowError> {
    document(text, false).ok_or_else(|| refuse("text is not JSON"))
}

fn listed(text: &str) -> Result<Vec<&str>, arrow_schema::ArrowError> {
    items(checked(text)?).ok_or_else(|| refuse("the value is not an array"))
}

/// The number of items of an array or members of an object.
fn cardinality(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let text = as_text(arguments.swap_remove(0), context.zone)?;
    integer_rows("CARDINALITY", &[text], |row| {
        let value = checked(row.text(0))?;
        let number = items(value).map(|i| i.len()).or_else(|| members(value).map(|m| m.len()));
        number.map(|n| Some(whole(n))).ok_or_else(|| refuse("the value is not an array or object"))
    })
}

/// A scalar as text, an array or object as its JSON.
fn plain(value: &str) -> Option<std::borrow::Cow<'_, str>> {
    if value.starts_with(['[', '{']) { Some(value.into()) } else { scalar(value) }
}

/// The only item of an array; NULL of an empty one.
fn element(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let text = as_text(arguments.swap_remove(0), context.zone)?;
    text_rows("ELEMENT", &[text], LogicalType::Text, |row| match listed(row.text(0))?.as_slice() {
        [] => Ok(None),
        [one] => Ok(plain(one)),
        _ => Err(refuse("the array has more than one item")),
    })
}

/// Position of a value among the items, 0 when it is not there.
fn place(text: &str, wanted: &str) -> Result<usize, arrow_schema::ArrowError> {
    let place = listed(text)?.into_iter().position(|item| plain(item).is_some_and(|item| item == wanted));
    Ok(place.map_or(0, |at| at + 1))
}

fn list_and_value(context: &Context, arguments: Vec<Typed>) -> Result<Vec<Typed>, String> {
    arguments.into_iter().map(|a| as_text(a, context.zone)).collect()
}

fn contains(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = list_and_value(context, arguments)?;
    boolean_rows("ARRAY_CONTAINS", &arguments, |row| Ok(Some(place(row.text(0), row.text(1))? > 0)))
}

fn position(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = list_and_value(context, arguments)?;
    integer_rows("ARRAY_POSITION", &arguments, |row| Ok(Some(whole(place(row.text(0), row.text(1))?))))
}

/// An item of an array by its position from 1, or a member of an object by its name; NULL when it is not there.
fn item(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let [value, key] = <[Typed; 2]>::try_from(arguments).map_err(|_| "two arguments are needed")?;
    let value = as_text(value, context.zone)?;
    if key.family() == Family::Text && !key.untyped {
        return text_rows("JSON_ITEM", &[value, key], LogicalType::Text, |row| {
            Ok(member(checked(row.text(0))?, row.text(1)).and_then(plain))
        });
    }
    let key = as_integer(key, "the position", context.zone)?;
    text_rows("JSON_ITEM", &[value, key], LogicalType::Text, |row| {
        let Ok(index) = usize::try_from(row.integer(1).saturating_sub(1)) else { return Ok(None) };
        Ok(items(checked(row.text(0))?).and_then(|i| i.get(index).copied()).and_then(plain))
    })
}
