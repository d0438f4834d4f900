//! Exports of Nsight Systems, real ones and odd ones.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;

use common::nsys as fixture;

use proptest::prelude::*;
use stitch_profiles::note::NoteKind;
use stitch_profiles::nsys;
use stitch_profiles::read_error::ReadError;
use stitch_profiles::system::{CallClass, Direction, Memory, Row, System};

fn read(name: &str) -> System {
    nsys::read(&fixture(name).path).unwrap()
}

fn has_note(system: &System, kind: NoteKind, part: &str) -> bool {
    system.notes.iter().any(|note| note.kind == kind && note.text.contains(part))
}

#[test]
fn a_program_of_known_kernels() {
    let system = read("h200_kernels.sqlite");
    assert_eq!(system.source.version.as_deref(), Some("2025.3.2.0"));
    assert_eq!(system.source.schema.as_deref(), Some("3.20.3"));
    let device = &system.devices[0];
    assert_eq!(device.name.as_deref(), Some("NVIDIA H200"));
    assert_eq!((device.multiprocessors, device.memory_bandwidth), (Some(132), Some(4_814_304_000_000)));
    assert_eq!(device.compute_capability.as_deref(), Some("9.0"));

    let kernels = system.kernels.as_ref().unwrap();
    assert_eq!(kernels.iter().map(|kernel| kernel.count).sum::<u64>(), 18);
    // The sums of the table, by SQL: SELECT sum(end - start) ... GROUP BY the name.
    let total: u64 = kernels.iter().map(|kernel| kernel.total_ns).sum();
    assert_eq!(total, 10_509_063);
    assert!(kernels[0].name.starts_with("histogram_atomic("), "{}", kernels[0].name);
    assert_eq!(
        (kernels[0].total_ns, kernels[0].min_ns, kernels[0].max_ns),
        (4_857_059, 4_857_059, 4_857_059)
    );
    let strided = kernels.iter().find(|kernel| kernel.name.starts_with("copy_strided")).unwrap();
    assert_eq!((strided.count, strided.total_ns), (2, 364_928 + 820_033));
    assert_eq!((strided.min_ns, strided.median_ns, strided.max_ns), (364_928, 364_928, 820_033));
    assert!(kernels[0].ceiling.unwrap() > 1.0 && kernels[0].launch.block[0] > 0);

    let copies = system.copies.as_ref().unwrap();
    assert_eq!(copies.len(), 2);
    assert_eq!(copies[0].route.direction, Direction::HostToDevice);
    assert_eq!((copies[0].route.from, copies[0].route.to), (Memory::Pageable, Memory::Device));
    assert_eq!((copies[0].bytes, copies[0].total_ns), (67_108_864, 9_911_590));
    let rate = copies[0].rate.unwrap();
    assert!((rate - 67_108_864.0 / 9_911_590e-9).abs() < 1.0, "{rate}");
    assert_eq!(system.sets.unwrap().count, 2);

    let time = device.time.as_ref().unwrap();
    assert_eq!(time.window_ns, 783_052_671 - 755_103_821);
    assert_eq!(time.busy_ns + time.idle.total_ns(), time.window_ns);
    assert_eq!(time.kernel_ns, total);
    assert_eq!(time.bus_copy_alone_ns, 9_911_590 + 6_063_300);
    assert_eq!(system.calls_of(CallClass::Launch).unwrap().0, 18);
    assert!(system.ranges.is_none() && has_note(&system, NoteKind::NotCaptured, "NVTX"));
}

#[test]
fn eight_steps_of_a_network_each_with_its_copy_and_its_wait() {
    let system = read("h200_pytorch_mlp.sqlite");
    let kernels = system.kernels.as_ref().unwrap();
    assert_eq!(kernels.iter().map(|kernel| kernel.count).sum::<u64>(), 32);
    assert!(kernels.iter().all(|kernel| kernel.count == 8));

    let copies = system.copies.as_ref().unwrap();
    let pageable: u64 = copies.iter().filter(|copy| copy.route.is_pageable()).map(|copy| copy.count).sum();
    // Four parameters before the loop, and one batch a step.
    assert_eq!(pageable, 12);
    let back = copies.iter().find(|copy| copy.route.direction == Direction::DeviceToHost).unwrap();
    assert_eq!((back.count, back.bytes), (8, 32));

    // One wait for each pageable copy, one for each `.item()`, and one at the end.
    let (waits, _) = system.calls_of(CallClass::Synchronize).unwrap();
    assert_eq!(waits, 21);
    let time = system.busiest().unwrap().1;
    // At each of the eight copies and of the seven `.item()` between steps the host waited until the device had nothing to do.
    assert!(time.idle.synchronization.count >= 15, "{:?}", time.idle);
    // In the first step it loaded modules for some 80 ms, and libraries without a call of the API for longer.
    assert!(time.idle.setup.ns > 79_000_000 && time.idle.pause.longest_ns > 79_000_000, "{:?}", time.idle);
    assert_eq!(time.busy_ns + time.idle.total_ns(), time.window_ns);
    assert!(time.base_ns() < 40_000_000 && time.idle_share() > 0.5, "{time:?}");

    let rows: Vec<Row> = system.drawing.rows.iter().map(|row| row.row).collect();
    assert!(
        rows.contains(&Row::Kernels { device: 0, stream: 7 })
            && rows.contains(&Row::Copies { device: 0, stream: 7 })
    );
}

#[test]
fn tables_with_a_suffix_and_without() {
    for (name, ranges) in [
        ("v2.sqlite", Some(vec![("forward", 2, 2_500), ("backward", 1, 3_000)])),
        ("no_textid.sqlite", Some(vec![("forward", 2, 2_500)])),
        ("no_nvtx.sqlite", None),
    ] {
        let system = read(name);
        let kernels = system.kernels.as_ref().unwrap();
        assert_eq!(kernels.len(), 1, "{name}");
        assert_eq!(kernels[0].name, "void scale<float>(float *, int)");
        assert_eq!((kernels[0].count, kernels[0].total_ns), (3, 5_500), "{name}");
        let found = system.ranges.as_ref().map(|ranges| {
            ranges
                .iter()
                .map(|range| (range.name.as_str(), range.launches, range.kernel_ns))
                .collect::<Vec<_>>()
        });
        assert_eq!(found, ranges, "{name}");
        assert_eq!(has_note(&system, NoteKind::NotCaptured, "NVTX"), ranges.is_none(), "{name}");
    }
}

#[test]
fn no_kernel_is_not_zero_kernels() {
    let system = read("no_kernels.sqlite");
    assert!(system.kernels.is_none() && system.devices.iter().all(|device| device.time.is_none()));
    assert!(system.notes[0].kind == NoteKind::NotCaptured && system.notes[0].text.contains("kernel"));
    assert!(has_note(&system, NoteKind::Remark, "CUDA profiling might have not been started correctly."));
    assert_eq!(system.calls.as_ref().unwrap().len(), 2);
}

#[test]
fn what_is_no_export_says_so() {
    let error = |name: &str| nsys::read(&fixture(name).path).unwrap_err();
    let empty = error("empty.sqlite");
    assert!(matches!(empty, ReadError::Empty { .. }) && empty.to_string().contains("empty"), "{empty}");
    let other = error("report.nsys-rep.sqlite");
    assert!(matches!(other, ReadError::NotThis { .. }), "{other}");
    assert!(
        other.to_string().contains("report.nsys-rep.sqlite") && other.to_string().contains("nsys export")
    );
    let cut = error("cut.sqlite");
    assert!(matches!(cut, ReadError::Damaged { .. }), "{cut}");
    assert!(cut.to_string().contains("12388 of its 24576 bytes"), "{cut}");
    let missing = nsys::read(Path::new("/nowhere/at.sqlite")).unwrap_err();
    assert!(matches!(missing, ReadError::Io { .. }), "{missing}");
}

/// An export with what a test wants in it.
fn made(sql: &str) -> Result<System, ReadError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made.sqlite");
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT); CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);").unwrap();
    connection.execute_batch(sql).unwrap();
    drop(connection);
    nsys::read(&path)
}

#[test]
fn a_newer_schema_and_missing_columns_are_read_as_far_as_they_go() {
    let system = made(
        "INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '4.1.0'); INSERT INTO StringIds VALUES (1, 'k');
         CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL_V3 (start INTEGER, \"end\" INTEGER, shortName INTEGER);
         INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL_V3 VALUES (300, 400, 1), (100, 150, 1), (500, 450, 1), (NULL, 3, 1), ('x', 3, 1), (700, 720, 99);
         CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (bytes INTEGER);
         CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, \"end\" INTEGER, graphId INTEGER, deviceId INTEGER);
         INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1000, 1900, 5, 0);",
    )
    .unwrap();
    let found: Vec<_> = system
        .kernels
        .as_ref()
        .unwrap()
        .iter()
        .map(|k| (k.name.as_str(), k.count, k.total_ns, k.whole_graph))
        .collect();
    assert_eq!(
        found,
        [("CUDA graph 5", 1, 900, true), ("k", 2, 150, false), ("(kernel without a name)", 1, 20, false)]
    );
    for (kind, part) in [
        (NoteKind::NewerVersion, "4.1.0"),
        (NoteKind::Unreadable, "3 rows"),
        (NoteKind::Unreadable, "MEMCPY has no start and end"),
        (NoteKind::NotCaptured, "calls of the CUDA API"),
        (NoteKind::NotCaptured, "--cuda-graph-trace=node"),
    ] {
        assert!(has_note(&system, kind, part), "{part}: {:?}", system.notes);
    }
    // No calls: the gaps have no cause that is known.
    let idle = &system.devices[0].time.as_ref().unwrap().idle;
    assert_eq!((idle.unknown.count, idle.total_ns()), (3, 150 + 300 + 280));
}

#[test]
fn what_runs_at_once_is_not_counted_twice() {
    let system = made(
        "INSERT INTO StringIds VALUES (1, 'a'), (2, 'b');
         CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, \"end\" INTEGER, deviceId INTEGER, streamId INTEGER, demangledName INTEGER);
         INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 1000, 0, 7, 1), (400, 600, 0, 8, 2), (900, 1500, 0, 8, 2), (0, 50, 1, 7, 1);
         CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, \"end\" INTEGER, deviceId INTEGER, streamId INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER);
         INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1400, 1700, 0, 9, 3000, 1, 1, 2);",
    )
    .unwrap();
    let time = system.devices[0].time.as_ref().unwrap();
    assert_eq!(
        (time.window_ns, time.busy_ns, time.kernel_ns, time.bus_copy_ns, time.bus_copy_alone_ns),
        (1_700, 1_700, 1_500, 300, 200)
    );
    let alone: Vec<_> =
        system.kernels.as_ref().unwrap().iter().map(|k| (k.name.as_str(), k.total_ns, k.alone_ns)).collect();
    // `a` is alone from 0 to 400 and from 600 to 900, and on the other device for 50; `b` from 1000 to 1400.
    assert_eq!(alone, [("a", 1_050, 750), ("b", 800, 400)]);
    let copy = &system.copies.as_ref().unwrap()[0];
    assert_eq!((copy.route.from, copy.rate), (Memory::Pinned, Some(1e10)));
    assert_eq!(system.devices[1].time.as_ref().unwrap().busy_ns, 50);
    assert_eq!(system.streams.len(), 4);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_garbled_export_is_read_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..60),
        cut in prop::option::of(any::<prop::sample::Index>()),
        which in 0usize..3,
    ) {
        let fixture = fixture(["v2.sqlite", "no_kernels.sqlite", "h200_kernels.sqlite"][which]);
        let mut bytes = std::fs::read(&fixture.path).unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        std::fs::write(&fixture.path, &bytes).unwrap();
        match nsys::read(&fixture.path) {
            Ok(system) => {
                for time in system.devices.iter().filter_map(|device| device.time.as_ref()) {
                    prop_assert!(time.kernel_ns <= time.busy_ns && time.busy_ns <= time.window_ns);
                }
                let _ = stitch_profiles::system::explain(&system, None);
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
