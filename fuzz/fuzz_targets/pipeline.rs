//! Pipeline files: any text gives a plan, or problems that each stand inside the file and are nobody's internal error.
#![no_main]

use std::{
    io::{Error, ErrorKind},
    sync::LazyLock,
};

use canalis_connector_api::{
    Connector, ConnectorSpec, DeliveryGuarantee, OptionSpec, OptionType, Registry, Role,
};
use canalis_plan::SecretSource;
use canalis_types::Code;
use libfuzzer_sys::fuzz_target;

/// A connector with an option of every type, that cannot be opened.
struct Nothing;

static NOTHING: ConnectorSpec = ConnectorSpec {
    name: "nothing",
    role: Role::Both,
    summary: "Is there to be named.",
    options: &[
        OptionSpec::new("text", OptionType::Text, Role::Both, "Text.").aliases(&["texts"]),
        OptionSpec::new("integer", OptionType::Integer { min: 1, max: 10 }, Role::Both, "Number."),
        OptionSpec::new("float", OptionType::Float { min: 0.0, max: 1.0 }, Role::Sink, "Number."),
        OptionSpec::new("boolean", OptionType::Boolean, Role::Source, "Truth.").default("true"),
        OptionSpec::new("duration", OptionType::Duration, Role::Both, "Time."),
        OptionSpec::new("bytes", OptionType::Bytes, Role::Both, "Size."),
        OptionSpec::new("word", OptionType::Enum(&["one", "two"]), Role::Both, "Word."),
        OptionSpec::new("secret", OptionType::Text, Role::Both, "Secret.").secret(),
        OptionSpec::new("later", OptionType::Text, Role::Both, "Not built.").not_yet("there is no time"),
    ],
    prefixes: &[("free.", None), ("refused.", Some("there is no engine"))],
    guarantee: DeliveryGuarantee::None,
};

impl Connector for Nothing {
    fn spec(&self) -> &'static ConnectorSpec {
        &NOTHING
    }
}

/// One variable and one file.
struct Secrets;

impl SecretSource for Secrets {
    fn env(&self, name: &str) -> Option<String> {
        (name == "A").then(|| "s3cret".to_owned())
    }

    fn file(&self, path: &str) -> std::io::Result<String> {
        if path == "/f" { Ok("s3cret\n".to_owned()) } else { Err(Error::from(ErrorKind::NotFound)) }
    }
}

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let mut registry = Registry::new();
    registry.add(Nothing);
    canalis_mysql::register(&mut registry);
    registry
});

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Err(problems) = canalis_plan::parse(text, &REGISTRY, &Secrets) else { return };
    assert!(!problems.is_empty(), "refused without a reason");
    // An error at the very end stands on the line after the last one.
    let lines = text.split(['\n', '\r']).count() + 1;
    for problem in problems {
        assert!((1..=lines).contains(&problem.line) && problem.column >= 1, "{problem}");
        assert_ne!(problem.code, Code::Internal, "{problem}");
    }
});
