//! Owns the search for the name a user most likely meant.

/// The candidate nearest to `name` (case ignored), if it is near enough to be a slip of the finger.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = name.to_lowercase().chars().collect();
    let limit = (wanted.len() / 3).max(1);
    candidates
        .into_iter()
        .map(|c| (distance(&wanted, &c.to_lowercase().chars().collect::<Vec<_>>()), c))
        .filter(|(d, _)| *d <= limit)
        .min_by_key(|(d, _)| *d)
        .map(|(_, c)| c)
}

/// `; did you mean …?`, or nothing when no candidate is near.
pub(crate) fn hint<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, candidates).map(|c| format!("; did you mean `{c}`?")).unwrap_or_default()
}

/// Edits (insert, delete, replace, swap of neighbours) that turn one text into the other.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut best = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_strangers_are_not() {
        for (name, expect) in
            [("uper", Some("UPPER")), ("Cocnat", Some("CONCAT")), ("window", None), ("LOWR", Some("LOWER"))]
        {
            assert_eq!(nearest(name, ["UPPER", "CONCAT", "LOWER"]), expect, "{name}");
        }
    }
}
