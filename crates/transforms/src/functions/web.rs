//! Owns functions on addresses of the web: percent encoding, and the parts of a URL.

use canalis_types::LogicalType;

use super::{Function, row::text_rows, text::typed};
use crate::{
    call::refuse,
    compile::{Context, Typed},
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("URL_ENCODE", 1, 1, url_encode),
    Function::new("URL_DECODE", 1, 1, url_decode),
    Function::new("PARSE_URL", 2, 3, parse_url),
];

/// The form `application/x-www-form-urlencoded`: a blank is `+`.
fn url_encode(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = typed(context, arguments, 1)?;
    text_rows("URL_ENCODE", &arguments, LogicalType::Text, |row| {
        let mut out = String::with_capacity(row.text(0).len());
        for byte in row.bytes(0) {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'*' | b'_' => {
                    out.push(char::from(*byte));
                }
                b' ' => out.push('+'),
                _ => out.push_str(&format!("%{byte:02X}")),
            }
        }
        Ok(Some(out.into()))
    })
}

fn url_decode(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = typed(context, arguments, 1)?;
    text_rows("URL_DECODE", &arguments, LogicalType::Text, |row| {
        let decoded = decode(row.text(0)).ok_or_else(|| refuse("text is not percent-encoded UTF-8"))?;
        Ok(Some(decoded.into()))
    })
}

fn decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let (digits, after) = rest.split_at_checked(2)?;
                rest = after;
                out.extend(super::bytes_of_hex(std::str::from_utf8(digits).ok()?)?);
            }
            _ => out.push(*byte),
        }
    }
    String::from_utf8(out).ok()
}

/// A part of a URL (HOST, PATH, QUERY, REF, PROTOCOL, AUTHORITY, FILE, USERINFO), or the value of a key of its query.
/// NULL when the URL lacks it or is none.
fn parse_url(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let part = arguments[1].literal_text().ok_or("the part must be a text constant")?.to_owned();
    const PARTS: [&str; 8] = ["HOST", "PATH", "QUERY", "REF", "PROTOCOL", "AUTHORITY", "FILE", "USERINFO"];
    if !PARTS.contains(&part.as_str()) {
        return Err(format!("`{part}` is not a part of a URL; known are {}", PARTS.join(", ")));
    }
    if arguments.len() == 3 && part != "QUERY" {
        return Err("a key is only looked for in the QUERY".into());
    }
    let arguments = typed(context, arguments, 3)?;
    text_rows("PARSE_URL", &arguments, LogicalType::Text, move |row| {
        let Some(url) = Url::parse(row.text(0)) else { return Ok(None) };
        if row.len() == 3 {
            let pairs = url.query.unwrap_or_default().split('&').filter_map(|p| p.split_once('='));
            let found = pairs.into_iter().find(|(key, _)| *key == row.text(2));
            return Ok(found.map(|(_, value)| value.into()));
        }
        let text = match part.as_str() {
            "HOST" => Some(url.host()),
            "PATH" => Some(url.path),
            "QUERY" => url.query,
            "REF" => url.fragment,
            "PROTOCOL" => Some(url.scheme),
            "AUTHORITY" => Some(url.authority),
            "FILE" => Some(url.file),
            _ => url.authority.rsplit_once('@').map(|(user, _)| user),
        };
        Ok(text.map(Into::into))
    })
}

/// The parts of `scheme://authority/path?query#fragment`.
struct Url<'a> {
    scheme: &'a str,
    authority: &'a str,
    path: &'a str,
    query: Option<&'a str>,
    fragment: Option<&'a str>,
    /// Path and query.
    file: &'a str,
}

impl<'a> Url<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
        if !is_scheme {
            return None;
        }
        let (rest, fragment) = match rest.split_once('#') {
            Some((rest, fragment)) => (rest, Some(fragment)),
            None => (rest, None),
        };
        let (authority, file) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (path, query) = match file.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (file, None),
        };
        Some(Self { scheme, authority, path, query, fragment, file })
    }

    fn host(&self) -> &'a str {
        let host = self.authority.rsplit_once('@').map_or(self.authority, |(_, host)| host);
        // An IPv6 address stands in brackets and has colons of its own.
        match host.find(']') {
            Some(end) => &host[..=end],
            None => host.split_once(':').map_or(host, |(host, _)| host),
        }
    }
}
