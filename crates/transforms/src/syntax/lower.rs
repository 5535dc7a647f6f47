//! Owns the step from the parser's tree to [`Node`]: many spellings become few forms, and what is not usable in a
//! pipeline (subqueries, aggregates, windows, …) is refused with its place.

mod special;

use datafusion_expr::Operator;
use sqlparser::ast::{BinaryOperator, CastKind, Expr, UnaryOperator, Value};

use super::{At, Kind, Mode, Node, Problem, Unit, place, target::target};
use crate::functions;

/// Levels of nesting that are followed; a chain of AND, OR or `||` is one level.
const DEEPEST: usize = 80;

pub(super) fn lower(expr: &Expr) -> Result<Node, Problem> {
    Lowering { depth: 0 }.node(expr)
}

struct Lowering {
    depth: usize,
}

impl Lowering {
    fn node(&mut self, expr: &Expr) -> Result<Node, Problem> {
        let at = place(expr);
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Problem::new(
                at,
                format!("the expression is nested more than {DEEPEST} levels deep"),
            ));
        }
        let kind = self.kind(expr, at)?;
        self.depth -= 1;
        Ok(Node { kind, at })
    }

    fn boxed(&mut self, expr: &Expr) -> Result<Box<Node>, Problem> {
        self.node(expr).map(Box::new)
    }

    fn nodes<'a>(&mut self, list: impl IntoIterator<Item = &'a Expr>) -> Result<Vec<Node>, Problem> {
        list.into_iter().map(|e| self.node(e)).collect()
    }

    fn kind(&mut self, expr: &Expr, at: At) -> Result<Kind, Problem> {
        let at_place = |text: String| Problem::new(at, text);
        match expr {
            Expr::Nested(inner) => Ok(self.node(inner)?.kind),
            Expr::Identifier(name) => Ok(Kind::Column(name.value.clone())),
            Expr::CompoundIdentifier(parts) => {
                let name = parts.last().map(|p| p.value.as_str()).unwrap_or_default();
                Err(at_place(format!("a column has no qualifier here; write it alone: `{name}`")))
            }
            Expr::Value(value) => literal(&value.value).map_err(at_place),
            Expr::TypedString(typed) => {
                let target = target(&typed.data_type).map_err(at_place)?;
                let operand = Box::new(Node { kind: literal(&typed.value.value).map_err(at_place)?, at });
                Ok(Kind::Cast { operand, target, mode: Mode::Strict })
            }
            Expr::UnaryOp { op, expr: inner } => self.unary(*op, inner, at),
            Expr::BinaryOp { left, op, right } => self.binary(expr, left, op, right, at),
            Expr::IsNull(x) | Expr::IsUnknown(x) => {
                Ok(Kind::IsNull { operand: self.boxed(x)?, negated: false })
            }
            Expr::IsNotNull(x) | Expr::IsNotUnknown(x) => {
                Ok(Kind::IsNull { operand: self.boxed(x)?, negated: true })
            }
            Expr::IsTrue(x) => self.is(x, true, Operator::IsNotDistinctFrom),
            Expr::IsNotTrue(x) => self.is(x, true, Operator::IsDistinctFrom),
            Expr::IsFalse(x) => self.is(x, false, Operator::IsNotDistinctFrom),
            Expr::IsNotFalse(x) => self.is(x, false, Operator::IsDistinctFrom),
            Expr::IsDistinctFrom(l, r) => self.compare(l, Operator::IsDistinctFrom, r),
            Expr::IsNotDistinctFrom(l, r) => self.compare(l, Operator::IsNotDistinctFrom, r),
            Expr::InList { expr, list, negated } => {
                Ok(Kind::In { operand: self.boxed(expr)?, list: self.nodes(list)?, negated: *negated })
            }
            Expr::Between { expr, negated, low, high } => Ok(Kind::Between {
                operand: self.boxed(expr)?,
                low: self.boxed(low)?,
                high: self.boxed(high)?,
                negated: *negated,
            }),
            Expr::Like { negated, any: false, expr, pattern, escape_char } => Ok(Kind::Like {
                operand: self.boxed(expr)?,
                pattern: self.boxed(pattern)?,
                escape: escape_char.as_ref().map(escape).transpose().map_err(at_place)?,
                negated: *negated,
            }),
            Expr::Case { operand, conditions, else_result, .. } => {
                let mut branches = Vec::with_capacity(conditions.len());
                for when in conditions {
                    branches.push((self.node(&when.condition)?, self.node(&when.result)?));
                }
                Ok(Kind::Case {
                    operand: operand.as_ref().map(|o| self.boxed(o)).transpose()?,
                    branches,
                    otherwise: else_result.as_ref().map(|e| self.boxed(e)).transpose()?,
                })
            }
            Expr::Cast { kind, expr, data_type, array: false, format: None } => {
                let mode = match kind {
                    CastKind::Cast => Mode::Strict,
                    CastKind::TryCast => Mode::Try,
                    CastKind::SafeCast | CastKind::DoubleColon => {
                        return Err(at_place("write CAST(… AS type) or TRY_CAST(… AS type)".into()));
                    }
                };
                let target = target(data_type).map_err(at_place)?;
                Ok(Kind::Cast { operand: self.boxed(expr)?, target, mode })
            }
            other => self.special(other, at),
        }
    }

    fn unary(&mut self, op: UnaryOperator, inner: &Expr, at: At) -> Result<Kind, Problem> {
        match op {
            UnaryOperator::Not => Ok(Kind::Not(self.boxed(inner)?)),
            UnaryOperator::Plus => Ok(self.node(inner)?.kind),
            UnaryOperator::Minus => {
                let operand = self.node(inner)?;
                Ok(match operand.kind {
                    Kind::Number(digits) if !digits.starts_with('-') => Kind::Number(format!("-{digits}")),
                    kind => negate(Node { kind, at: operand.at }),
                })
            }
            UnaryOperator::BitwiseNot => special::call("BITNOT", None, vec![self.node(inner)?], at),
            _ => Err(Problem::new(at, format!("operator `{op}` is not known"))),
        }
    }

    fn is(&mut self, x: &Expr, value: bool, operator: Operator) -> Result<Kind, Problem> {
        let left = self.boxed(x)?;
        let right = Box::new(Node { kind: Kind::Boolean(value), at: left.at });
        Ok(Kind::Compare { operator, left, right })
    }

    fn compare(&mut self, left: &Expr, operator: Operator, right: &Expr) -> Result<Kind, Problem> {
        Ok(Kind::Compare { operator, left: self.boxed(left)?, right: self.boxed(right)? })
    }

    fn binary(
        &mut self,
        whole: &Expr,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
        at: At,
    ) -> Result<Kind, Problem> {
        let operator = match op {
            BinaryOperator::And => return Ok(Kind::All(self.nodes(chain(whole, op))?)),
            BinaryOperator::Or => return Ok(Kind::Any(self.nodes(chain(whole, op))?)),
            BinaryOperator::StringConcat => {
                let arguments = self.nodes(chain(whole, op))?;
                return special::call("CONCAT", None, arguments, at);
            }
            BinaryOperator::Eq => Operator::Eq,
            BinaryOperator::NotEq => Operator::NotEq,
            BinaryOperator::Lt => Operator::Lt,
            BinaryOperator::LtEq => Operator::LtEq,
            BinaryOperator::Gt => Operator::Gt,
            BinaryOperator::GtEq => Operator::GtEq,
            BinaryOperator::Plus => Operator::Plus,
            BinaryOperator::Minus => Operator::Minus,
            BinaryOperator::Multiply => Operator::Multiply,
            BinaryOperator::Divide => Operator::Divide,
            BinaryOperator::Modulo => Operator::Modulo,
            other => {
                let name = match other {
                    BinaryOperator::BitwiseAnd => "BITAND",
                    BinaryOperator::BitwiseOr => "BITOR",
                    BinaryOperator::BitwiseXor => "BITXOR",
                    BinaryOperator::PGBitwiseShiftLeft => "SHIFTLEFT",
                    BinaryOperator::PGBitwiseShiftRight => "SHIFTRIGHT",
                    _ => return Err(Problem::new(at, format!("operator `{other}` is not known"))),
                };
                return special::call(name, None, self.nodes([left, right])?, at);
            }
        };
        if matches!(operator, Operator::Plus | Operator::Minus) {
            if let Some(kind) = self.with_interval(left, &operator, right, at)? {
                return Ok(kind);
            }
            return Ok(Kind::Arithmetic { operator, left: self.boxed(left)?, right: self.boxed(right)? });
        }
        if matches!(operator, Operator::Multiply | Operator::Divide | Operator::Modulo) {
            return Ok(Kind::Arithmetic { operator, left: self.boxed(left)?, right: self.boxed(right)? });
        }
        self.compare(left, operator, right)
    }
}

/// The operands of a chain such as `a AND b AND c`, which the parser nests to the left, in order.
fn chain<'a>(whole: &'a Expr, wanted: &BinaryOperator) -> Vec<&'a Expr> {
    let mut operands = Vec::new();
    let mut rest = whole;
    while let Expr::BinaryOp { left, op, right } = rest {
        if op != wanted {
            break;
        }
        operands.push(&**right);
        rest = left;
    }
    operands.push(rest);
    operands.reverse();
    operands
}

/// `-x` is `0 - x`.
fn negate(operand: Node) -> Kind {
    let zero = Box::new(Node { kind: Kind::Number("0".into()), at: operand.at });
    Kind::Arithmetic { operator: Operator::Minus, left: zero, right: Box::new(operand) }
}

fn literal(value: &Value) -> Result<Kind, String> {
    Ok(match value {
        Value::Number(digits, false) => Kind::Number(digits.to_string()),
        Value::SingleQuotedString(text) | Value::NationalStringLiteral(text) => Kind::Text(text.clone()),
        Value::HexStringLiteral(digits) => Kind::Bytes(
            functions::bytes_of_hex(digits)
                .ok_or("a hexadecimal literal needs an even number of digits 0–9, a–f")?,
        ),
        Value::Boolean(value) => Kind::Boolean(*value),
        Value::Null => Kind::Null,
        Value::DoubleQuotedString(text) => {
            return Err(format!("\"{text}\" is neither: write 'text' or `column`"));
        }
        other => return Err(format!("literal `{other}` is not known")),
    })
}

fn escape(value: &Value) -> Result<char, String> {
    if let Value::SingleQuotedString(text) = value {
        let mut chars = text.chars();
        if let (Some(one), None) = (chars.next(), chars.next()) {
            return Ok(one);
        }
    }
    Err("ESCAPE takes exactly one character in quotes".into())
}

fn unknown_unit(word: &str, at: At) -> Problem {
    Problem::new(
        at,
        format!(
            "`{word}` is not a unit of time; known are SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, QUARTER, YEAR and, to \
             extract, DOW, DOY and EPOCH"
        ),
    )
}

/// The unit of a word in the place of an argument.
fn unit_of(expr: &Expr, at: At) -> Result<Unit, Problem> {
    let word = if let Expr::Identifier(name) = expr { name.value.as_str() } else { "…" };
    Unit::parse(word).ok_or_else(|| unknown_unit(word, at))
}
