//! Values with the bytes of their tensors, and whether the two fit.

use super::super::values::{Tensor, Tree, Values};
use super::memory::Memory;

/// Where a tensor begins in its region is a multiple of this, in bytes, which is what the widest loads ask for.
pub const ALIGNMENT: u64 = 64;
/// More tensors than this in one value are refused.
const MOST_TENSORS: usize = 65_536;

/// Nested values and the bytes of their tensors. `bytes.len()` is `values.bytes`; each tensor's lie contiguously at its offset.
#[derive(Clone, Debug, PartialEq)]
pub struct Filled {
    /// How they are nested, and where the tensors lie.
    pub values: Values,
    /// The region.
    pub bytes: Memory,
}

/// What is wrong with values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FilledError(pub String);

impl Filled {
    /// Puts values and bytes together.
    ///
    /// # Errors
    /// They don't fit.
    pub fn new(values: Values, bytes: impl Into<Memory>) -> Result<Self, FilledError> {
        let bytes = bytes.into();
        check(&values)?;
        if bytes.len() as u64 != values.bytes {
            return Err(FilledError(format!("{} bytes for values of {}", bytes.len(), values.bytes)));
        }
        Ok(Self { values, bytes })
    }

    /// No values at all: an empty tuple.
    pub fn empty() -> Self {
        Self {
            values: Values { tree: Tree::Tuple { items: Vec::new() }, tensors: Vec::new(), bytes: 0 },
            bytes: Memory::default(),
        }
    }

    /// The bytes of a tensor, by its place in the list. Empty where the place or the region does not fit.
    pub fn tensor(&self, place: usize) -> &[u8] {
        self.range(place).and_then(|range| self.bytes.get(range)).unwrap_or_default()
    }

    /// The bytes of a tensor, to be changed.
    pub fn tensor_mut(&mut self, place: usize) -> &mut [u8] {
        match self.range(place) {
            Some(range) => self.bytes.get_mut(range).unwrap_or_default(),
            None => &mut [],
        }
    }

    /// Zeroes what lies between tensors, which are in the order of their offsets: the region held something else before.
    pub(super) fn clear_gaps(&mut self) {
        let mut end = 0;
        for place in 0..self.values.tensors.len() {
            let Some(range) = self.range(place) else { continue };
            if let Some(gap) = self.bytes.get_mut(end..range.start) {
                gap.fill(0);
            }
            end = range.end.max(end);
        }
        if let Some(gap) = self.bytes.get_mut(end..) {
            gap.fill(0);
        }
    }

    fn range(&self, place: usize) -> Option<std::ops::Range<usize>> {
        let tensor = self.values.tensors.get(place)?;
        let begin = usize::try_from(tensor.offset).ok()?;
        Some(begin..begin.checked_add(usize::try_from(tensor.bytes).ok()?)?)
    }
}

/// Whether values that a child claims can be: sizes that follow from shapes, tensors one after the other, a tree that names only
/// tensors that are there.
pub(super) fn check(values: &Values) -> Result<(), FilledError> {
    let wrong = |what: String| Err(FilledError(what));
    if values.tensors.len() > MOST_TENSORS {
        return wrong(format!("{} tensors, and {MOST_TENSORS} are the most", values.tensors.len()));
    }
    let mut end = 0;
    for (place, tensor) in values.tensors.iter().enumerate() {
        let size = tensor.count().and_then(|count| count.checked_mul(tensor.dtype.size()));
        if size != Some(tensor.bytes) {
            return wrong(format!(
                "tensor {place} of shape {:?} and {} bytes an element claims {} bytes",
                tensor.shape,
                tensor.dtype.size(),
                tensor.bytes
            ));
        }
        if tensor.offset < end || tensor.offset % ALIGNMENT != 0 {
            return wrong(format!("tensor {place} begins at {}, before {end} or unaligned", tensor.offset));
        }
        end = match tensor.offset.checked_add(tensor.bytes) {
            Some(end) if end <= values.bytes => end,
            _ => return wrong(format!("tensor {place} ends outside of its {} bytes", values.bytes)),
        };
        if tensor.strides.as_ref().is_some_and(|strides| strides.len() != tensor.shape.len()) {
            return wrong(format!("tensor {place} has more or fewer strides than dimensions"));
        }
    }
    if values.bytes > end.saturating_add(ALIGNMENT) {
        return wrong(format!("{} bytes for tensors that end at {end}", values.bytes));
    }
    check_tree(&values.tree, values.tensors.len())
}

fn check_tree(tree: &Tree, tensors: usize) -> Result<(), FilledError> {
    let mut seen = vec![false; tensors];
    let mut waiting = vec![tree];
    while let Some(tree) = waiting.pop() {
        match tree {
            Tree::Tensor { i } => match seen.get_mut(*i) {
                Some(seen) => *seen = true,
                None => return Err(FilledError(format!("tensor {i} of {tensors}"))),
            },
            Tree::Tuple { items } | Tree::List { items } => waiting.extend(items),
            Tree::Dict { items } | Tree::Named { items, .. } => {
                waiting.extend(items.iter().map(|item| &item.1))
            }
            Tree::Int { .. } | Tree::Float { .. } | Tree::Bool { .. } | Tree::Str { .. } | Tree::None => {}
        }
    }
    match seen.iter().position(|seen| !seen) {
        Some(place) => Err(FilledError(format!("tensor {place} is nowhere in the value"))),
        None => Ok(()),
    }
}

/// Places tensors one after the other: sets their offsets, and gives the size of the region.
pub fn lay_out(tensors: &mut [Tensor]) -> Option<u64> {
    let mut end = 0u64;
    for tensor in tensors {
        tensor.offset = end.checked_next_multiple_of(ALIGNMENT)?;
        end = tensor.offset.checked_add(tensor.bytes)?;
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::super::super::values::Dtype;
    use super::*;

    fn tensor(shape: &[u64], offset: u64, bytes: u64) -> Tensor {
        Tensor { dtype: Dtype::Float32, shape: shape.to_vec(), strides: None, offset, bytes, device: None }
    }

    fn values(tensors: Vec<Tensor>, bytes: u64) -> Values {
        let items = (0..tensors.len()).map(|i| Tree::Tensor { i }).collect();
        Values { tree: Tree::Tuple { items }, tensors, bytes }
    }

    #[test]
    fn what_fits_is_taken() {
        assert_eq!(check(&values(vec![tensor(&[2, 3], 0, 24), tensor(&[1], 64, 4)], 68)), Ok(()));
        assert_eq!(check(&values(vec![tensor(&[0, 3], 0, 0), tensor(&[], 0, 4)], 4)), Ok(()));
        assert_eq!(check(&values(vec![], 0)), Ok(()));
    }

    #[test]
    fn what_can_not_be_is_refused() {
        let wrong = |tensors, bytes| check(&values(tensors, bytes)).unwrap_err().0;
        assert!(wrong(vec![tensor(&[2], 0, 9)], 9).contains("claims 9 bytes"));
        assert!(wrong(vec![tensor(&[u64::MAX, 2], 0, 8)], 8).contains("claims 8 bytes"));
        assert!(wrong(vec![tensor(&[1], 4, 4)], 8).contains("unaligned"));
        assert!(wrong(vec![tensor(&[32], 0, 128), tensor(&[1], 64, 4)], 128).contains("before 128"));
        assert!(wrong(vec![tensor(&[32], 0, 128)], 100).contains("outside"));
        assert!(wrong(vec![tensor(&[1], 1 << 63, 4)], u64::MAX).contains("bytes for tensors"));
        assert!(wrong(vec![tensor(&[1], 0, 4)], 1 << 50).contains("bytes for tensors"));
        let mut strides = tensor(&[1], 0, 4);
        strides.strides = Some(vec![1, 1]);
        assert!(wrong(vec![strides], 4).contains("strides"));
        let mut missing = values(vec![tensor(&[1], 0, 4)], 4);
        missing.tree = Tree::Tensor { i: 1 };
        assert!(check(&missing).unwrap_err().0.contains("tensor 1 of 1"));
        missing.tree = Tree::None;
        assert!(check(&missing).unwrap_err().0.contains("nowhere"));
    }

    #[test]
    fn nothing_stands_between_tensors() {
        let described = values(vec![tensor(&[2], 0, 8), tensor(&[0], 64, 0), tensor(&[1], 128, 4)], 140);
        let mut filled = Filled { values: described, bytes: vec![7; 140].into() };
        filled.clear_gaps();
        let kept: Vec<usize> = (0..140).filter(|at| filled.bytes[*at] == 7).collect();
        assert_eq!(kept, [0, 1, 2, 3, 4, 5, 6, 7, 128, 129, 130, 131]);
    }

    #[test]
    fn tensors_are_placed_one_after_the_other() {
        let mut tensors = [tensor(&[3], 9, 12), tensor(&[1], 9, 4)];
        assert_eq!(lay_out(&mut tensors), Some(68));
        assert_eq!((tensors[0].offset, tensors[1].offset), (0, 64));
    }
}
