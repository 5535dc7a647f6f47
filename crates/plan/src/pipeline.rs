//! Owns the block `pipeline`: Flink CDC's keys, and ours beside them under Flink's names where Flink has one.

mod extensions;
mod options;
mod restart;
mod time_zone;

use std::time::Duration;

use canalis_connector_api::{Options, Role};
use canalis_transforms::RouteMode;
use canalis_types::{Error, Result};

use options::SPEC;
pub use options::pipeline_options;

use crate::{
    DeadLetterFormat, DeadLetterMode, DeadLetterPolicy, RuntimeOptions, SchemaChangeBehavior,
    problem::{Place, Report},
    section::Section,
    settings::Settings,
};

/// What the block says.
pub(crate) struct Pipeline {
    pub(crate) name: String,
    pub(crate) time_zone: Option<String>,
    pub(crate) route_mode: RouteMode,
    pub(crate) behavior: SchemaChangeBehavior,
    pub(crate) runtime: RuntimeOptions,
    /// Where BATCH is asked for.
    pub(crate) batch: Option<Place>,
    /// Whether functions or models are declared, which expressions may then call.
    pub(crate) extended: bool,
}

/// Reads the block, or the defaults of an absent one. What is wrong is reported and replaced by its default, so that
/// the rest of the file can be read.
pub(crate) fn read(section: &Section<'_>, report: &mut Report) -> Result<Pipeline> {
    let extended = extensions::check(section, report);
    let mut settings = Settings::read(section, &extensions::KEYS, None, report);
    let checked = settings.check(&SPEC, Role::Both, "`pipeline`", report);
    let options = checked.options.ok_or_else(|| Error::internal("the defaults of `pipeline` do not hold"))?;
    for setting in settings.items.iter().filter(|s| s.text.contains("${env:") || s.text.contains("${file:")) {
        report
            .warn(&setting.place, format!("the reference in the value of `{}` is not replaced", setting.key))
            .hint("references are replaced under `source` and `sink` only");
    }
    let restart = restart::read(&settings, &options, report)?;
    let mut block = Block { settings: &settings, options: &options, report };
    block.warn_meaningless();
    block.refuse_unsupported();
    Ok(Pipeline {
        name: block.name()?,
        time_zone: block.time_zone()?,
        route_mode: match options.word("route-mode")?.as_str() {
            "first_match" => RouteMode::FirstMatch,
            _ => RouteMode::AllMatch,
        },
        behavior: match options.word("schema.change.behavior")?.as_str() {
            "exception" => SchemaChangeBehavior::Exception,
            _ => SchemaChangeBehavior::Evolve,
        },
        runtime: RuntimeOptions {
            parallelism: options.count("parallelism")?,
            checkpoint_interval: block.checkpoint_interval()?,
            checkpoints_retained: options.count("execution.checkpointing.num-retained")?,
            restart,
            dead_letters: block.dead_letters()?,
            max_batch_rows: options.count("sink.buffer-flush.max-rows")?,
            max_batch_bytes: block.max_batch_bytes()?,
            schema_change_timeout: options.duration("schema-operator.rpc-timeout")?,
        },
        batch: block.is("execution.runtime-mode", "batch").cloned(),
        extended,
    })
}

struct Block<'a> {
    settings: &'a Settings,
    options: &'a Options,
    report: &'a mut Report,
}

impl<'a> Block<'a> {
    /// The place of an option, if it is given.
    fn given(&self, key: &str) -> Option<&'a Place> {
        self.settings.of_option(&SPEC, Role::Both, key).map(|s| &s.place)
    }

    /// The place of an option, if it is given with this word.
    fn is(&self, key: &str, word: &str) -> Option<&'a Place> {
        self.given(key).filter(|_| self.options.word(key).is_ok_and(|w| w == word))
    }

    fn refuse(&mut self, key: &str, message: &str) {
        self.settings.report(&SPEC, Role::Both, key, message, self.report);
    }

    fn name(&mut self) -> Result<String> {
        let name = self.options.required("name")?.trim().to_owned();
        if name.is_empty() {
            self.refuse("name", "`name` must not be empty");
        }
        Ok(name)
    }

    fn time_zone(&mut self) -> Result<Option<String>> {
        let text = self.options.required("local-time-zone")?;
        let parsed = time_zone::parse(text);
        let Some(place) = self.given("local-time-zone") else { return Ok(None) };
        match parsed {
            Ok(None) => {
                self.report
                    .warn(place, "`systemDefault` is UTC here, whatever the machine's zone")
                    .hint("name the zone, for example `Europe/Paris`");
                Ok(None)
            }
            Ok(zone) => Ok(zone),
            Err((message, hint)) => {
                self.report.invalid(place, message).hint(hint);
                Ok(None)
            }
        }
    }

    fn checkpoint_interval(&mut self) -> Result<Duration> {
        let interval = self.options.duration("execution.checkpointing.interval")?;
        if interval < Duration::from_millis(10) {
            self.refuse(
                "execution.checkpointing.interval",
                "`execution.checkpointing.interval` must be at least 10 ms",
            );
        }
        Ok(interval)
    }

    fn max_batch_bytes(&mut self) -> Result<u64> {
        let bytes = self.options.bytes("sink.buffer-flush.max-bytes")?;
        if bytes == 0 {
            self.refuse("sink.buffer-flush.max-bytes", "`sink.buffer-flush.max-bytes` must not be 0");
        }
        Ok(bytes)
    }

    fn dead_letters(&mut self) -> Result<DeadLetterPolicy> {
        let mode = match self.options.word("dead-letter.policy")?.as_str() {
            "queue" => DeadLetterMode::Queue,
            _ => DeadLetterMode::Fail,
        };
        let mut limit = None;
        if let Some(place) = self.given("dead-letter.limit") {
            limit = Some(restart::count(self.options, "dead-letter.limit")?);
            if mode == DeadLetterMode::Fail {
                self.report
                    .warn(place, "`dead-letter.limit` has no effect while `dead-letter.policy` is `fail`");
            }
        }
        let format = match self.options.word("dead-letter.format")?.as_str() {
            "sqlite" => DeadLetterFormat::Sqlite,
            _ => DeadLetterFormat::JsonLines,
        };
        Ok(DeadLetterPolicy { mode, limit, format })
    }

    fn warn_meaningless(&mut self) {
        for key in ["operator.uid.prefix", "schema.operator.uid"] {
            if let Some(place) = self.given(key) {
                self.report.warn(place, format!("`{key}` names Flink operators and has no meaning here"));
            }
        }
        if let Some(place) = self.is("transform.decimal.precision.mode", "up_to_19") {
            self.report.warn(place, "decimals are always exact up to 38 digits; `UP_TO_19` has no effect");
        }
    }

    fn refuse_unsupported(&mut self) {
        for behavior in ["try_evolve", "lenient", "ignore"] {
            if let Some(place) = self.is("schema.change.behavior", behavior) {
                self.report
                    .not_yet(place, format!("`schema.change.behavior: {behavior}` is not supported yet"))
                    .hint("there are `exception` and `evolve`");
            }
        }
        for strategy in ["primary_key", "table_id"] {
            if let Some(place) = self.is("sink.partitioning.strategy", strategy) {
                let word = strategy.to_uppercase();
                self.report
                    .not_yet(place, format!("`sink.partitioning.strategy: {word}` is not supported yet"))
                    .hint("there is `SINK_DEFINED`: rows are dealt to writers by key");
            }
        }
    }
}
