//! Owns licence expressions (SPDX): which of them can be satisfied with a given set of licences.

/// Whether a choice of `allowed` licences satisfies the expression; `Err` says where it cannot be understood.
///
/// `AND` binds closer than `OR`; the old `/` means `OR`. An exception (`WITH`) only adds permissions.
pub fn is_satisfied(expression: &str, allowed: &[&str]) -> Result<bool, String> {
    let tokens = tokens(expression);
    let mut parser = Parser { tokens: &tokens, at: 0, allowed };
    let value = parser.alternatives()?;
    match parser.peek() {
        None => Ok(value),
        Some(token) => Err(format!("unexpected `{token}` in `{expression}`")),
    }
}

fn tokens(expression: &str) -> Vec<String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    spaced.split_whitespace().map(str::to_owned).collect()
}

struct Parser<'a> {
    tokens: &'a [String],
    at: usize,
    allowed: &'a [&'a str],
}

impl Parser<'_> {
    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.at).map(String::as_str)
    }

    fn accept(&mut self, token: &str) -> bool {
        let there = self.peek() == Some(token);
        self.at += usize::from(there);
        there
    }

    fn alternatives(&mut self) -> Result<bool, String> {
        let mut value = self.all()?;
        while self.accept("OR") {
            value |= self.all()?;
        }
        Ok(value)
    }

    fn all(&mut self) -> Result<bool, String> {
        let mut value = self.one()?;
        while self.accept("AND") {
            value &= self.one()?;
        }
        Ok(value)
    }

    fn one(&mut self) -> Result<bool, String> {
        if self.accept("(") {
            let value = self.alternatives()?;
            return if self.accept(")") { Ok(value) } else { Err("a `)` is missing".to_owned()) };
        }
        let license = match self.peek() {
            Some("OR" | "AND" | "WITH" | ")") | None => return Err("a licence is missing".to_owned()),
            Some(license) => license.to_owned(),
        };
        self.at += 1;
        if self.accept("WITH") {
            self.at += 1;
        }
        Ok(self.allowed.contains(&license.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_decided() {
        for (expression, expected) in [
            ("MIT", Ok(true)),
            ("GPL-3.0-only", Ok(false)),
            ("MIT OR GPL-3.0-only", Ok(true)),
            ("MIT AND GPL-3.0-only", Ok(false)),
            ("GPL-3.0-only OR MIT AND ISC", Ok(true)),
            ("(MIT OR GPL-3.0-only) AND GPL-3.0-only", Ok(false)),
            ("MIT/Apache-2.0", Ok(true)),
            ("Apache-2.0 WITH LLVM-exception", Ok(true)),
            ("(MIT", Err(())),
            ("MIT OR", Err(())),
            ("MIT ISC", Err(())),
            ("", Err(())),
        ] {
            let decided = is_satisfied(expression, &["MIT", "ISC", "Apache-2.0"]).map_err(drop);
            assert_eq!(decided, expected, "{expression}");
        }
    }
}
