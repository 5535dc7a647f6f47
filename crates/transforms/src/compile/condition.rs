//! Owns comparisons, logic, membership, patterns and CASE, all by standard three-valued logic.

use std::sync::Arc;

use arrow_array::{ArrayRef, builder::StringBuilder, cast::AsArray};
use canalis_types::LogicalType;
use datafusion_expr::Operator;
use datafusion_physical_expr::{
    PhysicalExpr,
    expressions::{BinaryExpr, CaseExpr, IsNotNullExpr, IsNullExpr, LikeExpr, NotExpr, in_list},
};

use super::{
    Compiler,
    coerce::{as_condition, as_text, unify, unify_pair},
    typed::{Typed, call},
    types::Family,
};
use crate::{
    call::{Argument, Volatility, refuse},
    syntax::{Kind, Node, Problem},
    zone::Zone,
};

impl Compiler<'_> {
    pub(super) fn condition(&self, node: &Node) -> Result<Typed, Problem> {
        let put = |text: String| Problem::new(node.at, text);
        let zone = self.context.zone;
        match &node.kind {
            Kind::Compare { operator, left, right } => {
                compare(*operator, self.compile(left)?, self.compile(right)?, zone).map_err(put)
            }
            Kind::All(operands) => self.logic(Operator::And, operands),
            Kind::Any(operands) => self.logic(Operator::Or, operands),
            Kind::Not(operand) => not(self.test(operand)?).map_err(put),
            Kind::IsNull { operand, negated } => {
                let operand = self.compile(operand)?;
                let expr: Arc<dyn PhysicalExpr> = if *negated {
                    Arc::new(IsNotNullExpr::new(operand.expr.clone()))
                } else {
                    Arc::new(IsNullExpr::new(operand.expr.clone()))
                };
                boolean(expr, &[&operand]).map_err(put)
            }
            Kind::Between { operand, low, high, negated } => {
                let value = self.compile(operand)?;
                let low = compare(Operator::GtEq, value.clone(), self.compile(low)?, zone).map_err(put)?;
                let high = compare(Operator::LtEq, value, self.compile(high)?, zone).map_err(put)?;
                let both = binary(Operator::And, &low, &high).map_err(put)?;
                if *negated { not(both).map_err(put) } else { Ok(both) }
            }
            Kind::In { operand, list, negated } => {
                let mut values = vec![self.compile(operand)?];
                values.extend(self.all(list)?);
                self.member(values, *negated).map_err(put)
            }
            Kind::Like { operand, pattern, escape, negated } => {
                let value = as_text(self.compile(operand)?, zone).map_err(put)?;
                let pattern = self.compile(pattern)?;
                self.like(value, pattern, *escape, *negated).map_err(put)
            }
            Kind::Case { operand, branches, otherwise } => {
                let operand = operand.as_ref().map(|o| self.compile(o)).transpose()?;
                let (mut whens, mut results) = (Vec::new(), Vec::new());
                for (when, then) in branches {
                    whens.push(match &operand {
                        None => self.test(when)?,
                        Some(value) => compare(Operator::Eq, value.clone(), self.compile(when)?, zone)
                            .map_err(|text| Problem::new(when.at, text))?,
                    });
                    results.push(self.compile(then)?);
                }
                let otherwise = otherwise.as_ref().map(|o| self.compile(o)).transpose()?;
                case(whens, results, otherwise, zone).map_err(put)
            }
            _ => Err(put("the expression is not a condition".into())),
        }
    }

    /// Compiles an operand of AND, OR, NOT and WHEN.
    fn test(&self, node: &Node) -> Result<Typed, Problem> {
        let typed = self.compile(node)?;
        as_condition(typed, self.context.zone).map_err(|text| Problem::new(node.at, text))
    }

    /// A balanced tree, so that long chains do not nest deeply; the order of evaluation stays from left to right.
    fn logic(&self, operator: Operator, operands: &[Node]) -> Result<Typed, Problem> {
        match operands {
            [one] => self.test(one),
            many => {
                let (left, right) = many.split_at(many.len() / 2);
                let (first, left, right) =
                    (many[0].at, self.logic(operator, left)?, self.logic(operator, right)?);
                binary(operator, &left, &right).map_err(|text| Problem::new(first, text))
            }
        }
    }

    fn member(&self, values: Vec<Typed>, negated: bool) -> Result<Typed, String> {
        let (mut values, _) = unify(values, self.context.zone)?;
        let value = values.remove(0);
        let list: Vec<_> = values.iter().map(|v| v.expr.clone()).collect();
        let expr =
            in_list(value.expr.clone(), list, &negated, self.scope.schema()).map_err(|e| e.to_string())?;
        let mut parts: Vec<&Typed> = values.iter().collect();
        parts.push(&value);
        boolean(expr, &parts)
    }

    fn like(
        &self,
        value: Typed,
        pattern: Typed,
        escape: Option<char>,
        negated: bool,
    ) -> Result<Typed, String> {
        let pattern = as_text(pattern, self.context.zone)?;
        if pattern.family() != Family::Text {
            return Err("a LIKE pattern is a text".into());
        }
        let kernel = Arc::new(move |arguments: &[Argument], _: usize| {
            let mut out = StringBuilder::new();
            for text in arguments[0].array.as_string::<i32>() {
                match text {
                    None => out.append_null(),
                    Some(text) => {
                        out.append_value(with_backslashes(text, escape).map_err(refuse)?);
                    }
                }
            }
            Ok(Arc::new(out.finish()) as ArrayRef)
        });
        let pattern = call("LIKE pattern", &[pattern], LogicalType::Text, Volatility::Pure, kernel)?;
        let expr = Arc::new(LikeExpr::new(negated, false, value.expr.clone(), pattern.expr.clone()));
        boolean(expr, &[&value, &pattern])
    }
}

/// A comparison after both sides have got one type.
///
/// # Errors
/// The sides have no common type.
pub(crate) fn compare(operator: Operator, left: Typed, right: Typed, zone: Zone) -> Result<Typed, String> {
    let (left, right) = unify_pair(left, right, zone)?;
    binary(operator, &left, &right)
}

/// CASE with conditions; without ELSE it ends in NULL.
///
/// # Errors
/// The results have no common type.
pub(crate) fn case(
    whens: Vec<Typed>,
    mut results: Vec<Typed>,
    otherwise: Option<Typed>,
    zone: Zone,
) -> Result<Typed, String> {
    let has_else = otherwise.is_some();
    results.extend(otherwise);
    let (mut results, ty) = unify(results, zone)?;
    let otherwise = if has_else { results.pop() } else { None };
    let parts: Vec<Typed> = whens.iter().chain(&results).chain(&otherwise).cloned().collect();
    let pairs = whens.into_iter().zip(results).map(|(when, then)| (when.expr, then.expr)).collect();
    let expr = CaseExpr::try_new(None, pairs, otherwise.map(|o| o.expr)).map_err(|e| e.to_string())?;
    let typed = Typed::new(Arc::new(expr), ty);
    if parts.iter().all(|p| p.value.is_some()) { typed.folded() } else { Ok(typed) }
}

/// `IS NOT NULL`.
///
/// # Errors
/// Never for a valid expression.
pub(crate) fn is_not_null(operand: &Typed) -> Result<Typed, String> {
    boolean(Arc::new(IsNotNullExpr::new(operand.expr.clone())), &[operand])
}

fn not(operand: Typed) -> Result<Typed, String> {
    boolean(Arc::new(NotExpr::new(operand.expr.clone())), &[&operand])
}

fn binary(operator: Operator, left: &Typed, right: &Typed) -> Result<Typed, String> {
    boolean(Arc::new(BinaryExpr::new(left.expr.clone(), operator, right.expr.clone())), &[left, right])
}

/// A condition; computed at once when all parts are constants.
fn boolean(expr: Arc<dyn PhysicalExpr>, parts: &[&Typed]) -> Result<Typed, String> {
    let typed = Typed::new(expr, LogicalType::Boolean);
    if parts.iter().all(|p| p.value.is_some()) { typed.folded() } else { Ok(typed) }
}

/// The kernel's escape is the backslash; in standard SQL there is none unless ESCAPE names one.
fn with_backslashes(pattern: &str, escape: Option<char>) -> Result<String, String> {
    let mut out = String::with_capacity(pattern.len() + 4);
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if Some(c) == escape {
            let next = chars.next().filter(|n| matches!(n, '%' | '_') || Some(*n) == escape);
            let next = next.ok_or("in a LIKE pattern the escape character stands before %, _ or itself")?;
            if matches!(next, '%' | '_' | '\\') {
                out.push('\\');
            }
            out.push(next);
        } else if c == '\\' {
            out.push_str("\\\\");
        } else {
            out.push(c);
        }
    }
    Ok(out)
}
