//! Programs of `tests/defects` and `tests/alike`: what is caught, and what looks like it and is right.
//!
//! `NAME.cu` is built to `NAME.ptx` by `nvcc -ptx -arch=sm_90 -std=c++17 -lineinfo`. A comment `run:` names a kernel with its grid, block, its
//! array (`blank`, `zeros`, `freed` or `host`, and how many numbers) and its number. A comment `defect:` names what must be found at its line,
//! and the line of the other access of a race. Nothing else may be found, so nothing at all in `alike`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::{Checks, Defect, short_name};
use crate::code::{Program, SourcePlace};
use crate::machine::{Host, Launch, Options, run_as_far_as_it_goes};
use crate::memory::{Kind, Memory};
use crate::ptx;

struct Silent;

impl Host for Silent {
    fn print(&self, _: &[u8]) {}
}

/// A launch of a `run:` comment.
struct Run {
    kernel: String,
    grid: u32,
    block: u32,
    array: (String, u64),
    number: i32,
}

impl Run {
    fn read(line: &str) -> Option<Self> {
        let text = line.strip_prefix("// run: ")?;
        let words: Vec<&str> =
            text.split(|c: char| "<> ,:".contains(c)).filter(|word| !word.is_empty()).collect();
        let [kernel, grid, block, kind, count, number] = words[..] else { panic!("{line}") };
        Some(Self {
            kernel: kernel.to_owned(),
            grid: grid.parse().unwrap(),
            block: block.parse().unwrap(),
            array: (kind.to_owned(), count.parse().unwrap()),
            number: number.parse().unwrap(),
        })
    }

    /// Memory for the kernel's array.
    fn array(&self, memory: &Memory) -> u64 {
        let (kind, bytes) = (self.array.0.as_str(), self.array.1 * 4);
        if kind == "host" {
            return 0x5555_5555_0000;
        }
        let address = memory.allocate(bytes, 256, Kind::Device).unwrap();
        match kind {
            "zeros" => memory.write(address, &vec![0; bytes as usize]).unwrap(),
            "freed" => memory.free(address).unwrap(),
            "blank" => {}
            other => panic!("{other}"),
        }
        address
    }

    fn defects(&self, program: &Program, memory: &Memory, checks: Checks) -> Vec<Defect> {
        let mut parameters = self.array(memory).to_le_bytes().to_vec();
        parameters.extend(self.number.to_le_bytes());
        let names = program.kernel_names();
        let kernel = names.iter().find(|name| short_part(name) == self.kernel).unwrap();
        let launch = Launch {
            kernel,
            grid: [self.grid, 1, 1],
            block: [self.block, 1, 1],
            dynamic_shared: 0,
            parameters: &parameters,
            cooperative: false,
            cluster: [1; 3],
        };
        let options =
            Options { workers: 1, counters: false, sample: None, until: None, checks, caches: None };
        let ran = run_as_far_as_it_goes(program, &launch, memory, &Silent, &options, &AtomicBool::new(false));
        assert!(ran.fault.is_none() || !ran.defects.is_empty(), "{:?}", ran.fault);
        ran.defects
    }
}

/// `_Z4pairPii`: `pair`.
fn short_part(name: &str) -> &str {
    let text = &name[2..];
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    &text[digits..digits + text[..digits].parse::<usize>().unwrap()]
}

fn line(place: Option<&SourcePlace>) -> u32 {
    place.map_or(0, |place| place.inlined_at.as_ref().map_or(place.line, |at| at.1))
}

/// As a `defect:` comment says it.
fn words(defect: &Defect) -> String {
    let kind = serde_json::to_value(defect.kind).unwrap().as_str().unwrap().to_owned();
    let other = defect.other.as_ref().filter(|other| other.place.is_some());
    let other = other.map(|other| format!(" with {}", line(other.place.as_ref()))).unwrap_or_default();
    format!("{}: {kind}{other}", line(defect.place.as_ref()))
}

fn expected(source: &str) -> Vec<String> {
    let lines = source.lines().enumerate();
    let mut all: Vec<String> = lines
        .flat_map(|(at, line)| {
            line.split("// defect: ").skip(1).map(move |what| format!("{}: {}", at + 1, what.trim()))
        })
        .collect();
    all.sort();
    all
}

fn found(path: &Path, checks: Checks) -> Vec<Defect> {
    let source = fs::read_to_string(path).unwrap();
    let text = fs::read_to_string(path.with_extension("ptx")).unwrap();
    let memory = Memory::new(1 << 26).unwrap().tracked();
    let program = Program::link(vec![ptx::parse(&text).unwrap()], &memory).unwrap();
    let runs: Vec<Run> = source.lines().filter_map(Run::read).collect();
    assert!(!runs.is_empty(), "{}", path.display());
    runs.iter().flat_map(|run| run.defects(&program, &memory, checks)).collect()
}

fn programs(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/checks/tests").join(folder);
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == "cu")).collect();
    all.sort();
    all
}

/// What is wrong with what was found in the programs of a folder.
fn differences(folder: &str) -> String {
    let mut wrong = String::new();
    for path in programs(folder) {
        let found = found(&path, Checks::All);
        let mut said: Vec<String> = found.iter().map(words).collect();
        said.sort();
        let expected = expected(&fs::read_to_string(&path).unwrap());
        if said != expected {
            let messages: Vec<&str> = found.iter().map(|defect| defect.message.as_str()).collect();
            wrong +=
                &format!("{}\n  expected {expected:?}\n  found {said:?}\n  {messages:#?}\n", path.display());
        }
    }
    wrong
}

#[test]
fn each_defect_is_found_at_its_line() {
    assert!(programs("defects").len() > 20);
    let wrong = differences("defects");
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn what_only_looks_like_a_defect_is_not_reported() {
    assert!(programs("alike").len() > 8);
    let wrong = differences("alike");
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn checks_can_be_turned_off() {
    for path in programs("defects") {
        let always = |defect: &Defect| {
            use super::DefectKind as D;
            let optional =
                [D::UninitialisedRead, D::SharedRace, D::BlockRace, D::DivergentBarrier, D::MissingLanes];
            !optional.contains(&defect.kind)
        };
        let all: Vec<String> = found(&path, Checks::All).iter().filter(|d| always(d)).map(words).collect();
        let none: Vec<String> = found(&path, Checks::None).iter().map(words).collect();
        assert_eq!(none, all, "{}", path.display());
        let memory = found(&path, Checks::Memory);
        assert!(
            memory
                .iter()
                .all(|defect| { always(defect) || defect.kind == super::DefectKind::UninitialisedRead })
        );
    }
}

#[test]
fn reports_say_who_and_what() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/checks/tests/defects");
    let one = |name: &str| found(&folder.join(name), Checks::All).swap_remove(0);
    let race = one("race_between_warps.cu");
    assert_eq!((race.block, race.thread, race.times), ([0; 3], [64, 0, 0], 2));
    let other = race.other.unwrap();
    assert_eq!((other.what, other.thread), ("write", Some([0, 0, 0])));
    assert_eq!(race.object.as_deref(), Some("`tile` (512 bytes of shared memory)"));
    let past = one("global_bounds.cu");
    assert_eq!((past.block, past.thread), ([3, 0, 0], [232, 0, 0]));
    assert!(past.object.unwrap().starts_with("allocation 1 of 4000 bytes at 0x"));
    let unwritten = one("unwritten_global.cu");
    assert!(
        unwritten.message.contains("read of 4 bytes of allocation 1 of 128 bytes"),
        "{}",
        unwritten.message
    );
    let freed = one("freed.cu");
    assert!(freed.message.contains("that was freed"), "{}", freed.message);
}

#[test]
fn names_of_variables_are_their_last_parts() {
    for (symbol, name) in [
        ("_ZZ7pair_upPKfPfE4tile", "tile"),
        ("_ZZ3fooiE4tile_0", "tile"),
        ("_ZN2ns5tableE", "_ZN2ns5tableE"),
        ("_ZL5table", "table"),
        ("plain", "plain"),
    ] {
        assert_eq!(short_name(symbol), name);
    }
}
