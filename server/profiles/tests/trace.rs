//! Traces of PyTorch's profiler, sound ones and odd ones.

#![allow(clippy::unwrap_used)]

use std::io::{Cursor, Read, Write as _};

use proptest::prelude::*;
use stitch_profiles::note::NoteKind;
use stitch_profiles::read_error::ReadError;
use stitch_profiles::system::{Direction, Memory, System};
use stitch_profiles::trace;

const ODD: &str = include_str!("data/trace/not_quite_json.json");

fn read(bytes: &[u8]) -> Result<System, ReadError> {
    let bytes = bytes.to_vec();
    trace::read_from("t.json", &mut || Ok(Box::new(Cursor::new(bytes.clone())) as Box<dyn Read>))
}

fn kernels(system: &System) -> Vec<(&str, u64, u64)> {
    let kernels = system.kernels.as_deref().unwrap_or_default();
    kernels.iter().map(|kernel| (kernel.name.as_str(), kernel.count, kernel.total_ns)).collect()
}

fn has_note(system: &System, kind: NoteKind, part: &str) -> bool {
    system.notes.iter().any(|note| note.kind == kind && note.text.contains(part))
}

#[test]
fn a_trace_that_no_strict_parser_takes() {
    assert!(serde_json::from_str::<serde_json::Value>(ODD).is_err());
    let system = read(ODD.as_bytes()).unwrap();
    assert_eq!(
        kernels(&system),
        [("row_sum(float const*, float*)", 2, 17_750), ("void scale<float>(float*, int)", 1, 12_250)]
    );
    let copy = &system.copies.as_ref().unwrap()[0];
    assert_eq!((copy.count, copy.bytes, copy.total_ns, copy.rate), (1, 64, 0, None));
    assert_eq!((copy.route.direction, copy.route.from), (Direction::HostToDevice, Memory::Pageable));
    assert!(
        has_note(&system, NoteKind::Unreadable, "1 event could not be read, the first on line 6"),
        "{:?}",
        system.notes
    );
    let device = &system.devices[0];
    assert_eq!((device.name.as_deref(), device.multiprocessors), (Some("NVIDIA H200"), Some(132)));
    assert_eq!(system.source.schema.as_deref(), Some("1"));
    assert_eq!(system.kernels.as_ref().unwrap()[1].launch.block, [256, 1, 1]);
}

#[test]
fn the_same_in_other_dresses() {
    let expected = kernels(&read(ODD.as_bytes()).unwrap()).len();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(ODD.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let (_, events) = ODD.split_once("\"traceEvents\":").unwrap();
    let (array, _) = events.split_once("], \"traceName\"").unwrap();
    let wide = |order: fn(u16) -> [u8; 2]| {
        std::iter::once(0xfeff).chain(ODD.encode_utf16()).flat_map(order).collect::<Vec<u8>>()
    };
    let dresses: [Vec<u8>; 7] = [
        packed.clone(),
        wide(u16::to_le_bytes),
        wide(u16::to_be_bytes),
        format!("\u{feff}{ODD}").into_bytes(),
        array.trim().as_bytes().to_vec(),
        format!("{},]", array.trim()).into_bytes(),
        format!("{{\"a\": {{\"b\": [\"}}\"]}}, \"traceEvents\": {array},], \"z\": 1,}}").into_bytes(),
    ];
    for dress in &dresses {
        let system = read(dress).unwrap();
        assert_eq!(kernels(&system).len(), expected, "{}", String::from_utf8_lossy(dress));
    }
    // What was compressed ends in the middle: what there is was read, and the rest is told to be missing.
    let cut = read(&packed[..packed.len() - 30]).unwrap();
    assert!(has_note(&cut, NoteKind::Unreadable, "missing from all sums"), "{:?}", cut.notes);
}

#[test]
fn a_trace_that_ends_in_the_middle_says_so() {
    let at = ODD.find("\"blocks per SM\"").unwrap();
    let system = read(&ODD.as_bytes()[..at]).unwrap();
    assert_eq!(kernels(&system).iter().map(|kernel| kernel.1).sum::<u64>(), 2);
    let line = ODD[..at].lines().count();
    let damage = format!("The file is damaged: the trace ends in the middle, on line {line}.");
    assert!(has_note(&system, NoteKind::Unreadable, &damage), "{:?}", system.notes);
}

#[test]
fn what_is_no_trace_says_so() {
    assert!(matches!(read(b""), Err(ReadError::Empty { .. })));
    for other in ["{}", "not json", "{\"a\": 1}", "42", "<html>", "{\"traceEvents\": 3}"] {
        let error = read(other.as_bytes()).unwrap_err();
        assert!(matches!(error, ReadError::NotThis { .. }), "{other}: {error}");
        assert!(error.to_string().contains("export_chrome_trace"), "{error}");
    }
    let none = read(b"[]").unwrap();
    assert!(none.kernels.is_none() && has_note(&none, NoteKind::NotCaptured, "No kernel"));
}

#[test]
fn old_categories_are_known() {
    let text = r#"{"traceEvents": [
        {"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": "9", "ts": 1, "dur": 2, "args": {"correlation": 5}},
        {"ph": "X", "cat": "Kernel", "name": "k", "pid": 1, "tid": "stream 20", "ts": 4, "dur": 3, "args": {"correlation": 5}},
        {"ph": "X", "cat": "Memset", "name": "Memset (Device)", "pid": 1, "tid": "stream 20", "ts": 8, "dur": 1}
    ]}"#;
    let system = read(text.as_bytes()).unwrap();
    assert_eq!(kernels(&system), [("k", 1, 3_000)]);
    assert_eq!(system.calls.as_ref().unwrap()[0].name, "cudaLaunchKernel");
    assert_eq!((system.streams[0].device, system.streams[0].stream, system.streams[0].count), (1, 20, 2));
    assert_eq!(system.sets.unwrap().count, 1);
    let time = system.devices[0].time.as_ref().unwrap();
    assert_eq!((time.window_ns, time.busy_ns, time.idle.launch.ns), (5_000, 4_000, 1_000));
}

proptest! {
    #[test]
    fn a_garbled_trace_is_read_or_refused(
        changes in prop::collection::vec((0..ODD.len(), any::<u8>()), 0..20),
        length in 0..ODD.len(),
    ) {
        let mut bytes = ODD.as_bytes().to_vec();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        bytes.truncate(length);
        let _ = read(&bytes);
    }

    #[test]
    fn a_piece_taken_out_loses_no_event_after_it(from in 0usize..60, length in 1usize..40) {
        // Within the event of the first kernel: the three events after it are whole.
        let mut bytes = ODD.as_bytes().to_vec();
        let from = from + ODD.find("void scale").unwrap();
        bytes.drain(from..from + length);
        let system = read(&bytes).unwrap();
        prop_assert!(kernels(&system).iter().any(|kernel| kernel.0.starts_with("row_sum") && kernel.1 == 2));
    }
}

#[test]
fn a_flood_of_what_makes_no_sense_comes_to_an_end() {
    // Half events, each of which could go on to the end of the file; and a device for each kernel.
    let halves = format!("[{}", "{\"ph\":\"X, ".repeat(200_000));
    let system = read(halves.as_bytes()).unwrap();
    assert!(system.kernels.is_none() && has_note(&system, NoteKind::Unreadable, "ends in the middle"));
    let devices: String = (0..20_000)
        .map(|n| format!(r#"{{"ph":"X","cat":"kernel","name":"k","pid":{n},"tid":{n},"ts":{n},"dur":9e9}},"#))
        .collect();
    let system = read(format!("[{devices}").as_bytes()).unwrap();
    assert_eq!(kernels(&system), [("k", 20_000, 20_000 * 9_000_000_000_000)]);
    assert!(has_note(&system, NoteKind::Unreadable, "devices") && system.devices.len() == 256);
}
