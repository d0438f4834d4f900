//! The source page: counters of source lines and of machine instructions, kernel by kernel.
//!
//! With `--print-source cuda,sass` a line's row is followed by the rows of its instructions, which must not be added to it; an instruction
//! stands there twice, and one that was inlined stands under the header's line and under the line that it was inlined into. With `sass` or
//! `cuda` alone there is one kind of rows.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::numbers;
use super::report::Collected;
use crate::kernel::kernel_name;
use crate::kernel::{Access, Counters, Instruction, KernelLaunch, Origin, SourceLine, Stall};

/// What a column counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Line,
    Address,
    Text,
    Code,
    Instructions,
    ThreadInstructions,
    ThreadsOn,
    DivergentBranches,
    Sectors,
    SectorsIdeal,
    LocalSectors,
    Wavefronts,
    WavefrontsIdeal,
    Samples,
    Space,
    Operation,
    Size,
    Stalled(Stall),
}

/// Columns by the names that versions gave them. Source: exports of Nsight Compute 2021.3 to 2025.3.
const COLUMNS: &[(&str, Column)] = &[
    ("Line No", Column::Line),
    ("#", Column::Line),
    ("Address", Column::Address),
    ("Instructions Executed", Column::Instructions),
    ("Thread Instructions Executed", Column::ThreadInstructions),
    ("Predicated-On Thread Instructions Executed", Column::ThreadsOn),
    ("Divergent Branches", Column::DivergentBranches),
    ("L2 Theoretical Sectors Global", Column::Sectors),
    ("L2 Theoretical Sectors Global Ideal", Column::SectorsIdeal),
    ("L2 Theoretical Sectors Local", Column::LocalSectors),
    ("L1 Wavefronts Shared", Column::Wavefronts),
    ("L1 Wavefronts Shared Ideal", Column::WavefrontsIdeal),
    ("Warp Stall Sampling (All Samples)", Column::Samples),
    ("Warp Stall Sampling (All Cycles)", Column::Samples),
    ("# Samples", Column::Samples),
    ("Sampling Data (All)", Column::Samples),
    ("Address Space", Column::Space),
    ("Access Operation", Column::Operation),
    ("Access Size", Column::Size),
    ("stall_long_sb", Column::Stalled(Stall::LongScoreboard)),
    ("stall_long_scoreboard", Column::Stalled(Stall::LongScoreboard)),
    ("stall_short_sb", Column::Stalled(Stall::ShortScoreboard)),
    ("stall_short_scoreboard", Column::Stalled(Stall::ShortScoreboard)),
    ("stall_mio", Column::Stalled(Stall::MioThrottle)),
    ("stall_mio_throttle", Column::Stalled(Stall::MioThrottle)),
    ("stall_lg", Column::Stalled(Stall::LgThrottle)),
    ("stall_lg_throttle", Column::Stalled(Stall::LgThrottle)),
    ("stall_barrier", Column::Stalled(Stall::Barrier)),
    ("stall_math", Column::Stalled(Stall::MathPipe)),
    ("stall_math_pipe_throttle", Column::Stalled(Stall::MathPipe)),
    ("stall_wait", Column::Stalled(Stall::Wait)),
    ("stall_no_inst", Column::Stalled(Stall::NoInstruction)),
    ("stall_no_instruction", Column::Stalled(Stall::NoInstruction)),
    ("stall_drain", Column::Stalled(Stall::Drain)),
    ("stall_branch_resolving", Column::Stalled(Stall::BranchResolving)),
    ("stall_imc", Column::Stalled(Stall::ImcMiss)),
    ("stall_imc_miss", Column::Stalled(Stall::ImcMiss)),
    ("stall_tex", Column::Stalled(Stall::TexThrottle)),
    ("stall_tex_throttle", Column::Stalled(Stall::TexThrottle)),
    ("stall_membar", Column::Stalled(Stall::Membar)),
    ("stall_sleep", Column::Stalled(Stall::Sleeping)),
    ("stall_sleeping", Column::Stalled(Stall::Sleeping)),
    ("stall_dispatch", Column::Stalled(Stall::Dispatch)),
    ("stall_dispatch_stall", Column::Stalled(Stall::Dispatch)),
    ("stall_not_selected", Column::Stalled(Stall::NotSelected)),
    ("stall_selected", Column::Stalled(Stall::Selected)),
    ("stall_gmma", Column::Stalled(Stall::Gmma)),
    ("stall_warpgroup_arrive", Column::Stalled(Stall::Gmma)),
    ("stall_misc", Column::Stalled(Stall::Misc)),
];

/// A source page whose rows are coming.
#[derive(Debug, Default)]
pub(super) struct SourcePage {
    file: Option<String>,
    function: Option<String>,
    columns: Vec<Option<Column>>,
    line: Option<u32>,
    launch: Option<Building>,
}

/// A launch whose blocks are coming.
#[derive(Debug, Default)]
struct Building {
    signature: String,
    seen_files: BTreeSet<String>,
    lines: BTreeMap<(String, u32), SourceLine>,
    /// Instructions by address, with every place under which each stands.
    instructions: BTreeMap<u64, (Instruction, Vec<(String, u32)>)>,
}

impl SourcePage {
    /// Whether a row begins a source page.
    pub fn begins(fields: &[String]) -> bool {
        let first = fields.first().map(String::as_str);
        matches!((first, fields.len()), (Some("File Path" | "Function Name" | "Kernel Name"), 2 | 3))
            || is_header(fields)
    }

    pub fn row(&mut self, fields: &[String], collected: &mut Collected) {
        let value = |at: usize| fields.get(at).cloned().unwrap_or_default();
        match fields.first().map(String::as_str) {
            Some("File Path") if fields.len() <= 3 => self.file = Some(value(1)),
            Some("Function Name" | "Kernel Name") if fields.len() <= 3 => {
                self.function = Some(value(1));
                self.begin_block(collected);
            }
            _ if is_header(fields) => {
                self.columns = columns(fields);
                if self.launch.is_none() {
                    self.begin_block(collected);
                }
            }
            _ => self.counters(fields, collected),
        }
    }

    /// A block is one file's part of a launch. The same file again is the next launch.
    fn begin_block(&mut self, collected: &mut Collected) {
        let signature = self.function.clone().unwrap_or_default();
        let file = self.file.clone().unwrap_or_default();
        let continues = self
            .launch
            .as_ref()
            .is_some_and(|launch| launch.signature == signature && !launch.seen_files.contains(&file));
        if !continues {
            self.end(collected);
            self.launch = Some(Building { signature, ..Building::default() });
        }
        if let Some(launch) = &mut self.launch {
            launch.seen_files.insert(file);
        }
        self.line = None;
    }

    fn counters(&mut self, fields: &[String], collected: &mut Collected) {
        let Some(launch) = &mut self.launch else { return };
        if self.columns.is_empty() {
            return;
        }
        let row = Row::new(&self.columns, fields, collected.decimal_comma);
        let file = self.file.clone().unwrap_or_default();
        if let Some(address) = row.address {
            let line = self.line.map(|line| (file, line));
            let (_, places) =
                launch.instructions.entry(address).or_insert_with(|| (row.instruction(address), Vec::new()));
            if let Some(line) = line.filter(|line| !places.contains(line)) {
                places.push(line);
            }
        } else if let Some(line) = row.line {
            self.line = Some(line);
            launch.lines.entry((file.clone(), line)).or_insert_with(|| row.source_line(file, line));
        }
    }

    /// The last launch is over.
    pub fn end(&mut self, collected: &mut Collected) {
        if let Some(launch) = self.launch.take() {
            collected.page_seen = true;
            if !launch.lines.is_empty() || !launch.instructions.is_empty() {
                let id = collected.sources.len() as u64;
                collected.sources.push(launch.finish(id));
            }
        }
    }
}

fn is_header(fields: &[String]) -> bool {
    let has = |name: &str| fields.iter().any(|field| field == name);
    fields.len() > 2 && has("Source") && (has("Line No") || has("Address") || has("#")) && !has("Kernel Name")
}

/// What each column counts. The first `Source` is the line's text; the one behind an address is the instruction's.
fn columns(header: &[String]) -> Vec<Option<Column>> {
    let two = header.iter().filter(|name| *name == "Source").count() > 1;
    let lines = header.iter().any(|name| name == "Line No" || name == "#");
    let mut seen: Vec<Column> = Vec::new();
    header
        .iter()
        .map(|name| {
            let column = match name.trim() {
                "Source" if two && seen.contains(&Column::Text) => Column::Code,
                "Source" if lines => Column::Text,
                "Source" => Column::Code,
                name => COLUMNS.iter().find(|(known, _)| *known == name).map(|(_, column)| *column)?,
            };
            // Some columns stand twice with the same numbers.
            (!seen.contains(&column)).then(|| {
                seen.push(column);
                column
            })
        })
        .collect()
}

/// One row, read.
#[derive(Default)]
struct Row {
    line: Option<u32>,
    address: Option<u64>,
    text: String,
    code: String,
    space: String,
    operation: String,
    bits: Option<u32>,
    counters: Counters,
}

impl Row {
    fn new(columns: &[Option<Column>], fields: &[String], decimal_comma: bool) -> Self {
        let mut row = Self::default();
        for (column, field) in columns.iter().zip(fields) {
            let Some(column) = column else { continue };
            let count = || numbers::count(field, decimal_comma);
            match column {
                Column::Line => row.line = field.trim().parse().ok(),
                Column::Address => row.address = address(field),
                Column::Text => row.text = field.trim().to_owned(),
                Column::Code => row.code = field.trim().to_owned(),
                Column::Instructions => row.counters.instructions = count(),
                Column::ThreadInstructions => row.counters.thread_instructions = count(),
                Column::ThreadsOn => row.counters.threads_on = count(),
                Column::DivergentBranches => row.counters.divergent_branches = count(),
                Column::Sectors => row.counters.sectors = count(),
                Column::SectorsIdeal => row.counters.sectors_ideal = count(),
                Column::LocalSectors => row.counters.local_sectors = count(),
                Column::Wavefronts => row.counters.wavefronts = count(),
                Column::WavefrontsIdeal => row.counters.wavefronts_ideal = count(),
                Column::Samples => row.counters.samples = count(),
                Column::Space => row.space = field.trim().to_owned(),
                Column::Operation => row.operation = field.trim().to_owned(),
                Column::Size => row.bits = field.trim().parse().ok(),
                Column::Stalled(stall) => {
                    if let Some(samples) = count().filter(|samples| *samples > 0) {
                        row.counters.stalls.insert(*stall, samples);
                    }
                }
            }
        }
        row
    }

    fn instruction(&self, address: u64) -> Instruction {
        let text = if self.code.is_empty() { self.text.clone() } else { self.code.clone() };
        Instruction {
            address,
            text,
            access_bits: self.bits,
            counters: self.counters.clone(),
            ..Instruction::default()
        }
    }

    fn source_line(&self, file: String, line: u32) -> SourceLine {
        let accesses = accesses(&self.space, &self.operation);
        SourceLine {
            file,
            line,
            text: self.text.clone(),
            counters: self.counters.clone(),
            accesses,
            share: None,
        }
    }
}

fn address(field: &str) -> Option<u64> {
    u64::from_str_radix(field.trim().strip_prefix("0x")?, 16).ok()
}

/// What a line accesses: `Global` and `Load`; `Global(16),Shared(4)` and `Load(12),Store(8)`, of which every pair may be.
fn accesses(space: &str, operation: &str) -> Vec<Access> {
    let names = |text: &str| -> Vec<String> {
        text.split(',').map(|part| part.split('(').next().unwrap_or_default().trim().to_owned()).collect()
    };
    let mut found = BTreeSet::new();
    for space in names(space) {
        for operation in names(operation) {
            found.extend(match (space.as_str(), operation.as_str()) {
                ("Global", "Load") => Some(Access::GlobalLoad),
                ("Global", "Store") => Some(Access::GlobalStore),
                ("Global", "Atomic" | "Reduction") => Some(Access::GlobalAtomic),
                ("Shared", "Load") => Some(Access::SharedLoad),
                ("Shared", "Store") => Some(Access::SharedStore),
                ("Shared", "Atomic") => Some(Access::SharedAtomic),
                ("Local", "Load") => Some(Access::LocalLoad),
                ("Local", "Store") => Some(Access::LocalStore),
                _ => None,
            });
        }
    }
    found.into_iter().collect()
}

impl Building {
    fn finish(self, id: u64) -> KernelLaunch {
        let own = self.own_file();
        let mut instructions = Vec::with_capacity(self.instructions.len());
        let mut last_own: Option<(String, u32)> = None;
        for (_, (mut instruction, places)) in self.instructions {
            // Inlined code counts where it was inlined: under its line of the kernel's own file, or the line of the instruction before.
            let here = places.iter().find(|(file, _)| Some(file) == own.as_ref()).cloned();
            if here.is_some() {
                last_own.clone_from(&here);
            }
            let place = here.or_else(|| last_own.clone()).or_else(|| places.first().cloned());
            (instruction.file, instruction.line) =
                place.map_or((None, None), |(file, line)| (Some(file), Some(line)));
            instructions.push(instruction);
        }
        let mut lines: Vec<SourceLine> = self.lines.into_values().collect();
        let counted: Option<u64> = if instructions.is_empty() {
            lines.iter().map(|line| line.counters.samples).sum()
        } else {
            instructions.iter().map(|instruction| instruction.counters.samples).sum()
        };
        let by_line = accesses_by_line(&instructions);
        for line in &mut lines {
            if let Some(found) = by_line.get(&(line.file.clone(), line.line)) {
                line.accesses.clone_from(found);
            }
            line.share = line
                .counters
                .samples
                .zip(counted.filter(|all| *all > 0))
                .map(|(samples, all)| (samples as f64 / all as f64).min(1.0));
        }
        KernelLaunch {
            id,
            kernel: kernel_name(&self.signature),
            lines,
            instructions,
            origin: Origin { tool: "Nsight Compute".into(), pages: vec!["source".into()], passes: None },
            ..KernelLaunch::default()
        }
    }

    /// The file that the kernel stands in: its first instruction belongs to its head.
    fn own_file(&self) -> Option<String> {
        self.instructions.values().find_map(|(_, places)| places.first().map(|(file, _)| file.clone()))
    }
}

fn accesses_by_line(instructions: &[Instruction]) -> HashMap<(String, u32), Vec<Access>> {
    let mut by_line: HashMap<(String, u32), BTreeSet<Access>> = HashMap::new();
    for instruction in instructions {
        if let (Some(file), Some(line), Some(access)) =
            (&instruction.file, instruction.line, instruction.access())
        {
            by_line.entry((file.clone(), line)).or_default().insert(access);
        }
    }
    by_line.into_iter().map(|(place, accesses)| (place, accesses.into_iter().collect())).collect()
}
