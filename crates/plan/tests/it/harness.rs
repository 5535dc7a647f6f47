//! The two questions that the tests ask: what a file means, and what is wrong with it.

use std::io::{Error, ErrorKind};

use canalis_plan::{Problem, SecretSource, ValidatedPlan};

use crate::connectors::registry;

/// Secrets of the tests.
pub struct TestSecrets;

impl SecretSource for TestSecrets {
    fn env(&self, name: &str) -> Option<String> {
        ["DB_PASSWORD", "WAREHOUSE_PASSWORD"].contains(&name).then(|| "s3cret".to_owned())
    }

    fn file(&self, path: &str) -> std::io::Result<String> {
        match path {
            "/run/secrets/db" | "/run/secrets/warehouse" => Ok("from file \n".to_owned()),
            _ => Err(Error::from(ErrorKind::NotFound)),
        }
    }
}

/// A file that is right in everything but what is put into it.
pub fn file(source: &str, sink: &str, rest: &str) -> String {
    format!(
        "source: {{type: mysql, hostname: h, username: u, password: p, tables: a.b{source}}}\n\
         sink: {{type: print{sink}}}\n{rest}"
    )
}

/// Parses with the registry and the secrets of the tests.
pub fn parse(text: &str) -> Result<ValidatedPlan, Vec<Problem>> {
    canalis_plan::parse(text, &registry(), &TestSecrets)
}

/// The plan of a file that must be right.
#[track_caller]
pub fn plan(text: &str) -> ValidatedPlan {
    match parse(text) {
        Ok(plan) => plan,
        Err(problems) => panic!("refused:\n{}\n{text}", shown(&problems)),
    }
}

/// Demands exactly these problems, written `line:column: code message (hint)`, one a line.
#[track_caller]
pub fn check(text: &str, expect: &str) {
    let problems = parse(text).map(|_| ()).expect_err("the file was accepted");
    compare(&problems, expect, text);
}

/// Demands that the file is right and has exactly these warnings.
#[track_caller]
pub fn check_warnings(text: &str, expect: &str) {
    compare(&plan(text).warnings, expect, text);
}

#[track_caller]
fn compare(problems: &[Problem], expect: &str, text: &str) {
    let expect: Vec<&str> = expect.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let found = shown(problems);
    assert_eq!(found, expect.join("\n"), "\n--- found ---\n{found}\n--- in ---\n{text}");
}

fn shown(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}
