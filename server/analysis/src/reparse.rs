//! Where two texts differ, and the tree of the one made ready for a parse of the other.

use stitch_findings::Edit;
use tree_sitter::{InputEdit, Point, Tree};

/// The tree of `old`, moved to the places of `new`; `None` where the texts have too little in common.
pub fn edited(old: &[u8], tree: &Tree, new: &[u8]) -> Option<Tree> {
    let edit = difference(old, new);
    let kept = edit.start + (old.len() - edit.old_end);
    if kept < new.len() / 2 {
        return None;
    }
    let mut tree = tree.clone();
    tree.edit(&InputEdit {
        start_byte: edit.start,
        old_end_byte: edit.old_end,
        new_end_byte: edit.new_end,
        start_position: point(old, edit.start),
        old_end_position: point(old, edit.old_end),
        new_end_position: point(new, edit.new_end),
    });
    Some(tree)
}

/// The one replacement that makes `new` of `old`. It may begin and end inside a character.
pub fn difference(old: &[u8], new: &[u8]) -> Edit {
    let shorter = old.len().min(new.len());
    let start = common(old[..shorter].chunks(64).zip(new[..shorter].chunks(64)), |a, b| {
        a.iter().zip(b).take_while(|(x, y)| x == y).count()
    });
    let left = shorter - start;
    let (old_rest, new_rest) = (&old[old.len() - left..], &new[new.len() - left..]);
    let end = common(old_rest.rchunks(64).zip(new_rest.rchunks(64)), |a, b| {
        a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count()
    });
    Edit { start, old_end: old.len() - end, new_end: new.len() - end }
}

fn common<'a>(
    chunks: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    within: impl Fn(&[u8], &[u8]) -> usize,
) -> usize {
    let mut same = 0;
    for (a, b) in chunks {
        if a == b {
            same += a.len();
        } else {
            return same + within(a, b);
        }
    }
    same
}

fn point(text: &[u8], byte: usize) -> Point {
    let before = &text[..byte];
    let row = memchr::memchr_iter(b'\n', before).count();
    let column = byte - memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    Point { row, column }
}
