//! `static/shared-bank-conflict`: the lanes of a warp in one bank of shared memory.

use stitch_findings::Code;

use super::constants::fold;
use super::facts::Access;
use super::groups::Groups;
use super::index::{Coefficient, WARP};
use super::report::{Report, quote};
use super::scope::Scope;
use super::types::Type;
use super::value::Memory;
use super::walk::Walker;

/// Shared memory has 32 banks of 4 bytes; addresses this many bytes apart share a bank.
const BANK_CYCLE: i64 = 128;

/// Adds what the function's accesses to shared memory show: each array once.
pub fn check(walker: &Walker, report: &mut Report) {
    if walker.environment.has_one_column(&walker.function.name) {
        return;
    }
    let mut shown = Groups::default();
    for access in &walker.facts.accesses {
        let (Coefficient::Number(stride), Some(bytes)) = (access.index.x, access.element.bytes()) else {
            continue;
        };
        let distance = stride.saturating_mul(bytes).saturating_abs();
        if access.base.memory != Memory::Shared
            || access.by_few
            || distance == 0
            || distance % BANK_CYCLE != 0
        {
            continue;
        }
        let group = ((access.base.variable, ""), String::new());
        if !shown.join(&group, access.node, report) {
            conflict(access, distance, walker, report);
            shown.begin(group, report);
        }
    }
}

fn conflict(access: &Access, distance: i64, walker: &Walker, report: &mut Report) {
    let place = report.quote(access.node);
    let array = declared(access, walker).map_or_else(String::new, |array| format!(" of {array}"));
    let words = distance / 4;
    let degree = match lanes(access, distance, walker) {
        WARP.. => "all 32 lanes of a warp fall".to_owned(),
        lanes => format!("up to {lanes} lanes of a warp fall"),
    };
    let message = format!(
        "Threads with neighbouring threadIdx.x are {words} words apart in {place}{array}: {degree} into the same bank, and the \
         hardware serves them one after the other."
    );
    report.add(
        Code::SHARED_BANK_CONFLICT,
        access.node,
        message,
        "Swap the indices so that threadIdx.x is the last one, or pad each row: by one element, or by four where the array is also read as `float4`, which must stay aligned. Memory declared `extern` then has to grow at the launch too.",
    );
}

/// How many lanes of a warp meet in one bank: as many as get there, the block is wide, and the array has rows, as far as these are
/// known.
fn lanes(access: &Access, distance: i64, walker: &Walker) -> i64 {
    let columns = walker.environment.launches(&walker.function.name).columns.unwrap_or(WARP);
    let variable = access.base.variable.and_then(|id| walker.names.variables.get(id as usize));
    let bytes = variable.filter(|variable| !variable.dimensions.is_empty()).and_then(|variable| {
        let sizes = variable.dimensions.iter().map(|size| {
            let size = (*size)?;
            fold(size, walker.source, &Scope::new(walker, size.start_byte()))
        });
        let element = variable.ty.pointers;
        let innermost =
            Type { pointers: element.saturating_sub(variable.dimensions.len() as u8), ..variable.ty };
        sizes.chain([innermost.bytes()]).try_fold(1i64, |product, size| product.checked_mul(size?))
    });
    let rows = bytes.map_or(WARP, |bytes| bytes.saturating_add(distance - 1) / distance);
    columns.min(rows).min(access.lanes.into()).clamp(2, WARP)
}

/// The array as it is declared, where it has another name than the access shows or sizes to tell: `tile[32][32]`.
fn declared(access: &Access, walker: &Walker) -> Option<String> {
    let variable = walker.names.variables.get(access.base.variable? as usize)?;
    let sizes: String = variable
        .dimensions
        .iter()
        .map(|size| format!("[{}]", size.map_or("", |size| walker.text(size))))
        .collect();
    (!sizes.is_empty()).then(|| quote(&format!("{}{sizes}", variable.name)))
}
