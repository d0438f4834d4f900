//! Special registers, and addresses that depend on the frame.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::code::{Class, Handler, Op, handler};
use crate::machine::access::{
    FUNCTION_WINDOW, LOCAL_WINDOW, PARAMETER_WINDOW, RANK_SHIFT, SHARED_WINDOW, WINDOW,
};
use crate::machine::lanes::{Lane, lanes, map1, map2};
use crate::machine::{Exec, Next};

/// What a special register holds for a lane.
trait Special {
    type Value: Lane;
    fn value(x: &Exec<'_>, lane: u32) -> Self::Value;
}

#[inline(always)]
unsafe fn run<S: Special>(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    for lane in lanes(mask) {
        let value = S::value(x, lane as u32);
        // SAFETY: lowering gives this op a row of the value's class.
        unsafe { x.registers.set(op.slots[0], lane, value) };
    }
    Next::Advance
}

macro_rules! specials {
    ($($name:literal: $struct:ident, $ty:ty, |$x:ident, $lane:ident| $value:expr;)*) => {
        $(
            struct $struct;
            impl Special for $struct {
                type Value = $ty;
                #[inline(always)]
                fn value($x: &Exec<'_>, $lane: u32) -> $ty { $value }
            }
        )*

        /// The handler that reads a special register, and its class.
        pub(crate) fn find(name: &str) -> Option<(Handler, Class)> {
            Some(match name {
                $($name => (handler!(run::<$struct>), <$ty as Lane>::CLASS),)*
                _ => return None,
            })
        }

        /// All special registers that the simulator has.
        pub const NAMES: &[&str] = &[$($name),*];
    };
}

/// Cycles that a warp takes for an instruction that waits for the one before: 4. Source: CUDA C++ Programming Guide, "Multiprocessor
/// Level", of devices of compute capability 7.x: "for most arithmetic instructions, it is typically 4 cycles".
const CYCLES: u64 = 4;

/// The clock that a warp sees: it counts instructions, not time.
fn clock(x: &Exec<'_>) -> u64 {
    x.warp.ran * CYCLES
}

// Source: PTX ISA, "Special Registers".
specials! {
    "%tid.x": TidX, u32, |x, lane| x.thread(lane)[0];
    "%tid.y": TidY, u32, |x, lane| x.thread(lane)[1];
    "%tid.z": TidZ, u32, |x, lane| x.thread(lane)[2];
    "%ntid.x": NtidX, u32, |x, _lane| x.grid.block[0];
    "%ntid.y": NtidY, u32, |x, _lane| x.grid.block[1];
    "%ntid.z": NtidZ, u32, |x, _lane| x.grid.block[2];
    "%ctaid.x": CtaidX, u32, |x, _lane| x.block.index[0];
    "%ctaid.y": CtaidY, u32, |x, _lane| x.block.index[1];
    "%ctaid.z": CtaidZ, u32, |x, _lane| x.block.index[2];
    "%nctaid.x": NctaidX, u32, |x, _lane| x.grid.grid[0];
    "%nctaid.y": NctaidY, u32, |x, _lane| x.grid.grid[1];
    "%nctaid.z": NctaidZ, u32, |x, _lane| x.grid.grid[2];
    "%laneid": Laneid, u32, |_x, lane| lane;
    "%warpid": Warpid, u32, |x, _lane| x.warp.index;
    "%nwarpid": Nwarpid, u32, |x, _lane| x.grid.limits.warps;
    "%smid": Smid, u32, |x, _lane| (x.grid.block_number(x.block.index) % u64::from(x.grid.limits.multiprocessors.max(1))) as u32;
    "%nsmid": Nsmid, u32, |x, _lane| x.grid.limits.multiprocessors;
    "%gridid": Gridid, u64, |x, _lane| x.grid.number;
    "%lanemask_eq": MaskEq, u32, |_x, lane| 1 << lane;
    "%lanemask_le": MaskLe, u32, |_x, lane| u32::MAX >> (31 - lane);
    "%lanemask_lt": MaskLt, u32, |_x, lane| (1 << lane) - 1;
    "%lanemask_ge": MaskGe, u32, |_x, lane| u32::MAX << lane;
    "%lanemask_gt": MaskGt, u32, |_x, lane| (u32::MAX << lane) << 1;
    "%clock": Clock, u32, |x, _lane| clock(x) as u32;
    "%clock_hi": ClockHi, u32, |x, _lane| (clock(x) >> 32) as u32;
    "%clock64": Clock64, u64, |x, _lane| clock(x);
    "%globaltimer": Timer, u64, |_x, _lane| nanoseconds();
    "%globaltimer_lo": TimerLo, u32, |_x, _lane| nanoseconds() as u32;
    "%globaltimer_hi": TimerHi, u32, |_x, _lane| (nanoseconds() >> 32) as u32;
    "%dynamic_smem_size": DynamicShared, u32, |x, _lane| x.grid.dynamic_shared;
    "%total_smem_size": TotalShared, u32, |x, _lane| x.grid.shared_bytes;
    "%aggr_smem_size": AllShared, u32, |x, _lane| x.grid.shared_bytes;
    "%clusterid.x": ClusterX, u32, |x, _lane| x.block.index[0] / x.grid.cluster[0];
    "%clusterid.y": ClusterY, u32, |x, _lane| x.block.index[1] / x.grid.cluster[1];
    "%clusterid.z": ClusterZ, u32, |x, _lane| x.block.index[2] / x.grid.cluster[2];
    "%nclusterid.x": NclusterX, u32, |x, _lane| x.grid.grid[0] / x.grid.cluster[0];
    "%nclusterid.y": NclusterY, u32, |x, _lane| x.grid.grid[1] / x.grid.cluster[1];
    "%nclusterid.z": NclusterZ, u32, |x, _lane| x.grid.grid[2] / x.grid.cluster[2];
    "%cluster_ctaid.x": ClusterCtaX, u32, |x, _lane| x.block.index[0] % x.grid.cluster[0];
    "%cluster_ctaid.y": ClusterCtaY, u32, |x, _lane| x.block.index[1] % x.grid.cluster[1];
    "%cluster_ctaid.z": ClusterCtaZ, u32, |x, _lane| x.block.index[2] % x.grid.cluster[2];
    "%cluster_nctaid.x": ClusterNctaX, u32, |x, _lane| x.grid.cluster[0];
    "%cluster_nctaid.y": ClusterNctaY, u32, |x, _lane| x.grid.cluster[1];
    "%cluster_nctaid.z": ClusterNctaZ, u32, |x, _lane| x.grid.cluster[2];
    "%cluster_ctarank": ClusterRank, u32, |x, _lane| x.block.rank;
    "%cluster_nctarank": ClusterSize, u32, |x, _lane| x.grid.cluster.iter().product();
    "%is_explicit_cluster": Explicit, u32, |x, _lane| u32::from(x.grid.cluster != [1; 3]);
    "%envreg1": GridWorkspaceHigh, u32, |x, _lane| (x.grid.workspace >> 32) as u32;
    "%envreg2": GridWorkspaceLow, u32, |x, _lane| x.grid.workspace as u32;
}

fn nanoseconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

impl Exec<'_> {
    /// Index of a lane's thread in its block.
    #[inline(always)]
    pub(crate) fn thread(&self, lane: u32) -> [u32; 3] {
        self.grid.thread_index(self.warp.index * 32 + lane)
    }
}

/// The address in local memory of byte `immediate` of the frame.
pub(crate) fn frame_address() -> Handler {
    handler!(run_frame_address)
}

#[inline(always)]
unsafe fn run_frame_address(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let local = x.warp.frames[x.group.frame as usize].local;
    let address = (i64::from(local) * 4 + op.immediate) as u64;
    // SAFETY: lowering gives this op a double row.
    unsafe { x.registers.fill::<u64>(op.slots[0], mask, |_| [address; 8]) };
    Next::Advance
}

/// `d = a + immediate`: `cvta`, which moves an address into or out of its window.
pub(crate) fn shift_window() -> Handler {
    handler!(run_shift_window)
}

#[inline(always)]
unsafe fn run_shift_window(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    // SAFETY: the caller's promise.
    unsafe { map1::<u64, u64>(x, op, mask, |a| a.wrapping_add(op.immediate as u64)) };
    Next::Advance
}

/// The window of a state space, by its name in an instruction; 0 for those whose addresses are generic as they are.
pub(crate) fn window_of(space: &str) -> Option<u64> {
    Some(match space {
        "global" | "const" => 0,
        "shared" | "shared::cta" | "shared::cluster" => SHARED_WINDOW,
        "local" => LOCAL_WINDOW,
        "param" | "param::entry" => PARAMETER_WINDOW,
        _ => return None,
    })
}

/// `isspacep`: is the address in the window `immediate` (0: global memory)?
pub(crate) fn is_space() -> Handler {
    handler!(run_is_space)
}

#[inline(always)]
unsafe fn run_is_space(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let window = op.immediate as u64;
    let inside = |a: u64| match window {
        0 => !(SHARED_WINDOW..FUNCTION_WINDOW + WINDOW).contains(&a),
        // The own block's shared memory alone, where `aux` says so.
        SHARED_WINDOW if op.aux == 1 => a.wrapping_sub(SHARED_WINDOW) < 1 << RANK_SHIFT,
        _ => a.wrapping_sub(window) < WINDOW,
    };
    let r = x.registers;
    // SAFETY: lowering gives this op a mask and a double row.
    unsafe {
        let bits = lanes(mask).fold(0, |m, lane| m | u32::from(inside(r.get(op.slots[1], lane))) << lane);
        r.set_predicate(op.slots[0], mask, bits);
    }
    Next::Advance
}

/// `mapa`: the address of the same variable in the block with rank `b` of the cluster.
pub(crate) fn map_address(class: Class) -> Option<Handler> {
    match class {
        Class::Single => Some(handler!(run_map_address_u32)),
        Class::Double => Some(handler!(run_map_address_u64)),
        _ => None,
    }
}

/// An address of shared memory in another block.
#[inline(always)]
fn mapped(address: u64, rank: u32) -> u64 {
    let offset = address & ((1 << RANK_SHIFT) - 1);
    address & !((1 << (RANK_SHIFT + 8)) - 1) | u64::from(rank + 1) << RANK_SHIFT | offset
}

/// `getctarank`: the rank of the block that an address of shared memory lies in.
pub(crate) fn block_rank(class: Class) -> Option<Handler> {
    match class {
        Class::Single => Some(handler!(run_block_rank::<u32>)),
        Class::Double => Some(handler!(run_block_rank::<u64>)),
        _ => None,
    }
}

#[inline(always)]
unsafe fn run_block_rank<T: Lane + Into<u64>>(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let own = x.block.rank;
    let rank = |a: T| match (a.into() >> RANK_SHIFT & 0xff) as u32 {
        0 => own,
        above => above - 1,
    };
    // SAFETY: the caller's promise.
    unsafe { map1::<T, u32>(x, op, mask, rank) };
    Next::Advance
}

#[inline(always)]
unsafe fn run_map_address_u32(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    // SAFETY: the caller's promise.
    unsafe { map2::<u32, u32, u32>(x, op, mask, |a, rank| mapped(u64::from(a), rank) as u32) };
    Next::Advance
}

#[inline(always)]
unsafe fn run_map_address_u64(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    // SAFETY: the caller's promise.
    unsafe { map2::<u64, u32, u64>(x, op, mask, mapped) };
    Next::Advance
}
