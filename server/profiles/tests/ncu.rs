//! Nsight Compute's output of real kernels, explained: each planted trait on its line, and nothing of it on the good twins.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::path::PathBuf;

use expect_test::{expect, expect_file};
use flate2::read::GzDecoder;
use stitch_findings::Code;
use stitch_profiles::kernel::{
    Bound, Explanation, Insight, KernelLaunch, METRICS, Metric, explain, line_table, rules,
};
use stitch_profiles::ncu::{self, NcuError, Report};
use stitch_profiles::note::NoteKind;

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn read(name: &str) -> Report {
    let file = File::open(data(name)).unwrap();
    if name.ends_with(".gz") { ncu::read(GzDecoder::new(file)).unwrap() } else { ncu::read(file).unwrap() }
}

fn session(size: &str) -> Report {
    let mut report = read(&format!("h200/lines.{size}.ncu-raw.csv.gz"));
    report.merge(read(&format!("h200/lines.{size}.ncu-source.csv.gz")));
    report
}

/// A trait that a comment of `lines.cu` plants.
#[derive(Debug)]
struct Planted {
    kernel: String,
    /// The marked line; `None` for a trait of the whole kernel, whose comment stands alone above it.
    line: Option<u32>,
    text: String,
    code: Code,
}

/// What the comments' words are called here.
const TRAITS: &[(&str, Code)] = &[
    ("uncoalesced load", Code::NCU_UNCOALESCED_ACCESS),
    ("uncoalesced store", Code::NCU_UNCOALESCED_ACCESS),
    ("32-way bank conflict", Code::NCU_BANK_CONFLICT),
    ("divergent branch", Code::NCU_DIVERGENCE),
    ("atomic contention", Code::NCU_ATOMIC_CONTENTION),
    ("double arithmetic on float data", Code::NCU_DOUBLE_PRECISION),
    ("register spills", Code::NCU_SPILL),
    ("per-thread array", Code::NCU_LOCAL_MEMORY),
    ("run-time index", Code::NCU_LOCAL_MEMORY),
    ("compute bound", Code::NCU_COMPUTE_BOUND),
    ("grid too small", Code::NCU_GRID_TOO_SMALL),
];

fn kernel_of(line: &str) -> Option<String> {
    let rest = line.strip_prefix("__global__ void ")?;
    let rest = if rest.starts_with("__launch_bounds__") { rest.split_once(") ")?.1 } else { rest };
    Some(rest.split('(').next()?.to_owned())
}

fn planted() -> Vec<Planted> {
    let source = std::fs::read_to_string(data("h200/lines.cu")).unwrap();
    let mut kernel = String::new();
    let mut above: Option<String> = None;
    let mut found = Vec::new();
    let mut push = |kernel: &str, line, text: String| {
        let code =
            TRAITS.iter().find(|(words, _)| text.starts_with(words)).unwrap_or_else(|| panic!("{text}")).1;
        found.push(Planted { kernel: kernel.to_owned(), line, text, code });
    };
    for (at, line) in source.lines().enumerate() {
        if let Some(name) = kernel_of(line) {
            kernel = name;
            if let Some(text) = above.take() {
                push(&kernel, None, text);
            }
        }
        if let Some((before, text)) = line.split_once("// trait: ") {
            if before.is_empty() {
                above = Some(text.to_owned());
            } else {
                push(&kernel, Some(at as u32 + 1), text.to_owned());
            }
        }
    }
    found
}

fn told(explanation: &Explanation, code: Code) -> Vec<&Insight> {
    explanation.insights.iter().filter(|insight| insight.code == code).collect()
}

/// The insight that tells a planted trait: on its line, or anywhere in the kernel where the whole kernel has it.
fn proof<'e>(explanation: &'e Explanation, planted: &Planted) -> Option<&'e Insight> {
    told(explanation, planted.code).into_iter().find(|insight| {
        let place = insight.place.as_ref().filter(|place| place.file == "lines.cu");
        place.is_some_and(|place| planted.line.is_none_or(|line| line == place.line))
    })
}

/// At the small size every grid is too small, also that of the kernel that computes.
fn expected_at(size: &str, planted: &Planted) -> bool {
    size == "full" || planted.code != Code::NCU_COMPUTE_BOUND
}

#[test]
fn every_planted_trait_is_told_on_its_line() {
    let planted = planted();
    assert_eq!(planted.len(), 11, "{planted:#?}");
    for size in ["full", "small"] {
        let report = session(size);
        assert_eq!(report.launches.len(), 15);
        assert_eq!(report.notes, []);
        for planted in planted.iter().filter(|planted| expected_at(size, planted)) {
            let launch = report.launches.iter().find(|launch| launch.kernel.base == planted.kernel).unwrap();
            let explanation = explain(launch);
            assert!(
                proof(&explanation, planted).is_some(),
                "{size}: {planted:?} is not among {:#?}",
                explanation.insights
            );
        }
    }
}

#[test]
fn no_kernel_is_told_a_trait_that_it_has_not() {
    let planted = planted();
    let codes: BTreeSet<Code> = TRAITS.iter().map(|(_, code)| *code).collect();
    for size in ["full", "small"] {
        for launch in &session(size).launches {
            let explanation = explain(launch);
            let mut has: BTreeSet<Code> = explanation
                .insights
                .iter()
                .map(|insight| insight.code)
                .filter(|code| codes.contains(code))
                .collect();
            if size == "small" {
                assert!(
                    has.remove(&Code::NCU_GRID_TOO_SMALL),
                    "64 blocks are too few for 132 multiprocessors"
                );
            }
            let ought = planted
                .iter()
                .filter(|planted| planted.kernel == launch.kernel.base && expected_at(size, planted));
            let mut ought: BTreeSet<Code> = ought.map(|planted| planted.code).collect();
            if size == "small" {
                ought.remove(&Code::NCU_GRID_TOO_SMALL);
            }
            assert_eq!(has, ought, "{size}: {}", launch.kernel.base);
        }
    }
}

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
fn the_worst_access_comes_first_among_a_kernels_lines() {
    let report = session("full");
    let first = |kernel: &str| {
        let launch = report.launches.iter().find(|launch| launch.kernel.base == kernel).unwrap();
        let table = line_table(launch);
        let shares: f64 = table.iter().filter_map(|row| row.share).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{kernel}: {shares}");
        format!("{}: {}", table[0].place.line, table[0].remarks.join(", "))
    };
    expect!["14: 8.0 times the sectors"].assert_eq(&first("scale_strided"));
    expect!["29: 8.0 times the sectors, waits: long scoreboard"].assert_eq(&first("transpose_naive"));
    expect!["40: 32-way bank conflict, waits: barrier"].assert_eq(&first("transpose_conflict"));
    expect!["22: waits: long scoreboard"].assert_eq(&first("scale_coalesced"));
    expect!["123: 134,217,728 sectors of local memory"].assert_eq(&first("local_indexed"));
}

#[test]
fn a_hot_header_line_is_told_where_it_was_inlined() {
    let report = session("full");
    let launch = &report.launches[7];
    assert_eq!(launch.kernel.base, "count_contended");
    let atomic = launch.instructions.iter().find(|instruction| instruction.text.starts_with("REDG")).unwrap();
    assert_eq!((atomic.file.as_deref(), atomic.line), (Some("lines.cu"), Some(88)));
    assert!(
        launch
            .lines
            .iter()
            .any(|line| line.file.ends_with("device_atomic_functions.hpp") && line.line == 107)
    );
}

#[test]
fn lines_and_instructions_are_counted_once() {
    for launch in &session("full").launches {
        // The raw page counts the same instructions in another pass.
        let executed: u64 =
            launch.instructions.iter().filter_map(|instruction| instruction.counters.instructions).sum();
        let whole = launch.metrics[&Metric::Instructions];
        assert!(
            (executed as f64 - whole).abs() <= whole * 1e-6,
            "{}: {executed} and {whole}",
            launch.kernel.base
        );
        let shares: f64 =
            launch.lines.iter().filter(|line| line.file == "lines.cu").filter_map(|line| line.share).sum();
        assert!((0.95..=1.0 + 1e-9).contains(&shares), "{}: {shares}", launch.kernel.base);
        assert!(
            launch.instructions.iter().all(|instruction| instruction.file.as_deref() == Some("lines.cu"))
        );
    }
}

fn rows(launches: &[KernelLaunch]) -> String {
    let mut rows = String::new();
    for launch in launches {
        let explanation = explain(launch);
        let rules: Vec<String> = explanation
            .insights
            .iter()
            .map(|insight| match &insight.gain {
                Some(gain) => format!("{} {:.0}%", insight.rule, gain.share * 100.0),
                None => insight.rule.clone(),
            })
            .collect();
        writeln!(rows, "{}: {}; {}", launch.kernel.base, explanation.class.label(), rules.join(", "))
            .unwrap();
    }
    rows
}

#[test]
fn other_kernels_are_explained_by_all_three_pages() {
    let mut report = read("h200/kernels.ncu-raw.csv.gz");
    report.merge(read("h200/kernels.ncu-source-cuda-sass.csv.gz"));
    report.merge(read("h200/kernels.ncu-details.csv.gz"));
    assert_eq!(report.launches.len(), 18);
    assert!(report.launches.iter().all(|launch| launch.origin.pages == ["raw", "source", "details"] && launch.tool_rules.len() >= 5));
    assert_eq!(report.launches[1].kernel, report.launches[2].kernel);
    assert_ne!(
        report.launches[1].lines, report.launches[2].lines,
        "the second launch of a kernel has its own lines"
    );
    expect_file!["data/h200/kernels.explained.txt"].assert_eq(&rows(&report.launches));
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

#[test]
fn a_launch_goes_through_json_and_back() {
    let report = session("small");
    for launch in &report.launches {
        let text = serde_json::to_string(launch).unwrap();
        let mut back: KernelLaunch = serde_json::from_str(&text).unwrap();
        // The last digit of a fraction may differ.
        for (metric, value) in &mut back.metrics {
            assert!((*value - launch.metrics[metric]).abs() <= value.abs() * 1e-12);
            *value = launch.metrics[metric];
        }
        for (line, given) in back.lines.iter_mut().zip(&launch.lines) {
            line.share = given.share;
        }
        assert!(back == *launch, "{} differs", launch.kernel.base);
        let explanation = explain(launch);
        let back: Explanation = serde_json::from_str(&serde_json::to_string(&explanation).unwrap()).unwrap();
        assert_eq!(back.insights.len(), explanation.insights.len());
        assert_eq!(back.class.bound, explanation.class.bound);
    }
    let schema = serde_json::to_string(&schemars::schema_for!(KernelLaunch)).unwrap();
    assert!(schema.contains("sectorsIdeal"));
}

/// A text in a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Kernels with a trait, the rule that tells it, and the kernel that does the same without it.
const TWINS: &[(&str, &str, &str)] = &[
    ("scale_strided", "uncoalesced-load", "scale_coalesced"),
    ("transpose_naive", "uncoalesced-store", "transpose_padded"),
    ("transpose_conflict", "bank-conflict", "transpose_padded"),
    ("sum_divergent", "divergence", "sum_sequential"),
];

fn gains(report: &Report) -> String {
    let named = |name: &str| report.launches.iter().find(|launch| launch.kernel.base == name).unwrap();
    let mut rows = String::new();
    for (kernel, rule, twin) in TWINS {
        let [took, better] = [kernel, twin].map(|name| named(name).metrics[&Metric::Duration]);
        let insights = explain(named(kernel)).insights;
        let gain = insights
            .iter()
            .find(|insight| insight.rule == *rule)
            .and_then(|insight| insight.gain.as_ref())
            .unwrap();
        let (estimated, saved) = (gain.share * 100.0, (1.0 - better / took) * 100.0);
        // No estimate may be further off than a fifth of the kernel's time.
        assert!((estimated - saved).abs() <= 20.0, "{kernel}: {estimated} and {saved}");
        let (took, better) = (took * 1e6, better * 1e6);
        writeln!(rows, "| `{kernel}` | {rule} | {estimated:.0}% | `{twin}` | {took:.1} µs | {better:.1} µs | {saved:.0}% |").unwrap();
    }
    rows
}

/// The page about profiles, of which all tables are made here. Rewritten by `UPDATE_EXPECT=1`.
#[test]
fn the_documentation_shows_what_was_proven() {
    let mut page = include_str!("data/profiles.intro.md").to_owned();
    page.push_str("\n## Proof\n\n");
    page.push_str(include_str!("data/profiles.proof.md"));
    page.push_str(
        "\n| kernel | planted | marked line | told, full size | told, small size |\n|---|---|---|---|---|\n",
    );
    let reports = [session("full"), session("small")];
    for planted in planted() {
        let told = reports.each_ref().map(|report| {
            let launch = report.launches.iter().find(|launch| launch.kernel.base == planted.kernel).unwrap();
            match proof(&explain(launch), &planted) {
                Some(insight) => format!("`{}` at {}", insight.code, insight.place.as_ref().unwrap().line),
                None => "not told: its grid is too small there".to_owned(),
            }
        });
        let line = planted.line.map_or("the kernel".to_owned(), |line| line.to_string());
        writeln!(page, "| `{}` | {} | {line} | {} | {} |", planted.kernel, planted.text, told[0], told[1])
            .unwrap();
    }
    page.push_str("\nEverything that is told at full size, the class first:\n\n| kernel | class | told |\n|---|---|---|\n");
    for launch in &reports[0].launches {
        let explanation = explain(launch);
        let told = explanation.insights.iter().map(|insight| {
            let line = insight.place.as_ref().map(|place| format!(":{}", place.line)).unwrap_or_default();
            format!("{}{line}", insight.rule)
        });
        let told: Vec<String> = told.collect();
        writeln!(page, "| `{}` | {} | {} |", launch.kernel.base, explanation.class.label(), told.join(", "))
            .unwrap();
    }
    page.push_str(
        "\nEstimated gains beside the times of the good twins, at full size under the profiler:\n\n",
    );
    page.push_str("| kernel | rule | estimated | twin | took | the twin took | saved |\n|---|---|---|---|---|---|---|\n");
    page.push_str(&gains(&reports[0]));
    page.push_str("\n## Rules for kernels\n\n");
    page.push_str(include_str!("data/profiles.rules.md"));
    page.push_str("\n| rule | code | holds when | told at | thresholds from | estimated gain |\n|---|---|---|---|---|---|\n");
    for rule in rules() {
        let gain = rule.gain.as_ref().map_or("", |(_, formula)| formula);
        let when: Vec<String> = rule.when.iter().map(|condition| format!("`{condition}`")).collect();
        let (when, source) = (when.join(" and "), cell(rule.source));
        writeln!(page, "| {} | `{}` | {when} | {} | {source} | {gain} |", rule.id, rule.code, rule.at)
            .unwrap();
    }
    page.push_str(
        "\n## Metrics\n\n| metric | what it is | unit | names in Nsight Compute |\n|---|---|---|---|\n",
    );
    for info in METRICS {
        let names: Vec<String> = info.names.iter().map(|name| format!("`{name}`")).collect();
        writeln!(page, "| {:?} | {} | {:?} | {} |", info.metric, info.title, info.unit, names.join(", "))
            .unwrap();
    }
    expect_file!["../../../docs/profiles.md"].assert_eq(&page);
}

/// A launch of which only these metrics were measured.
fn synthetic(name: &str, metrics: &[(Metric, f64)]) -> KernelLaunch {
    KernelLaunch {
        kernel: stitch_profiles::kernel::kernel_name(name),
        metrics: metrics.iter().copied().collect(),
        ..KernelLaunch::default()
    }
}

/// A kernel that waits: 40 and 30 percent of the peaks, in three and a half waves.
const WAITING: [(Metric, f64); 5] = [
    (Metric::SmThroughput, 40.0),
    (Metric::MemoryThroughput, 30.0),
    (Metric::Waves, 8.0),
    (Metric::IssueActive, 0.4),
    (Metric::CyclesPerInstruction, 20.0),
];

/// Launches for the rules that no measured kernel here breaks, with what must be told.
fn made_up() -> Vec<(&'static str, KernelLaunch)> {
    use Metric as M;
    let waiting = |more: &[(Metric, f64)]| synthetic("k(float *)", &[&WAITING[..], more].concat());
    let limits = |which: Metric| {
        let all = [M::LimitRegisters, M::LimitSharedMemory, M::LimitWarps, M::LimitBlocks, M::LimitBarriers];
        let mut metrics: Vec<(Metric, f64)> =
            all.map(|limit| (limit, if limit == which { 2.0 } else { 16.0 })).to_vec();
        metrics.push((M::TheoreticalOccupancy, 25.0));
        waiting(&metrics)
    };
    let stalls = [
        ("stall-short-scoreboard", M::StallShortScoreboard),
        ("stall-mio-throttle", M::StallMioThrottle),
        ("stall-lg-throttle", M::StallLgThrottle),
        ("stall-math-pipe", M::StallMathPipe),
        ("stall-wait", M::StallWait),
        ("stall-no-instruction", M::StallNoInstruction),
        ("stall-branch-resolving", M::StallBranchResolving),
        ("stall-imc-miss", M::StallImcMiss),
        ("stall-tex-throttle", M::StallTexThrottle),
        ("stall-membar", M::StallMembar),
        ("stall-sleeping", M::StallSleeping),
        ("stall-dispatch", M::StallDispatch),
        ("stall-gmma", M::StallGmma),
        ("stall-not-selected", M::StallNotSelected),
    ];
    let mut all: Vec<(&'static str, KernelLaunch)> =
        stalls.into_iter().map(|(rule, metric)| (rule, waiting(&[(metric, 8.0)]))).collect();
    all.extend([
        ("stall-barrier", synthetic("k()", &[&WAITING[..4], &[(M::PartBarrier, 45.0)][..]].concat())),
        (
            "stall-drain",
            synthetic(
                "k()",
                &[&WAITING[..4], &[(M::SampledDrain, 450.0), (M::Samples, 1000.0)][..]].concat(),
            ),
        ),
        ("occupancy-shared-memory", limits(M::LimitSharedMemory)),
        ("occupancy-warps", limits(M::LimitWarps)),
        ("occupancy-blocks", limits(M::LimitBlocks)),
        ("occupancy-barriers", limits(M::LimitBarriers)),
        ("tail", synthetic("k()", &[(M::Waves, 1.2)])),
        (
            "imbalance",
            synthetic("k()", &[(M::Waves, 9.0), (M::SmCyclesActive, 500.0), (M::SmCyclesActiveMax, 1000.0)]),
        ),
        (
            "compute-bound",
            synthetic("k()", &[(M::SmThroughput, 75.0), (M::MemoryThroughput, 20.0), (M::PipeFma, 70.0)]),
        ),
        (
            "l2-reuse",
            synthetic(
                "void conv2d<float>(T1 *)",
                &[
                    (M::SmThroughput, 20.0),
                    (M::MemoryThroughput, 90.0),
                    (M::DramThroughput, 90.0),
                    (M::L2HitRate, 12.0),
                ],
            ),
        ),
        (
            "misaligned-store",
            synthetic(
                "k()",
                &[(M::GlobalSectors, 125.0), (M::GlobalSectorsIdeal, 100.0), (M::StoreBytesPerSector, 25.6)],
            ),
        ),
    ]);
    all
}

#[test]
fn every_rule_is_told_of_some_kernel_and_says_what_to_do() {
    let mut told: BTreeSet<String> = BTreeSet::new();
    for (rule, launch) in made_up() {
        let explanation = explain(&launch);
        let insight = explanation.insights.iter().find(|insight| insight.rule == rule);
        let insight = insight.unwrap_or_else(|| panic!("{rule} is not among {:#?}", explanation.insights));
        told.insert(insight.rule.clone());
    }
    let mut measured = read("h200/kernels.ncu-raw.csv.gz");
    measured.merge(read("h200/kernels.ncu-source-cuda-sass.csv.gz"));
    for launch in session("full").launches.iter().chain(&measured.launches) {
        for insight in explain(launch).insights {
            assert!(
                insight.limits.ends_with('.')
                    && insight.advice.ends_with('.')
                    && insight.link.starts_with("https://")
            );
            assert!(insight.limits.contains(&format!("`{}`", launch.kernel.base)), "{}", insight.limits);
            assert!(insight.place.is_some(), "{} has no line", insight.rule);
            assert!(
                insight.severity >= stitch_findings::Severity::Information,
                "performance is never a warning"
            );
            told.insert(insight.rule);
        }
    }
    let all: BTreeSet<String> = rules().map(|rule| rule.id.to_owned()).collect();
    assert_eq!(all.difference(&told).collect::<Vec<_>>(), Vec::<&String>::new());
    assert_eq!(all.len(), rules().count(), "no two rules have the same name");
    for rule in rules() {
        assert!(rule.unless.iter().all(|better| all.contains(*better)), "{}", rule.id);
    }
}

#[test]
fn what_limits_is_said_with_its_numbers() {
    let text: String = made_up()
        .iter()
        .map(|(rule, launch)| {
            let insight = explain(launch).insights.into_iter().find(|insight| insight.rule == *rule).unwrap();
            format!("{}\n", insight.limits)
        })
        .collect();
    expect_file!["data/made-up.explained.txt"].assert_eq(&text);
}
