//! Which lines of two texts belong together.

use super::token::Token;

/// Longer tables than this are not filled; lines are then paired by their number.
const MOST_CELLS: usize = 16 << 20;

/// For each line of `left` the line of `right` that says the same but for its numbers, in order: a longest common
/// subsequence, so that a line that moved belongs to none.
pub fn align(left: &[Vec<Token>], right: &[Vec<Token>]) -> Vec<Option<usize>> {
    let alike = |i: usize, j: usize| {
        let (one, other): (&Vec<Token>, &Vec<Token>) = (&left[i], &right[j]);
        one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.is_like(other))
    };
    let mut pairs = vec![None; left.len()];
    let shorter = left.len().min(right.len());
    let head = (0..shorter).take_while(|i| alike(*i, *i)).count();
    let tail = (1..=shorter - head).take_while(|i| alike(left.len() - i, right.len() - i)).count();
    for (i, pair) in pairs.iter_mut().take(head).enumerate() {
        *pair = Some(i);
    }
    for i in 1..=tail {
        pairs[left.len() - i] = Some(right.len() - i);
    }
    let (rows, columns) = (left.len() - head - tail, right.len() - head - tail);
    if rows.saturating_mul(columns) > MOST_CELLS {
        for i in 0..rows.min(columns) {
            pairs[head + i] = alike(head + i, head + i).then_some(head + i);
        }
        return pairs;
    }
    // `longest[i][j]`: how many of the lines from i and from j on can be paired.
    let width = columns + 1;
    let mut longest = vec![0u32; (rows + 1) * width];
    for i in (0..rows).rev() {
        for j in (0..columns).rev() {
            longest[i * width + j] = if alike(head + i, head + j) {
                longest[(i + 1) * width + j + 1] + 1
            } else {
                longest[(i + 1) * width + j].max(longest[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < rows && j < columns {
        if alike(head + i, head + j) {
            pairs[head + i] = Some(head + j);
            (i, j) = (i + 1, j + 1);
        } else if longest[(i + 1) * width + j] >= longest[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::super::token::tokens;
    use super::*;

    #[test]
    fn lines_pair_up_in_order() {
        for (left, right, expected) in [
            ("a 1\nb 2\nc 3", "a 9\nb 8\nc 7", "0 1 2"),
            ("a 1\nb 2\nc 3", "a 1\nc 3", "0 - 1"),
            ("a 1\nb 2", "b 2\na 1", "- 0"),
            ("a\nb\nc", "x\na\ny\nc", "1 - 3"),
            ("", "a", "-"),
        ] {
            let split = |text: &'static str| text.split('\n').map(tokens).collect::<Vec<_>>();
            let pairs = align(&split(left), &split(right));
            let shown: Vec<_> =
                pairs.iter().map(|pair| pair.map_or("-".to_owned(), |j| j.to_string())).collect();
            assert_eq!(shown.join(" "), expected, "{left:?} {right:?}");
        }
    }
}
