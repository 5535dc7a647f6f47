//! Owns the step from [`Node`] to physical expressions: names become columns, types are derived, and everything that
//! does not depend on the row is computed once.

pub(crate) mod arithmetic;
pub(crate) mod coerce;
pub(crate) mod condition;
pub(crate) mod scope;
pub(crate) mod typed;
pub(crate) mod types;

use canalis_types::LogicalType;
use datafusion_common::ScalarValue;

pub(crate) use scope::Scope;
pub(crate) use typed::Typed;

use crate::{
    cast::decimal_from_text,
    functions::Body,
    syntax::{Kind, Node, Problem},
    zone::Zone,
};

/// What functions need to know while they are compiled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context {
    /// Zone of local date-times.
    pub zone: Zone,
}

/// Compiles expressions over one table.
pub(crate) struct Compiler<'a> {
    pub scope: &'a Scope,
    pub context: Context,
}

impl Compiler<'_> {
    /// Compiles an expression.
    ///
    /// # Errors
    /// The first problem, with its place.
    pub fn compile(&self, node: &Node) -> Result<Typed, Problem> {
        let at = node.at;
        let put = |text: String| Problem::new(at, text);
        let zone = self.context.zone;
        match &node.kind {
            Kind::Null => Ok(Typed::untyped_null()),
            Kind::Boolean(value) => {
                Ok(Typed::constant(ScalarValue::Boolean(Some(*value)), LogicalType::Boolean))
            }
            Kind::Number(digits) => number(digits).map_err(put),
            Kind::Text(text) => Ok(Typed::text(text)),
            Kind::Bytes(bytes) => {
                Ok(Typed::constant(ScalarValue::Binary(Some(bytes.clone())), LogicalType::Bytes))
            }
            Kind::Column(name) => self.scope.resolve(name).map_err(put),
            Kind::Call { function, unit, arguments } => {
                let arguments = self.all(arguments)?;
                match (function.body, unit) {
                    (Body::Plain(build), None) => build(&self.context, arguments),
                    (Body::Unit(build), Some(unit)) => build(&self.context, *unit, arguments),
                    _ => Err("the unit of time is missing".into()),
                }
                .map_err(|text| put(format!("{}: {text}", function.name)))
            }
            Kind::Arithmetic { operator, left, right } => {
                let (left, right) = (self.compile(left)?, self.compile(right)?);
                arithmetic::arithmetic(*operator, left, right, zone).map_err(put)
            }
            Kind::Cast { operand, target, mode } => {
                let operand = self.compile(operand)?;
                coerce::convert(operand, target, *mode, zone).map_err(put)
            }
            _ => self.condition(node),
        }
    }

    fn all(&self, nodes: &[Node]) -> Result<Vec<Typed>, Problem> {
        nodes.iter().map(|n| self.compile(n)).collect()
    }
}

/// A number constant: INT or BIGINT by size, an exact decimal with a point or when longer, DOUBLE with an exponent.
fn number(digits: &str) -> Result<Typed, String> {
    if let Ok(value) = digits.parse::<i32>() {
        return Ok(Typed::constant(ScalarValue::Int32(Some(value)), LogicalType::Int32));
    }
    if let Ok(value) = digits.parse::<i64>() {
        return Ok(Typed::constant(ScalarValue::Int64(Some(value)), LogicalType::Int64));
    }
    if digits.contains(['e', 'E']) {
        return match digits.parse::<f64>() {
            Ok(value) if value.is_finite() => {
                Ok(Typed::constant(ScalarValue::Float64(Some(value)), LogicalType::Float64))
            }
            _ => Err(format!("`{digits}` is not a number")),
        };
    }
    let (whole, fraction) = digits.trim_start_matches('-').split_once('.').unwrap_or((digits, ""));
    let whole = whole.trim_start_matches(['-', '0']);
    let (precision, scale) = ((whole.len() + fraction.len()).max(1), fraction.len());
    let too_long = || format!("`{digits}` has more than 76 digits");
    let (Ok(precision @ 1..=76), Ok(scale)) = (u8::try_from(precision), u8::try_from(scale)) else {
        return Err(too_long());
    };
    let value = decimal_from_text(digits, precision, scale).ok_or_else(too_long)?;
    let signed_scale = i8::try_from(scale).map_err(|_| too_long())?;
    let scalar = match value.to_i128() {
        Some(value) if precision <= 38 => ScalarValue::Decimal128(Some(value), precision, signed_scale),
        _ => ScalarValue::Decimal256(Some(value), precision, signed_scale),
    };
    Ok(Typed::constant(scalar, LogicalType::Decimal { precision, scale }))
}
