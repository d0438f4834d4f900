//! Global memory accessed with a stride between neighbouring threads: `static/uncoalesced-access` where the stride is a
//! constant, `static/row-major-slow-axis` where it is the length of a row.

use stitch_findings::Code;

use super::facts::Access;
use super::groups::Groups;
use super::index::{Coefficient, Step, Symbol};
use super::reach::Reach;
use super::report::{Report, quote};
use super::value::Memory;
use super::walk::Walker;

/// Bytes that a memory transaction moves at least.
const SECTOR: i64 = 32;

/// Sectors of a cache line: an access that stays within one is not worth a finding.
const SECTORS_OF_A_LINE: i64 = 4;

/// The most bytes that a thread can well take as vectors, of 16 bytes each; further ones are another layout's work.
const MOST_VECTOR_BYTES: i64 = 64;

/// Adds what the function's accesses to global memory show: each array once for each stride.
pub fn check(walker: &Walker, report: &mut Report) {
    let name = &walker.function.name;
    // One block moves little, and adds up counts and offsets, which no layout makes faster.
    let is_bookkeeping = walker.environment.has_one_block(name);
    if walker.environment.has_one_column(name) || is_bookkeeping || is_reference(name) {
        return;
    }
    let reach = Reach::of(walker);
    let mut shown = Groups::default();
    for access in &walker.facts.accesses {
        if access.base.memory != Memory::Global || access.by_few {
            continue;
        }
        match access.index.x {
            Coefficient::Number(stride) if stride.unsigned_abs() > 1 => {
                let stride = stride.saturating_abs();
                // A kernel that also takes whole vectors from there does this for what the vectors leave over.
                if access.base.variable.is_some_and(|id| walker.facts.recast.contains(&id)) {
                    continue;
                }
                let group = (array(walker, access), stride.to_string());
                if shown.join(&group, access.node, report) {
                    continue;
                }
                if strided(access, stride, reach.takes_all(access, stride), report) {
                    shown.begin(group, report);
                }
            }
            Coefficient::Symbol(symbol) => {
                let factor = walker.source.get(symbol.start as usize..symbol.end as usize).unwrap_or("");
                let group = (array(walker, access), factor.to_owned());
                if !shown.join(&group, access.node, report)
                    && row_major(access, symbol, factor, walker, report)
                {
                    shown.begin(group, report);
                }
            }
            _ => {}
        }
    }
}

/// What tells the array of an access from others: its number, or how it is written where it is declared elsewhere.
fn array<'t>(walker: &Walker<'t>, access: &Access<'t>) -> (Option<u32>, &'t str) {
    match access.base.variable {
        Some(id) => (Some(id), ""),
        None => {
            let text = walker.text(access.node);
            (None, text.split('[').next().unwrap_or(text).trim())
        }
    }
}

/// Adds a finding for a constant stride, unless it does not matter; says whether it did.
fn strided(access: &Access, stride: i64, together: bool, report: &mut Report) -> bool {
    let kind = if access.is_store { "store" } else { "load" };
    let place = report.quote(access.node);
    let apart = match access.element.bytes() {
        Some(bytes) => format!("{stride} elements ({} bytes) apart", stride.saturating_mul(bytes)),
        None => format!("{stride} elements apart"),
    };
    let spread = match access.element.bytes() {
        Some(bytes) => {
            let of_lanes = |distance| sectors(distance, bytes, access.lanes.into());
            let (touched, needed) = (of_lanes(stride.saturating_mul(bytes)), of_lanes(bytes));
            if touched <= SECTORS_OF_A_LINE {
                return false;
            }
            format!("each {kind} of a warp touches {touched} sectors where {needed} would hold its data")
        }
        None => format!("each {kind} of a warp is spread over {stride} times the memory that it needs"),
    };
    let (message, advice) = if together {
        (
            format!(
                "Each thread takes {stride} consecutive elements one at a time ({place}), so neighbouring threads are {apart} \
                 and {spread}; the cache makes up for a part of it."
            ),
            match access.element.bytes() {
                Some(bytes) if stride.saturating_mul(bytes) > MOST_VECTOR_BYTES => {
                    "Let consecutive threads take consecutive elements: change the layout, or go through shared memory."
                }
                _ => {
                    "Take them as one vector (`float2`, `float4`), or let consecutive threads take consecutive elements."
                }
            },
        )
    } else {
        (
            format!("Neighbouring threads are {apart} in {place}, so {spread}."),
            "Let consecutive threads access consecutive elements: change the layout, or go through shared memory.",
        )
    };
    report.add(Code::UNCOALESCED_ACCESS, access.node, message, advice);
    true
}

/// Sectors that so many lanes of a warp touch when they are `stride` bytes apart and each takes `bytes`.
fn sectors(stride: i64, bytes: i64, lanes: i64) -> i64 {
    let mut count = 0;
    let mut next = 0;
    for lane in 0..lanes {
        let start = lane.saturating_mul(stride);
        let (first, last) = (start / SECTOR, start.saturating_add(bytes - 1) / SECTOR);
        count += (last + 1 - first.max(next)).max(0);
        next = last + 1;
    }
    count
}

/// Adds a finding for a stride of whole rows, where something walks along them; says whether it did.
fn row_major(access: &Access, symbol: Symbol, factor: &str, walker: &Walker, report: &mut Report) -> bool {
    let by_other_axis = access.index.y == Coefficient::Number(1);
    let by_loop = matches!(access.index.step, Step::Variable(_));
    // A kernel for one block that goes over rows is bookkeeping too.
    let is_bookkeeping = by_loop && !by_other_axis && !walker.text_of_function().contains("blockIdx");
    if symbol.template
        || is_constant(symbol, factor, walker)
        || !(by_other_axis || by_loop)
        || may_be_one(factor)
        || is_bookkeeping
    {
        return false;
    }
    let row = quote(factor);
    let place = report.quote(access.node);
    let walk =
        if by_other_axis { "threadIdx.y walks along the row" } else { "each thread walks along its own row" };
    let multiple = if symbol.scaled { "a multiple of " } else { "" };
    let message = format!(
        "threadIdx.x is multiplied by {multiple}{row} in {place} while {walk}: neighbouring threads are {multiple}{row} \
         elements apart, and a warp's access falls into up to 32 separate sectors."
    );
    report.add(
        Code::ROW_MAJOR_SLOW_AXIS,
        access.node,
        message,
        "Let threadIdx.x be the index that is not multiplied, or stage the tile in shared memory so that both sides are coalesced.",
    );
    true
}

/// Whether a factor is a `constexpr` whose value is not known here: elements of a vector, not the length of a row.
fn is_constant(symbol: Symbol, factor: &str, walker: &Walker) -> bool {
    let declaration = walker
        .names
        .resolve(factor, symbol.start as usize)
        .and_then(|id| walker.names.variables[id].initial?.parent()?.parent());
    declaration.is_some_and(|declaration| walker.text(declaration).contains("constexpr"))
}

/// Whether a kernel of this name computes what others are compared with, and need not be fast.
fn is_reference(name: &str) -> bool {
    let parts = name.split('_').map(str::to_ascii_lowercase);
    let is_named = |part: String| {
        matches!(part.as_str(), "check" | "golden" | "ref" | "reference" | "validate" | "verify")
    };
    name.contains("Reference") || parts.into_iter().any(is_named)
}

/// Whether a factor with this name is often 1 at run time: the stride of a tensor or of a BLAS vector.
fn may_be_one(factor: &str) -> bool {
    let lower = factor.to_ascii_lowercase();
    ["stride", "inc", "step"].iter().any(|word| lower.contains(word))
}

#[cfg(test)]
mod tests {
    use super::super::index::WARP;
    use super::*;

    #[test]
    fn sectors_of_a_warp() {
        assert_eq!(sectors(4, 4, WARP), 4);
        assert_eq!(sectors(8, 4, WARP), 8);
        assert_eq!(sectors(12, 4, WARP), 12);
        assert_eq!(sectors(128, 4, WARP), 32);
        assert_eq!(sectors(16, 16, WARP), 16);
        assert_eq!(sectors(3, 1, WARP), 3);
        assert_eq!(sectors(48, 16, WARP), 32);
        assert_eq!(sectors(128, 4, 16), 16);
    }
}
