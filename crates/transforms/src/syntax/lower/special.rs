//! Owns the functions whose arguments have a grammar of their own, and calls in general.

use datafusion_expr::Operator;
use sqlparser::ast::{
    AccessExpr, CeilFloorKind, DateTimeField, Expr, Function as SqlFunction, FunctionArg, FunctionArgExpr,
    FunctionArguments, Interval, Subscript, TrimWhereField,
};

use super::{At, Kind, Lowering, Node, Problem, Unit, negate, place, unit_of, unknown_unit};
use crate::{
    functions::{self, Function},
    nearest::hint,
};

impl Lowering {
    pub(super) fn special(&mut self, expr: &Expr, at: At) -> Result<Kind, Problem> {
        match expr {
            Expr::Function(function) => self.function(function, at),
            Expr::Extract { field, expr, .. } => {
                let word = field.to_string();
                let unit = Unit::parse(&word).ok_or_else(|| unknown_unit(&word, at))?;
                let argument = self.node(expr)?;
                call("EXTRACT", Some(unit), vec![argument], at)
            }
            Expr::Ceil { expr, field } => self.rounding("CEIL", expr, field, at),
            Expr::Floor { expr, field } => self.rounding("FLOOR", expr, field, at),
            Expr::Position { expr, r#in } => {
                let arguments = self.nodes([&**expr, &**r#in])?;
                call("POSITION", None, arguments, at)
            }
            Expr::Substring { expr, substring_from, substring_for, .. } => {
                let mut arguments = vec![self.node(expr)?];
                match substring_from {
                    Some(from) => arguments.push(self.node(from)?),
                    None => arguments.push(Node { kind: Kind::Number("1".into()), at }),
                }
                if let Some(length) = substring_for {
                    arguments.push(self.node(length)?);
                }
                call("SUBSTR", None, arguments, at)
            }
            Expr::Trim { expr, trim_where, trim_what, trim_characters } => {
                let name = match trim_where {
                    None | Some(TrimWhereField::Both) => "BTRIM",
                    Some(TrimWhereField::Leading) => "LTRIM",
                    Some(TrimWhereField::Trailing) => "RTRIM",
                };
                let mut arguments = vec![self.node(expr)?];
                if let Some(what) = trim_what {
                    arguments.push(self.node(what)?);
                }
                arguments.extend(self.nodes(trim_characters.iter().flatten())?);
                call(name, None, arguments, at)
            }
            Expr::Interval(_) => {
                Err(Problem::new(at, "an INTERVAL can only be added to or subtracted from a date or time"))
            }
            Expr::SimilarTo { negated, expr, pattern, escape_char } => {
                let mut arguments = self.nodes([&**expr, &**pattern])?;
                if let Some(escape) = escape_char {
                    let kind = super::literal(escape).map_err(|text| Problem::new(at, text))?;
                    arguments.push(Node { kind, at });
                }
                negated_if(*negated, call("SIMILAR_TO", None, arguments, at)?, at)
            }
            Expr::RLike { negated, expr, pattern, .. } => {
                let arguments = self.nodes([&**expr, &**pattern])?;
                negated_if(*negated, call("REGEXP_LIKE", None, arguments, at)?, at)
            }
            Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let mut arguments = self.nodes([&**expr, &**overlay_what, &**overlay_from])?;
                if let Some(length) = overlay_for {
                    arguments.push(self.node(length)?);
                }
                call("OVERLAY", None, arguments, at)
            }
            Expr::Array(array) => {
                let arguments = self.nodes(&array.elem)?;
                call("JSON_ARRAY", None, arguments, at)
            }
            Expr::CompoundFieldAccess { root, access_chain } => self.items(root, access_chain, at),
            Expr::ILike { .. } => Err(Problem::new(at, "write UPPER(a) LIKE 'PATTERN' instead of ILIKE")),
            Expr::Subquery(_) | Expr::InSubquery { .. } | Expr::Exists { .. } => {
                Err(Problem::new(at, "subqueries are not usable: an expression sees one row"))
            }
            _ => Err(Problem::new(at, "this form of expression is not supported")),
        }
    }

    /// `x[1]['name']`.
    fn items(&mut self, root: &Expr, chain: &[AccessExpr], at: At) -> Result<Kind, Problem> {
        let mut node = self.node(root)?;
        for access in chain {
            let AccessExpr::Subscript(Subscript::Index { index }) = access else {
                return Err(Problem::new(at, "write x[position] or x['name'] for a part of a value"));
            };
            let key = self.node(index)?;
            node = Node { kind: call("JSON_ITEM", None, vec![node, key], at)?, at };
        }
        Ok(node.kind)
    }

    fn rounding(&mut self, name: &str, expr: &Expr, field: &CeilFloorKind, at: At) -> Result<Kind, Problem> {
        if *field != CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) {
            return Err(Problem::new(at, format!("{name} takes one number")));
        }
        let argument = self.node(expr)?;
        call(name, None, vec![argument], at)
    }

    fn function(&mut self, function: &SqlFunction, at: At) -> Result<Kind, Problem> {
        let name = function.name.to_string();
        let found = find(&name, at)?;
        if function.over.is_some() || function.filter.is_some() || !function.within_group.is_empty() {
            return Err(Problem::new(at, format!("{name}: windows and aggregates are not usable")));
        }
        let list = match &function.args {
            FunctionArguments::None => Vec::new(),
            FunctionArguments::List(list) => {
                if list.duplicate_treatment.is_some() || !list.clauses.is_empty() {
                    return Err(Problem::new(at, format!("{name} takes plain arguments")));
                }
                let mut exprs = Vec::with_capacity(list.args.len());
                for argument in &list.args {
                    let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument else {
                        return Err(Problem::new(at, format!("{name} takes plain arguments")));
                    };
                    exprs.push(expr);
                }
                exprs
            }
            FunctionArguments::Subquery(_) => {
                return Err(Problem::new(at, "subqueries are not usable: an expression sees one row"));
            }
        };
        // DATE_ADD and DATE_SUB also take an interval.
        if let (sign @ ("DATE_ADD" | "DATE_SUB"), [time, Expr::Interval(interval)]) =
            (found.name, list.as_slice())
        {
            let operator = if sign == "DATE_ADD" { Operator::Plus } else { Operator::Minus };
            let time = self.node(time)?;
            return self.step(time, &operator, interval, at);
        }
        if found.takes_unit() {
            let Some((first, rest)) = list.split_first() else { return Err(arity(found, 0, at)) };
            let unit = unit_of(first, place(first))?;
            let arguments = self.nodes(rest.iter().copied())?;
            return checked(found, Some(unit), arguments, at);
        }
        let arguments = self.nodes(list)?;
        checked(found, None, arguments, at)
    }

    /// `t ± INTERVAL …` and `INTERVAL … + t`; `None` when neither side is an interval.
    pub(super) fn with_interval(
        &mut self,
        left: &Expr,
        operator: &Operator,
        right: &Expr,
        at: At,
    ) -> Result<Option<Kind>, Problem> {
        match (left, right) {
            (time, Expr::Interval(interval)) => {
                let time = self.node(time)?;
                self.step(time, operator, interval, at).map(Some)
            }
            (Expr::Interval(interval), time) if *operator == Operator::Plus => {
                let time = self.node(time)?;
                self.step(time, operator, interval, at).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn step(
        &mut self,
        time: Node,
        operator: &Operator,
        interval: &Interval,
        at: At,
    ) -> Result<Kind, Problem> {
        let (Some(field), None) = (&interval.leading_field, &interval.last_field) else {
            return Err(Problem::new(at, "write an interval with one unit: INTERVAL '1' DAY"));
        };
        let word = field.to_string();
        let unit = Unit::parse(&word).ok_or_else(|| unknown_unit(&word, at))?;
        let mut amount = self.node(&interval.value)?;
        if let Kind::Text(digits) = &amount.kind {
            if digits.trim().parse::<i64>().is_err() {
                return Err(Problem::new(amount.at, format!("interval '{digits}' is not a whole number")));
            }
            amount.kind = Kind::Number(digits.trim().to_owned());
        }
        if *operator == Operator::Minus {
            amount = Node { at: amount.at, kind: negate(amount) };
        }
        call("TIMESTAMPADD", Some(unit), vec![amount, time], at)
    }
}

fn negated_if(negated: bool, kind: Kind, at: At) -> Result<Kind, Problem> {
    Ok(if negated { Kind::Not(Box::new(Node { kind, at })) } else { kind })
}

/// A call of a function that is known to exist.
pub(super) fn call(name: &str, unit: Option<Unit>, arguments: Vec<Node>, at: At) -> Result<Kind, Problem> {
    checked(find(name, at)?, unit, arguments, at)
}

fn checked(
    function: &'static Function,
    unit: Option<Unit>,
    arguments: Vec<Node>,
    at: At,
) -> Result<Kind, Problem> {
    if !function.takes(arguments.len()) {
        return Err(arity(function, arguments.len(), at));
    }
    Ok(Kind::Call { function, unit, arguments })
}

fn arity(function: &Function, given: usize, at: At) -> Problem {
    Problem::new(at, format!("{} takes {}, not {given}", function.name, function.arity_text()))
}

fn find(name: &str, at: At) -> Result<&'static Function, Problem> {
    functions::find(name).ok_or_else(|| {
        let hint = hint(name, functions::all().map(|f| f.name));
        Problem::new(at, format!("function `{name}` is not known{hint}"))
    })
}
