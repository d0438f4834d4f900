//! Reports of compute-sanitizer: of an H200, of other versions, and as XML.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::File;
use std::path::PathBuf;

use expect_test::{Expect, expect};
use stitch_findings::{Code, Severity, Span};
use stitch_profiles::note::NoteKind;
use stitch_profiles::sanitizer::{self, DefectKind, SanitizerError, SanitizerReport, Side};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn read(text: &str) -> SanitizerReport {
    sanitizer::read(text.as_bytes()).unwrap()
}

/// One line a defect: its place, kind and message.
fn show(report: &SanitizerReport) -> String {
    let line = |defect: &sanitizer::Defect| {
        let place =
            defect.place().map_or("nowhere".to_owned(), |place| format!("{}:{}", place.file, place.line));
        format!("{place} {} {}\n", defect.kind.code(), defect.message())
    };
    report.defects.iter().map(line).collect()
}

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&show(&read(text)));
}

#[test]
fn four_planted_defects_are_told_by_the_tool_that_finds_each() {
    let text = std::fs::read_to_string(data("h200/bad.compute-sanitizer.txt")).unwrap();
    let report = read(&text);
    expect![[r#"
        bad.cu:3 sanitizer/out-of-bounds Out-of-bounds global write of 4 bytes in `oob` by thread (232..234,0,0) of block (3,0,0), 1 byte behind an allocation of 4,000 bytes. 3 reports say the same.
        bad.cu:4 sanitizer/race The write of shared memory here in `race` races with the read at line 4 (256 hazards).
        bad.cu:5 sanitizer/uninitialized-read Read of uninitialised global memory of 4 bytes in `uninit` by thread (0..2,0,0) of block (0,0,0). 3 reports say the same.
        bad.cu:6 sanitizer/barrier Barrier error detected. Divergent thread(s) in warp in `badsync` by thread (0..2,0,0) of block (0,0,0). 3 reports say the same.
    "#]]
    .assert_eq(&show(&report));
    assert_eq!((report.errors, report.not_printed), (Some(25 + 1 + 32 + 16), 22 + 29 + 13));
    let oob = &report.defects[0];
    assert_eq!((oob.address, oob.allocation.unwrap().address), (Some(0x7fbc_a880_0fa0), 0x7fbc_a880_0000));
    assert_eq!(oob.host_stack[0].place.as_ref().map(|place| place.line), Some(7));
    assert!(report.defects.iter().all(|defect| defect.severity() == Severity::Warning));
    let clean = text.split("### ").find(|part| part.starts_with("case 1 memcheck")).unwrap();
    let clean = read(clean);
    assert_eq!((clean.defects.len(), clean.errors, clean.notes.len()), (0, Some(0), 0));
}

#[test]
fn reports_of_several_ages_have_places_of_the_users_code_only() {
    let report = sanitizer::read(File::open(data("cases/sanitizer_variants.txt")).unwrap()).unwrap();
    expect![[r#"
        vec_ops.hpp:57 sanitizer/out-of-bounds Out-of-bounds global read of 16 bytes in `scan_kernel` by thread (0,0,0) of block (0,4801,0), 12,884,901,889 bytes behind an allocation of 512 bytes.
        nowhere sanitizer/out-of-bounds Out-of-bounds global write of 4 bytes in `fill` by thread (77,0,0) of block (0,0,0).
        C:\work\my app\tile.cu:41 sanitizer/misaligned Misaligned shared read of 4 bytes in `tile_sum` by thread (31,0,0) of block (2,0,0).
        app.cpp:88 sanitizer/api-error The API call cudaDeviceSynchronize returned error 719: Program hit cudaErrorLaunchFailure (error 719) due to "unspecified launch failure" on CUDA API call to cudaDeviceSynchronize.
        app.cpp:70 sanitizer/leak 6,144 bytes of device memory are never freed.
    "#]]
    .assert_eq(&show(&report));
    let first = &report.defects[0];
    assert_eq!(
        first.device_stack[0].place.as_ref().map(|place| (place.file.as_str(), place.line)),
        Some(("scan.cuh", 88))
    );
    assert_eq!(first.kernel().unwrap().signature, "void ops::scan_kernel<float>(T1 *, const T1 *)");
    assert_eq!(first.allocation.unwrap().side, Side::After);
    assert!(report.defects[1].advice().contains("-lineinfo"));
    assert!(!report.defects[0].advice().contains("-lineinfo"));
    assert_eq!((report.errors, report.not_printed), (Some(27), 22));
    assert_eq!(report.notes.iter().filter(|note| note.kind == NoteKind::NotCaptured).count(), 1, "said once");
    assert!(!format!("{report:?}").contains("loading model"));
    let finding = first.finding(Span::new(3, 9));
    assert_eq!(
        (finding.code, finding.subject.as_deref()),
        (Code::SANITIZER_OUT_OF_BOUNDS, Some("scan_kernel"))
    );
}

#[test]
fn cuda_memcheck_wrote_the_file_before_the_function() {
    check(
        "\
Application finished successfully.========= CUDA-MEMCHECK
========= CUDA-MEMCHECK
========= Invalid __global__ write of size 4
=========     at 0x00000450 in /home/a/mm.cu:27:mm(float const *, float*, int)
=========     by thread (15,15,0) in block (0,127,0)
=========     Address 0x7f361d800000 is out of bounds
=========     Device Frame:/home/a/mm.cu:31:outer(float*) (outer(float*) : 0x60)
=========     Host Frame:/usr/lib/libcuda.so.1 (cuLaunchKernel + 0x346) [0x2c4fd6]
=========     Host Frame:mm (main + 0x2f3) [0x43a4]
=========
========= WARN:(Warp Level Programming) Potential RAW hazard detected at __shared__ 0x3 in block (0, 0, 0) :
=========     Write Thread (31, 0, 0) at 0x00000148 in ./race.cu:3:test(int*, int*)
=========     Read Thread (0, 0, 0) at 0x00000170 in ./race.cu:4:test(int*, int*)
=========     Current Value : 0
=========
========= WARN: Race reported between Read access at 0x00000170 in ./race.cu:4:test(int*, int*)
=========     and Write access at 0x00000148 in ./race.cu:3:test(int*, int*) [4 hazards]
=========     and Write access at 0x000001a8 in ./race.cu:9:test(int*, int*) [4 hazards]
=========
========= Fatal UVM GPU fault of type invalid pde due to invalid address
=========     during atomic access to address 0x20be00000
=========
========= Unused memory in allocation 0x1303d80000 of size 16 bytes
=========     Not written any memory.
=========     100.00% of allocation were unused.
=========
========= ERROR SUMMARY: 5 errors
",
        expect![[r#"
            /home/a/mm.cu:27 sanitizer/out-of-bounds Out-of-bounds global write of 4 bytes in `outer` by thread (15,15,0) of block (0,127,0).
            ./race.cu:3 sanitizer/race The write of shared memory here in `test` races with the read at line 4.
            ./race.cu:4 sanitizer/race The read of shared memory here in `test` races with the write at line 3 and the write at line 9 (4 hazards).
            nowhere sanitizer/out-of-bounds Out-of-bounds atomic.
            nowhere sanitizer/unused-memory Unused memory in allocation 0x1303d80000 of size 16 bytes.
        "#]],
    );
}

#[test]
fn newer_reports_have_barriers_of_other_kinds_and_one_line_races() {
    check(
        "\
========= COMPUTE-SANITIZER
========= Barrier error detected. Missing wait.
=========     at load_tile+0xbb10 in mm.cu:98
=========     by thread (128,0,0) in block (0,0,0)
=========     Barrier is located at shared address 0x30408
=========         Device Frame: mm_kernel(float*)+0x3c0 in mm.cu:462
=========
========= Warpgroup MMA sequence error detected. Divergent thread(s) in warp.
=========     at wg(float *)+0x40 in wg.cu:9
=========     by thread (0,0,0) in block (1,0,0)
=========
========= Error: Race reported between Write access at 0x50 in k(float *) and Read access at 0x90 in k(float *)
=========
========= Malloc/Free error encountered : Double free
=========     at free_twice(int *)+0x70 in heap.cu:5
=========     by thread (1,0,0) in block (0,0,0)
=========     Address 0x7f00
=========
========= Something that nobody has seen yet
=========     at k(float *)+0x10 in new.cu:3
=========
========= Internal Sanitizer Error: The Sanitizer encountered an error while launching k and didn't track the launch.
========= ERROR SUMMARY: 5 errors
",
        expect![[r#"
            mm.cu:98 sanitizer/barrier Barrier error detected. Missing wait in `mm_kernel` by thread (128,0,0) of block (0,0,0).
            wg.cu:9 sanitizer/barrier Warpgroup MMA sequence error detected. Divergent thread(s) in warp in `wg` by thread (0,0,0) of block (1,0,0).
            nowhere sanitizer/race The write of shared memory here in `k` races with the read.
            heap.cu:5 sanitizer/invalid-free Malloc/Free error encountered : Double free in `free_twice` by thread (1,0,0) of block (0,0,0).
            new.cu:3 sanitizer/other Something that nobody has seen yet in `k`.
        "#]],
    );
}

#[test]
fn a_probing_call_of_the_runtime_is_a_hint() {
    let report = read(
        "\
========= COMPUTE-SANITIZER
========= Program hit CUDA_ERROR_INVALID_VALUE (error 1) due to \"invalid argument\" on CUDA API call to cuGetProcAddress_v2.
=========
========= ERROR SUMMARY: 1 error
",
    );
    assert_eq!(report.defects[0].severity(), Severity::Hint);
}

#[test]
fn a_stopped_report_keeps_what_it_has_and_says_so() {
    let report = read(
        "========= COMPUTE-SANITIZER\n========= Invalid __global__ read of size 8 bytes\n=========     at k()+0x10 in a.cu:2\n",
    );
    assert_eq!((report.defects.len(), report.errors), (1, None));
    assert!(
        report.notes.iter().any(|note| note.kind == NoteKind::Unreadable && note.text.contains("no summary"))
    );
    for text in ["", "hello\n", "== not nine\n", "<html></html>", "<?xml version=\"1.0\"?><Other/>", "<"] {
        assert!(matches!(sanitizer::read(text.as_bytes()), Err(SanitizerError::NotSanitizer)), "{text}");
    }
}

const XML: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<ComputeSanitizerOutput>
<record><kind>Precise</kind><level>Error</level>
 <who><threadIdx><x>3</x><y>1</y><z>0</z></threadIdx><blockIdx><x>2</x><y>0</y><z>0</z></blockIdx></who>
 <what><text>Invalid __global__ write of size 4 bytes: Access is out of bounds</text><space>__global__</space><size>4</size>
  <accessAddress>0x10000002a</accessAddress></what>
 <where><func>void scale&lt;float&gt;(T1 *)</func><path>src/scale.cu</path><line>8</line><pc>0xe0</pc></where>
 <hostStack><saveLocation>kernel launch time</saveLocation>
  <frame><func>main</func><path>src/main.cc</path><line>12</line><module>app</module></frame></hostStack>
</record>
<record><kind>Api</kind><what><text>Program hit cudaErrorMemoryAllocation (error 2) due to out of memory on CUDA API call to cudaMalloc.</text>
 <api>cudaMalloc</api><error>cudaErrorMemoryAllocation</error><result>2</result></what>
 <hostStack><frame><func>cudaMalloc</func><module>app</module></frame><frame><func>main</func><path>m.cc</path><line>5</line></frame></hostStack>
</record>
<record><kind>Race</kind><what><text>Write-after-write hazard</text></what>
 <where><func>k(int *)</func><path>k.cu</path><line>3</line></where><where><func>k(int *)</func><path>k.cu</path><line>4</line></where>
</record>
<record><kind>Synccheck</kind><what><text>Barrier divergence</text></what><where><func>b(int *)</func></where><future>&unknown;</future></record>
</ComputeSanitizerOutput>
"#;

#[test]
fn xml_says_the_same_as_text() {
    let report = read(XML);
    expect![[r#"
        src/scale.cu:8 sanitizer/out-of-bounds Out-of-bounds global write of 4 bytes in `scale` by thread (3,1,0) of block (2,0,0).
        m.cc:5 sanitizer/api-error The API call cudaMalloc returned error 2: Program hit cudaErrorMemoryAllocation (error 2) due to out of memory on CUDA API call to cudaMalloc.
        k.cu:3 sanitizer/race The access of shared memory here in `k` races with the access at line 4.
        nowhere sanitizer/barrier Barrier divergence in `b`.
    "#]]
    .assert_eq(&show(&report));
    assert_eq!(report.defects[0].address, Some(0x1_0000_002a));
    assert_eq!(report.defects[0].host_stack[0].place.as_ref().map(|place| place.line), Some(12));
    assert_eq!(report.defects[1].kind, DefectKind::ApiError);
    assert_eq!(read("<ComputeSanitizerOutput/>").errors, Some(0));
}

#[test]
fn broken_xml_keeps_the_records_before_the_break() {
    let cut = XML.find("<record><kind>Race").unwrap();
    for text in [XML[..cut + 20].to_owned(), format!("{}</wrong>", &XML[..cut])] {
        let report = read(&text);
        assert_eq!((report.defects.len(), report.errors), (2, None));
        assert!(report.notes.iter().any(|note| note.kind == NoteKind::Unreadable));
    }
    // Of a record that is cut, what the tool found may be known.
    let within = XML.find("<accessAddress>").unwrap();
    let report = read(&XML[..within]);
    assert_eq!((report.defects.len(), report.errors), (1, None));
    let defect = &report.defects[0];
    assert_eq!((defect.kind, defect.size), (DefectKind::OutOfBounds, Some(4)));
    let damage = format!("The file is damaged from byte {within} on");
    assert!(report.notes[0].text.starts_with(&damage), "{:?}", report.notes);
    let bomb = "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><ComputeSanitizerOutput><record><what><text>&b;</text></what></record></ComputeSanitizerOutput>";
    assert_eq!(read(bomb).defects[0].text, "an error without a text", "entities are not expanded");
}

#[test]
fn what_the_tool_says_behind_a_line_that_the_program_left_open_is_read() {
    let text = "all is well ==== so far========= COMPUTE-SANITIZER\n========= Invalid __global__ write of size 4 bytes\n=========     at k(float *)+0x80 in k.cu:2\n=========     by thread (9,0,0) in block (0,0,0)\n=========     Address 0x7f00 is out of bounds\n50%========= ERROR SUMMARY: 1 error\n";
    let report = sanitizer::read(text.as_bytes()).unwrap();
    assert_eq!((report.defects.len(), report.errors), (1, Some(1)), "{report:?}");
}
