//! What operators must move and compute, and what follows for lines.

use std::io::{Cursor, Read};

use super::*;
use crate::python::{PythonTime, Workspace, read_from};
use crate::trace::TraceEvent;

/// What an operator must: its name, sizes, types and values, as a trace has them.
fn of(name: &str, sizes: &str, types: &str, values: &str) -> Result<Demand, String> {
    let text = format!(
        r#"{{"ph":"X","ts":1,"name":"{name}","args":{{"Input Dims":{sizes},"Input type":{types},"Concrete Inputs":{values}}}}}"#
    );
    let event = TraceEvent::read(text.as_bytes()).unwrap();
    demand(name, Arguments::of(&event.args).as_ref())
}

/// Bytes and operations.
fn known(name: &str, sizes: &str, types: &str, values: &str) -> (u64, Option<u64>) {
    let demand = of(name, sizes, types, values).unwrap_or_else(|why| panic!("{name}: {why}"));
    assert_eq!(demand.untyped, 0, "{name}");
    (demand.bytes, demand.flops)
}

const F: &str = r#"["float","float","float","Scalar","Scalar"]"#;

#[test]
fn matrix_products_move_three_matrices_and_make_two_operations_a_step() {
    assert_eq!(
        known("aten::mm", "[[8,16],[16,4]]", r#"["float","float"]"#, "[]"),
        (4 * (128 + 64 + 32), Some(1024))
    );
    assert_eq!(
        known("aten::addmm", "[[4],[8,16],[16,4],[],[]]", F, "[]"),
        (4 * (4 + 128 + 64 + 32), Some(1024))
    );
    // Where the result goes is no operand.
    let out = known("aten::mm", "[[8,16],[16,4],[8,4]]", r#"["float","float","float"]"#, "[]");
    assert_eq!(out, known("aten::mm", "[[8,16],[16,4]]", r#"["float","float"]"#, "[]"));
    let half = r#"["c10::Half","c10::Half"]"#;
    assert_eq!(known("aten::bmm", "[[3,8,16],[3,16,4]]", half, "[]"), (2 * 3 * (128 + 64 + 32), Some(3072)));
    assert_eq!(known("aten::linear", "[[5,8,16],[4,16]]", half, "[]"), (2 * (640 + 64 + 160), Some(5120)));
    assert!(of("aten::mm", "[[8,16],[15,4]]", half, "[]").is_err(), "they do not fit");
}

#[test]
fn convolutions_are_counted_as_their_definition_has_them() {
    // The first layer of ResNet: 64 filters of 7 x 7 over 3 channels, every other pixel.
    let values = r#"["","","[3, 3]","[2, 2]","[1, 1]","1","True","False","True"]"#;
    let types =
        r#"["float","float","ScalarList","ScalarList","ScalarList","Scalar","Scalar","Scalar","Scalar"]"#;
    let sizes = "[[2,3,224,224],[64,3,7,7],[],[],[],[],[],[],[]]";
    let results = 2 * 64 * 112 * 112;
    let bytes = 4 * (2 * 3 * 224 * 224 + 64 * 3 * 49 + results);
    assert_eq!(known("aten::cudnn_convolution", sizes, types, values), (bytes, Some(2 * results * 3 * 49)));
    let depthwise = r#"["","","","[1, 1]","[1, 1]","[1, 1]","False","[0, 0]","32"]"#;
    let types =
        r#"["float","float","","ScalarList","ScalarList","ScalarList","Scalar","ScalarList","Scalar"]"#;
    let sizes = "[[1,32,10,10],[32,1,3,3],[],[],[],[],[],[],[]]";
    assert_eq!(known("aten::_convolution", sizes, types, depthwise).1, Some(2 * 3200 * 9));
    let transposed = depthwise.replace("False", "True");
    assert_eq!(known("aten::_convolution", sizes, types, &transposed).1, Some(2 * 3200 * 9));
    let without = of("aten::_convolution", sizes, types, "[]").unwrap_err();
    assert!(without.contains("not recorded whole"), "{without}");
    let back = r#"["","","","[0]","[1, 1]","[1, 1]","[1, 1]","False","[0, 0]","32","[True, True, False]"]"#;
    let types = r#"["float","float","float","ScalarList","ScalarList","ScalarList","ScalarList","Scalar","ScalarList","Scalar",""]"#;
    let sizes = "[[1,32,10,10],[1,32,10,10],[32,1,3,3],[],[],[],[],[],[],[],[]]";
    assert_eq!(known("aten::convolution_backward", sizes, types, back).1, Some(2 * 2 * 3200 * 9));
}

#[test]
fn attention_is_half_under_a_causal_mask_and_where_that_is_not_known() {
    let types = r#"["c10::Half","c10::Half","c10::Half","","","Scalar","Scalar","Scalar","Scalar"]"#;
    let sizes = "[[2,128,4,64],[2,128,4,64],[2,128,4,64],[],[],[],[],[],[]]";
    let with = |causal: &str| {
        let values = format!(r#"["","","","","","128","128","0.0","{causal}"]"#);
        known("aten::_flash_attention_forward", sizes, types, &values)
    };
    let full = 4 * 2 * 4 * 128 * 128 * 64;
    assert_eq!(with("False"), (2 * 4 * 2 * 128 * 4 * 64, Some(full)));
    assert_eq!(with("True").1, Some(full / 2));
    assert_eq!(known("aten::_flash_attention_forward", sizes, types, "[]").1, Some(full / 2));
}

#[test]
fn what_only_moves_is_read_and_written_once() {
    let two = r#"["float","float","Scalar"]"#;
    for (name, sizes, types, values, bytes) in [
        ("aten::add", "[[64,128],[128],[]]", two, "[]", 4 * (8192 + 128 + 8192)),
        ("aten::add_", "[[64,128],[128],[]]", two, "[]", 4 * (8192 + 128 + 8192)),
        ("aten::mul", "[[64,1],[1,128],[]]", two, "[]", 4 * (64 + 128 + 8192)),
        ("aten::mul", "[[64,128],[],[64,128]]", r#"["float","double","float"]"#, "[]", 4 * 2 * 8192 + 8),
        ("aten::gt", "[[100],[],[]]", two, "[]", 4 * 101 + 100),
        ("aten::relu", "[[100]]", r#"["c10::BFloat16"]"#, "[]", 400),
        ("aten::copy_", "[[100],[100],[]]", r#"["float","c10::Half","Scalar"]"#, "[]", 600),
        ("aten::fill_", "[[100],[]]", r#"["double","Scalar"]"#, "[]", 800),
        ("aten::sum", "[[100,4],[]]", r#"["float",""]"#, "[]", 1600),
        ("aten::_softmax", "[[100,4],[],[]]", r#"["float","Scalar","Scalar"]"#, "[]", 3200),
        (
            "aten::index_select",
            "[[1000,8],[],[5]]",
            r#"["float","Scalar","long int"]"#,
            r#"["","0",""]"#,
            2 * 4 * 40 + 40,
        ),
        (
            "aten::gather",
            "[[1000,8],[],[5,8],[]]",
            r#"["float","Scalar","long int","Scalar"]"#,
            "[]",
            2 * 4 * 40 + 320,
        ),
        (
            "aten::max_pool2d_with_indices",
            "[[1,2,8,8],[],[],[],[],[]]",
            r#"["float","ScalarList","ScalarList","ScalarList","ScalarList","Scalar"]"#,
            r#"["","[2, 2]","[2, 2]","[0, 0]","[1, 1]","False"]"#,
            4 * (128 + 32) + 8 * 32,
        ),
        (
            "aten::upsample_nearest2d",
            "[[1,2,4,4],[],[],[]]",
            r#"["float","ScalarList","",""]"#,
            r#"["","[8, 8]","",""]"#,
            4 * (32 + 128),
        ),
        ("triton_poi_fused_add_0", "[[10,10],[10,10],[10,10],[]]", F, "[]", 1200),
    ] {
        assert_eq!(known(name, sizes, types, values), (bytes, None), "{name}");
    }
    let cat = of("aten::cat", "[[[2,3],[4,3]],[]]", r#"["TensorList","Scalar"]"#, "[]").unwrap();
    assert_eq!((cat.bytes, cat.untyped), (0, 36));
    let recurrent = known(
        "aten::_cudnn_rnn",
        "[[7,2,8],[[16,8],[16,4],[16],[16]],[]]",
        r#"["float","TensorList","Scalar"]"#,
        "[]",
    );
    assert_eq!(recurrent, (4 * (112 + 224), Some(2 * 14 * 192)));
}

#[test]
fn why_nothing_is_known_is_said() {
    let why = |name: &str, sizes: &str, types: &str| of(name, sizes, types, "[]").unwrap_err();
    assert!(why("aten::topk", "[[9]]", r#"["float"]"#).contains("not in the table"));
    assert!(why("aten::cat", "[[],[]]", r#"["TensorList","Scalar"]"#).contains("no sizes of the list"));
    assert!(demand("aten::mm", None).unwrap_err().contains("record_shapes=True"));
}

/// A line with a product, one with an addition whose tensors are expanded, one of an extension, one with short kernels; those of `lines`, with so many
/// microseconds between one kernel and the next call.
fn trace(lines: &[u32], gap: u64) -> String {
    let mut events = Vec::new();
    let mut at = 1_000;
    let operators = [
        (
            7,
            "aten::mm",
            r#""Input Dims":[[4096,4096],[4096,4096]],"Input type":["float","float"]"#,
            2_500,
            "sm80_xmma_gemm_f32f32_tf32f32_f32",
        ),
        (
            8,
            "aten::add",
            r#""Input Dims":[[10000,10000],[10000,10000],[]],"Input type":["float","float","Scalar"],"Input Strides":[[10000,1],[0,1],[]]"#,
            250,
            "vectorized_elementwise_kernel",
        ),
        (9, "", "", 100, "my_kernel"),
        (10, "aten::neg", r#""Input Dims":[[100]],"Input type":["float"]"#, 2, "neg_kernel"),
    ];
    let wanted = operators.into_iter().filter(|operator| lines.contains(&operator.0));
    for (number, (line, name, shapes, took, kernel)) in wanted.enumerate() {
        for call in 0..2 {
            let id = number * 2 + call + 1;
            events.push(format!(r#"{{"ph":"X","cat":"user_annotation","name":"stitchcuda.line /w/m.py:{line}","pid":1,"tid":1,"ts":{at},"dur":20}}"#));
            if !name.is_empty() {
                events.push(format!(r#"{{"ph":"X","cat":"cpu_op","name":"{name}","pid":1,"tid":1,"ts":{},"dur":16,"args":{{{shapes}}}}}"#, at + 2));
            }
            events.push(format!(r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{},"dur":4,"args":{{"correlation":{id}}}}}"#, at + 5));
            events.push(format!(r#"{{"ph":"X","cat":"kernel","name":"{kernel}","pid":0,"tid":7,"ts":{},"dur":{took},"args":{{"correlation":{id},"device":0,"stream":7}}}}"#, at + 15));
            at += took + 15 + gap;
        }
    }
    format!(
        r#"{{"deviceProperties":[{{"id":0,"name":"NVIDIA H200"}}],"traceEvents":[{}]}}"#,
        events.join(",\n")
    )
}

fn h200() -> Peaks {
    let flops = [(Arithmetic::Fp32, 66.9e12), (Arithmetic::Tf32Tensor, 494e12)].into();
    Peaks { device: "NVIDIA H200".into(), bandwidth: 4.81e12, l2: 60 << 20, flops, source: "a test".into() }
}

fn classified(lines: &[u32], gap: u64, peaks: Result<Peaks, String>) -> PythonTime {
    let text = trace(lines, gap);
    let workspace = Workspace { folders: vec!["/w".into()], ..Workspace::default() };
    let mut open = || Ok(Box::new(Cursor::new(text.clone().into_bytes())) as Box<dyn Read>);
    let (system, mut time) = read_from("t", &workspace, &mut open).unwrap();
    classify(&mut time, Some(&system), peaks);
    time.lines.sort_by_key(|line| line.line);
    time
}

const ALL: &[u32] = &[7, 8, 9, 10];

#[test]
fn lines_have_the_class_of_the_operators_with_most_of_their_time() {
    let time = classified(ALL, 5, Ok(h200()));
    let classes: Vec<_> =
        time.lines.iter().map(|line| (line.line, line.roofline.as_ref().unwrap().bound)).collect();
    // The product makes 2 * 4096^3 operations in 2.5 ms: 11% of TF32's peak, where FP32's could not even do it.
    assert_eq!(classes, [(7, Bound::Latency), (8, Bound::Memory), (9, Bound::Unknown), (10, Bound::Latency)]);
    let [product, addition, extension, _] = &time.lines[..] else { panic!("{:?}", time.lines) };
    let estimate = &product.estimates[0];
    assert_eq!((estimate.calls, estimate.launches, estimate.flops), (2, 2, Some(2 * 2 * 4096 * 4096 * 4096)));
    assert_eq!(estimate.arithmetic, Some(Arithmetic::Tf32Tensor));
    // The second tensor is one row, which stands for all of them.
    let estimate = &addition.estimates[0];
    assert_eq!(
        (estimate.bytes, estimate.flops, estimate.ns),
        (Some(2 * 4 * (200_000_000 + 10_000)), None, 500_000)
    );
    assert_eq!(estimate.words(&h200()).unwrap(), "at least 1.60 GB in 500 µs: 3.20 TB/s, 67% of 4.81 TB/s");
    let why = extension.roofline.as_ref().unwrap().unknown.as_ref().unwrap();
    assert!(why.contains("no operator launched"), "{why}");
    assert!((time.attributed_share - 1.0).abs() < 1e-12 && time.unattributed.is_empty());
}

#[test]
fn short_kernels_between_gaps_are_launch_bound() {
    let bound = |lines: &[u32]| {
        let time = classified(lines, 60, Ok(h200()));
        time.lines.last().unwrap().roofline.as_ref().unwrap().bound
    };
    assert_eq!(bound(&[10]), Bound::Launch);
    assert_eq!(bound(ALL), Bound::Latency, "long kernels have most of the device's time");
}

#[test]
fn without_peaks_there_is_no_class_and_the_reason_is_said() {
    let time = classified(ALL, 5, Err("the peaks of Some GPU are not in the table of devices".into()));
    for line in &time.lines {
        let roofline = line.roofline.as_ref().unwrap();
        assert_eq!((roofline.bound, roofline.unknown.is_some()), (Bound::Unknown, true), "{line:?}");
    }
    // The table has FP32 and TF32 alone.
    let fewer = Peaks { flops: std::collections::BTreeMap::new(), ..h200() };
    let time = classified(ALL, 5, Ok(fewer));
    let why = time.lines[0].roofline.as_ref().unwrap().unknown.clone().unwrap();
    assert!(why.contains("TF32"), "{why}");
    assert_eq!(time.lines[1].roofline.as_ref().unwrap().bound, Bound::Memory);
}

#[test]
fn a_line_with_ever_other_shapes_has_a_class() {
    let mut events = Vec::new();
    for call in 0..100u64 {
        let (at, rows) = (1_000 + call * 400, 8_000 + call);
        events.push(format!(r#"{{"ph":"X","cat":"user_annotation","name":"stitchcuda.line /w/m.py:3","pid":1,"tid":1,"ts":{at},"dur":20}}"#));
        events.push(format!(r#"{{"ph":"X","cat":"cpu_op","name":"aten::relu","pid":1,"tid":1,"ts":{},"dur":16,"args":{{"Input Dims":[[{rows},16384]],"Input type":["float"]}}}}"#, at + 2));
        events.push(format!(r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{},"dur":4,"args":{{"correlation":{}}}}}"#, at + 5, call + 1));
        events.push(format!(r#"{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":{},"dur":300,"args":{{"correlation":{},"device":0,"stream":7}}}}"#, at + 15, call + 1));
    }
    let text = format!(r#"{{"traceEvents":[{}]}}"#, events.join(","));
    let workspace = Workspace { folders: vec!["/w".into()], ..Workspace::default() };
    let mut open = || Ok(Box::new(Cursor::new(text.clone().into_bytes())) as Box<dyn Read>);
    let (system, mut time) = read_from("t", &workspace, &mut open).unwrap();
    classify(&mut time, Some(&system), Ok(h200()));
    let line = &time.lines[0];
    assert_eq!(line.roofline, Some(LineRoofline { bound: Bound::Memory, share: 1.0, unknown: None }));
    assert_eq!(line.estimates.iter().map(|operator| operator.calls).sum::<u64>(), 100);
    assert!(line.estimates.len() < 20 && line.estimates[0].shapes == "other shapes", "{:?}", line.estimates);
}
