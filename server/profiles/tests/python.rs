//! Which line and which module the time goes to.

#![allow(clippy::unwrap_used)]

use std::io::{Cursor, Read};

use proptest::prelude::*;
use stitch_profiles::python::{self, LineSum, Precision, PythonTime, Workspace};
use stitch_profiles::system::System;

const STEP: &str = include_str!("data/trace/train_step.json");

fn workspace() -> Workspace {
    let files = vec!["/w/train.py".into(), "/w/models/net.py".into()];
    Workspace { folders: vec!["/w".into()], files, from_elsewhere: false }
}

fn read(text: &str) -> (System, PythonTime) {
    let bytes = text.as_bytes().to_vec();
    let mut open = || Ok(Box::new(Cursor::new(bytes.clone())) as Box<dyn Read>);
    python::read_from("t.json", &workspace(), &mut open).unwrap()
}

fn line<'t>(time: &'t PythonTime, function: &str) -> &'t LineSum {
    time.lines.iter().find(|line| line.function == function).unwrap()
}

fn names(parts: &[python::Part]) -> Vec<&str> {
    parts.iter().map(|part| part.name.as_str()).collect()
}

#[test]
fn forward_and_backward_go_to_the_function_that_called_the_operator() {
    let (_, time) = read(STEP);
    assert_eq!((time.kernel_ns, time.attributed_ns), (270_000, 270_000));
    let forward = line(&time, "forward");
    assert_eq!(
        (forward.file.as_str(), forward.line, forward.precision),
        ("/w/models/net.py", 8, Precision::Function)
    );
    // Its own two kernels, and those of their backward pass: one by the flow, one by the number of the node.
    assert_eq!(names(&forward.kernels), ["gemm_backward", "gemm_forward", "gelu_backward", "gelu_forward"]);
    assert_eq!((forward.kernel_ns, forward.backward_ns, forward.launches), (260_000, 156_000, 4));
    assert!((forward.share - 260.0 / 270.0).abs() < 1e-12);
    assert_eq!(names(&forward.operators)[..2], ["aten::mm", "aten::addmm"]);
    // What the engine adds up belongs to no forward operator: it goes to the one who called it.
    assert_eq!(names(&line(&time, "step").kernels), ["add_"]);
    assert!(time.notes.iter().any(|note| note.text.contains("whole functions")));
}

#[test]
fn waits_and_copies_go_to_the_line_that_caused_them() {
    let (system, time) = read(STEP);
    let step = line(&time, "step");
    assert_eq!(names(&step.waits), ["aten::_local_scalar_dense", "aten::copy_"]);
    assert_eq!((step.waits[0].count, step.waits[0].ns), (1, 370_000));
    assert_eq!((step.to_device.count, step.to_device.pageable, step.to_device.bytes), (1, 1, 65_536));
    assert_eq!((step.to_host.count, step.to_host.ns), (1, 2_000));
    assert_eq!(system.ranges.as_ref().unwrap()[0].launches, 2, "the backward pass runs on another thread");
    assert_eq!(system.devices[0].name.as_deref(), Some("NVIDIA H200"));
}

#[test]
fn modules_have_paths_and_hold_what_is_within() {
    let (_, time) = read(STEP);
    let modules: Vec<_> =
        time.modules.iter().map(|m| (m.path.as_str(), m.kernel_ns, m.own_ns, m.launches)).collect();
    assert_eq!(modules, [("Net_0", 260_000, 10_000, 4), ("Net_0/Linear_0", 250_000, 250_000, 2)]);
}

#[test]
fn a_call_stack_and_a_mark_tell_the_line() {
    // As PyTorch before 1.13 writes it: no functions, but a stack at each operator.
    let text = r#"{"traceEvents": [
        {"ph": "X", "cat": "Operator", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 20,
         "args": {"External id": 3, "Call stack": "/usr/lib/python3/dist-packages/torch/functional.py(3): f;train.py(12): step;train.py(40): <module>"}},
        {"ph": "X", "cat": "Kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 25, "dur": 5, "args": {"External id": 3}},
        {"ph": "X", "cat": "user_annotation", "name": "stitchcuda.line models/net.py:9 forward", "pid": 1, "tid": 1, "ts": 40, "dur": 20},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 45, "dur": 5, "args": {"correlation": 8}},
        {"ph": "X", "cat": "kernel", "name": "relu", "pid": 0, "tid": 7, "ts": 52, "dur": 2, "args": {"correlation": 8}},
        {"ph": "X", "cat": "kernel", "name": "lost", "pid": 0, "tid": 7, "ts": 60, "dur": 1, "args": {"correlation": 9}}
    ]}"#;
    let (_, time) = read(text);
    let lines: Vec<_> =
        time.lines.iter().map(|l| (l.file.as_str(), l.line, l.precision, l.kernel_ns)).collect();
    assert_eq!(
        lines,
        [("/w/train.py", 12, Precision::Line, 5_000), ("/w/models/net.py", 9, Precision::Line, 2_000)]
    );
    assert_eq!((time.kernel_ns, time.attributed_ns), (8_000, 7_000));
    assert!(time.notes.iter().any(|note| note.text.contains("1 have no call")), "{:?}", time.notes);
}

#[test]
fn without_stacks_no_line_is_made_up() {
    let text: String =
        STEP.lines().filter(|line| !line.contains("python_function")).collect::<Vec<_>>().join("\n");
    let (_, time) = read(&text);
    assert!(time.lines.is_empty() && time.modules.is_empty() && time.attributed_ns == 0);
    assert!(time.notes.iter().any(|note| note.text.contains("with_stack=True")));
}

proptest! {
    #[test]
    fn events_in_any_order_give_the_same(seed in any::<u64>()) {
        let (head, rest) = STEP.split_once("\"traceEvents\": [\n").unwrap();
        let (events, tail) = rest.split_once("\n  ],").unwrap();
        let mut events: Vec<&str> = events.split(",\n").collect();
        let mut state = seed | 1;
        for at in (1..events.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            events.swap(at, (state >> 33) as usize % (at + 1));
        }
        let text = format!("{head}\"traceEvents\": [\n{}\n  ],{tail}", events.join(",\n"));
        prop_assert_eq!(read(&text), read(STEP));
    }

    #[test]
    fn a_garbled_trace_gives_no_more_than_there_is(
        changes in prop::collection::vec((0..STEP.len(), prop::char::range(' ', '~')), 1..40),
        length in 0..STEP.len(),
    ) {
        let mut bytes = STEP.as_bytes().to_vec();
        for (at, sign) in changes {
            bytes[at] = sign as u8;
        }
        bytes.truncate(length);
        let mut open = || Ok(Box::new(Cursor::new(bytes.clone())) as Box<dyn Read>);
        if let Ok((system, time)) = python::read_from("t.json", &workspace(), &mut open) {
            prop_assert!(time.attributed_ns <= time.kernel_ns);
            let all: u64 = system.kernels.iter().flatten().map(|kernel| kernel.total_ns).sum();
            prop_assert_eq!(all, time.kernel_ns);
        }
    }
}

#[test]
fn marks_tell_lines_where_there_are_no_stacks() {
    let text = r#"{"traceEvents": [
        {"ph": "X", "cat": "user_annotation", "name": "stitchcuda.line train.py:5 main", "pid": 1, "tid": 1, "ts": 1, "dur": 90},
        {"ph": "X", "cat": "user_annotation", "name": "stitchcuda.line models/net.py:9 forward", "pid": 1, "tid": 1, "ts": 10, "dur": 20},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 12, "dur": 5, "args": {"correlation": 1}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 40, "dur": 5, "args": {"correlation": 2}},
        {"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 20, "dur": 30, "args": {"correlation": 1}},
        {"ph": "X", "cat": "kernel", "name": "b", "pid": 0, "tid": 7, "ts": 52, "dur": 10, "args": {"correlation": 2}}
    ]}"#;
    let (system, by_walk) = read(text);
    let by_ranges = python::from_ranges(&system, &workspace()).unwrap();
    let lines = |time: &PythonTime| {
        time.lines
            .iter()
            .map(|l| (l.file.clone(), l.line, l.kernel_ns, l.launches, l.share))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        lines(&by_ranges),
        [("/w/models/net.py".into(), 9, 30_000, 1, 0.75), ("/w/train.py".into(), 5, 10_000, 1, 0.25)]
    );
    assert_eq!(lines(&by_ranges), lines(&by_walk));
    let outer = &system.ranges.as_ref().unwrap()[0];
    assert_eq!(
        (outer.launches, outer.kernel_ns, outer.own_launches, outer.own_kernel_ns),
        (2, 40_000, 1, 10_000)
    );
    assert!(python::from_ranges(&read(STEP).0, &workspace()).is_none());
}
