//! Every lane operation, under any mask, equals its scalar meaning in the lanes of the mask and leaves the others alone.

use proptest::prelude::*;

use super::Parameter::{Int, Pointer};
use super::*;

/// An instruction and its meaning.
type Operation<T> = (&'static str, fn(T, T, T) -> T);

const NARROW: &[Operation<u32>] = &[
    ("add.s32 %d, %a, %b", |a, b, _| a.wrapping_add(b)),
    ("sub.u32 %d, %a, %b", |a, b, _| a.wrapping_sub(b)),
    ("mul.lo.s32 %d, %a, %b", |a, b, _| a.wrapping_mul(b)),
    ("mul.hi.u32 %d, %a, %b", |a, b, _| ((u64::from(a) * u64::from(b)) >> 32) as u32),
    ("mad.lo.u32 %d, %a, %b, %c", |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
    ("min.s32 %d, %a, %b", |a, b, _| (a as i32).min(b as i32) as u32),
    ("div.u32 %d, %a, %b", |a, b, _| a.checked_div(b).unwrap_or(u32::MAX)),
    ("and.b32 %d, %a, %b", |a, b, _| a & b),
    ("not.b32 %d, %a", |a, _, _| !a),
    ("shl.b32 %d, %a, %b", |a, b, _| a.checked_shl(b).unwrap_or(0)),
    ("shr.s32 %d, %a, %b", |a, b, _| (a as i32 >> b.min(31)) as u32),
    ("lop3.b32 %d, %a, %b, %c, 0x96", |a, b, c| a ^ b ^ c),
    ("popc.b32 %d, %a", |a, _, _| a.count_ones()),
    ("clz.b32 %d, %a", |a, _, _| a.leading_zeros()),
    ("brev.b32 %d, %a", |a, _, _| a.reverse_bits()),
    ("bfi.b32 %d, %a, %b, 4, 8", |a, b, _| b & !0xff0 | (a & 0xff) << 4),
    ("cvt.s32.s8 %d, %a", |a, _, _| i32::from(a as i8) as u32),
    ("cvt.u32.u16 %d, %a", |a, _, _| a & 0xffff),
    ("selp.b32 %d, %a, %b, %q", |a, b, c| if c & 1 == 1 { a } else { b }),
    ("add.rn.f32 %d, %a, %b", |a, b, _| float(f32::from_bits(a) + f32::from_bits(b))),
    ("fma.rn.f32 %d, %a, %b, %c", |a, b, c| {
        float(f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c)))
    }),
];

const WIDE: &[Operation<u64>] = &[
    ("add.s64 %d, %a, %b", |a, b, _| a.wrapping_add(b)),
    ("mul.lo.s64 %d, %a, %b", |a, b, _| a.wrapping_mul(b)),
    ("mad.lo.s64 %d, %a, %b, %c", |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
    ("xor.b64 %d, %a, %b", |a, b, _| a ^ b),
    ("max.u64 %d, %a, %b", |a, b, _| a.max(b)),
    ("neg.s64 %d, %a", |a, _, _| a.wrapping_neg()),
    ("mov.b64 %d, %a", |a, _, _| a),
];

/// The bits of a result: NaNs are the device's one.
fn float(value: f32) -> u32 {
    if value.is_nan() { 0x7fff_ffff } else { value.to_bits() }
}

/// A kernel that does the instruction in the lanes of a mask; `d` holds `c` before.
fn kernel(instruction: &str, bits: u32) -> String {
    let size = bits / 8;
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
        .visible .entry k(.param .u64 data, .param .u32 mask) {{\n\
        .reg .pred %p, %q; .reg .b32 %t, %m; .reg .b64 %at, %o; .reg .b{bits} %d, %a, %b, %c;\n\
        ld.param.u64 %at, [data]; ld.param.u32 %m, [mask]; mov.u32 %t, %tid.x;\n\
        mul.wide.u32 %o, %t, {stride}; add.s64 %at, %at, %o; shr.u32 %m, %m, %t; and.b32 %m, %m, 1;\n\
        setp.ne.u32 %p, %m, 0;\n\
        ld.global.b{bits} %a, [%at]; ld.global.b{bits} %b, [%at+{size}]; ld.global.b{bits} %c, [%at+{two}];\n\
        mov.b{bits} %d, %c; cvt.u32.u{bits} %t, %c; and.b32 %t, %t, 1; setp.eq.u32 %q, %t, 1;\n\
        @%p {instruction};\n\
        st.global.b{bits} [%at+{three}], %d; ret; }}\n",
        stride = 4 * size,
        two = 2 * size,
        three = 3 * size,
    )
}

/// Runs the kernel on rows of a, b, c, d.
fn check<T: Copy + Default + PartialEq + std::fmt::Debug>(
    (instruction, meaning): Operation<T>,
    mask: u32,
    rows: &[[T; 4]],
) {
    let bench = Bench::new(&[&kernel(instruction, size_of::<T>() as u32 * 8)]);
    let data = bench.array(rows);
    bench.launch("k", 1, 32, &[Pointer(data), Int(mask as i32)]).unwrap();
    for (lane, [a, b, c, d]) in bench.read::<[T; 4]>(data, 32).into_iter().enumerate() {
        let expected = if mask >> lane & 1 == 1 { meaning(a, b, c) } else { c };
        assert_eq!(d, expected, "{instruction} in lane {lane} of {mask:#x}: {a:?} {b:?} {c:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn lane_operations_equal_their_scalar_meaning(
        mask in prop_oneof![any::<u32>(), Just(u32::MAX), (0..32u32).prop_map(|lane| 1 << lane)],
        narrow in prop::collection::vec(any::<[u32; 4]>(), 32),
        wide in prop::collection::vec(any::<[u64; 4]>(), 32),
    ) {
        for operation in NARROW {
            check(*operation, mask, &narrow);
        }
        for operation in WIDE {
            check(*operation, mask, &wide);
        }
    }
}
