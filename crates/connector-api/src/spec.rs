//! Owns the declaration of a connector: its options, roles and promises. One table drives validation, the command
//! line help and the reference pages.

/// Where an option or connector may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Under `source`.
    Source,
    /// Under `sink`.
    Sink,
    /// Under both.
    Both,
}

impl Role {
    /// Whether something of this role may stand where `wanted` (source or sink) is.
    pub fn allows(self, wanted: Role) -> bool {
        self == Role::Both || self == wanted
    }
}

/// Values that an option takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OptionType {
    /// Any text.
    Text,
    /// A whole number inside the bounds.
    Integer {
        /// Smallest allowed value.
        min: i64,
        /// Largest allowed value.
        max: i64,
    },
    /// A number inside the bounds.
    Float {
        /// Smallest allowed value.
        min: f64,
        /// Largest allowed value.
        max: f64,
    },
    /// `true` or `false`, in any case.
    Boolean,
    /// A duration, see `canalis_types::units::parse_duration`.
    Duration,
    /// A byte size, see `canalis_types::units::parse_bytes`.
    Bytes,
    /// Table patterns, see [`crate::TableSelector`].
    TablePatterns,
    /// One of the words, in any case.
    Enum(&'static [&'static str]),
}

/// An option of a connector.
#[derive(Debug, Clone, Copy)]
pub struct OptionSpec {
    /// Key as written in a pipeline file.
    pub key: &'static str,
    /// Values it takes.
    pub ty: OptionType,
    /// Where it may stand.
    pub role: Role,
    /// Whether it must be given.
    pub required: bool,
    /// Default, as text.
    pub default: Option<&'static str>,
    /// Whether the value is a secret that is masked everywhere.
    pub secret: bool,
    /// Names of other spellings that are accepted.
    pub aliases: &'static [&'static str],
    /// Set when the key is known and its behaviour is not built yet: using it is refused with this text.
    pub not_yet: Option<&'static str>,
    /// What it does, in one sentence.
    pub doc: &'static str,
}

impl OptionSpec {
    /// An optional option without default.
    pub const fn new(key: &'static str, ty: OptionType, role: Role, doc: &'static str) -> Self {
        Self {
            key,
            ty,
            role,
            required: false,
            default: None,
            secret: false,
            aliases: &[],
            not_yet: None,
            doc,
        }
    }

    /// Makes it required.
    #[must_use]
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Gives a default.
    #[must_use]
    pub const fn default(mut self, value: &'static str) -> Self {
        self.default = Some(value);
        self
    }

    /// Marks the value as a secret.
    #[must_use]
    pub const fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    /// Accepts other spellings.
    #[must_use]
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Refuses the key as known but not built.
    #[must_use]
    pub const fn not_yet(mut self, why: &'static str) -> Self {
        self.not_yet = Some(why);
        self
    }
}

/// What a sink promises after a crash and restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryGuarantee {
    /// Every row once, keyed or not.
    ExactlyOnce,
    /// Every row, some perhaps twice.
    AtLeastOnce,
    /// No promise.
    None,
}

/// Declaration of a connector.
#[derive(Debug, Clone, Copy)]
pub struct ConnectorSpec {
    /// `type` in a pipeline file.
    pub name: &'static str,
    /// What it may be used as.
    pub role: Role,
    /// One sentence.
    pub summary: &'static str,
    /// Options; keys are unique.
    pub options: &'static [OptionSpec],
    /// Prefixes of free keys that are passed through, for example `jdbc.properties.`, with the reason
    /// why such a key is refused for now, if it is.
    pub prefixes: &'static [(&'static str, Option<&'static str>)],
    /// Promise as a sink.
    pub guarantee: DeliveryGuarantee,
}

impl ConnectorSpec {
    /// The option with this key or alias that may stand at `role`.
    pub fn option(&self, key: &str, role: Role) -> Option<&'static OptionSpec> {
        self.options.iter().find(|o| o.role.allows(role) && (o.key == key || o.aliases.contains(&key)))
    }
}
