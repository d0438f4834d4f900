//! Descriptions of tensors, and which bytes of memory a box of one is made of.
//!
//! Tiled: the box has a length in each dimension. Images (the mode im2col): the innermost dimension are channels, the outermost counts images, those between
//! are pixels; a box is a number of channels of a number of pixels, which the base of a filter goes through one after the other, within
//! bounds. Source: PTX ISA, "Tensors".

/// What a description begins with.
pub(crate) const MAGIC: u64 = 0x7061_6d72_6f73_6e74;
/// Dimensions, at most.
pub(super) const RANK: usize = 5;

/// Bytes of an element by the number of its type; 0 for what is packed. Source: `CUtensorMapDataType` of `cuda.h`.
const SIZES: [u64; 16] = [1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4, 0, 0, 0];
/// NaN by the number of the type; 0 where there is none.
const NANS: [u64; 16] = [
    0,
    0,
    0,
    0,
    0,
    0,
    0x7fff,
    0x7fff_ffff,
    0x7fff_ffff_ffff_ffff,
    0x7fff,
    0x7fff_ffff,
    0x7fff_ffff,
    0x7fff_ffff,
    0,
    0,
    0,
];

/// Elements of a dimension, at most.
const LONGEST: u64 = 1 << 32;
/// Dimensions between channels and images, at most.
const AXES: usize = RANK - 2;

/// Where a filter's base may be, along width, height and depth: from the first pixel, and from the last.
struct Images {
    lower: [i64; AXES],
    upper: [i64; AXES],
}

impl Images {
    /// Three signed numbers of 16 bits in a word each.
    fn new(lower: u64, upper: u64) -> Self {
        let three = |word: u64| std::array::from_fn(|at| i64::from((word >> (16 * at)) as i16));
        Self { lower: three(lower), upper: three(upper) }
    }
}

/// What an instruction says besides the map.
#[derive(Default)]
pub(super) struct Place {
    pub coordinates: [i64; RANK],
    /// Of the filter, from its base: width, height, depth.
    pub offsets: [i64; AXES],
}

/// A tensor and the box that is copied of it.
pub(super) struct TensorMap {
    start: u64,
    pub(super) rank: usize,
    /// The number of the elements' type, and its bytes.
    pub(super) ty: usize,
    pub(super) size: u64,
    /// Elements of each dimension.
    lengths: [u64; RANK],
    /// Bytes between elements of each dimension.
    strides: [u64; RANK],
    /// Elements of the box, and what they are apart.
    box_lengths: [u64; RANK],
    steps: [u64; RANK],
    /// Chunks that are swizzled together; 1 for none.
    pub(super) span: u64,
    /// What stands for elements beyond the tensor.
    pub(super) fill: u64,
    /// Of a tensor of images, the filter's bounds.
    images: Option<Images>,
}

impl TensorMap {
    /// Takes a description apart; none if it is none.
    pub(super) fn new(words: &[u64; 16]) -> Option<Self> {
        if words[0] != MAGIC {
            return None;
        }
        let field = |from: u32, bits: u32| words[12] >> from & ((1 << bits) - 1);
        let (ty, rank) = (field(24, 4) as usize, field(32, 4) as usize);
        let size = SIZES[ty];
        let mut map = Self {
            start: words[1],
            rank,
            ty,
            size,
            lengths: [1; RANK],
            strides: [size; RANK],
            box_lengths: [1; RANK],
            steps: [1; RANK],
            span: [1, 2, 4, 8][field(40, 2) as usize],
            fill: if field(44, 1) == 1 { NANS[ty] } else { 0 },
            images: (field(45, 1) == 1).then(|| Images::new(words[13], words[14])),
        };
        for at in 0..rank.min(RANK) {
            map.lengths[at] = words[2 + at].min(LONGEST);
            map.steps[at] = if at == 0 { 1 } else { field(4 * at as u32, 4).max(1) };
            let length = words[11] >> (12 * at) & 0xfff;
            map.box_lengths[at] = match map.images {
                // Channels and pixels, whatever the steps.
                Some(_) if at < 2 => length,
                Some(_) => 1,
                None => length.div_ceil(map.steps[at]),
            };
            if at > 0 {
                map.strides[at] = words[6 + at];
            }
        }
        let least = if map.images.is_some() { 3 } else { 1 };
        (size > 0 && (least..=RANK).contains(&rank)).then_some(map)
    }

    /// Whether it is one of images.
    pub(super) fn is_images(&self) -> bool {
        self.images.is_some()
    }

    /// Whether the filter's base stays within the images: what can be written to must.
    pub(super) fn is_within(&self) -> bool {
        let within = |images: &Images| {
            images.lower.iter().all(|one| *one >= 0) && images.upper.iter().all(|one| *one <= 0)
        };
        self.images.as_ref().is_none_or(within)
    }

    /// Bytes of a row of the box, and how many rows.
    pub(super) fn rows(&self) -> (u64, u64) {
        (self.box_lengths[0] * self.size, self.box_lengths[1..].iter().product())
    }

    /// Where row `number` of the box at `place` begins in memory, bytes before it that are beyond the tensor, and bytes that are in it.
    pub(super) fn row(&self, place: &Place, number: u64) -> (u64, u64, u64) {
        let first = place.coordinates[0];
        let (length, wanted) = (self.lengths[0] as i64, self.box_lengths[0] as i64);
        let before = (-first).clamp(0, wanted);
        let inside = (length - first.max(0)).clamp(0, wanted - before);
        let mut address = self.start.wrapping_add_signed(first.max(0) * self.size as i64);
        let mut within = true;
        let indices = match &self.images {
            Some(images) => self.pixel(images, place, number),
            None => self.element(&place.coordinates, number),
        };
        for (at, index) in indices.iter().enumerate().take(self.rank).skip(1) {
            within &= (0..self.lengths[at] as i64).contains(index);
            address = address.wrapping_add_signed(index.wrapping_mul(self.strides[at] as i64));
        }
        let inside = if within { inside } else { 0 };
        // Nothing is accessed then; an address beyond the tensor need not be one.
        let address = if inside == 0 { self.start } else { address };
        (address, before as u64 * self.size, inside as u64 * self.size)
    }

    /// Indices of row `number` of a tile.
    fn element(&self, coordinates: &[i64; RANK], number: u64) -> [i64; RANK] {
        let mut indices = *coordinates;
        let mut left = number;
        for (at, index) in indices.iter_mut().enumerate().take(self.rank).skip(1) {
            *index += (left % self.box_lengths[at] * self.steps[at]) as i64;
            left /= self.box_lengths[at];
        }
        indices
    }

    /// Indices of pixel `number`: the base goes from its coordinates along the width, then to the next row, and so on to the next image.
    fn pixel(&self, images: &Images, place: &Place, number: u64) -> [i64; RANK] {
        let mut indices = place.coordinates;
        let last = self.rank - 1;
        let mut left = number;
        for (axis, index) in indices[1..last].iter_mut().enumerate() {
            let at = axis + 1;
            let bounds = [images.lower[axis], self.lengths[at] as i64 - 1 + images.upper[axis]];
            let (base, carried) = walk(*index, bounds, self.steps[at], left);
            *index = base + place.offsets[axis];
            left = carried;
        }
        indices[last] += left as i64;
        indices
    }
}

/// Where a base that begins at `start` is after so many steps, and how often it went back to the lower bound.
fn walk(start: i64, [lower, upper]: [i64; 2], step: u64, number: u64) -> (i64, u64) {
    let places = |from: i64| (upper - from).max(0) as u64 / step + 1;
    let first = places(start);
    if number < first {
        return (start + (number * step) as i64, 0);
    }
    let (left, all) = (number - first, places(lower));
    (lower + (left % all * step) as i64, 1 + left / all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_beyond_the_tensor_are_clipped() {
        let mut words = [0; 16];
        (words[0], words[1], words[2], words[3], words[7]) = (MAGIC, 4096, 10, 6, 64);
        (words[11], words[12]) = (8 | 4 << 12, 7 << 24 | 2 << 32 | 1 | 1 << 4);
        let map = TensorMap::new(&words).unwrap();
        assert_eq!(map.rows(), (32, 4));
        // Columns 6 to 13 of row 5; row 6 is beyond.
        let at = |x, y| Place { coordinates: [x, y, 0, 0, 0], ..Place::default() };
        assert_eq!(map.row(&at(6, 4), 1), (4096 + 5 * 64 + 24, 0, 16));
        assert_eq!(map.row(&at(6, 4), 2).2, 0);
        // Columns -3 to 4.
        assert_eq!(map.row(&at(-3, 0), 0), (4096, 12, 20));
    }

    /// A map of 64 images of 14 rows of `width` pixels of 64 channels of two bytes, as in the examples of the PTX ISA.
    fn images(width: u64, corners: [i16; 2], channels: u64, pixels: u64, step: u64) -> TensorMap {
        let mut words = [0; 16];
        (words[0], words[1]) = (MAGIC, 1 << 20);
        words[2..6].copy_from_slice(&[64, width, 14, 64]);
        words[7..10].copy_from_slice(&[128, 128 * width, 128 * width * 14]);
        words[11] = channels | pixels << 12;
        words[12] = 6 << 24 | 4 << 32 | 1 << 45 | 1 | step << 4 | step << 8 | 1 << 12;
        let corner = |at: usize| u64::from(corners[at].cast_unsigned()) * 0x1_0001;
        (words[13], words[14]) = (corner(0), corner(1));
        TensorMap::new(&words).unwrap()
    }

    /// Image, row and column of each pixel of a box; nothing beyond the tensor. Channels begin at 7.
    fn pixels(map: &TensorMap, place: &Place) -> Vec<Option<[u64; 3]>> {
        let [width, height] = [map.lengths[1], map.lengths[2]];
        let one = |number| {
            let (address, before, inside) = map.row(place, number);
            assert_eq!(before, 0);
            let at = (address - (1 << 20)) / 128;
            assert!(inside == 0 || (address - (1 << 20)) % 128 == 14 && inside == map.rows().0);
            (inside > 0).then_some([at / width / height, at / width % height, at % width])
        };
        (0..map.rows().1).map(one).collect()
    }

    fn place(coordinates: [i64; 4], offsets: [i64; 2]) -> Place {
        let [c, w, h, n] = coordinates;
        Place { coordinates: [c, w, h, n, 0], offsets: [offsets[0], offsets[1], 0] }
    }

    /// PTX ISA, "im2col mode", example 1: the base goes through columns -1 to 7 and rows -1 to 12, from column 7 of row 4.
    #[test]
    fn a_filter_goes_through_the_bounds() {
        let map = images(9, [-1, -1], 8, 64, 1);
        assert_eq!(map.rows(), (16, 64));
        let found = pixels(&map, &place([7, 7, 4, 0], [0, 0]));
        assert_eq!(found[0], Some([0, 4, 7]));
        // The next row begins left of the image.
        assert_eq!(found[1], None);
        assert_eq!(found[2..10], std::array::from_fn::<_, 8, _>(|at| Some([0, 5, at as u64])));
        assert_eq!((found[10], found[11]), (None, Some([0, 6, 0])));
        // 63 pixels after the first are seven rows of nine.
        assert_eq!(found[63], Some([0, 11, 7]));
    }

    /// Example 2: bounds from the first pixel to the last but two; the same base, offset by two columns and two rows.
    #[test]
    fn offsets_are_added_to_the_base() {
        let map = images(9, [0, -2], 8, 64, 1);
        let found = pixels(&map, &place([7, 6, 4, 0], [2, 2]));
        assert_eq!((found[0], found[1]), (Some([0, 6, 8]), Some([0, 7, 2])));
        // Rows of seven: the base is at row 11, the last, in the seventh row after the first pixel; then it goes to the next image.
        assert_eq!(found[1 + 7 * 7], Some([1, 2, 2]));
        assert!(found.iter().all(Option::is_some));
    }

    /// Example 3: steps of two, and as many pixels all the same: columns -1, 1, 3 and 5 of rows 5, 7, 9 and 11, and of rows from -1 on.
    #[test]
    fn steps_leave_out_pixels_and_not_the_count() {
        let map = images(8, [-1, -1], 16, 32, 2);
        let found = pixels(&map, &place([7, 5, 5, 0], [1, 1]));
        assert_eq!(found.len(), 32);
        assert_eq!(found[..2], [Some([0, 6, 6]), Some([0, 8, 0])]);
        assert_eq!(found[4..6], [Some([0, 8, 6]), Some([0, 10, 0])]);
        // After row 11 comes the next image, from row -1 on.
        assert_eq!(found[12..14], [Some([0, 12, 6]), Some([1, 0, 0])]);
    }

    #[test]
    fn pixels_after_the_last_image_are_beyond() {
        let map = images(9, [0, 0], 8, 3, 1);
        let found = pixels(&map, &place([7, 8, 13, 63], [0, 0]));
        assert_eq!(found, [Some([63, 13, 8]), None, None]);
        assert!(map.is_within() && !images(9, [-1, -1], 8, 3, 1).is_within());
    }
}
