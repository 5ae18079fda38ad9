//! Suggests the correct spelling of a misspelled word.

/// Returns the known word nearest to `word`, if it is near enough.
pub fn nearest<'a>(word: &[u8], known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let max_distance = ((word.len() + 1) / 3).clamp(1, 3);
    known
        .into_iter()
        .filter(|other| other.len().abs_diff(word.len()) <= max_distance)
        .map(|other| (distance(word, other.as_bytes()), other))
        .filter(|(distance, _)| *distance <= max_distance)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, other)| other)
}

/// Counts the insertions, deletions, substitutions and swaps of neighbors between two words.
fn distance(one: &[u8], other: &[u8]) -> usize {
    // Both are short: the length of the known names limits that of the other.
    let width = other.len() + 1;
    let mut rows = vec![(0..width).collect::<Vec<_>>()];
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let same = a.eq_ignore_ascii_case(b);
            let mut least = (rows[i][j] + usize::from(!same))
                .min(rows[i][j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][width - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_likely_spelling() {
        let known = ["dport", "sport", "comment", "ctstate"];
        assert_eq!(nearest(b"dprot", known), Some("dport"));
        assert_eq!(nearest(b"coment", known), Some("comment"));
        assert_eq!(nearest(b"CTSTATE", known), Some("ctstate"));
        assert_eq!(nearest(b"probability", known), None);
        assert_eq!(nearest(b"", known), None);
        assert_eq!(distance(b"", b"abc"), 3);
        assert_eq!(distance(b"abc", b"acb"), 1);
    }
}
