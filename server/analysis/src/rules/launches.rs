//! Launches: `static/block-size` and `static/unchecked-launch`.

use stitch_findings::{Code, Place, Related, Severity};
use tree_sitter::Node;

use super::checks::{Checks, is_checker};
use super::constants::fold_dimensions;
use super::environment::rounded_sizes;
use super::facts::LaunchSite;
use super::index::WARP;
use super::report::{Report, span};
use super::scope::Scope;
use super::walk::Walker;
use crate::outline::FunctionKind;

/// Most threads of a block, on every device so far (CUDA C++ Programming Guide, technical specifications).
const MOST_THREADS: i64 = 1024;

/// A function with more unchecked launches gets one finding for all of them: a `switch` over template arguments.
const MOST_FINDINGS: usize = 3;

/// Adds what the function's launches show.
pub fn check(walker: &Walker, report: &mut Report) {
    for launch in &walker.facts.launches {
        if let Some(block) = launch.block
            && let Some(sizes) = fold_dimensions(walker.text(block), &Scope::new(walker, block.start_byte()))
        {
            block_size(launch, block, sizes, walker, report);
        }
    }
    if walker.function.kind == FunctionKind::Host {
        unchecked(walker, report);
    }
}

fn unchecked(walker: &Walker, report: &mut Report) {
    // Where nothing is checked, that was the choice made.
    if walker.facts.launches.is_empty() || !walker.environment.checks_errors() {
        return;
    }
    let text = walker.source.get(walker.function.span.range()).unwrap_or("");
    let (drives, exported) = (drives_device(walker, text), is_exported(walker, text));
    let checks = Checks::of(walker);
    let launches: Vec<_> = walker
        .facts
        .launches
        .iter()
        .filter(|launch| {
            launch.is_statement && !checks.follow(launch.node) && !is_checked_next(walker, launch)
        })
        .filter(|launch| drives || !(exported || is_on_stream(walker, launch)))
        .collect();
    let function = &walker.function.name;
    let shown = if launches.len() > MOST_FINDINGS { 1 } else { launches.len() };
    for launch in launches.iter().take(shown) {
        let others = match launches.len() - shown {
            0 => String::new(),
            count => format!(" (and {count} more)"),
        };
        let message = format!(
            "A launch returns no error, and `{function}` does not ask for one after `{}`{others}: unless its caller does, a \
             launch that fails, as for its block size or shared memory, goes unnoticed.",
            launch.kernel
        );
        let finding = report.add(
            Code::UNCHECKED_LAUNCH,
            launch.node,
            message,
            "Check `cudaGetLastError()` after the launch.",
        );
        for other in launches.iter().skip(shown) {
            finding.related.push(Related {
                place: Place::Here(span(other.node)),
                message: format!("`{}` too", other.kernel),
            });
        }
    }
}

/// Whether a macro that checks stands behind the launch, without brackets and so without a place in the tree:
/// `CHECK_KERNEL`.
fn is_checked_next(walker: &Walker, launch: &LaunchSite) -> bool {
    let after = walker.source.get(launch.node.end_byte()..walker.function.span.end).unwrap_or("");
    let after = after.trim_start_matches(|c: char| c.is_whitespace() || c == ';');
    let end = after.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(after.len());
    is_checker(&after[..end].to_ascii_lowercase())
}

/// Whether the function does more with the device than to launch. What the caller of a mere launcher checks, where it made
/// the stream or lives in another language, is not known here.
fn drives_device(walker: &Walker, function: &str) -> bool {
    let calls_runtime = walker.facts.calls.iter().any(|call| {
        call.name
            .strip_prefix("cuda")
            .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()))
    });
    calls_runtime || function.contains("torch::") || function.contains("at::")
}

fn is_exported(walker: &Walker, function: &str) -> bool {
    let before = walker.source.get(..walker.function.span.start).unwrap_or("").trim_end();
    before.ends_with("extern \"C\"") || function.starts_with("extern \"C\"")
}

fn is_on_stream(walker: &Walker, launch: &LaunchSite) -> bool {
    launch.stream.is_some_and(|stream| !matches!(walker.text(stream), "0" | "nullptr" | "NULL"))
}

/// Whether all threads of a launch, as many as are known, would fit into one block: idle lanes cost nothing there.
fn is_tiny(launch: &LaunchSite, threads: i64, walker: &Walker) -> bool {
    let Some(grid) = launch.grid else { return false };
    let (text, scope) = (walker.text(grid), Scope::new(walker, grid.start_byte()));
    let rounded = || {
        rounded_sizes(text, &scope).and_then(|(size, block)| size.checked_add(block - 1)?.checked_div(block))
    };
    fold_dimensions(text, &scope)
        .and_then(product)
        .or_else(rounded)
        .and_then(|blocks| blocks.checked_mul(threads))
        .is_some_and(|all| all <= MOST_THREADS)
}

fn product(sizes: [i64; 3]) -> Option<i64> {
    sizes.iter().try_fold(1i64, |product, size| product.checked_mul(*size))
}

fn block_size(launch: &LaunchSite, block: Node, sizes: [i64; 3], walker: &Walker, report: &mut Report) {
    let kernel = launch.kernel;
    let Some(threads) = product(sizes) else { return };
    let written = match sizes {
        [x, 1, 1] => format!("{x}"),
        [x, y, 1] => format!("{x} x {y} = {threads}"),
        [x, y, z] => format!("{x} x {y} x {z} = {threads}"),
    };
    if threads > MOST_THREADS {
        let message = format!(
            "The block of `{kernel}` has {written} threads. No device takes more than 1024: the launch fails."
        );
        report
            .add(
                Code::BLOCK_SIZE,
                block,
                message,
                "Use at most 1024 threads a block; 128 to 256 is a good start.",
            )
            .severity = Severity::Warning;
    } else if threads > 1
        && threads % WARP != 0
        && !is_tiny(launch, threads, walker)
        && !walker.environment.only_shows(kernel)
        && !walker.environment.is_for_one_block(kernel)
    {
        let idle = WARP - threads % WARP;
        let message = format!(
            "The block of `{kernel}` has {written} threads, not a multiple of the warp: {idle} of the last warp's 32 lanes \
             stay idle in every block."
        );
        report.add(Code::BLOCK_SIZE, block, message, "Use a multiple of 32 threads a block.");
    }
}
