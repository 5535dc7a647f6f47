//! Details of reading projections that do not show through the public interface.

use super::*;

#[test]
fn escaped_stars_keep_the_columns_of_messages() {
    assert_eq!(plain_stars(r"\*, a"), " *, a");
    assert_eq!(plain_stars(r"'\*', `\*`, \*"), r"'\*', `\*`,  *");
}

#[test]
fn the_parsers_words_become_ours() {
    let problem = parse_projection("a,\n b )").unwrap_err();
    assert_eq!((problem.at.line, problem.at.column), (2, 4));
    let problem = parse_projection("UPPER(a AS b").unwrap_err();
    assert!(problem.text.starts_with("expected"), "{problem}");
}
