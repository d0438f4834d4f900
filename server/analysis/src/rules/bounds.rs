//! `static/missing-bounds-guard`: a global index that nothing keeps within the data.
//!
//! A kernel may be right without a check, when its grid covers the data exactly. So it takes evidence that the grid does
//! not: a launch that rounds the number of blocks up, or a size that is passed and never looked at.

use stitch_findings::Code;

use super::report::Report;
use super::types::Type;
use super::value::Memory;
use super::walk::Walker;
use crate::outline::FunctionKind;

/// Adds a finding if the kernel's first global access is not guarded.
pub fn check(walker: &Walker, report: &mut Report) {
    let function = walker.function;
    if function.kind != FunctionKind::Kernel || walker.facts.is_guarded {
        return;
    }
    let first = walker.facts.accesses.iter().find(|access| {
        access.base.memory == Memory::Global
            && access.base.variable.is_some()
            && access.index.is_global_thread()
            && !access.by_few
    });
    let Some(access) = first else { return };
    let launches = walker.environment.launches(&function.name);
    let unused = walker.names.variables.iter().enumerate().find(|(id, variable)| {
        variable.storage == super::names::Storage::Parameter
            && !walker.used[*id]
            && is_size(variable.name, variable.ty)
    });
    let place = report.quote(access.node);
    // `blockIdx.x * row + threadIdx.x` is a row a block, with a block as wide as the row.
    let is_row = access.index.block_scaled;
    let is_exact = launches.dividing > 0 && launches.dividing == launches.count;
    let reason = if launches.rounding_up > 0 && launches.rounding_up == launches.count {
        "and the launch rounds the number of blocks up, so the last block reaches past the data unless its size is a \
         multiple of the block"
            .to_owned()
    } else if let Some((_, size)) = unused.filter(|_| !is_row && !is_exact) {
        format!("and the parameter `{}` is never used", size.name)
    } else {
        return;
    };
    let kind = if access.is_store { "written" } else { "read" };
    report.add(
        Code::MISSING_BOUNDS_GUARD,
        access.node,
        format!("{place} is {kind} at the thread's global index without a bounds check, {reason}."),
        "Guard the access (`if (i < n)`); return early (`if (i >= n) return;`) only where no `__syncthreads()` follows.",
    );
}

/// Whether a parameter is named and typed like a number of elements.
fn is_size(name: &str, ty: Type) -> bool {
    let lower = name.to_ascii_lowercase();
    let named = matches!(
        lower.as_str(),
        "n" | "num" | "size" | "len" | "length" | "count" | "total" | "elements" | "numel"
    ) || ["num_", "n_", "nb"].iter().any(|prefix| lower.starts_with(prefix))
        || ["_size", "_len", "_length", "_count", "elements", "_n", "numel"]
            .iter()
            .any(|suffix| lower.ends_with(suffix));
    named && ty.is_integer()
}
