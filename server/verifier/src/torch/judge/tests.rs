//! Values made for tests.

use super::elements::{View, parts, write_number};
use crate::torch::values::{Dtype, Tensor, Tree, Values};

/// Values and their region.
pub(super) type Made = (Values, Vec<u8>);

pub(super) fn view(made: &Made) -> View<'_> {
    View { values: &made.0, bytes: &made.1 }
}

fn one(dtype: Dtype, shape: &[u64], bytes: Vec<u8>) -> Made {
    let tensor = Tensor {
        dtype,
        shape: shape.to_vec(),
        strides: None,
        offset: 0,
        bytes: bytes.len() as u64,
        device: None,
    };
    let values = Values { tree: Tree::Tensor { i: 0 }, tensors: vec![tensor], bytes: bytes.len() as u64 };
    (values, bytes)
}

/// A tensor of a floating type; of a complex one, `numbers` are its parts.
pub(super) fn floats(dtype: Dtype, shape: &[u64], numbers: &[f64]) -> Made {
    let size = usize::try_from(dtype.size()).unwrap() / parts(dtype);
    let mut bytes = vec![0; numbers.len() * size];
    for (element, number) in bytes.chunks_exact_mut(size).zip(numbers) {
        write_number(dtype, element, *number);
    }
    one(dtype, shape, bytes)
}

/// A tensor of 64-bit integers.
pub(super) fn integers(shape: &[u64], numbers: &[i64]) -> Made {
    one(Dtype::Int64, shape, numbers.iter().flat_map(|number| number.to_le_bytes()).collect())
}

/// Several values in one region.
pub(super) fn gather(items: Vec<Made>, wrap: impl Fn(Vec<Tree>) -> Tree) -> Made {
    let (mut trees, mut tensors, mut bytes) = (Vec::new(), Vec::<Tensor>::new(), Vec::new());
    for (values, region) in items {
        let Tree::Tensor { i } = values.tree else { panic!("a tensor is expected") };
        trees.push(Tree::Tensor { i: i + tensors.len() });
        bytes.resize(usize::div_ceil(bytes.len(), 64) * 64, 0);
        let shift = bytes.len() as u64;
        tensors.extend(
            values.tensors.into_iter().map(|tensor| Tensor { offset: tensor.offset + shift, ..tensor }),
        );
        bytes.extend(region);
    }
    let values = Values { tree: wrap(trees), tensors, bytes: bytes.len() as u64 };
    (values, bytes)
}

/// A tuple of tensors.
pub(super) fn tuple(items: Vec<Made>) -> Made {
    gather(items, |items| Tree::Tuple { items })
}
