//! Owns the tree of a pipeline file: every node with line and column, every scalar as text exactly as written.
//! Numbers are never typed, so `1.10` stays `1.10` and `0123` keeps its zero.

use std::{borrow::Cow, collections::HashMap, rc::Rc};

use canalis_types::Code;
use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, StrInput, Tag};

use crate::problem::{Place, Report};

/// Line and column, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// A node; an alias shares the node of its anchor.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) mark: Mark,
    pub(crate) value: Value,
}

/// What a node holds.
#[derive(Debug)]
pub(crate) enum Value {
    /// No value, `~` or `null` without quotes: the key counts as absent.
    Null,
    /// Any other scalar.
    Scalar(String),
    /// A list.
    Sequence(Vec<Rc<Node>>),
    /// A mapping; keys are unique.
    Mapping(Vec<Entry>),
}

/// A key with its value.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) mark: Mark,
    pub(crate) value: Rc<Node>,
}

impl Value {
    /// What it is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::Null => "nothing",
            Value::Scalar(_) => "a single value",
            Value::Sequence(_) => "a list",
            Value::Mapping(_) => "a mapping",
        }
    }
}

/// Nodes of a file, aliases counted as often as they are used; keeps the work on a hostile file small.
const MOST_NODES: usize = 100_000;
/// Levels of nesting; the grammar needs six.
const DEEPEST: usize = 32;

/// Reads the first document. `None` when the text is not YAML, which is then in the report; duplicate keys and the
/// like are reported too but do not end the reading.
pub(crate) fn read(text: &str, report: &mut Report) -> Option<Rc<Node>> {
    let text = join_surrogates(text);
    let parser = Parser::new_from_str(&text);
    let mut reader = Reader { parser, anchors: HashMap::new(), left: MOST_NODES, report };
    reader.document()
}

struct Reader<'a, 'r> {
    parser: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, (Rc<Node>, usize)>,
    left: usize,
    report: &'r mut Report,
}

impl<'a> Reader<'a, '_> {
    fn document(&mut self) -> Option<Rc<Node>> {
        let top = Place { mark: Mark { line: 1, column: 1 }, path: String::new() };
        let root = loop {
            match self.pull(&top)? {
                (Event::StreamStart | Event::DocumentStart(_) | Event::Nothing, _) => {}
                (Event::StreamEnd, _) => {
                    break Rc::new(Node { mark: top.mark, value: Value::Null });
                }
                (event, mark) => break self.node(event, mark, &top, 0)?,
            }
        };
        // What follows is not read, as in the original; a broken remainder is no reason to refuse the file.
        while let Some(Ok((event, span))) = self.parser.next_event() {
            if let Event::DocumentStart(_) = event {
                let place = Place { mark: mark_of(&span.start), path: String::new() };
                self.report.warn(&place, "only the first YAML document of a file is read; this one is not");
                break;
            }
        }
        Some(root)
    }

    fn pull(&mut self, place: &Place) -> Option<(Event<'a>, Mark)> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Some((event, mark_of(&span.start))),
            Some(Err(error)) => {
                self.broken(&error);
                None
            }
            None => {
                self.report.refuse(place, Code::PipelineSyntax, "the file ends too early");
                None
            }
        }
    }

    fn node(&mut self, event: Event<'a>, mark: Mark, place: &Place, depth: usize) -> Option<Rc<Node>> {
        let before = self.left;
        if depth > DEEPEST {
            return self.stop(mark, place, "the file is nested too deeply");
        }
        let (anchor, value) = match event {
            Event::Alias(id) => return self.alias(id, mark, place),
            Event::Scalar(text, style, anchor, tag) => {
                (anchor, self.scalar(text, style, tag.as_deref(), mark, place))
            }
            Event::SequenceStart(anchor, tag) => {
                self.collection_tag(tag.as_deref(), "seq", mark, place);
                (anchor, Value::Sequence(self.sequence(place, depth)?))
            }
            Event::MappingStart(anchor, tag) => {
                self.collection_tag(tag.as_deref(), "map", mark, place);
                (anchor, Value::Mapping(self.mapping(place, depth)?))
            }
            _ => return self.stop(mark, place, "a value is missing"),
        };
        self.spend(1, mark, place)?;
        let node = Rc::new(Node { mark, value });
        if anchor > 0 {
            self.anchors.insert(anchor, (Rc::clone(&node), before - self.left));
        }
        Some(node)
    }

    fn alias(&mut self, id: usize, mark: Mark, place: &Place) -> Option<Rc<Node>> {
        let Some((node, size)) = self.anchors.get(&id).map(|(n, s)| (Rc::clone(n), *s)) else {
            return self.stop(mark, place, "an alias stands inside its own anchor");
        };
        self.spend(size, mark, place)?;
        Some(node)
    }

    fn sequence(&mut self, place: &Place, depth: usize) -> Option<Vec<Rc<Node>>> {
        let mut items = Vec::new();
        loop {
            let (event, mark) = self.pull(place)?;
            if event == Event::SequenceEnd {
                return Some(items);
            }
            let place = place.item(items.len(), mark);
            items.push(self.node(event, mark, &place, depth + 1)?);
        }
    }

    fn mapping(&mut self, place: &Place, depth: usize) -> Option<Vec<Entry>> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut seen: HashMap<String, usize> = HashMap::new();
        loop {
            let (event, mark) = self.pull(place)?;
            if event == Event::MappingEnd {
                return Some(entries);
            }
            let key = self.key(event, mark, place, depth)?;
            let place = place.key(key.as_deref().unwrap_or_default(), mark);
            let (event, value_mark) = self.pull(&place)?;
            let value = self.node(event, value_mark, &place, depth + 1)?;
            let Some(key) = key else { continue };
            if let Some(first) = seen.get(&key) {
                let message = format!("`{key}` is given twice, first on line {first}");
                self.report.invalid(&place, message);
            } else {
                seen.insert(key.clone(), mark.line);
                entries.push(Entry { key, mark, value });
            }
        }
    }

    /// The outer `None` ends the reading, the inner one is a key that is no text.
    fn key(&mut self, event: Event<'a>, mark: Mark, place: &Place, depth: usize) -> Option<Option<String>> {
        if let Event::Scalar(text, _, 0, None) = event {
            self.spend(1, mark, place)?;
            return Some(Some(text.into_owned()));
        }
        let node = self.node(event, mark, place, depth + 1)?;
        match &node.value {
            Value::Scalar(text) => Some(Some(text.clone())),
            other => {
                let place = place.key("", mark);
                self.report
                    .invalid(&place, format!("a key must be a single word, here it is {}", other.kind()));
                Some(None)
            }
        }
    }

    fn scalar(
        &mut self,
        text: Cow<'_, str>,
        style: ScalarStyle,
        tag: Option<&Tag>,
        mark: Mark,
        place: &Place,
    ) -> Value {
        let untyped = match tag {
            None => style == ScalarStyle::Plain,
            Some(tag) if tag.is_yaml_core_schema() => match tag.suffix.as_str() {
                "null" => return Value::Null,
                "str" | "int" | "float" | "bool" => false,
                _ => return self.odd_tag(tag, mark, place, text),
            },
            Some(tag) if is_non_specific(tag) => false,
            Some(tag) => return self.odd_tag(tag, mark, place, text),
        };
        if untyped && matches!(&*text, "" | "~" | "null" | "Null" | "NULL") {
            Value::Null
        } else {
            Value::Scalar(text.into_owned())
        }
    }

    fn odd_tag(&mut self, tag: &Tag, mark: Mark, place: &Place, text: Cow<'_, str>) -> Value {
        self.report
            .invalid(&Place { mark, ..place.clone() }, format!("the YAML tag `{tag}` has no meaning here"))
            .hint("remove the tag");
        Value::Scalar(text.into_owned())
    }

    fn collection_tag(&mut self, tag: Option<&Tag>, expected: &str, mark: Mark, place: &Place) {
        if let Some(tag) = tag
            && !(tag.is_yaml_core_schema() && tag.suffix == expected)
            && !is_non_specific(tag)
        {
            self.odd_tag(tag, mark, place, Cow::Borrowed(""));
        }
    }

    fn spend(&mut self, nodes: usize, mark: Mark, place: &Place) -> Option<()> {
        match self.left.checked_sub(nodes) {
            Some(left) => {
                self.left = left;
                Some(())
            }
            None => self.stop(mark, place, "the file holds more values than a pipeline definition can have"),
        }
    }

    fn stop<T>(&mut self, mark: Mark, place: &Place, message: &str) -> Option<T> {
        self.report.refuse(&Place { mark, ..place.clone() }, Code::PipelineSyntax, message);
        None
    }

    fn broken(&mut self, error: &ScanError) {
        let place = Place { mark: mark_of(error.marker()), path: String::new() };
        let info = error.info();
        let problem = self.report.refuse(&place, Code::PipelineSyntax, format!("not YAML: {info}"));
        let hints = [
            (
                "unknown escape",
                r#"in double quotes a backslash begins an escape: use single quotes, or write `\\.`"#,
            ),
            (
                "unknown anchor",
                r"a value that begins with `*` is put in quotes; a projection may begin with `\*`",
            ),
            ("unexpected character", "put the value in quotes"),
            ("tab", "indent with spaces, not with tabs"),
            (
                "mapping values are not allowed",
                "a value that holds `: ` is put in quotes; keys of a block stand one below the other",
            ),
        ];
        if let Some((_, hint)) = hints.iter().find(|(part, _)| info.contains(part)) {
            problem.hint(*hint);
        }
    }
}

/// A lone `!`: no type, only "not to be guessed".
fn is_non_specific(tag: &Tag) -> bool {
    format!("{}{}", tag.handle, tag.suffix) == "!"
}

fn mark_of(marker: &saphyr_parser::Marker) -> Mark {
    Mark { line: marker.line().max(1), column: marker.col() + 1 }
}

/// JSON writes a character beyond the basic plane as two `\u` escapes, which YAML does not know.
fn join_surrogates(text: &str) -> Cow<'_, str> {
    let is_json = || serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    if !(text.contains(r"\ud") || text.contains(r"\uD")) || !is_json() {
        return Cow::Borrowed(text);
    }
    let mut joined = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        joined.push_str(&rest[..at]);
        rest = &rest[at..];
        // JSON is known to be valid here: after a backslash stands an ASCII character.
        let pair = escape(rest).zip(rest.get(6..).and_then(escape));
        let length = match pair.map(|(high, low)| char::decode_utf16([high, low]).next()) {
            Some(Some(Ok(c))) if c > '\u{ffff}' => {
                joined.push_str(&format!("\\U{:08X}", u32::from(c)));
                12
            }
            _ => {
                joined.push_str(&rest[..2]);
                2
            }
        };
        rest = &rest[length..];
    }
    joined.push_str(rest);
    Cow::Owned(joined)
}

fn escape(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}
