//! Inputs of other distributions, made from the reference's own under a secret seed.
//!
//! A candidate that is right only where values are small, or where a weight is one, is right by luck. So floating-point inputs are also scaled,
//! shifted, and sown with the numbers at which code branches; parameters are moved off what they were constructed as, which both processes do by
//! themselves from the same seed (`moving.py` of the runner). Each number
//! drawn is a hash of the seed and of its place, so that the order of the work decides nothing.

use super::elements::Element;
use super::elements::{number_size, numbers, with_element, write_number};
use super::parallel::chunks_mut;
use crate::torch::values::{Dtype, Tensor};

/// How the inputs of a round are distributed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// As the reference draws them.
    Own,
    /// Multiplied.
    Scaled(f64),
    /// A number added.
    Offset(f64),
    /// One in eight replaced by zeros of both signs, large, tiny and repeated numbers.
    Edges,
}

impl Distribution {
    /// In words: `as the reference draws them`. The secret factor is not among them.
    pub fn words(&self) -> &'static str {
        match self {
            Self::Own => "as the reference draws them",
            Self::Scaled(_) => "scaled",
            Self::Offset(_) => "offset",
            Self::Edges => "with edge values",
        }
    }
}

/// Numbers that nobody can guess without the key: SplitMix64's output function (Steele, Lea and Flood, OOPSLA 2014) of a counter.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    key: u64,
}

/// SplitMix64's increment, the golden ratio's fraction in 64 bits.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Stream {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self { key: mix(seed.wrapping_add(GOLDEN)) }
    }

    /// A stream of its own for the thing of this number.
    pub fn child(&self, number: u64) -> Self {
        Self { key: mix(self.key ^ mix(number.wrapping_add(1).wrapping_mul(GOLDEN))) }
    }

    /// The 64 bits at a place.
    pub fn bits(&self, at: u64) -> u64 {
        mix(self.key.wrapping_add(at.wrapping_mul(GOLDEN)))
    }

    /// The number at a place, uniform from `low` to `high`.
    #[allow(clippy::cast_precision_loss)] // 53 bits.
    pub fn uniform(&self, at: u64, low: f64, high: f64) -> f64 {
        low + (self.bits(at) >> 11) as f64 / (1u64 << 53) as f64 * (high - low)
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Numbers at which code branches, overflows or flushes.
const EDGES: [f64; 8] = [0.0, -0.0, 1e3, -1e3, 1e-6, -1e-6, 1.0, -1.0];
/// One in so many elements becomes such a number.
const RARITY: u64 = 8;

/// Changes the floating-point tensors among `tensors`, whose bytes lie in `region`, to another distribution. Returns whether there are any; what
/// does not fit the region is left alone.
pub fn change(tensors: &[Tensor], region: &mut [u8], distribution: Distribution, seed: u64) -> bool {
    let mut any = false;
    for (number, tensor) in tensors.iter().enumerate() {
        let Some(bytes) = floating(tensor, region) else { continue };
        any = true;
        let stream = Stream::new(seed).child(number as u64);
        match distribution {
            Distribution::Own => {}
            Distribution::Scaled(by) => map(tensor.dtype, bytes, |_, value| value * by),
            Distribution::Offset(by) => map(tensor.dtype, bytes, |_, value| value + by),
            Distribution::Edges => edges(tensor.dtype, bytes, stream),
        }
    }
    any
}

fn edges(dtype: Dtype, bytes: &mut [u8], stream: Stream) {
    let repeated =
        numbers(dtype, &bytes[..number_size(dtype).min(bytes.len())]).first().copied().unwrap_or(1.0);
    map(dtype, bytes, |at, value| {
        let bits = stream.bits(at as u64);
        if !bits.is_multiple_of(RARITY) {
            return value;
        }
        let which = usize::try_from(bits >> 32).unwrap_or(0) % (EDGES.len() + 1);
        EDGES.get(which).copied().unwrap_or(repeated)
    });
}

/// Whether there is a floating-point tensor with elements.
pub fn any_floating(tensors: &[Tensor]) -> bool {
    tensors.iter().any(|tensor| tensor.dtype.is_floating() && tensor.bytes > 0)
}

/// Fills floating-point tensors with numbers from -1 to 1.
pub fn fill(tensors: &[Tensor], region: &mut [u8], stream: Stream) {
    for (number, tensor) in tensors.iter().enumerate() {
        let Some(bytes) = floating(tensor, region) else { continue };
        let stream = stream.child(number as u64);
        map(tensor.dtype, bytes, |at, _| stream.uniform(at as u64, -1.0, 1.0));
    }
}

/// The bytes of a floating-point tensor that has elements and lies whole in the region.
fn floating<'a>(tensor: &Tensor, region: &'a mut [u8]) -> Option<&'a mut [u8]> {
    let start = usize::try_from(tensor.offset).ok()?;
    let end = start.checked_add(usize::try_from(tensor.bytes).ok()?)?;
    let bytes = region.get_mut(start..end)?;
    (tensor.dtype.is_floating() && !bytes.is_empty()).then_some(bytes)
}

/// Changes every number, given its place.
fn map(dtype: Dtype, bytes: &mut [u8], change: impl Fn(usize, f64) -> f64 + Sync) {
    with_element!(dtype, E => chunks_mut(bytes, E::SIZE, |first, part| {
        for (at, element) in part.chunks_exact_mut(E::SIZE).enumerate() {
            let value = change(first + at, E::read(element));
            write_number(dtype, element, value);
        }
    }));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{floats, integers};
    use super::*;

    const FLOATING: [Dtype; 6] = [
        Dtype::Float64,
        Dtype::Float32,
        Dtype::Float16,
        Dtype::Bfloat16,
        Dtype::Complex64,
        Dtype::Complex128,
    ];

    #[test]
    fn integers_stay_and_are_said_to_be_all() {
        let (values, mut bytes) = integers(&[3], &[1, 2, 3]);
        let before = bytes.clone();
        assert!(!change(&values.tensors, &mut bytes, Distribution::Offset(5.0), 1));
        assert!(!any_floating(&values.tensors));
        assert_eq!(bytes, before);
    }

    #[test]
    fn edge_values_come_in_their_share() {
        let (values, mut bytes) = floats(Dtype::Float32, &[8000], &vec![0.37; 8000]);
        assert!(change(&values.tensors, &mut bytes, Distribution::Edges, 3));
        let changed = numbers(Dtype::Float32, &bytes);
        let edges = changed.iter().filter(|value| (**value - 0.37).abs() > 1e-6).count();
        // Eight in nine of one in eight.
        assert!((700..1100).contains(&edges), "{edges}");
        assert!(changed.iter().any(|value| *value == 0.0 && value.is_sign_negative()));
        assert!(changed.contains(&1e3) && changed.contains(&-1e3));
    }

    #[test]
    fn many_elements_are_changed_each_by_its_own_place() {
        let count = 1_000_003;
        let (values, mut bytes) = floats(Dtype::Float32, &[count], &vec![1.0; 1_000_003]);
        fill(&values.tensors, &mut bytes, Stream::new(5));
        let stream = Stream::new(5).child(0);
        for (at, found) in numbers(Dtype::Float32, &bytes).iter().enumerate() {
            assert!((found - stream.uniform(at as u64, -1.0, 1.0)).abs() < 1e-6, "{at}");
        }
    }

    proptest! {
        #[test]
        fn a_seed_says_all_and_another_seed_says_otherwise(seed: u64, other: u64, which in 0..6usize) {
            let dtype = FLOATING[which];
            let numbers: Vec<f64> = (0..64).map(|i| f64::from(i) / 7.0 - 3.0).collect();
            let count = (64 / super::super::elements::parts(dtype)) as u64;
            let draw = |seed| {
                let (values, mut bytes) = floats(dtype, &[count], &numbers);
                assert!(any_floating(&values.tensors));
                fill(&values.tensors, &mut bytes, Stream::new(seed));
                bytes
            };
            prop_assert_eq!(draw(seed), draw(seed));
            prop_assert!(seed == other || draw(seed) != draw(other));
        }

        #[test]
        fn scaling_by_a_power_of_two_is_exact(values in prop::collection::vec(-100f64..100.0, 1..50), which in 0..4usize) {
            let dtype = FLOATING[which];
            let (made, mut bytes) = floats(dtype, &[values.len() as u64], &values);
            let before = numbers(dtype, &bytes);
            change(&made.tensors, &mut bytes, Distribution::Scaled(8.0), 0);
            for (after, before) in numbers(dtype, &bytes).iter().zip(before) {
                prop_assert_eq!(*after, before * 8.0);
            }
        }

        #[test]
        fn uniform_numbers_stay_within(seed: u64, at: u64) {
            let value = Stream::new(seed).uniform(at, 0.5, 1.5);
            prop_assert!((0.5..1.5).contains(&value));
        }

        #[test]
        fn a_claimed_place_outside_of_the_region_is_left_alone(offset: u64, bytes: u64) {
            let tensor = Tensor { dtype: Dtype::Float32, shape: vec![1], strides: None, offset, bytes, device: None };
            let mut region = [0x3f; 16];
            change(&[tensor], &mut region, Distribution::Scaled(8.0), 0);
        }
    }
}
