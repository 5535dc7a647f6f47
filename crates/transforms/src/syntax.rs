//! Owns the way from the text of a projection or filter to [`Node`] trees: everything that can be judged without
//! knowing the table.

mod dialect;
mod lower;
mod node;
mod target;

pub(crate) use node::{At, Item, Kind, Mode, Node, Problem, Unit};

use dialect::PipelineDialect;
use sqlparser::{
    ast::{Expr, SelectItem, SelectItemQualifiedWildcardKind},
    keywords::Keyword,
    parser::{Parser, ParserError},
    tokenizer::{Location, Token, TokenWithSpan, Tokenizer},
};

/// Names that every table offers beside its columns.
pub(crate) const METADATA: [&str; 4] =
    ["__namespace_name__", "__schema_name__", "__table_name__", "__data_event_type__"];

/// Longest text that is looked at, in bytes.
const LONGEST: usize = 256 * 1024;
/// Operators in one text.
const LONGEST_CHAIN: usize = 2_000;
/// Nesting that the parser follows.
const DEEPEST: usize = 60;

/// Checks a projection as far as that is possible without a table: syntax, names of expressions, functions.
///
/// # Errors
/// One message with line and column inside `text`.
pub fn check_projection(text: &str) -> Result<(), String> {
    parse_projection(text).map(|_| ()).map_err(|p| p.to_string())
}

/// Checks a filter as far as that is possible without a table: syntax and functions.
///
/// # Errors
/// One message with line and column inside `text`.
pub fn check_filter(text: &str) -> Result<(), String> {
    parse_filter(text).map(|_| ()).map_err(|p| p.to_string())
}

/// Parses a select list.
pub(crate) fn parse_projection(text: &str) -> Result<Vec<Item>, Problem> {
    let text = plain_stars(text);
    let parsed = parse(&text, |parser| parser.parse_projection())?;
    parsed.into_iter().map(|i| item(i, &text)).collect()
}

/// Parses a boolean expression.
pub(crate) fn parse_filter(text: &str) -> Result<Node, Problem> {
    let expr = parse(text, |parser| parser.parse_expr())?;
    lower::lower(&expr)
}

fn parse<T>(text: &str, read: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>) -> Result<T, Problem> {
    let start = At { line: 1, column: 1 };
    if text.trim().is_empty() {
        return Err(Problem::new(start, "the expression is empty"));
    }
    if text.len() > LONGEST {
        return Err(Problem::new(start, format!("the expression is longer than {LONGEST} bytes")));
    }
    let dialect = PipelineDialect;
    let mut tokens = Tokenizer::new(&dialect, text)
        .tokenize_with_location()
        .map_err(|e| Problem::from_parser(&e.into()))?;
    objects_for_maps(&mut tokens);
    // Chains of operators become deep trees, which the parser's types take apart by recursion.
    if let Some(token) = tokens.iter().filter(|t| chains(&t.token)).nth(LONGEST_CHAIN) {
        let text = format!("more than {LONGEST_CHAIN} operators; use IN (…) or fewer of them");
        return Err(Problem::new(token.span.start.into(), text));
    }
    let mut parser = Parser::new(&dialect).with_recursion_limit(DEEPEST).with_tokens_with_locations(tokens);
    let parsed = read(&mut parser).map_err(|e| Problem::from_parser(&e))?;
    let rest = parser.peek_token();
    if rest.token != Token::EOF {
        let what = match &rest.token {
            Token::SemiColon => "a semicolon ends nothing here; take it away".to_owned(),
            other => format!("`{other}` is not expected here"),
        };
        return Err(Problem::new(rest.span.start.into(), what));
    }
    Ok(parsed)
}

/// Makes `MAP[k, v]` the call `JSON_OBJECT(k, v)`, which the parser understands. A column of that name can be meant by
/// back quotes.
fn objects_for_maps(tokens: &mut [TokenWithSpan]) {
    // Open brackets and parentheses; for the bracket of a map also the place of the word.
    let mut open: Vec<(usize, Option<usize>)> = Vec::new();
    let mut last: Option<usize> = None;
    for at in 0..tokens.len() {
        match &tokens[at].token {
            Token::Whitespace(_) => continue,
            Token::LParen => open.push((at, None)),
            Token::LBracket => open.push((at, last.filter(|&word| is_map(&tokens[word].token)))),
            Token::RParen => drop(open.pop()),
            Token::RBracket => {
                if let Some((start, Some(word))) = open.pop() {
                    tokens[word].token = Token::make_word("JSON_OBJECT", None);
                    tokens[start].token = Token::LParen;
                    tokens[at].token = Token::RParen;
                }
            }
            _ => {}
        }
        last = Some(at);
    }
}

fn is_map(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("MAP"))
}

/// Whether a token joins operands into a chain.
fn chains(token: &Token) -> bool {
    match token {
        Token::Word(word) => matches!(word.keyword, Keyword::AND | Keyword::OR),
        Token::Plus | Token::Minus | Token::Mul | Token::Div | Token::Mod | Token::StringConcat => true,
        _ => false,
    }
}

fn item(item: SelectItem, text: &str) -> Result<Item, Problem> {
    match item {
        SelectItem::Wildcard(options) => {
            let at = At::from(options.wildcard_token.0.span.start);
            let plain = options.opt_exclude.is_none()
                && options.opt_except.is_none()
                && options.opt_replace.is_none()
                && options.opt_rename.is_none()
                && options.opt_ilike.is_none();
            if plain {
                Ok(Item::Star)
            } else {
                Err(Problem::new(at, "`*` takes no additions; list the columns"))
            }
        }
        SelectItem::QualifiedWildcard(kind, options) => {
            let at = At::from(options.wildcard_token.0.span.start);
            let text = match kind {
                SelectItemQualifiedWildcardKind::ObjectName(name) => format!("`{name}.*`"),
                SelectItemQualifiedWildcardKind::Expr(_) => "a `*` of an expression".to_owned(),
            };
            Err(Problem::new(at, format!("{text} is not usable; write `*`")))
        }
        SelectItem::UnnamedExpr(expr) => {
            let node = lower::lower(&expr)?;
            match node.kind {
                Kind::Column(name) => Ok(Item::Column { name, alias: None, at: node.at }),
                _ => Err(Problem::new(
                    node.at,
                    format!(
                        "an expression needs a name; write `… AS name` after it: `{}`",
                        excerpt(text, node.at)
                    ),
                )),
            }
        }
        SelectItem::ExprWithAlias { expr, alias } => {
            let at = At::from(alias.span.start);
            if METADATA.contains(&alias.value.as_str()) {
                return Err(Problem::new(
                    at,
                    format!("`{}` is the name of a metadata column and cannot be given away", alias.value),
                ));
            }
            let node = lower::lower(&expr)?;
            Ok(match node.kind {
                Kind::Column(name) => Item::Column { name, alias: Some(alias.value), at: node.at },
                _ => Item::Computed { node, alias: alias.value, at },
            })
        }
    }
}

/// The beginning of the text at a place.
fn excerpt(text: &str, at: At) -> String {
    let index = |n: u64| usize::try_from(n.saturating_sub(1)).unwrap_or(usize::MAX);
    let rest: String =
        text.lines().nth(index(at.line)).unwrap_or_default().chars().skip(index(at.column)).collect();
    if rest.chars().count() <= 40 { rest } else { rest.chars().take(39).chain("…".chars()).collect() }
}

/// Replaces `\*`, which YAML users write because a plain scalar cannot begin with a star, by a star. The length stays,
/// so that columns in messages are those of the file. Quoted text is left alone.
fn plain_stars(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut quote = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match quote {
            Some(q) if c == q => quote = None,
            None if matches!(c, '\'' | '`' | '"') => quote = Some(c),
            None if c == '\\' && chars.peek() == Some(&'*') => {
                out.push(' ');
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

/// Where an expression begins. Walks along the left edge: the parser's own search would recurse into long chains.
fn place(expr: &Expr) -> At {
    let mut edge = expr;
    let start = loop {
        edge = match edge {
            Expr::Identifier(name) => break name.span.start,
            Expr::CompoundIdentifier(parts) => {
                break parts.first().map(|p| p.span.start).unwrap_or_else(Location::empty);
            }
            Expr::Value(value) => break value.span.start,
            Expr::TypedString(typed) => break typed.value.span.start,
            Expr::Case { case_token, .. } => break case_token.0.span.start,
            Expr::Function(function) => {
                let name = function.name.0.first().and_then(|part| part.as_ident());
                break name.map(|n| n.span.start).unwrap_or_else(Location::empty);
            }
            Expr::Nested(inner)
            | Expr::IsNull(inner)
            | Expr::IsNotNull(inner)
            | Expr::IsUnknown(inner)
            | Expr::IsNotUnknown(inner)
            | Expr::IsTrue(inner)
            | Expr::IsNotTrue(inner)
            | Expr::IsFalse(inner)
            | Expr::IsNotFalse(inner)
            | Expr::IsDistinctFrom(inner, _)
            | Expr::IsNotDistinctFrom(inner, _) => inner,
            Expr::BinaryOp { left: inner, .. }
            | Expr::UnaryOp { expr: inner, .. }
            | Expr::InList { expr: inner, .. }
            | Expr::InSubquery { expr: inner, .. }
            | Expr::Between { expr: inner, .. }
            | Expr::Like { expr: inner, .. }
            | Expr::ILike { expr: inner, .. }
            | Expr::SimilarTo { expr: inner, .. }
            | Expr::RLike { expr: inner, .. }
            | Expr::Cast { expr: inner, .. }
            | Expr::Extract { expr: inner, .. }
            | Expr::Ceil { expr: inner, .. }
            | Expr::Floor { expr: inner, .. }
            | Expr::Position { expr: inner, .. }
            | Expr::Substring { expr: inner, .. }
            | Expr::Overlay { expr: inner, .. }
            | Expr::CompoundFieldAccess { root: inner, .. }
            | Expr::Trim { expr: inner, .. } => inner,
            Expr::Interval(interval) => &interval.value,
            _ => break Location::empty(),
        };
    };
    At::from(start)
}

#[cfg(test)]
mod tests;
