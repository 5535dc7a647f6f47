//! Owns the translation of character sets and collations between MySQL and MariaDB.

use super::session::ServerFacts;

/// Character set and collation of a declared column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextRules {
    /// Character set.
    pub charset: String,
    /// Collation; `None` for the character set's default.
    pub collation: Option<String>,
    /// Whether texts are equal exactly when they are at the source.
    pub same: bool,
}

impl TextRules {
    /// ` CHARACTER SET x COLLATE y`.
    pub(super) fn sql(&self) -> String {
        match &self.collation {
            Some(collation) => format!(" CHARACTER SET {} COLLATE {collation}", self.charset),
            None => format!(" CHARACTER SET {}", self.charset),
        }
    }
}

/// The rules of the target for a column that has these at the source.
pub(super) fn translate(charset: &str, collation: Option<&str>, facts: &ServerFacts) -> TextRules {
    let charset = match charset.to_lowercase().as_str() {
        "utf8" => "utf8mb3".to_owned(),
        // The four-byte Chinese standard is not in MariaDB; utf8mb4 holds all its characters.
        "gb18030" if facts.is_mariadb() => "utf8mb4".to_owned(),
        other => other.to_owned(),
    };
    let Some(collation) = collation.map(str::to_lowercase) else {
        return TextRules { charset, collation: None, same: true };
    };
    let collation = match collation.strip_prefix("utf8_") {
        Some(rest) => format!("utf8mb3_{rest}"),
        None => collation,
    };
    let known = |name: &str| facts.collations.contains(name);
    if known(&collation) && collation.starts_with(&charset) {
        return TextRules { charset, collation: Some(collation), same: true };
    }
    let bare = collation.replacen("utf8mb3_", "utf8_", 1);
    if charset == "utf8mb3" && known(&bare) {
        return TextRules { charset, collation: Some(bare), same: true };
    }
    if matches!(collation.as_str(), "utf8mb4_0900_bin" | "utf8mb4_nopad_bin") {
        let exact = facts.exact_collation().to_owned();
        return TextRules { charset, collation: Some(exact), same: true };
    }
    let candidates: Vec<String> = if charset != "utf8mb4" {
        let sensitive = collation.ends_with("_bin") || collation.ends_with("_cs");
        if sensitive { vec![format!("{charset}_bin")] } else { Vec::new() }
    } else if collation.ends_with("_cs") || collation.ends_with("_bin") {
        vec![
            "utf8mb4_uca1400_nopad_as_cs".into(),
            "utf8mb4_0900_as_cs".into(),
            facts.exact_collation().into(),
        ]
    } else if collation.ends_with("_as_ci") {
        vec!["utf8mb4_uca1400_nopad_as_ci".into(), "utf8mb4_0900_as_ci".into()]
    } else {
        vec![
            "utf8mb4_uca1400_nopad_ai_ci".into(),
            "utf8mb4_0900_ai_ci".into(),
            "utf8mb4_unicode_520_nopad_ci".into(),
        ]
    };
    let collation = candidates.into_iter().find(|name| known(name));
    TextRules { charset, collation, same: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flavor, ServerInfo};

    fn facts(flavor: Flavor, collations: &[&str]) -> ServerFacts {
        ServerFacts::sample(
            ServerInfo { flavor, version: (10, 11, 0), version_text: String::new() },
            collations.iter().map(|c| (*c).to_owned()).collect(),
        )
    }

    #[test]
    fn collations_are_kept_or_replaced_by_the_nearest() {
        let mariadb = facts(
            Flavor::MariaDb,
            &["utf8mb4_general_ci", "utf8mb4_uca1400_nopad_ai_ci", "latin1_swedish_ci"],
        );
        let mysql = facts(Flavor::MySql, &["utf8mb4_general_ci", "utf8mb4_0900_ai_ci", "utf8mb3_bin"]);
        for (facts, charset, collation, expect, same) in [
            (&mariadb, "utf8mb4", "utf8mb4_general_ci", Some("utf8mb4_general_ci"), true),
            (&mariadb, "utf8mb4", "utf8mb4_0900_ai_ci", Some("utf8mb4_uca1400_nopad_ai_ci"), false),
            (&mariadb, "utf8mb4", "utf8mb4_0900_bin", Some("utf8mb4_nopad_bin"), true),
            (&mariadb, "latin1", "latin1_swedish_ci", Some("latin1_swedish_ci"), true),
            (&mysql, "utf8mb4", "utf8mb4_uca1400_ai_ci", Some("utf8mb4_0900_ai_ci"), false),
            (&mysql, "utf8mb4", "utf8mb4_nopad_bin", Some("utf8mb4_0900_bin"), true),
            (&mysql, "utf8", "utf8_bin", Some("utf8mb3_bin"), true),
            (&mysql, "latin2", "latin2_nopad_ci", None, false),
        ] {
            let rules = translate(charset, Some(collation), facts);
            assert_eq!((rules.collation.as_deref(), rules.same), (expect, same), "{collation}");
        }
    }
}
