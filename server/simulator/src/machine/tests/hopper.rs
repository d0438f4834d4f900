//! Copies by tensor maps, reductions in bulk and multiplications of warpgroups, beside what the host makes of the same numbers.

use super::Parameter::{Int, Long, Map, Pointer};
use super::matrices::{Draw, Kind, summed};
use super::*;
use crate::machine::FaultKind;

const HOPPER: &str = include_str!("cases/hopper.ptx");

/// A tensor of integers, as `cuTensorMapEncodeTiled` describes it to the simulator.
struct Tensor {
    ty: u64,
    size: u64,
    address: u64,
    lengths: Vec<u64>,
    /// Bytes between elements of each dimension.
    strides: Vec<u64>,
    boxes: Vec<u64>,
    steps: Vec<u64>,
    swizzle: u64,
    fill: u64,
}

impl Tensor {
    /// Elements of 4 bytes (type 2, u32), rows one after the other.
    fn dense(address: u64, lengths: &[u64], boxes: &[u64]) -> Self {
        let mut strides = vec![4];
        for at in 1..lengths.len() {
            strides.push(strides[at - 1] * lengths[at - 1]);
        }
        let steps = vec![1; lengths.len()];
        let (lengths, boxes) = (lengths.to_vec(), boxes.to_vec());
        Self { ty: 2, size: 4, address, lengths, strides, boxes, steps, swizzle: 0, fill: 0 }
    }

    fn words(&self) -> [u64; 16] {
        let mut words = [0; 16];
        (words[0], words[1]) = (crate::machine::tensor_map::MAGIC, self.address);
        words[12] = self.ty << 24 | (self.lengths.len() as u64) << 32 | self.swizzle << 40 | self.fill << 44;
        for at in 0..self.lengths.len() {
            words[2 + at] = self.lengths[at];
            if at > 0 {
                words[6 + at] = self.strides[at];
            }
            words[11] |= self.boxes[at] << (12 * at);
            words[12] |= self.steps[at] << (4 * at);
        }
        words
    }

    /// What a box holds, element by element: an index into the tensor's memory in elements, or nothing beyond it.
    fn cells(&self, coordinates: &[i64]) -> Vec<Option<usize>> {
        let shape: Vec<u64> =
            self.boxes.iter().zip(&self.steps).map(|(length, step)| length.div_ceil(*step)).collect();
        let cell = |number: u64| {
            let (mut left, mut address) = (number, 0);
            for at in 0..shape.len() {
                let index = coordinates[at] + (left % shape[at] * self.steps[at]) as i64;
                left /= shape[at];
                if !(0..self.lengths[at] as i64).contains(&index) {
                    return None;
                }
                address += index as u64 * self.strides[at];
            }
            Some((address / self.size) as usize)
        };
        (0..shape.iter().product()).map(cell).collect()
    }
}

/// Loads a box, and compares it with what the host finds.
fn loads(bench: &Bench, tensor: &Tensor, values: &[u32], coordinates: &[i64]) {
    let cells = tensor.cells(coordinates);
    let bytes = cells.len() * 4;
    let out = bench.array(&vec![0u32; cells.len()]);
    let mut parameters = vec![Map(tensor.words()), Int(tensor.lengths.len() as i32), Int(bytes as i32)];
    parameters.extend((0..5).map(|at| Int(coordinates.get(at).copied().unwrap_or(0) as i32)));
    parameters.push(Pointer(out));
    bench
        .launch_with("boxes", [1; 3], [64, 1, 1], &parameters, |launch| launch.dynamic_shared = 8192)
        .unwrap_or_else(|fault| panic!("{fault}"));
    let got = bench.read::<u32>(out, cells.len());
    let row = tensor.boxes[0] as usize * 4;
    let span = 16 << tensor.swizzle;
    for (at, cell) in cells.iter().enumerate() {
        // Within 8 rows of `span` bytes, the number of a 16-byte chunk is exclusive-ored with bits of the row of 128 bytes.
        let byte = at / (row / 4) * row + at % (row / 4) * 4;
        let byte = byte ^ (byte >> 7 & (span / 16 - 1)) << 4;
        let wanted = cell.map_or(if tensor.fill == 1 { 0x7fff_ffff } else { 0 }, |cell| values[cell]);
        assert_eq!(got[byte / 4], wanted, "{coordinates:?} {at}");
    }
}

#[test]
fn boxes_of_tensors_come_as_they_are() {
    let bench = Bench::new(&[HOPPER]);
    let values: Vec<u32> = (0..8192).map(|i| i * 7 + 1).collect();
    let address = bench.array(&values);
    loads(&bench, &Tensor::dense(address, &[100], &[32]), &values, &[80]);
    for (swizzle, row) in [(0, 16), (1, 8), (2, 16), (3, 32)] {
        let mut tensor = Tensor::dense(address, &[60, 50], &[row, 24]);
        tensor.swizzle = swizzle;
        for coordinates in [[4, 3], [-5, 40], [52, -2]] {
            loads(&bench, &tensor, &values, &coordinates);
        }
    }
    let mut strided = Tensor::dense(address, &[20, 12, 9], &[8, 6, 5]);
    (strided.steps, strided.ty, strided.fill) = (vec![1, 2, 3], 7, 1);
    loads(&bench, &strided, &values, &[3, 5, 2]);
    loads(&bench, &Tensor::dense(address, &[12, 5, 4, 3], &[4, 3, 2, 2]), &values, &[8, 1, 3, 2]);
    loads(&bench, &Tensor::dense(address, &[8, 5, 4, 3, 3], &[4, 2, 2, 2, 2]), &values, &[4, 4, 0, 1, 2]);
}

#[test]
fn boxes_go_back_clipped() {
    let bench = Bench::new(&[HOPPER]);
    for (how, combine) in [
        (0, (|_, new| new) as fn(u32, u32) -> u32),
        (1, |old: u32, new: u32| old.wrapping_add(new)),
        (2, |old: u32, new: u32| old.min(new)),
    ] {
        let mut values: Vec<u32> = (0..40 * 20).map(|i| i % 50).collect();
        let address = bench.array(&values);
        let tensor = Tensor::dense(address, &[40, 20], &[16, 8]);
        let cells = tensor.cells(&[30, 15]);
        let parameters = [Map(tensor.words()), Int(how), Int(cells.len() as i32), Int(30), Int(15)];
        bench
            .launch_with("boxes_back", [1; 3], [64, 1, 1], &parameters, |launch| launch.dynamic_shared = 4096)
            .unwrap_or_else(|fault| panic!("{fault}"));
        for (at, cell) in cells.iter().enumerate() {
            if let Some(cell) = cell {
                values[*cell] = combine(values[*cell], at as u32);
            }
        }
        assert_eq!(bench.read::<u32>(address, values.len()), values, "{how}");
    }
}

#[test]
fn wrong_maps_and_boxes_are_faults() {
    let bench = Bench::new(&[HOPPER]);
    let address = bench.array(&[0u32; 100]);
    let out = bench.array(&[0u32; 100]);
    let launch = |words: [u64; 16], shared: u32| {
        let mut parameters = vec![Map(words), Int(1), Int(128)];
        parameters.extend([Int(0); 5]);
        parameters.push(Pointer(out));
        bench
            .launch_with("boxes", [1; 3], [32, 1, 1], &parameters, |launch| launch.dynamic_shared = shared)
            .unwrap_err()
    };
    let good = Tensor::dense(address, &[100], &[32]).words();
    // Of images, though the instruction is one for tiles.
    let mut images = Tensor::dense(address, &[4, 5, 5], &[4, 2, 1]).words();
    images[12] |= 1 << 45;
    for (fault, says) in [
        (launch([0; 16], 1024), "is not a tensor map of 1 dimensions"),
        (launch(Tensor::dense(address, &[100, 1], &[32, 1]).words(), 1024), "of 1 dimensions"),
        (launch(images, 1024), "of 1 dimensions for this instruction: make it with cuTensorMapEncodeTiled"),
        (launch(good, 64), "bytes of shared memory"),
        (launch(Tensor::dense(address + 400, &[100], &[32]).words(), 1024), "not allocated"),
    ] {
        assert_eq!(fault.kind, FaultKind::IllegalAddress, "{fault}");
        assert!(fault.message.contains(says) && fault.place.is_some(), "{fault}");
    }
}

#[test]
fn a_box_can_go_to_all_blocks_of_a_cluster() {
    let bench = Bench::new(&[HOPPER]);
    let values: Vec<u32> = (0..64).collect();
    let (tensor, range, out) = (bench.array(&values), bench.array(&[2i32; 64]), bench.array(&[0i32; 2]));
    let parameters = [Map(Tensor::dense(tensor, &[64], &[64]).words()), Pointer(range), Pointer(out)];
    let counters = bench
        .launch_with("both", [2, 1, 1], [32, 1, 1], &parameters, |launch| launch.cluster = [2, 1, 1])
        .unwrap();
    // 256 bytes, for both blocks.
    for copied in counters.instructions.iter().filter(|i| i.opcode.contains("multicast")) {
        assert_eq!((copied.count.sectors, copied.count.bytes), (8, 256), "{}", copied.opcode);
    }
    // Each adds the other's rank, as the address of the other's memory tells it.
    assert_eq!(bench.read::<i32>(out, 2), [2016 + 128_000 + 1_000_000, 2016 + 128_000]);
}

#[test]
fn ranges_are_reduced_in_bulk() {
    let bench = Bench::new(&[HOPPER]);
    let (out, floats) = (bench.array(&[5u32; 32]), bench.array(&[0.25f32; 32]));
    let received = bench.array(&[0u32; 128]);
    let parameters = [Pointer(out), Pointer(floats), Pointer(received)];
    bench
        .launch_with("sums", [4, 1, 1], [32, 1, 1], &parameters, |launch| launch.cluster = [2, 1, 1])
        .unwrap();
    for t in 0..32 {
        assert_eq!(bench.read::<u32>(out, 32)[t], 5 + 4 * t as u32);
        assert_eq!(bench.read::<f32>(floats, 32)[t], 0.25 + 2.0 * t as f32);
    }
    assert_eq!(bench.read::<u32>(received, 128), [100u32; 128]);
}

/// A matrix of `lines` (rows of `a`, columns of `b`) by `k`, as its elements' bits.
struct Laid {
    lines: usize,
    k: usize,
    bytes: usize,
    swizzle: u64,
    across: bool,
    cells: Vec<u64>,
}

impl Laid {
    fn new(shape: (usize, usize, usize), swizzle: u64, across: bool, cells: Vec<u64>) -> Self {
        Self { lines: shape.0, k: shape.1, bytes: shape.2, swizzle, across, cells }
    }

    /// Chunks of 16 bytes of a swizzle's row.
    fn span(&self) -> usize {
        [1, 8, 4, 2][self.swizzle as usize]
    }

    /// Where an element lies. Without a swizzle: blocks of 8 lines of 16 bytes, 128 bytes apart along `k`.
    fn offset(&self, line: usize, k: usize) -> usize {
        let per = 16 / self.bytes;
        let (slow, fast) = if self.across { (k, line) } else { (line, k) };
        let (chunk, within) = (fast / per, fast % per * self.bytes);
        let chunks = if self.across { self.lines / per } else { self.k / per };
        match self.span() {
            1 => slow / 8 * chunks * 128 + chunk * 128 + slow % 8 * 16 + within,
            span => {
                let groups = chunks.div_ceil(span);
                let row = slow % 8;
                // The pattern repeats every 128 bytes of a row's place.
                let turned = (chunk % span) ^ ((row * span / 8) & (span - 1));
                (slow / 8 * groups + chunk / span) * 8 * span * 16 + row * span * 16 + turned * 16 + within
            }
        }
    }

    /// Its descriptor, relative to `base`.
    fn descriptor(&self, base: usize) -> u64 {
        let per = 16 / self.bytes;
        let chunks = if self.across { self.lines / per } else { self.k / per };
        let (leading, stride) = match (self.span(), self.across) {
            (1, false) => (128, chunks * 128),
            (1, true) => (chunks * 128, 128),
            (span, _) => (8 * span * 16, chunks.div_ceil(span) * 8 * span * 16),
        };
        self.swizzle << 62 | (stride as u64 >> 4) << 32 | (leading as u64 >> 4) << 16 | base as u64 >> 4
    }

    fn write(&self, image: &mut [u8]) {
        for (at, cell) in self.cells.iter().enumerate() {
            let offset = self.offset(at / self.k, at % self.k);
            image[offset..offset + self.bytes].copy_from_slice(&cell.to_le_bytes()[..self.bytes]);
        }
    }
}

/// Bytes between `a` and `b` in shared memory.
const B: usize = 8192;

fn image(a: &Laid, b: &Laid) -> Vec<u8> {
    let mut image = vec![0; B + 2048 + 8192];
    a.write(&mut image);
    b.write(&mut image[B..]);
    image
}

/// The product of two matrices by lines, of floating-point numbers.
fn expected(
    kind: Kind,
    a: &[u64],
    b: &[u64],
    k: usize,
    at: usize,
    c: f64,
    (fraction, sign): (i32, f64),
) -> f64 {
    let line = |matrix: &[u64], line: usize, sign: f64| -> Vec<f64> {
        (0..k).map(|i| sign * kind.value(matrix[line * k + i])).collect()
    };
    summed(&line(a, at / 16, sign), &line(b, at % 16, 1.0), c, kind.least(), fraction, false)
}

#[test]
fn warpgroups_multiply_in_every_layout() {
    let bench = Bench::new(&[HOPPER]);
    let mut draw = Draw(7);
    for (name, kind, k, bytes, swizzles, across, add, model) in [
        ("group_f16", Kind::F16, 16, 2, (0, 0), false, 1, (25, 1.0)),
        ("group_f16", Kind::F16, 16, 2, (3, 3), false, 0, (25, 1.0)),
        ("group_f16", Kind::F16, 16, 2, (2, 1), false, 1, (25, 1.0)),
        ("group_f16", Kind::F16, 16, 2, (1, 2), false, 1, (25, 1.0)),
        ("group_f16_across", Kind::F16, 16, 2, (1, 3), true, 1, (25, 1.0)),
        ("group_f16_across", Kind::F16, 16, 2, (2, 0), true, 1, (25, 1.0)),
        ("group_f16_across", Kind::F16, 16, 2, (3, 3), true, 1, (25, 1.0)),
        ("group_f16_across", Kind::F16, 16, 2, (0, 3), true, 1, (25, 1.0)),
        ("group_bf16_negated", Kind::Bf16, 16, 2, (1, 1), false, 1, (25, -1.0)),
        ("group_tf32", Kind::Tf32, 8, 4, (1, 3), false, 1, (25, 1.0)),
        ("group_e4m3", Kind::E4m3, 32, 1, (2, 1), false, 1, (13, 1.0)),
    ] {
        let a: Vec<u64> = (0..64 * k).map(|_| kind.draw(&mut draw)).collect();
        let b: Vec<u64> = (0..16 * k).map(|_| kind.draw(&mut draw)).collect();
        let c: Vec<f32> = (0..64 * 16).map(|at| at as f32 / 16.0 - 30.0).collect();
        let of_a = Laid::new((64, k, bytes), swizzles.0, across, a.clone());
        let of_b = Laid::new((16, k, bytes), swizzles.1, across, b.clone());
        let image = image(&of_a, &of_b);
        let out = bench.array(&vec![0f32; 64 * 16]);
        let parameters = [
            Pointer(bench.array(&image)),
            Int(image.len() as i32),
            Long(of_a.descriptor(0)),
            Long(of_b.descriptor(B)),
            Int(add),
            Pointer(bench.array(&c)),
            Pointer(out),
        ];
        let counters = bench
            .launch_with(name, [1; 3], [128, 1, 1], &parameters, |l| l.dynamic_shared = image.len() as u32)
            .unwrap_or_else(|fault| panic!("{name}: {fault}"));
        for (at, got) in bench.read::<f32>(out, 64 * 16).iter().enumerate() {
            let c = if add == 1 { f64::from(c[at]) } else { 0.0 };
            let wanted = expected(kind, &a, &b, k, at, c, model);
            assert_eq!(f64::from(*got), wanted, "{name} {swizzles:?} {at}");
        }
        // Each warp reads its 16 rows, and the group reads `b` once.
        let group = counters.instructions.iter().find(|i| i.opcode.starts_with("wgmma.mma_async")).unwrap();
        assert_eq!(group.count.bytes as usize, (64 + 16) * 32, "{name}");
    }
}

#[test]
fn warpgroups_multiply_integers_and_registers() {
    let bench = Bench::new(&[HOPPER]);
    let mut draw = Draw(8);
    let mut cells = |count: usize, mask: u64| (0..count).map(|_| draw.bits() & mask).collect::<Vec<u64>>();
    let (a, b) = (cells(64 * 32, 255), cells(16 * 32, 255));
    let (of_a, of_b) =
        (Laid::new((64, 32, 1), 3, false, a.clone()), Laid::new((16, 32, 1), 3, false, b.clone()));
    let bytes = image(&of_a, &of_b);
    let (c, out) = (bench.array(&[9i32; 1024]), bench.array(&[0i32; 1024]));
    let start = bench.array(&bytes);
    let parameters = [
        Pointer(start),
        Int(bytes.len() as i32),
        Long(of_a.descriptor(0)),
        Long(of_b.descriptor(B)),
        Int(1),
        Pointer(c),
        Pointer(out),
    ];
    let shared = |launch: &mut Launch<'_>| launch.dynamic_shared = 18432;
    bench.launch_with("group_s8", [1; 3], [128, 1, 1], &parameters, shared).unwrap();
    for (at, got) in bench.read::<i32>(out, 1024).iter().enumerate() {
        let pair = |k: usize| i32::from(a[at / 16 * 32 + k] as i8) * i32::from(b[at % 16 * 32 + k] as i8);
        assert_eq!(*got, 9 + (0..32).map(pair).sum::<i32>(), "{at}");
    }
    // Small whole numbers of f16: 1024 + n is 0x6400 + n; their sums are exact.
    let whole = |n: u64| if n == 0 { 0 } else { Kind::F16.bits_of(n as f64) };
    let (rows, columns) = (cells(64 * 16, 7), cells(16 * 16, 7));
    let of_b = Laid::new((16, 16, 2), 1, false, columns.iter().map(|n| whole(*n)).collect());
    let of_a = Laid::new((64, 16, 2), 0, false, vec![0; 64 * 16]);
    let bytes = image(&of_a, &of_b);
    // Fragments of mma.m16n8k16: rows g and g + 8, columns 2t and 2t + 8.
    let mut fragments = Vec::new();
    for thread in 0..128 {
        let (row, t) = (thread / 32 * 16 + thread % 32 / 4, thread % 4);
        for register in 0..4 {
            let (row, column) = (row + 8 * (register % 2), 2 * t + 8 * (register / 2));
            let bits = |i: usize| whole(rows[row * 16 + column + i]) as u32;
            fragments.push(bits(0) | bits(1) << 16);
        }
    }
    let (c, out) = (bench.array(&[3f32; 1024]), bench.array(&[0f32; 1024]));
    let parameters = [
        Pointer(bench.array(&bytes)),
        Int(bytes.len() as i32),
        Pointer(bench.array(&fragments)),
        Long(of_b.descriptor(B)),
        Pointer(c),
        Pointer(out),
    ];
    bench.launch_with("group_registers", [1; 3], [128, 1, 1], &parameters, shared).unwrap();
    for (at, got) in bench.read::<f32>(out, 1024).iter().enumerate() {
        let sum: u64 = (0..16).map(|k| rows[at / 16 * 16 + k] * columns[at % 16 * 16 + k]).sum();
        assert_eq!(*got, 3.0 + sum as f32, "{at}");
    }
}

#[test]
fn what_a_warpgroup_reads_is_looked_at() {
    let bench = Bench::new(&[HOPPER]);
    let of_a = Laid::new((64, 16, 2), 1, false, vec![0x3c00; 64 * 16]);
    let of_b = Laid::new((16, 16, 2), 1, false, vec![0x3c00; 16 * 16]);
    let image = image(&of_a, &of_b);
    let (c, out) = (bench.array(&[0f32; 1024]), bench.array(&[0f32; 1024]));
    let start = bench.array(&image);
    let parameters = |bytes: usize| {
        let (a, b) = (of_a.descriptor(0), of_b.descriptor(B));
        [Pointer(start), Int(bytes as i32), Long(a), Long(b), Int(1), Pointer(c), Pointer(out)]
    };
    // Nobody writes `b`.
    let found = bench.defects("group_f16", 128, image.len() as u32, &parameters(B));
    assert!(
        !found.is_empty() && found.iter().all(|kind| *kind == DefectKind::UninitialisedRead),
        "{found:?}"
    );
    let fault = bench
        .launch_with("group_f16", [1; 3], [128, 1, 1], &parameters(B), |l| l.dynamic_shared = B as u32)
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::IllegalAddress);
    assert!(fault.message.contains("wgmma reads 16 bytes") && fault.place.is_some(), "{fault}");
}

#[test]
fn a_copy_that_nobody_waits_for_races() {
    let bench = Bench::new(&[HOPPER]);
    let (range, out) = (bench.array(&[1i32; 64]), bench.array(&[0i32; 1]));
    let found = bench.defects("hasty", 64, 0, &[Pointer(range), Pointer(out)]);
    assert_eq!(found, [DefectKind::SharedRace]);
}

/// One thread of the consumers frees a stage for all four warps; nothing may be overwritten before all have read it.
#[test]
fn a_warpgroup_consumes_what_another_brings() {
    let bench = Bench::new(&[HOPPER]);
    let (steps, wide) = (6, 96);
    let number = |n: usize| Kind::F16.bits_of((n % 5) as f64) as u16;
    let a: Vec<u16> = (0..64 * wide).map(|n| number(n * 3 + 1)).collect();
    let b: Vec<u16> = (0..16 * wide).map(|n| number(n * 7 + 2)).collect();
    let tensor = |address: u64, lines: u64| Tensor {
        ty: 6,
        size: 2,
        address,
        lengths: vec![wide as u64, lines],
        strides: vec![2, wide as u64 * 2],
        boxes: vec![16, lines],
        steps: vec![1, 1],
        swizzle: 1,
        fill: 0,
    };
    let (map_a, map_b) = (tensor(bench.array(&a), 64), tensor(bench.array(&b), 16));
    let out = bench.array(&[0f32; 1024]);
    let parameters = [Map(map_a.words()), Map(map_b.words()), Int(steps), Pointer(out)];
    bench
        .launch_with("pipeline", [1; 3], [256, 1, 1], &parameters, |launch| launch.dynamic_shared = 6144)
        .unwrap_or_else(|fault| panic!("{fault}"));
    let value = |bits: u16| Kind::F16.value(u64::from(bits));
    for (at, got) in bench.read::<f32>(out, 1024).iter().enumerate() {
        let sum: f64 = (0..wide).map(|k| value(a[at / 16 * wide + k]) * value(b[at % 16 * wide + k])).sum();
        assert_eq!(f64::from(*got), sum, "{at}");
    }
}
