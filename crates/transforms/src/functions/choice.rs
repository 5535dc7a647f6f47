//! Owns functions that choose between their arguments; only the chosen one is computed.

use canalis_types::LogicalType;
use datafusion_expr::Operator;

use super::{Function, MANY};
use crate::compile::{
    Context, Typed,
    coerce::as_condition,
    condition::{case, compare, is_not_null},
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("COALESCE", 1, MANY, coalesce),
    Function::new("IFNULL", 2, 2, coalesce),
    Function::new("IF", 3, 3, choose),
    Function::new("NULLIF", 2, 2, nullif),
];

/// The first argument that is not NULL.
fn coalesce(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let Some(last) = arguments.pop() else { return Err("at least one argument is needed".into()) };
    if arguments.is_empty() {
        return Ok(last);
    }
    let whens = arguments.iter().map(is_not_null).collect::<Result<_, _>>()?;
    case(whens, arguments, Some(last), context.zone)
}

/// The second argument when the first is true, otherwise the third.
fn choose(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let [when, then, otherwise] =
        <[Typed; 3]>::try_from(arguments).map_err(|_| "three arguments are needed")?;
    case(vec![as_condition(when, context.zone)?], vec![then], Some(otherwise), context.zone)
}

/// NULL when both are equal, otherwise the first.
fn nullif(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let [value, other] = <[Typed; 2]>::try_from(arguments).map_err(|_| "two arguments are needed")?;
    let equal = compare(Operator::Eq, value.clone(), other, context.zone)?;
    let null = if value.untyped { Typed::null(LogicalType::Text)? } else { Typed::null(value.ty.clone())? };
    case(vec![equal], vec![null], Some(value), context.zone)
}
