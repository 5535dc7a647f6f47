//! Owns [`Parser`], a reader over the tokens of one statement.

use canalis_types::TableId;

use super::{
    StatementContext,
    token::{Kind, Token, tokens},
};

/// What a parser function gives, or why the statement is not understood.
pub type Parsed<T> = Result<T, String>;

/// Reads tokens from the front.
#[derive(Debug)]
pub struct Parser<'a> {
    pub context: &'a StatementContext,
    text: &'a str,
    tokens: Vec<Token<'a>>,
    at: usize,
}

impl<'a> Parser<'a> {
    /// A parser at the beginning of `statement`.
    pub fn new(statement: &'a str, context: &'a StatementContext) -> Self {
        Self { context, text: statement, tokens: tokens(statement, context.quoting), at: 0 }
    }

    /// The token `ahead` places after the next one.
    pub fn look(&self, ahead: usize) -> Option<&Token<'a>> {
        self.tokens.get(self.at + ahead)
    }

    /// Whether nothing but a semicolon is left.
    pub fn at_end(&self) -> bool {
        self.look(0).is_none_or(|token| token.is_symbol(';'))
    }

    /// Takes the next token.
    pub fn next(&mut self) -> Option<Token<'a>> {
        let token = self.tokens.get(self.at).cloned();
        self.at += usize::from(token.is_some());
        token
    }

    /// Whether the next token is this word.
    pub fn peek(&self, word: &str) -> bool {
        self.peek_at(0, word)
    }

    /// Whether the token `ahead` places after the next one is this word.
    pub fn peek_at(&self, ahead: usize, word: &str) -> bool {
        self.look(ahead).is_some_and(|token| token.is_word(word))
    }

    /// Whether the next token is this character.
    pub fn peek_symbol(&self, symbol: char) -> bool {
        self.look(0).is_some_and(|token| token.is_symbol(symbol))
    }

    /// Passes over a word if it is next.
    pub fn accept(&mut self, word: &str) -> bool {
        let found = self.peek(word);
        self.at += usize::from(found);
        found
    }

    /// Passes over one of some words if it is next.
    pub fn accept_any(&mut self, words: &[&str]) -> bool {
        words.iter().any(|word| self.accept(word))
    }

    /// Passes over words that stand in this order, or over nothing.
    pub fn accept_all(&mut self, words: &[&str]) -> bool {
        let found = words.iter().enumerate().all(|(ahead, word)| self.peek_at(ahead, word));
        if found {
            self.at += words.len();
        }
        found
    }

    /// Passes over a character if it is next.
    pub fn accept_symbol(&mut self, symbol: char) -> bool {
        let found = self.peek_symbol(symbol);
        self.at += usize::from(found);
        found
    }

    /// A name, quoted or bare.
    pub fn name(&mut self) -> Parsed<String> {
        match self.next() {
            Some(token) if matches!(token.kind, Kind::Word | Kind::Name) => Ok(token.value.into_owned()),
            Some(token) => Err(format!("a name is missing before {:?}", token.value)),
            None => Err("a name is missing at the end".to_owned()),
        }
    }

    /// A table name, completed with the default database.
    pub fn table(&mut self) -> Parsed<TableId> {
        // MySQL's own spelling `.t` for a table of the default database.
        self.accept_symbol('.');
        let first = self.name()?;
        if self.accept_symbol('.') {
            return Ok(TableId::new(first, self.name()?));
        }
        Ok(TableId::new(self.context.default_database.clone(), first))
    }

    /// A text literal, neighbouring ones joined.
    pub fn text(&mut self) -> Parsed<String> {
        let mut value = match self.next() {
            Some(token) if token.kind == Kind::Text => token.value.into_owned(),
            _ => return Err("a text is missing".to_owned()),
        };
        while let Some(token) = self.look(0)
            && token.kind == Kind::Text
        {
            value.push_str(&token.value);
            self.at += 1;
        }
        Ok(value)
    }

    /// Passes over `IF EXISTS`.
    pub fn if_exists(&mut self) -> bool {
        self.accept_all(&["if", "exists"])
    }

    /// Passes over `IF NOT EXISTS`.
    pub fn if_not_exists(&mut self) -> bool {
        self.accept_all(&["if", "not", "exists"])
    }

    /// Passes over a group in parentheses and gives the tokens inside; nothing when none is next.
    pub fn group(&mut self) -> Parsed<Vec<Token<'a>>> {
        let start = self.at;
        if !self.accept_symbol('(') {
            return Err("a parenthesis is missing".to_owned());
        }
        let mut depth = 1usize;
        while depth > 0 {
            let Some(token) = self.next() else { return Err("a parenthesis is not closed".to_owned()) };
            depth += usize::from(token.is_symbol('('));
            depth -= usize::from(token.is_symbol(')'));
        }
        Ok(self.tokens[start + 1..self.at - 1].to_vec())
    }

    /// The statement's text from token index `from` (of [`Parser::mark`]) to the last token taken.
    pub fn text_since(&self, from: usize) -> String {
        if from >= self.at {
            return String::new();
        }
        let (first, last) = (&self.tokens[from], &self.tokens[self.at - 1]);
        self.text[first.start..last.end].to_owned()
    }

    /// Where the parser is, for [`Parser::text_since`].
    pub fn mark(&self) -> usize {
        self.at
    }

    /// Passes over everything up to the next comma outside parentheses, or the closing parenthesis of the list.
    pub fn skip_item(&mut self) {
        let mut depth = 0usize;
        while let Some(token) = self.look(0) {
            if depth == 0 && (token.is_symbol(',') || token.is_symbol(')') || token.is_symbol(';')) {
                return;
            }
            depth += usize::from(token.is_symbol('('));
            depth -= usize::from(token.is_symbol(')'));
            self.at += 1;
        }
    }

    /// Every table name that the rest of the statement up to one of `stops` may mean: each name alone and each
    /// pair joined by a dot.
    pub fn mentioned(&mut self, stops: &[&str]) -> Vec<TableId> {
        let mut tables = Vec::new();
        while let Some(token) = self.look(0) {
            if stops.iter().any(|stop| token.is_word(stop)) {
                break;
            }
            if !matches!(token.kind, Kind::Word | Kind::Name) {
                self.at += 1;
                continue;
            }
            let first = token.value.to_string();
            self.at += 1;
            if self.peek_symbol('.')
                && let Some(second) = self.look(1)
                && matches!(second.kind, Kind::Word | Kind::Name)
            {
                tables.push(TableId::new(first.clone(), second.value.to_string()));
            }
            tables.push(TableId::new(self.context.default_database.clone(), first));
        }
        tables
    }
}
