//! Owns [`Transforms`]: the rules of a pipeline, parsed once, and their planning for one table.

use std::{collections::HashMap, sync::Arc};

use canalis_batch::arrow_type;
use canalis_types::{Code, Error, LogicalType, Result, TableSchema};

use crate::{
    RouteRule, TransformOptions, TransformRule,
    apply::{OutputSource, Work},
    compile::{Compiler, Context, Scope, Typed, coerce::as_condition},
    evaluate::Prepared,
    layout::{self, Content, OutputColumn},
    route,
    syntax::{At, Item, Node, Problem, parse_filter, parse_projection},
    table::TableTransform,
    zone::Zone,
};

/// All transforms and routes of a pipeline.
pub struct Transforms {
    rules: Vec<Rule>,
    routes: Vec<RouteRule>,
    options: TransformOptions,
    zone: Zone,
}

/// A rule with its texts parsed.
struct Rule {
    stated: TransformRule,
    projection: Option<Vec<Item>>,
    filter: Option<Node>,
}

impl Transforms {
    /// Parses the rules.
    ///
    /// # Errors
    /// `CNL-1005` for a text that does not parse, an unknown function, time zone or route group.
    pub fn new(rules: Vec<TransformRule>, routes: Vec<RouteRule>, options: TransformOptions) -> Result<Self> {
        let zone = match &options.time_zone {
            None => Zone::utc(),
            Some(text) => Zone::parse(text)
                .map_err(|why| Error::new(Code::ExpressionInvalid, format!("time zone: {why}")))?,
        };
        route::check(&routes)?;
        let mut parsed = Vec::with_capacity(rules.len());
        for rule in rules {
            let invalid = |part: &str, problem: Problem| {
                let tables = rule.source_table.text();
                Error::new(Code::ExpressionInvalid, format!("transform of `{tables}`: {part}: {problem}"))
            };
            let projection = rule.projection.as_deref().map(parse_projection).transpose();
            let filter = rule.filter.as_deref().map(parse_filter).transpose();
            parsed.push(Rule {
                projection: projection.map_err(|p| invalid("projection", p))?,
                filter: filter.map_err(|p| invalid("filter", p))?,
                stated: rule,
            });
        }
        Ok(Self { rules: parsed, routes, options, zone })
    }

    /// Plans one source table. Called once per schema, again after a schema change.
    ///
    /// # Errors
    /// `CNL-1005` when an expression, key or route does not fit the table.
    pub fn plan(&self, schema: &Arc<TableSchema>) -> Result<TableTransform> {
        let rule = self.rules.iter().find(|r| r.stated.source_table.matches(&schema.id));
        let invalid = |why: String| {
            Error::new(Code::ExpressionInvalid, format!("transform of table {}: {why}", schema.id))
        };
        let targets = route::targets(&self.routes, self.options.route_mode, &schema.id)?;
        let scope = Scope::new(schema.clone(), &self.options.metadata);
        let compiler = Compiler { scope: &scope, context: Context { zone: self.zone } };
        let columns = match rule.and_then(|r| r.projection.as_ref()) {
            Some(items) => {
                project(items, schema, &compiler).map_err(|p| invalid(format!("projection: {p}")))?
            }
            None => every_column(schema),
        };
        let layout = layout::derive(schema, &columns, rule.map(|r| &r.stated)).map_err(invalid)?;
        let filter = match rule.and_then(|r| r.filter.as_ref()) {
            Some(node) => {
                let computed = columns.iter().filter_map(|c| match &c.content {
                    Content::Computed(typed) => Some((c.name.clone(), typed.clone())),
                    // A renamed column can be tested under its new name.
                    Content::Pass(index) => {
                        let original = &schema.columns[*index].name;
                        (*original != c.name)
                            .then(|| Some((c.name.clone(), scope.resolve(original).ok()?)))
                            .flatten()
                    }
                });
                let computed: HashMap<String, Typed> = computed.collect();
                let scope = Scope::new(schema.clone(), &self.options.metadata).with_computed(computed);
                let compiler = Compiler { scope: &scope, context: Context { zone: self.zone } };
                let condition = compiler
                    .compile(node)
                    .and_then(|t| as_condition(t, self.zone).map_err(|text| Problem::new(node.at, text)))
                    .map_err(|p| invalid(format!("filter: {p}")))?;
                let ty = arrow_type(&LogicalType::Boolean);
                Some(Prepared::new("filter".into(), condition.expr, ty))
            }
            None => None,
        };
        let outputs: Vec<Arc<TableSchema>> =
            targets.into_iter().map(|id| Arc::new(TableSchema { id, ..layout.schema.clone() })).collect();
        let sources = columns.into_iter().map(|c| match c.content {
            Content::Pass(index) => OutputSource::Pass(index),
            Content::Computed(typed) => {
                let ty = arrow_type(&typed.ty);
                OutputSource::Computed(Prepared::new(format!("column `{}`", c.name), typed.expr, ty))
            }
        });
        let soft_delete = rule.is_some_and(|r| r.stated.soft_delete);
        let work = Work::new(schema, &layout.schema, sources.collect(), filter, layout.not_null, soft_delete);
        Ok(TableTransform::new(schema.clone(), outputs, work))
    }
}

fn every_column(schema: &TableSchema) -> Vec<OutputColumn> {
    let columns = schema.columns.iter().enumerate();
    columns.map(|(index, c)| OutputColumn { name: c.name.clone(), content: Content::Pass(index) }).collect()
}

/// The columns of a projection; a later definition of a name takes the place of the earlier one.
fn project(
    items: &[Item],
    schema: &TableSchema,
    compiler: &Compiler<'_>,
) -> Result<Vec<OutputColumn>, Problem> {
    let mut columns: Vec<OutputColumn> = Vec::new();
    let mut put = |column: OutputColumn| match columns.iter_mut().find(|c| c.name == column.name) {
        Some(earlier) => *earlier = column,
        None => columns.push(column),
    };
    for item in items {
        match item {
            Item::Star => every_column(schema).into_iter().for_each(&mut put),
            Item::Column { name, alias, at } => {
                if let Some(alias) = alias {
                    refuse_metadata(compiler, alias, *at)?;
                }
                let output = alias.clone().unwrap_or_else(|| name.clone());
                let content = match schema.column_index(name) {
                    Some(index) => Content::Pass(index),
                    None => Content::Computed(
                        compiler.scope.resolve(name).map_err(|text| Problem::new(*at, text))?,
                    ),
                };
                put(OutputColumn { name: output, content });
            }
            Item::Computed { node, alias, at } => {
                refuse_metadata(compiler, alias, *at)?;
                let typed = compiler.compile(node)?;
                if typed.untyped {
                    return Err(Problem::new(node.at, "NULL has no type here; write CAST(NULL AS type)"));
                }
                put(OutputColumn { name: alias.clone(), content: Content::Computed(typed) });
            }
        }
    }
    Ok(columns)
}

fn refuse_metadata(compiler: &Compiler<'_>, alias: &str, at: At) -> Result<(), Problem> {
    if compiler.scope.is_metadata(alias) {
        let text = format!("`{alias}` is the name of a metadata column and cannot be given away");
        return Err(Problem::new(at, text));
    }
    Ok(())
}
