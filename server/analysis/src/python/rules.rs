//! The static rules for PyTorch code. Each holds back where it can't know: an unknown tensor may well be on the CPU, and
//! a finding that is wrong costs more than one that is missing.

use std::collections::HashSet;

use stitch_findings::{Code, Finding, Place};

use super::facts::{ItemCall, Move, Origin};
use super::names::{Assigned, Level, Names};
use super::origin::{INDEXED, MOVED};

/// Functions of torch that make a tensor and take `device=`.
const FACTORIES: &[&str] = &[
    "arange",
    "empty",
    "eye",
    "full",
    "linspace",
    "logspace",
    "ones",
    "rand",
    "randint",
    "randn",
    "randperm",
    "scalar_tensor",
    "tensor",
    "tril_indices",
    "triu_indices",
    "zeros",
];
/// What may be done to a new tensor and could as well be done on the device.
const KEPT: &[&str] = &[
    INDEXED,
    "abs",
    "add_",
    "bfloat16",
    "bool",
    "byte",
    "char",
    "clamp",
    "clamp_",
    "clone",
    "contiguous",
    "div_",
    "double",
    "exp",
    "expand",
    "fill_",
    "fill_diagonal_",
    "flatten",
    "float",
    "half",
    "int",
    "long",
    "mul_",
    "neg",
    "normal_",
    "permute",
    "random_",
    "repeat",
    "requires_grad_",
    "reshape",
    "short",
    "sqrt",
    "squeeze",
    "sub_",
    "t",
    "to",
    "transpose",
    "tril",
    "triu",
    "type",
    "uniform_",
    "unsqueeze",
    "view",
    "zero_",
];
/// Libraries whose values have `.item()` too, but no GPU to wait for, or one of their own.
const OTHERS: &[&str] = &[
    "cudf",
    "cupy",
    "jax",
    "math",
    "mxnet",
    "numpy",
    "paddle",
    "pandas",
    "polars",
    "random",
    "scipy",
    "sklearn",
    "tensorflow",
];
/// Libraries that only a test imports.
const TESTS: &[&str] = &["pytest", "unittest", "torch.testing"];
/// Beginnings of the names of functions where time does not matter, or waiting is the aim.
const UNHURRIED: &[&str] = &[
    "assert", "bench", "check", "compare", "debug", "dump", "plot", "print", "profile", "show", "test_",
    "time_", "verify",
];
/// Parts of the names of functions that compute the right answer the slow way.
const REFERENCE: &[&str] = &["reference", "_ref", "golden", "naive"];
/// A value is followed through so many assignments.
const STEPS: usize = 4;

/// All findings in the Python code of a file.
pub(super) fn check(names: &Names<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !names.imports_from("torch") && !names.star_of("torch") {
        return findings;
    }
    let mut functions = names.facts.iter().flat_map(|facts| &facts.functions);
    let mut assignments = names.facts.iter().flat_map(|facts| &facts.assignments);
    let is_test = TESTS.iter().any(|module| names.imports_from(module))
        || functions.any(|function| {
            function.name.trim_start_matches('_').starts_with("test_") || function.name.ends_with("_test")
        })
        || assignments
            .any(|assigned| assigned.target.starts_with("ref_") || assigned.target.ends_with("_ref"));
    let placed_by_default = names.facts.iter().any(|facts| facts.default_device);
    let waiting = waiting(names);
    for (piece, facts) in names.facts.iter().enumerate() {
        if !is_test {
            findings.extend(facts.items.iter().filter_map(|item| item_in_loop(item, piece, &waiting, names)));
        }
        if !placed_by_default && !is_test {
            findings.extend(facts.moves.iter().filter_map(|moved| cpu_tensor_moved(moved, piece, names)));
        }
    }
    findings
}

fn item_in_loop(
    item: &ItemCall,
    piece: usize,
    waiting: &HashSet<(Level, Option<usize>)>,
    names: &Names<'_>,
) -> Option<Finding> {
    let level = names.level(piece, item.scope);
    let function = names.function_around(level);
    if function.is_some_and(is_unhurried) || waiting.contains(&place_of(level, piece, names)) {
        return None;
    }
    if item.receiver.path.is_empty()
        || is_comparison(&item.text)
        || !may_be_on_gpu(&item.receiver, level, names)
    {
        return None;
    }
    let span = item.span.shifted(names.pieces[piece].span.start);
    let message = format!(
        "`{}.item()` runs in every turn of the loop, and each time the CPU waits for the GPU.",
        item.text
    );
    let finding = Finding::new(Code::ITEM_IN_LOOP, span, message).advise(
        "Keep the value as a tensor (`total += loss.detach()`) and call `.item()` once behind the loop, or only every so many steps.",
    );
    Some(match function {
        Some(name) => finding.about(name),
        None => finding,
    })
}

/// The functions that synchronise by themselves, as what measures time does, with the piece of each. The file's own level
/// counts for the one statement only.
fn waiting(names: &Names<'_>) -> HashSet<(Level, Option<usize>)> {
    let of_piece = |(piece, facts): (usize, &std::sync::Arc<super::facts::Facts>)| {
        facts.waits.iter().map(|scope| place_of(names.level(piece, *scope), piece, names)).collect::<Vec<_>>()
    };
    names.facts.iter().enumerate().flat_map(of_piece).collect()
}

fn place_of(level: Level, piece: usize, names: &Names<'_>) -> (Level, Option<usize>) {
    (level, names.is_file(level).then_some(piece))
}

/// Whether a value measures how far two tensors are apart: that is a check, not a part of the work.
fn is_comparison(text: &str) -> bool {
    let subtracts = text.contains(" - ") && ["abs(", "norm("].iter().any(|measure| text.contains(measure));
    subtracts || text.contains("diff")
}

/// Whether a function of this name may wait for the GPU as it likes.
fn is_unhurried(name: &str) -> bool {
    let start = name.trim_start_matches('_');
    UNHURRIED.iter().any(|word| start.starts_with(word)) || REFERENCE.iter().any(|word| name.contains(word))
}

/// Whether nothing says that a value is no tensor, or lies on the CPU.
fn may_be_on_gpu(origin: &Origin, level: Level, names: &Names<'_>) -> bool {
    let mut origin = origin;
    let mut level = level;
    let mut then: Vec<&str> = Vec::new();
    for _ in 0..STEPS {
        then.extend(origin.then.iter().map(String::as_str));
        let full = names.resolve(&origin.path);
        let library = full.split('.').next().unwrap_or_default();
        if OTHERS.contains(&library)
            || then.iter().any(|method| TO_HOST.contains(method)) && !then.contains(&MOVED)
        {
            return false;
        }
        if origin.called {
            let method = origin.path.rsplit('.').next().unwrap_or_default();
            let on_cpu = is_factory(&full) && (!origin.placed || origin.on_cpu) && !then.contains(&MOVED);
            if on_cpu || TO_HOST.contains(&method) && !then.contains(&MOVED) {
                return false;
            }
        }
        let name = origin.path.split('.').next().unwrap_or_default();
        // The step counters of torch's optimisers are kept on the CPU.
        if then.contains(&INDEXED) && origin.path.rsplit('.').next() == Some("state") {
            return false;
        }
        let assignments = names.assignments(level, name);
        let Some(last) = assignments.last().copied() else { return true };
        if last.1.origin.path == origin.path {
            return true;
        }
        level = names.level_of(last);
        origin = &last.1.origin;
    }
    true
}

/// Methods whose value is on the CPU, or is no tensor.
const TO_HOST: [&str; 4] = ["as_py", "cpu", "numpy", "tolist"];

fn is_factory(full: &str) -> bool {
    full.strip_prefix("torch.").is_some_and(|name| FACTORIES.contains(&name))
}

fn cpu_tensor_moved(moved: &Move, piece: usize, names: &Names<'_>) -> Option<Finding> {
    let level = names.level(piece, moved.scope);
    if names.function_around(level).is_some_and(is_unhurried) {
        return None;
    }
    if is_on_cpu(&moved.device, level, names) {
        return None;
    }
    let start = names.pieces[piece].span.start;
    let direct = moved.receiver.called;
    let (origin, made_at) = if direct {
        (&moved.receiver, None)
    } else {
        let (origin, span) = made_before(moved, moved.span.start + start, level, names)?;
        (origin, Some(span))
    };
    let full = names.resolve(&origin.path);
    // `torch.tensor` copies from the CPU wherever the tensor is to be: its data are there.
    if full == "torch.tensor" || full == "torch.scalar_tensor" {
        return None;
    }
    let plain = |origin: &Origin| origin.then.iter().all(|method| KEPT.contains(&method.as_str()));
    if !is_factory(&full) || origin.placed || !plain(origin) || !plain(&moved.receiver) {
        return None;
    }
    let message =
        format!("`{}` makes this tensor on the CPU, and `{}` copies it to the GPU.", origin.path, moved.text);
    let advice = format!("Make it where it is needed: `{}(…, device={})`.", origin.path, moved.device);
    let mut finding = Finding::new(Code::CPU_TENSOR_MOVED, moved.span.shifted(start), message).advise(advice);
    if let Some(span) = made_at {
        finding = finding.relate(Place::Here(span), "made here");
    }
    if let Some(name) = names.function_around(level) {
        finding = finding.about(name);
    }
    Some(finding)
}

/// Whether a name is given nothing but the CPU here: `device = torch.device("cpu")`.
fn is_on_cpu(device: &str, level: Level, names: &Names<'_>) -> bool {
    let assignments = names.assignments(level, device);
    !assignments.is_empty() && assignments.iter().all(|assigned| assigned.1.origin.on_cpu)
}

/// The last value of a name before it is moved: in `forward`, or in another function where the statement before gives it.
fn made_before<'a>(
    moved: &Move,
    moved_at: usize,
    level: Level,
    names: &Names<'a>,
) -> Option<(&'a Origin, stitch_findings::Span)> {
    // A script at the file's own level makes its inputs so, once.
    let function = names.function_around(level);
    let is_near = moved.follows_assignment && function.is_some() || function == Some("forward");
    if !is_near || moved.receiver.path.contains('.') {
        return None;
    }
    let assignments = names.assignments(level, &moved.receiver.path);
    let place =
        |assigned: &Assigned<'_>| Some(assigned.1.span.shifted(names.pieces.get(assigned.0)?.span.start));
    // `x = x.to(device)` assigns around the move, and so not before it.
    let before =
        assignments.iter().filter(|assigned| place(assigned).is_some_and(|span| span.end <= moved_at));
    let last = before.max_by_key(|assigned| place(assigned))?;
    if names.level_of(*last) != level || !last.1.origin.called || last.1.augmented {
        return None;
    }
    Some((&last.1.origin, place(last)?))
}
