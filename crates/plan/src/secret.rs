//! Owns references to secrets in option values: `${env:NAME}` and `${file:/path}`.

use canalis_types::Code;

use crate::problem::{Place, Report};

/// Where the values of references come from; the command line reads the real environment and disk.
pub trait SecretSource {
    /// The environment variable of this name.
    fn env(&self, name: &str) -> Option<String>;

    /// The text of the file.
    ///
    /// # Errors
    /// Whatever keeps the file from being read as text.
    fn file(&self, path: &str) -> std::io::Result<String>;
}

/// A value after its references were replaced.
#[derive(Debug, Default)]
pub(crate) struct Resolved {
    /// The whole value.
    pub(crate) text: String,
    /// The parts that came from references and must not be shown.
    pub(crate) secrets: Vec<String>,
    /// Whether a reference could not be resolved; it is in the report then.
    pub(crate) failed: bool,
}

/// Replaces the references of a value. Messages name references, never values.
pub(crate) fn resolve(
    text: &str,
    key: &str,
    place: &Place,
    from: &dyn SecretSource,
    report: &mut Report,
) -> Resolved {
    let mut resolved = Resolved::default();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        resolved.text.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some(end) = rest.find('}') else {
            if ["${env:", "${file:", "${secret:"].iter().any(|r| rest.starts_with(r)) {
                resolved.failed = true;
                report.invalid(place, format!("a reference in the value of `{key}` is not closed by `}}`"));
            }
            break;
        };
        let whole = &rest[..=end];
        rest = &rest[end + 1..];
        match look_up(whole, from) {
            Found::Value(value) => {
                resolved.text.push_str(&value);
                resolved.secrets.push(value);
            }
            Found::Failed(code, message) => {
                resolved.failed = true;
                report.refuse(place, code, message);
            }
            // The text may be part of a password and is not repeated here.
            Found::NoReference => {
                resolved.text.push_str(whole);
                report
                    .warn(place, format!("the value of `{key}` holds a `${{…}}` that is passed on as it is"))
                    .hint("only `${env:NAME}` and `${file:/path}` are replaced");
            }
        }
    }
    resolved.text.push_str(rest);
    resolved
}

enum Found {
    Value(String),
    Failed(Code, String),
    NoReference,
}

fn look_up(whole: &str, from: &dyn SecretSource) -> Found {
    let inner = &whole[2..whole.len() - 1];
    match inner.split_once(':') {
        Some(("env" | "file", "")) => {
            Found::Failed(Code::PipelineInvalid, format!("the reference `{whole}` names nothing"))
        }
        Some(("env", name)) => match from.env(name) {
            Some(value) => Found::Value(value),
            None => Found::Failed(
                Code::SecretUnresolved,
                format!("`{whole}` cannot be resolved: the environment variable is not set"),
            ),
        },
        Some(("file", path)) => match from.file(path) {
            Ok(mut text) => {
                // Editors and `echo` end a file with a newline that is not part of the secret.
                if text.ends_with('\n') {
                    text.pop();
                    if text.ends_with('\r') {
                        text.pop();
                    }
                }
                Found::Value(text)
            }
            Err(error) => Found::Failed(
                Code::SecretUnresolved,
                format!("`{whole}` cannot be resolved: reading the file: {}", error.kind()),
            ),
        },
        Some(("secret", _)) => Found::Failed(
            Code::NotSupportedYet,
            format!("`{whole}`: named secrets are not supported yet, only `${{env:…}}` and `${{file:…}}`"),
        ),
        _ => Found::NoReference,
    }
}
