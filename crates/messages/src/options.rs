//! Owns the options that all brokers' connectors read alike: topics, bounds, lost places, partitions.

use std::time::Duration;

use canalis_connector_api::{OptionSpec, Options, Role};
use canalis_types::{Code, Error};
use regex::Regex;

use crate::{FORMAT_OPTIONS, Formats, OnLost, Partitioner, Problem, SinkSettings, SourceSettings, Topics};

/// A connector's own options and those of the formats; `N` is the number of both.
pub const fn with_formats<const N: usize>(own: &[OptionSpec]) -> [OptionSpec; N] {
    assert!(own.len() + FORMAT_OPTIONS.len() == N);
    let mut all = [own[0]; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < own.len() { own[at] } else { FORMAT_OPTIONS[at - own.len()] };
        at += 1;
    }
    all
}

/// The error of a connector whose options do not go together.
pub fn invalid(problems: &[Problem]) -> Error {
    let text: Vec<String> = problems.iter().map(|(key, why)| format!("`{key}`: {why}")).collect();
    Error::new(Code::PipelineInvalid, text.join("; "))
}

/// Which topics are read.
#[derive(Debug, Clone)]
pub enum TopicChoice {
    /// These.
    Names(Vec<String>),
    /// Those whose whole name matches.
    Pattern(Regex),
}

/// Reads validated options and gathers what is wrong with them.
#[derive(Debug)]
pub struct Reading<'a> {
    /// The options.
    pub options: &'a Options,
    /// What is wrong so far.
    pub problems: Vec<Problem>,
}

impl<'a> Reading<'a> {
    /// Begins with no problem.
    pub fn new(options: &'a Options) -> Self {
        Self { options, problems: Vec::new() }
    }

    /// The text of an option in lower case; empty without one.
    pub fn word(&self, key: &str) -> String {
        self.options.text(key).unwrap_or_default().to_ascii_lowercase()
    }

    /// The text of an option; empty without one.
    pub fn text(&self, key: &str) -> String {
        self.options.text(key).unwrap_or_default().to_owned()
    }

    /// Notes a problem.
    pub fn wrong(&mut self, key: &str, why: impl Into<String>) {
        self.problems.push((key.to_owned(), why.into()));
    }

    /// The value, or `None` after noting why there is none.
    pub fn take<T>(&mut self, key: &str, value: Result<T, String>) -> Option<T> {
        value.map_err(|why| self.wrong(key, why)).ok()
    }

    /// `topic` with names joined by `;`, or `topic-pattern`.
    pub fn topics(&mut self) -> Option<TopicChoice> {
        let wrong = match (self.options.text("topic"), self.options.text("topic-pattern")) {
            (Some(names), None) => {
                let names = names.split(';').map(str::trim).filter(|name| !name.is_empty());
                let names: Vec<String> = names.map(str::to_owned).collect();
                if !names.is_empty() {
                    return Some(TopicChoice::Names(names));
                }
                ("topic", "names no topic")
            }
            (None, Some(pattern)) => {
                let regex = Regex::new(&format!("^(?:{pattern})$")).map_err(|error| error.to_string());
                return self.take("topic-pattern", regex).map(TopicChoice::Pattern);
            }
            (Some(_), Some(_)) => ("topic-pattern", "only one of `topic` and `topic-pattern` can be given"),
            (None, None) => ("topic", "one of `topic` and `topic-pattern` must be given"),
        };
        self.wrong(wrong.0, wrong.1);
        None
    }

    fn formats(&mut self, role: Role) -> Option<Formats> {
        Formats::read(self.options, role).map_err(|more| self.problems.extend(more)).ok()
    }

    /// What all sources have; `discovery` is the key of the interval at which new lanes are looked for.
    pub fn source(&mut self, discovery: &str) -> Option<SourceSettings> {
        let formats = self.formats(Role::Source)?;
        Some(SourceSettings {
            formats,
            bounded: self.word("scan.bounded.mode") != "unbounded",
            discovery: self.options.duration(discovery).unwrap_or(Duration::from_secs(30)),
            on_lost: match self.word("scan.position-lost").as_str() {
                "earliest" => OnLost::Earliest,
                "latest" => OnLost::Latest,
                _ => OnLost::Fail,
            },
        })
    }

    /// What all sinks have.
    pub fn sink(&mut self) -> Option<SinkSettings> {
        let rules = self.text("sink.tableId-to-topic.mapping");
        let topics = self.take("sink.tableId-to-topic.mapping", Topics::parse(&rules, self.text("topic")));
        let formats = self.formats(Role::Sink);
        let partitioner = match self.word("partition.strategy").as_str() {
            "by-table" => Partitioner::ByTable,
            "all-to-zero" => Partitioner::AllToZero,
            "round-robin" => Partitioner::RoundRobin,
            _ => Partitioner::ByKey,
        };
        Some(SinkSettings { formats: formats?, topics: topics?, partitioner })
    }

    /// The value, if nothing was wrong.
    ///
    /// # Errors
    /// What was wrong.
    pub fn end<T>(self, value: Option<T>) -> Result<T, Vec<Problem>> {
        match value {
            Some(value) if self.problems.is_empty() => Ok(value),
            _ => Err(self.problems),
        }
    }
}
