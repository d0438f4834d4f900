//! `static/shared-bank-conflict`: all lanes of a warp in one bank of shared memory.

use stitch_findings::Code;

use super::index::Coefficient;
use super::report::Report;
use super::value::Memory;
use super::walk::Walker;

/// Shared memory has 32 banks of 4 bytes; addresses this many bytes apart share a bank.
const BANK_CYCLE: i64 = 128;

/// Adds what the function's accesses to shared memory show.
pub fn check(walker: &Walker, report: &mut Report) {
    if walker.environment.has_one_column(&walker.function.name) {
        return;
    }
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
        let place = report.quote(access.node);
        let words = distance / 4;
        let message = format!(
            "Threads with neighbouring threadIdx.x are {words} words apart in {place}: all of them fall into the same bank, and \
             the hardware serves them one after the other."
        );
        report.add(
            Code::SHARED_BANK_CONFLICT,
            access.node,
            message,
            "Swap the indices so that threadIdx.x is the last one, or pad each row: by one element, or by four where the array is also read as `float4`, which must stay aligned. Memory declared `extern` then has to grow at the launch too.",
        );
    }
}
