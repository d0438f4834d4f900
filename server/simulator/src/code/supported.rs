//! The instructions that the simulator has: one table, which lowering goes by and the documentation is made from.

use crate::code::build::{Body, Lowered};
use crate::code::form::Form;
use crate::code::lower::{
    alu, atomic, control, fragment, group, matrix, mbarrier, memory, moves, stack, together, video,
};
use crate::ptx::ast::Instruction;

/// An opcode and what of it is supported.
pub struct Support {
    /// `ld`, `setp`.
    pub opcode: &'static str,
    /// Forms, types and modifiers, in words.
    pub what: &'static str,
    pub(super) lower: fn(&mut Body<'_, '_>, &mut Form<'_>, &Instruction) -> Lowered,
}

/// All opcodes that the simulator has, sorted. Any other, and a modifier that an opcode's form does not take, refuses the
/// kernels that can reach it.
#[must_use]
pub fn supported() -> &'static [Support] {
    TABLE
}

pub(super) fn find(opcode: &str) -> Option<&'static Support> {
    TABLE.binary_search_by(|entry| entry.opcode.cmp(opcode)).ok().map(|at| &TABLE[at])
}

macro_rules! table {
    ($($opcode:literal $lower:path: $what:literal,)*) => {
        &[$(Support { opcode: $opcode, what: $what, lower: $lower },)*]
    };
}

static TABLE: &[Support] = table! {
    "abs" alu::lanes: "s16 to s64; f16, bf16, their pairs, f32, f64; .ftz",
    "activemask" together::active_mask: "b32",
    "add" alu::lanes: "all integers (.sat for s32), s16x2, u16x2, f16 to f64 and pairs; rounding, .ftz, .sat; .cc",
    "addc" alu::carried: "32 and 64 bits; .cc",
    "alloca" stack::allocate: "u64; alignment",
    "and" alu::logic: "pred, b16 to b64",
    "applypriority" memory::ignore: "changes nothing",
    "atom" atomic::atomic: "global, shared, shared::cluster, generic; all operations and types up to b128; v2, v4, v8; scopes and orders",
    "bar" together::barrier: ".sync, .arrive, .red (popc, and, or), .warp.sync; .cta",
    "barrier" together::barrier: ".sync, .arrive, .red (popc, and, or), .aligned; .cluster.arrive and .wait",
    "bfe" alu::lanes: "u32, s32, u64, s64",
    "bfi" alu::insert_field: "b32, b64",
    "bfind" alu::lanes: "u32, s32, u64, s64; .shiftamt",
    "bmsk" alu::lanes: ".clamp, .wrap",
    "bra" control::branch: "direct; .uni",
    "brev" alu::lanes: "b32, b64",
    "brkpt" control::trap: "as trap",
    "brx" control::branch_indexed: ".idx",
    "call" control::call: "direct, recursive, through pointers; vprintf, malloc, free, __assertfail",
    "clz" alu::lanes: "b32, b64",
    "cnot" alu::lanes: "b16 to b64",
    "copysign" alu::lanes: "f32, f64",
    "cos" alu::lanes: ".approx.f32; .ftz",
    "cp" memory::copy_async: ".async of 4, 8, 16 bytes (.ca, .cg), .bulk (.multicast::cluster), .bulk.tensor of 1d to 5d (tiles and .im2col, swizzled or not), .commit_group, .wait_group, .wait_all, .mbarrier.arrive: copied at once; .reduce.async.bulk, of tensors too",
    "createpolicy" memory::policy: "accepted; a policy changes nothing",
    "cvt" alu::lanes: "all integers; f16, bf16, tf32, f32, f64; pairs; e4m3x2, e5m2x2; rounding, .ftz, .sat; .pack",
    "cvta" memory::convert_address: "all spaces, both ways",
    "discard" memory::ignore: "changes nothing",
    "div" alu::lanes: "all integers; f32 (.approx, .full, rounded), f64",
    "dp2a" alu::lanes: "all",
    "dp4a" alu::lanes: "all",
    "elect" together::elect: ".sync",
    "ex2" alu::lanes: ".approx: f16, bf16, pairs, f32",
    "exit" control::exit: "all",
    "fence" memory::fence: "all scopes and orders",
    "fma" alu::lanes: "f16 to f64 and pairs; rounding, .ftz, .sat, .relu",
    "fns" alu::lanes: "b32",
    "getctarank" memory::block_rank: ".shared::cluster and generic",
    "griddepcontrol" memory::ignore: "launches do not overlap",
    "isspacep" memory::is_space: "all spaces",
    "ld" memory::load: "all spaces and types, v2, v4, v8; .volatile, orders and scopes, cache operators and hints, .nc",
    "ldmatrix" fragment::load_rows: ".m8n8.b16; .x1, .x2, .x4; .trans",
    "ldu" memory::load: "as ld",
    "lg2" alu::lanes: ".approx.f32; .ftz",
    "lop3" alu::lop3: "b32",
    "mad" alu::multiply_add: ".lo, .hi, .wide of all integers; .cc; f32, f64",
    "mad24" alu::lanes: ".lo, .hi; .sat",
    "madc" alu::carried: ".lo, .hi of 32 and 64 bits; .cc",
    "mapa" memory::map_address: ".shared::cluster and generic",
    "match" together::matched: ".any, .all; b32, b64",
    "max" alu::lanes: "all integers; s16x2 (.relu), u16x2; f16 to f64 and pairs; .ftz, .NaN, .xorsign.abs",
    "mbarrier" mbarrier::mbarrier: "all: .init, .inval, .arrive, .arrive_drop, .expect_tx, .complete_tx, .test_wait, .try_wait, .parity, .pending_count",
    "membar" memory::fence: ".cta, .gl, .sys",
    "min" alu::lanes: "all integers; s16x2 (.relu), u16x2; f16 to f64 and pairs; .ftz, .NaN, .xorsign.abs",
    "mma" matrix::mma: ".sync; f16, bf16, tf32, e4m3, e5m2, f64, s8, u8, s4, u4, b1 in all shapes of sm_70 to sm_90; .satfinite; .sp",
    "mov" moves::mov: "all types; addresses, special registers; vectors packed and unpacked",
    "movmatrix" fragment::transpose: ".m8n8.trans.b16",
    "mul" alu::lanes: ".lo, .hi, .wide of all integers; f16 to f64 and pairs",
    "mul24" alu::lanes: ".lo, .hi",
    "nanosleep" control::pause: "lets other lanes run",
    "neg" alu::lanes: "s16 to s64; f16, bf16, their pairs, f32, f64",
    "not" alu::logic: "pred, b16 to b64",
    "or" alu::logic: "pred, b16 to b64",
    "pmevent" memory::ignore: "changes nothing",
    "popc" alu::lanes: "b32, b64",
    "prefetch" memory::ignore: "changes nothing",
    "prefetchu" memory::ignore: "changes nothing",
    "prmt" alu::lanes: "b32; all modes",
    "rcp" alu::lanes: "f32 (.approx, rounded), f64 (rounded, .approx.ftz)",
    "red" atomic::reduction: "as atom",
    "redux" together::reduced: ".sync; add, min, max, and, or, xor of 32 bits",
    "rem" alu::lanes: "all integers",
    "ret" control::ret: "all",
    "rsqrt" alu::lanes: ".approx: f32, f64",
    "sad" alu::lanes: "all integers",
    "selp" alu::select: "all types of 16 to 64 bits",
    "set" alu::set: "to u32, s32, f32, f16, bf16, pairs; boolean combination",
    "setmaxnreg" memory::ignore: "registers are not limited",
    "setp" alu::set_predicate: "all types; boolean combination; two destinations",
    "shf" alu::lanes: ".l, .r; .clamp, .wrap",
    "shfl" together::shuffle: ".sync; up, down, bfly, idx",
    "shl" alu::lanes: "b16 to b64",
    "shr" alu::lanes: "all integers",
    "sin" alu::lanes: ".approx.f32; .ftz",
    "slct" alu::select_by_sign: "32 and 64 bits by s32 or f32",
    "sqrt" alu::lanes: "f32 (.approx, rounded), f64",
    "st" memory::store: "all spaces and types, v2, v4, v8; .volatile, orders and scopes, cache operators and hints; .async with a barrier",
    "stackrestore" stack::restore: "u64",
    "stacksave" stack::save: "u64",
    "stmatrix" fragment::store_rows: ".m8n8.b16; .x1, .x2, .x4; .trans",
    "sub" alu::lanes: "all integers (.sat for s32), f16 to f64 and pairs; .cc",
    "subc" alu::carried: "32 and 64 bits; .cc",
    "szext" alu::lanes: "u32, s32",
    "tanh" alu::lanes: ".approx: f16, bf16, pairs, f32",
    "testp" alu::test: "f32, f64",
    "trap" control::trap: "all",
    "vabsdiff" video::scalar: "one value: parts, .sat, second operation",
    "vabsdiff2" video::packed: "all",
    "vabsdiff4" video::packed: "all",
    "vadd" video::scalar: "one value: parts, .sat, second operation",
    "vadd2" video::packed: "all",
    "vadd4" video::packed: "all",
    "vavrg2" video::packed: "all",
    "vavrg4" video::packed: "all",
    "vmad" video::product: "parts, signs, .po, .sat, .shr7, .shr15",
    "vmax" video::scalar: "one value: parts, .sat, second operation",
    "vmax2" video::packed: "all",
    "vmax4" video::packed: "all",
    "vmin" video::scalar: "one value: parts, .sat, second operation",
    "vmin2" video::packed: "all",
    "vmin4" video::packed: "all",
    "vote" together::vote: ".sync; all, any, uni, ballot",
    "vset" video::scalar: "one value: parts, .sat, second operation",
    "vset2" video::packed: "all",
    "vset4" video::packed: "all",
    "vshl" video::scalar: "one value: parts, .sat, second operation",
    "vshr" video::scalar: "one value: parts, .sat, second operation",
    "vsub" video::scalar: "one value: parts, .sat, second operation",
    "vsub2" video::packed: "all",
    "vsub4" video::packed: "all",
    "wgmma" group::wgmma: ".mma_async of f16, bf16, tf32, e4m3, e5m2, s8, u8, .sp; .fence, .commit_group, .wait_group",
    "wmma" matrix::wmma: ".load, .store, .mma; f16, bf16, tf32, f64, s8, u8, s4, u4, b1 in all shapes",
    "xor" alu::logic: "pred, b16 to b64",
};

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_is_sorted_so_that_it_can_be_searched() {
        let opcodes: Vec<&str> = super::supported().iter().map(|entry| entry.opcode).collect();
        assert!(opcodes.is_sorted());
    }
}
