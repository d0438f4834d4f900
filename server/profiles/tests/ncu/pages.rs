//! Pages of every kind and age.

use std::fs::File;
use std::io::Read as _;

use expect_test::expect;
use stitch_findings::Code;
use stitch_profiles::kernel::{Bound, Metric, explain};
use stitch_profiles::ncu::{self, NcuError, Report};
use stitch_profiles::note::NoteKind;

use crate::{data, read, session, told};

#[test]
fn pages_that_write_a_name_differently_are_put_together_by_its_base() {
    let mut report = read("h200/kernels.ncu-raw.csv.gz");
    for launch in &mut report.launches {
        let base = &launch.kernel.base;
        launch.kernel = stitch_profiles::kernel::kernel_name(&format!("_Z{}{base}PKf", base.len()));
        assert_eq!(
            launch
                .kernel
                .signature
                .trim_end_matches("PKf")
                .trim_start_matches("_Z")
                .trim_start_matches(char::is_numeric),
            launch.kernel.base
        );
    }
    report.merge(read("h200/kernels.ncu-source-cuda-sass.csv.gz"));
    assert_eq!(report.launches.len(), 18);
    assert!(report.launches.iter().all(|launch| !launch.lines.is_empty() && launch.metrics.len() > 80));
}

#[test]
fn the_details_page_alone_gives_the_same_class() {
    let raw = read("h200/kernels.ncu-raw.csv.gz");
    let details = read("h200/kernels.ncu-details.csv.gz");
    for (raw, details) in raw.launches.iter().zip(&details.launches) {
        let (raw_class, class) = (explain(raw).class, explain(details).class);
        assert_eq!((raw_class.bound, raw_class.level), (class.bound, class.level), "{}", raw.kernel.base);
        assert!((raw.metrics[&Metric::Duration] / details.metrics[&Metric::Duration] - 1.0).abs() < 0.01);
        assert_eq!(
            details.shape,
            stitch_profiles::kernel::LaunchShape { device_name: None, ..raw.shape.clone() }
        );
    }
}

#[test]
fn units_come_to_the_base_whatever_the_columns_unit_is() {
    let (full, small) = (session("full"), session("small"));
    let first = |report: &Report, metric| report.launches[0].metrics[&metric];
    assert!((first(&full, Metric::Duration) - 135.2e-6).abs() < 1e-12, "0.135200 ms");
    assert!((first(&small, Metric::Duration) - 2.4e-6).abs() < 1e-12, "2.400000 us");
    assert!((first(&full, Metric::DramRead) - 0.536879e9).abs() < 1.0, "Gbyte");
    assert!((first(&small, Metric::DramRead) - 70_144.0).abs() < 1e-6, "Kbyte");
    assert!((first(&full, Metric::DramRate) - 4.446864e12).abs() < 1.0, "Tbyte/s");
    assert!((first(&full, Metric::SmFrequency) - 1.973183e9).abs() < 1.0, "Ghz");
    assert_eq!(full.launches[0].origin.passes, Some(38));
    assert_eq!(full.launches[0].shape.device_name.as_deref(), Some("NVIDIA H200"));
}

#[test]
fn a_raw_page_that_is_cut_says_from_where() {
    let mut text = String::new();
    let file = File::open(data("h200/kernels.ncu-raw.csv.gz")).unwrap();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    assert!(ncu::read(text.as_bytes()).unwrap().notes.iter().all(|note| note.kind != NoteKind::Unreadable));
    let last = text.trim_end().rfind('\n').unwrap();
    // Within the tenth column of the last row.
    let cut = last + text[last..].match_indices("\",\"").nth(9).unwrap().0;
    let read = ncu::read(&text.as_bytes()[..cut]).unwrap();
    assert_eq!(read.launches.len(), 17);
    // The row of the units is the first one below the header.
    let note = read.notes.iter().find(|note| note.kind == NoteKind::Unreadable).unwrap();
    let damage = "The file is damaged: row 19 below the header of the raw page has 10 columns";
    assert!(note.text.starts_with(damage), "{}", note.text);
}

#[test]
fn a_page_that_a_spreadsheet_wrote_again_without_quotes_says_the_same() {
    let mut quoted = String::new();
    let file = File::open(data("h200/kernels.ncu-raw.csv.gz")).unwrap();
    flate2::read::GzDecoder::new(file).read_to_string(&mut quoted).unwrap();
    let rows = quoted.lines().filter(|line| line.starts_with('"'));
    let bare: String = rows
        .map(|row| {
            let fields = row[1..row.len() - 1].split("\",\"");
            let least = fields.map(|field| match field.contains([',', '"']) {
                true => format!("\"{field}\""),
                false => field.to_owned(),
            });
            least.collect::<Vec<_>>().join(",") + "\n"
        })
        .collect();
    assert!(bare.starts_with("ID,"), "{}", &bare[..80]);
    assert_eq!(ncu::read(bare.as_bytes()).unwrap().launches, ncu::read(quoted.as_bytes()).unwrap().launches);
}

#[test]
fn values_that_can_not_be_were_not_measured() {
    let page = |value: &str| {
        format!(
            "\"ID\",\"Process ID\",\"Kernel Name\",\"dram__bytes_read.sum\",\"launch__registers_per_thread\"\n\
             \"\",\"\",\"\",\"Gbyte\",\"register/thread\"\n\"0\",\"7\",\"k()\",\"{value}\",\"32\"\n"
        )
    };
    for value in ["-1", "1e308", "1e29"] {
        let report = ncu::read(page(value).as_bytes()).unwrap();
        let launch = &report.launches[0];
        assert_eq!(
            (launch.get(Metric::DramRead), launch.get(Metric::Registers)),
            (None, Some(32.0)),
            "{value}"
        );
        assert!(report.notes[0].text.contains("negative, or larger"), "{:?}", report.notes);
    }
    assert_eq!(ncu::read(page("2").as_bytes()).unwrap().launches[0].get(Metric::DramRead), Some(2e9));
    // A header alone is a page in which no kernel stands, not an empty file.
    let header = page("0");
    let header = header.lines().next().unwrap();
    assert!(matches!(ncu::read(header.as_bytes()), Err(NcuError::NoKernels(_))));
}

#[test]
fn without_units_what_has_a_dimension_was_not_measured() {
    let rows = |units: &str| {
        format!(
            "\"ID\",\"Process ID\",\"Kernel Name\",\"gpu__time_duration.sum\",\"dram__bytes_read.sum\",\"launch__registers_per_thread\"\n\
             {units}\"0\",\"7\",\"k()\",\"0.135200\",\"536.879\",\"32\"\n"
        )
    };
    let with = ncu::read(rows("\"\",\"\",\"\",\"ms\",\"Mbyte\",\"register/thread\"\n").as_bytes()).unwrap();
    assert!((with.launches[0].metrics[&Metric::Duration] - 135.2e-6).abs() < 1e-12);
    assert!(with.notes.is_empty(), "{:?}", with.notes);
    let without = ncu::read(rows("").as_bytes()).unwrap();
    let launch = &without.launches[0];
    assert_eq!((launch.get(Metric::Duration), launch.get(Metric::DramRead)), (None, None));
    assert_eq!(launch.get(Metric::Registers), Some(32.0), "a count needs no unit");
    let notes: Vec<_> =
        without.notes.iter().map(|note| (note.kind, note.text.contains("units are missing"))).collect();
    assert_eq!(notes, [(NoteKind::Unreadable, true)], "{:?}", without.notes);
}

#[test]
fn a_raw_page_among_other_lines_keeps_what_was_measured_and_nothing_else() {
    let report = read("cases/ncu_raw_mixed.csv");
    let [reduce, vec, say] = &report.launches[..] else { panic!("{:?}", report.launches) };
    assert_eq!(reduce.kernel.signature, "void reduce<float, (int)256>(const T1 *, T1 *, int)");
    assert_eq!((reduce.shape.grid, reduce.shape.block), (Some([4096, 1, 1]), Some([256, 1, 1])));
    assert!((reduce.metrics[&Metric::Duration] - 1.048576e-3).abs() < 1e-15);
    assert_eq!(reduce.metrics[&Metric::Registers], 32.0);
    assert_eq!(reduce.metrics[&Metric::DramRead], 2_723_574_025_974.03);
    assert_eq!(reduce.metrics[&Metric::LoadSectorsPerRequest], 4.0);
    assert_eq!(reduce.origin.passes, Some(9), "the profiler's own line says so");
    assert_eq!(vec.kernel.base, "vec_kernel");
    assert_eq!((vec.metrics[&Metric::Registers], vec.metrics[&Metric::DramRead]), (18.0, 4_194_304.0));
    assert!(
        vec.get(Metric::LoadBytesPerSector).is_none() && vec.get(Metric::LoadSectorsPerRequest).is_none()
    );
    assert_eq!(say.kernel.signature, "say(char \"x\", int)");
    for metric in [Metric::Registers, Metric::DramRead, Metric::LoadBytesPerSector] {
        assert_eq!(say.get(metric), None, "{metric:?} was not measured");
    }
    assert_eq!(say.get(Metric::LoadSectorsPerRequest), Some(0.0), "a zero was measured");
    for launch in &report.launches {
        let explanation = explain(launch);
        assert_eq!(
            (explanation.class.bound, explanation.insights.len()),
            (Bound::Unknown, 0),
            "nothing rests on what is absent"
        );
    }
}

#[test]
fn refused_counters_are_said_once_with_the_remedy() {
    let error = ncu::read(File::open(data("cases/ncu_no_permission.txt")).unwrap()).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, NcuError::NotPermitted));
    for words in ["ERR_NVGPUCTRPERM", "forbids", "NVreg_RestrictProfilingToAdminUsers=0", "root", "SYS_ADMIN"]
    {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    let error = ncu::read(File::open(data("cases/ncu_none.txt")).unwrap()).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, NcuError::NoKernels(_)));
    assert!(text.contains("--target-processes all") && !text.contains("ERR_NVGPUCTRPERM"), "{text}");
    // Some devices allowed, one not.
    let mixed = format!(
        "{}{}",
        std::fs::read_to_string(data("cases/ncu_no_permission.txt")).unwrap(),
        std::fs::read_to_string(data("cases/ncu_raw_mixed.csv")).unwrap()
    );
    let report = ncu::read(mixed.as_bytes()).unwrap();
    assert_eq!(report.notes.iter().filter(|note| note.kind == NoteKind::NotPermitted).count(), 1);
}

#[test]
fn what_is_no_output_of_the_profiler_is_said_so() {
    for text in ["", "hello\n", "name,value\n1,2\n", "\"a\",\"b\"\n", "{\"traceEvents\": []}"] {
        assert!(matches!(ncu::read(text.as_bytes()), Err(NcuError::NotNcu(_))), "{text}");
    }
}

#[test]
fn a_page_for_people_is_answered_with_how_to_get_csv() {
    let text = "\
==PROF== Connected to process 7 (app)
==PROF== Profiling \"reduce\" - 0: 0%....50%....100% - 9 passes
==PROF== Disconnected from process 7
[7] app@127.0.0.1
  reduce(const float *) (4096, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 9.0
    Section: GPU Speed Of Light Throughput
";
    let error = ncu::read(text.as_bytes()).unwrap_err();
    assert!(matches!(error, NcuError::NotCsv(1, "")));
    assert!(error.to_string().contains("--csv --page raw"));
}

#[test]
fn metrics_asked_for_by_name_are_read_from_the_details_page_of_any_version() {
    let text = "\
==PROF== Connected to process 7
\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"
\"0\",\"7\",\"app\",\"h\",\"k(float *)\",\"1\",\"7\",\"Command line profiler metrics\",\"dram__bytes_op_read.sum\",\"Mbyte\",\"2,000.00\"
\"0\",\"7\",\"app\",\"h\",\"k(float *)\",\"1\",\"7\",\"Command line profiler metrics\",\"gpu__time_duration.sum\",\"usecond\",\"10,000.00\"
\"0\",\"7\",\"app\",\"h\",\"k(float *)\",\"1\",\"7\",\"Command line profiler metrics\",\"launch__registers_per_thread\",\"register/thread\",\"n/a\"
";
    let report = ncu::read(text.as_bytes()).unwrap();
    let launch = &report.launches[0];
    assert_eq!(launch.get(Metric::DramRead), Some(2e9));
    assert!((launch.metrics[&Metric::Duration] - 0.01).abs() < 1e-12);
    assert_eq!(launch.get(Metric::Registers), None);
    let comma =
        text.replace("2,000.00", "27.595.520").replace("10,000.00", "117,344").replace("Mbyte", "byte");
    let report = ncu::read(comma.as_bytes()).unwrap();
    assert_eq!(report.launches[0].get(Metric::DramRead), Some(27_595_520.0));
    assert!(
        (report.launches[0].metrics[&Metric::Duration] - 117.344e-6).abs() < 1e-12,
        "a decimal comma holds for the whole file"
    );
    assert!(report.notes.iter().any(|note| note.text.contains("decimal comma")));
}

#[test]
fn a_summary_over_launches_has_their_average() {
    let text = "\
\"Process ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"Invocations\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Minimum\",\"Maximum\",\"Average\"
\"1\",\"gemm\",\"(128, 1, 1)\",\"(96, 1, 1)\",\"3\",\"GPU Speed Of Light Throughput\",\"Memory Throughput\",\"%\",\"10.00\",\"20.00\",\"15.00\"
\"1\",\"gemm\",\"(128, 1, 1)\",\"(8, 1, 1)\",\"1\",\"GPU Speed Of Light Throughput\",\"Memory Throughput\",\"%\",\"4.00\",\"4.00\",\"4.00\"
";
    let utf16: Vec<u8> =
        std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    for report in [ncu::read(text.as_bytes()).unwrap(), ncu::read(&utf16[..]).unwrap()] {
        let found: Vec<_> = report
            .launches
            .iter()
            .map(|launch| (launch.shape.grid.unwrap()[0], launch.get(Metric::MemoryThroughput)))
            .collect();
        assert_eq!(found, [(96, Some(15.0)), (8, Some(4.0))]);
    }
}

#[test]
fn machine_code_alone_is_read_with_its_own_header() {
    let text = "\
\"Kernel Name\",\"void f<(bool)1>(float *)\",
\"Address\",\"Source\",\"Warp Stall Sampling (All Cycles)\",\"Instructions Executed\",\"# Samples\",\"Instructions Executed\",\"L2 Theoretical Sectors Global\",\"L2 Theoretical Sectors Global Ideal\",\"stall_long_sb\"
\"0x7f00\",\"      LDG.E R0, desc[UR4][R2.64]\",\"5\",\"1,024\",\"5\",\"1,024\",\"32,768\",\"4,096\",\"0\"
\"0x7f10\",\"      FADD R1, R0, 1\",\"40\",\"1,024\",\"40\",\"1,024\",\"0\",\"0\",\"39\"
";
    let report = ncu::read(text.as_bytes()).unwrap();
    let launch = &report.launches[0];
    assert_eq!((launch.kernel.base.as_str(), launch.instructions.len(), launch.lines.len()), ("f", 2, 0));
    assert_eq!(launch.instructions[0].counters.sectors, Some(32_768));
    let explanation = explain(launch);
    let found = told(&explanation, Code::NCU_UNCOALESCED_ACCESS);
    assert_eq!((found.len(), found[0].place.as_ref()), (1, None), "no line is known");
    expect![
        "The loads of `f` take 8.0 times the sectors they need: 28,672 too many, 88% of all global sectors."
    ]
    .assert_eq(&found[0].limits);
}

#[test]
fn source_lines_alone_are_read_with_their_own_header() {
    let text = "\
\"File Path\",\"/home/a/k.cu\"
\"Function Name\",\"k(float *)\"
\"#\",\"Source\",\"Instructions Executed\",\"# Samples\",\"Address Space\",\"Access Operation\",\"L2 Theoretical Sectors Global\",\"L2 Theoretical Sectors Global Ideal\"
\"7\",\"  y[i * 8] = x[i];\",\"1024\",\"30\",\"Global\",\"Store\",\"32768\",\"4096\"
\"8\",\"}\",\"1024\",\"10\",\"-\",\"-\",\"0\",\"0\"
";
    let launch = &ncu::read(text.as_bytes()).unwrap().launches[0];
    assert_eq!(
        launch.lines.iter().map(|line| (line.line, line.share)).collect::<Vec<_>>(),
        [(7, Some(0.75)), (8, Some(0.25))]
    );
    let explanation = explain(launch);
    let store = told(&explanation, Code::NCU_UNCOALESCED_ACCESS);
    assert_eq!(store.iter().map(|insight| insight.place.as_ref().unwrap().line).collect::<Vec<_>>(), [7]);
    assert_eq!(store[0].rule, "uncoalesced-store");
}
