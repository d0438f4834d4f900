//! How far the estimates are off: `docs/estimates.md` is made here, from what an H200 measured and what was simulated of the same launches.

mod held_out;

use std::fmt::Write as _;

use super::*;
use crate::counters::Cached;
use crate::device::{DEVICES, Origin, SOURCES};

const MEASURED: &str = include_str!("../../tests/h200/measured.txt");
/// Counters of the same launches, written by the example `record`.
const PROGRAMS: [(&str, &str, &str); 3] = [
    ("small", "`lines small`", include_str!("../../tests/h200/small.txt")),
    ("lines", "`lines`", include_str!("../../tests/h200/lines.txt")),
    ("kernels", "`kernels`", include_str!("../../tests/h200/kernels.txt")),
];
const PAGE: &str = include_str!("page.md");

/// A kernel's launches together: measured, or simulated.
#[derive(Debug, Clone, Default)]
struct Row {
    kernel: String,
    launches: u64,
    nanoseconds: f64,
    limiter: &'static str,
    l1: f64,
    l2_hits: f64,
    l2_sectors: f64,
    read: f64,
    written: f64,
}

fn measured(program: &str) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for line in MEASURED.lines().filter(|line| line.starts_with(&format!("{program} "))) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<f64>().unwrap();
        if rows.last().is_none_or(|row| row.kernel != words[1]) {
            rows.push(Row { kernel: words[1].to_owned(), ..Row::default() });
        }
        let row = rows.last_mut().unwrap();
        row.launches += 1;
        row.nanoseconds += number(2);
        row.l1 = number(3);
        row.l2_hits += number(4);
        row.l2_sectors += number(4) + number(5);
        row.read += number(6);
        row.written += number(7);
    }
    rows
}

/// Counters of one launch of several alike, and their shape.
fn recorded(text: &str) -> Vec<(String, u64, Shape, LaunchCounters)> {
    let mut kernels: Vec<(String, u64, Shape, LaunchCounters)> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if words[0] == "kernel" {
            let number = |name: &str| {
                let at = words.iter().position(|word| *word == name).unwrap();
                words[at + 1].parse::<u64>().unwrap()
            };
            let launches = number("launches");
            let shape = Shape {
                blocks: number("blocks"),
                threads: number("threads") as u32,
                registers: number("registers") as u32,
                shared: number("shared"),
            };
            let counted = LaunchCounters {
                blocks: shape.blocks,
                grid_blocks: shape.blocks,
                warp_instructions: number("warp_instructions") / launches,
                hottest_line: Some(number("hottest_line")),
                ..LaunchCounters::default()
            };
            kernels.push((words[1].to_owned(), launches, shape, counted));
            continue;
        }
        let (_, launches, _, counted) = kernels.last_mut().unwrap();
        let mut numbers = words[1..].iter().map(|word| word.parse::<u64>().unwrap() / *launches);
        let mut next = || numbers.next().unwrap_or(0);
        let count = Count {
            warps: next(),
            requests: next(),
            shared_requests: next(),
            wavefronts: next(),
            cached: Cached {
                l1_lines: next(),
                l1_sectors: next(),
                l1_hits: next(),
                l2_sectors: next(),
                l2_hits: next(),
                dram_read: next(),
                dram_written: next(),
            },
            ..Count::default()
        };
        counted.instructions.push(InstructionCounters {
            ptx_line: 0,
            place: None,
            opcode: words[0].to_owned(),
            count,
        });
    }
    kernels
}

fn simulated(text: &str) -> Vec<Row> {
    let device = Device::named("h200").unwrap();
    let row = |(name, launches, shape, counted): (String, u64, Shape, LaunchCounters)| {
        let estimate = kernel(device, &shape, &counted);
        let cached = counted.total().cached;
        let all = launches as f64;
        Row {
            kernel: name,
            launches,
            nanoseconds: estimate.seconds * 1e9 * all,
            limiter: estimate.limiter.name(),
            l1: 100.0 * cached.l1_hit_rate().unwrap_or(0.0),
            l2_hits: cached.l2_hits as f64 * all,
            l2_sectors: cached.l2_sectors as f64 * all,
            read: cached.dram_read as f64 * SECTOR * all,
            written: cached.dram_written as f64 * SECTOR * all,
        }
    };
    recorded(text).into_iter().map(row).collect()
}

/// Both of each kernel, in the order in which they were measured.
fn pairs() -> Vec<(&'static str, Vec<(Row, Row)>)> {
    let of = |(name, title, text): (&'static str, &'static str, &'static str)| {
        let ours = simulated(text);
        let both = |row: Row| {
            let own = named(&ours, &row.kernel);
            assert_eq!(own.launches, row.launches, "{}", row.kernel);
            (row, own)
        };
        (title, measured(name).into_iter().map(both).collect())
    };
    PROGRAMS.into_iter().map(of).collect()
}

/// The kernel of that name among mangled ones.
fn named(rows: &[Row], kernel: &str) -> Row {
    let mangled = format!("_Z{}{kernel}", kernel.len());
    rows.iter().find(|row| row.kernel.starts_with(&mangled)).unwrap_or_else(|| panic!("{kernel}")).clone()
}

/// How many times one is the other, 1 or more.
fn factor((measured, own): &(Row, Row)) -> f64 {
    (measured.nanoseconds / own.nanoseconds).max(own.nanoseconds / measured.nanoseconds)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { f64::midpoint(values[half - 1], values[half]) }
}

#[test]
fn half_of_the_estimates_are_off_by_less_than_1_5() {
    for (program, rows) in pairs() {
        let factors: Vec<f64> = rows.iter().map(factor).collect();
        assert!(median(factors.clone()) < 1.5, "{program}: {factors:?}");
    }
}

#[test]
fn the_page_is_what_was_measured_and_simulated() {
    let (pairs, held_out) = (pairs(), held_out::pairs());
    let page = PAGE
        .replace("{apart}", &held_out::apart(&pairs, &held_out))
        .replace("{held_out}", &held_out::tables(&held_out))
        .replace("{summary}", &summary(&pairs))
        .replace("{times}", &times(&pairs))
        .replace("{caches}", &caches(&pairs))
        .replace("{devices}", &devices())
        .replace("{sources}", &sources());
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/estimates.md");
    expect_test::expect_file![path].assert_eq(&page);
}

const HEAD: &str = "| kernels | number | median factor | within 1.5 | farthest |\n|---|---|---|---|---|\n";

fn line(text: &mut String, name: &str, rows: &[(Row, Row)]) {
    let factors: Vec<f64> = rows.iter().map(factor).collect();
    let within = factors.iter().filter(|factor| **factor < 1.5).count();
    let (kernel, worst) =
        rows.iter().map(|row| (&row.0.kernel, factor(row))).max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    let middle = median(factors);
    let _ = writeln!(text, "| {name} | {} | {middle:.2} | {within} | `{kernel}`, {worst:.2} |", rows.len());
}

fn summary(pairs: &[(&str, Vec<(Row, Row)>)]) -> String {
    let mut text = HEAD.to_owned();
    for (program, rows) in pairs {
        line(&mut text, program, rows);
    }
    let all: Vec<(Row, Row)> = pairs.iter().flat_map(|(_, rows)| rows).cloned().collect();
    line(&mut text, "all", &all);
    text
}

fn times(pairs: &[(&str, Vec<(Row, Row)>)]) -> String {
    let mut text = String::new();
    for (program, rows) in pairs {
        let _ = writeln!(
            text,
            "\n{program}:\n\n| kernel | measured, µs | estimated, µs | estimated / measured | limiter |\n|---|---|---|---|---|"
        );
        for (measured, own) in rows {
            let times = if own.launches > 1 { format!(", {} launches", own.launches) } else { String::new() };
            let (there, here) = (measured.nanoseconds / 1e3, own.nanoseconds / 1e3);
            let _ = writeln!(
                text,
                "| `{}`{times} | {there:.2} | {here:.2} | {:.2} | {} |",
                measured.kernel,
                here / there,
                own.limiter
            );
        }
    }
    text
}

fn caches(pairs: &[(&str, Vec<(Row, Row)>)]) -> String {
    let mut text = String::new();
    let rate = |row: &Row| 100.0 * row.l2_hits / row.l2_sectors.max(1.0);
    for (program, rows) in pairs {
        let _ = writeln!(
            text,
            "\n{program}:\n\n| kernel | L1 hits, % | | L2 hits, % | | memory read, MB | | written, MB | |\n|---|---|---|---|---|---|---|---|---|"
        );
        for (m, o) in rows {
            let _ = writeln!(
                text,
                "| `{}` | {:.1} | {:.1} | {:.1} | {:.1} | {:.2} | {:.2} | {:.2} | {:.2} |",
                m.kernel,
                m.l1,
                o.l1,
                rate(m),
                rate(o),
                m.read / 1e6,
                o.read / 1e6,
                m.written / 1e6,
                o.written / 1e6
            );
        }
    }
    text
}

fn devices() -> String {
    let mut text = "| name | multiprocessors | clock, GHz | L1 and shared, KiB | L2, MiB | memory, GB/s | f32, TFLOPS | f64, TFLOPS | f16 on tensor cores, TFLOPS |\n|---|---|---|---|---|---|---|---|---|\n".to_owned();
    for device in &DEVICES {
        let single = 2.0 * device.single() / 1e12;
        let tensor = 2.0
            * f64::from(device.tensor)
            * f64::from(device.multiprocessors)
            * f64::from(device.clock)
            * 1e3
            / 1e12;
        let _ = writeln!(
            text,
            "| {} | {} | {:.2} | {} | {:.1} | {:.0} | {single:.1} | {:.2} | {tensor:.0} |",
            device.product,
            device.multiprocessors,
            f64::from(device.clock) / 1e6,
            device.limits.unified / 1024,
            f64::from(device.l2) / f64::from(1 << 20),
            device.bandwidth() / 1e9,
            single / f64::from(device.limits.single_to_double),
        );
    }
    text
}

fn sources() -> String {
    let mut text = String::new();
    for (at, source) in SOURCES.iter().enumerate() {
        let address =
            if source.address.is_empty() { String::new() } else { format!(", <{}>", source.address) };
        let _ = writeln!(text, "{}. {}{address}", at + 1, source.title);
    }
    text += "\n| device | numbers | source | in it |\n|---|---|---|---|\n";
    let mut rows = |name: &str, origins: &[Origin]| {
        for origin in origins {
            let number = SOURCES.iter().position(|source| *source == origin.source).unwrap() + 1;
            let fields =
                origin.fields.iter().map(|field| format!("`{field}`")).collect::<Vec<_>>().join(", ");
            let _ = writeln!(text, "| {name} | {fields} | {number} | {} |", origin.how);
        }
    };
    for device in &DEVICES {
        rows(device.name, device.sources);
    }
    let mut seen = Vec::new();
    for limits in DEVICES.iter().map(|device| device.limits) {
        if !seen.contains(&limits.capability) {
            seen.push(limits.capability);
            rows(&format!("capability {}.{}", limits.capability.0, limits.capability.1), limits.sources);
        }
    }
    text
}

#[test]
fn a_kernel_that_does_nothing_takes_what_a_launch_takes() {
    let shape = Shape { blocks: 1, threads: 32, registers: 16, shared: 0 };
    let counted =
        LaunchCounters { blocks: 1, grid_blocks: 1, warp_instructions: 1, ..LaunchCounters::default() };
    for device in &DEVICES {
        let estimate = kernel(device, &shape, &counted);
        assert_eq!(estimate.limiter, Limiter::Launch, "{}", device.name);
        assert!((LAUNCH..2.0 * LAUNCH).contains(&estimate.seconds), "{}: {estimate:?}", device.name);
    }
}

#[test]
fn shares_of_the_blocks_stand_for_all() {
    let shape = Shape { blocks: 100_000, threads: 256, registers: 32, shared: 0 };
    let device = Device::named("a100").unwrap();
    let count = Count { warps: 1000, requests: 1000, sectors: 1_000_000, ..Count::default() };
    let one = InstructionCounters { ptx_line: 1, place: None, opcode: "ld.global.f32".to_owned(), count };
    let some = LaunchCounters {
        blocks: 10_000,
        grid_blocks: 100_000,
        instructions: vec![one],
        ..LaunchCounters::default()
    };
    let estimate = kernel(device, &shape, &some);
    assert_eq!(estimate.limiter, Limiter::Dram);
    let expected = 10_000_000.0 * SECTOR / (device.bandwidth() * REACHABLE);
    assert!((estimate.parts[0].1 / expected - 1.0).abs() < 1e-9, "{estimate:?}");
}
