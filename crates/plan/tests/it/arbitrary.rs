//! Reading never panics, always gives a reason, and every place lies inside the file.

use proptest::prelude::*;

use crate::harness::parse;

fn holds(text: &str) {
    let Err(problems) = parse(text) else { return };
    assert!(!problems.is_empty());
    // An error at the very end stands on the line after the last one.
    let lines = text.split(['\n', '\r']).count() + 1;
    for problem in problems {
        assert!((1..=lines).contains(&problem.line) && problem.column >= 1, "{problem}\n{text}");
        assert_ne!(problem.code, canalis_types::Code::Internal, "{problem}\n{text}");
    }
}

/// Pieces that a pipeline file is made of, so that random texts get past the first line.
fn pieces() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "source:",
        "sink:",
        "pipeline:",
        "route:",
        "transform:",
        "\n",
        "\n  ",
        "\n    ",
        "- ",
        "{",
        "}",
        "[",
        "]",
        ", ",
        ": ",
        "type: mysql",
        "type: print",
        "type: kafka",
        "hostname: h",
        "username: u",
        "password: p",
        "tables: a.b",
        "tables: 'a.\\.*'",
        "source-table: ",
        "sink-table: ",
        "$1",
        "${x}",
        "${env:A}",
        "${",
        "\\",
        "<>",
        "replace-symbol: ",
        "projection: ",
        "filter: ",
        "a = 1",
        "\"",
        "'",
        "&a ",
        "*a",
        "!!str ",
        "|",
        ">",
        "~",
        "null",
        "#",
        "%",
        "name: ",
        "restart-strategy: none",
        "local-time-zone: ",
        "GMT+é",
        "(a|b)",
        "include.schema.changes: ",
        "user-defined-function: ",
        "model: ",
        "é",
        "\t",
        "---\n",
        "...\n",
        "? ",
        "<<: ",
        "table-options: ",
        "primary-keys: ",
        ",",
    ]);
    prop::collection::vec(words, 0..60).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        holds(&text);
    }

    #[test]
    fn text_made_of_the_grammar_never_panics(text in pieces()) {
        holds(&text);
    }

    #[test]
    fn cut_and_spliced_files_never_panic(cut in 0usize..600, extra in ".{0,8}") {
        let whole = crate::harness::file(", metadata.list: op_ts", ", include.schema.changes: [add]",
            "transform:\n  - source-table: a.b\n    projection: \"*, id AS x\"\n    table-options: a=1|b=2\nroute:\n  - {source-table: '(a).b', sink-table: 'c.$1'}\npipeline: {name: x, local-time-zone: GMT+8}\n");
        let at = whole.char_indices().map(|(i, _)| i).nth(cut).unwrap_or(whole.len());
        holds(&format!("{}{extra}{}", &whole[..at], &whole[at..]));
        holds(&whole[..at]);
    }
}
