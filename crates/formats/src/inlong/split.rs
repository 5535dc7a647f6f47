//! Owns splitting a body into the parts of its records.

/// What stands behind a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The separator of this place in the list of separators.
    Separator(usize),
    Line,
    Body,
}

/// Characters with a meaning.
#[derive(Debug, Clone)]
pub(super) struct Marks {
    pub separators: Vec<u8>,
    pub escape: Option<u8>,
    pub quote: Option<u8>,
    pub line: Option<u8>,
}

/// Takes the part at the front of `rest`: its value goes to `out`. Returns whether it stands there as it is, and its end.
///
/// # Errors
/// When a quote is not closed, or nothing follows an escape.
pub(super) fn part(rest: &mut &[u8], marks: &Marks, out: &mut Vec<u8>) -> Result<(bool, End), &'static str> {
    out.clear();
    let (mut plain, mut quoted, mut at) = (true, false, 0);
    while let Some(&byte) = rest.get(at) {
        at += 1;
        if Some(byte) == marks.escape {
            plain = false;
            out.push(*rest.get(at).ok_or("nothing follows an escape")?);
            at += 1;
        } else if Some(byte) == marks.quote {
            plain = false;
            quoted = !quoted;
        } else if quoted {
            out.push(byte);
        } else if let Some(index) = marks.separators.iter().position(|s| *s == byte) {
            *rest = &rest[at..];
            return Ok((plain, End::Separator(index)));
        } else if Some(byte) == marks.line {
            *rest = &rest[at..];
            return Ok((plain, End::Line));
        } else {
            out.push(byte);
        }
    }
    if quoted {
        return Err("a quote is not closed");
    }
    *rest = &[];
    Ok((plain, End::Body))
}
