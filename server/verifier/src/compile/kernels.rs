//! From the assembler's functions to the kernels of the source, with their block sizes and their occupancy.
//!
//! A function is found by its name, namespaces, parameters and template parameters, since overloads and instantiations share
//! all else; one that a macro makes, at the macro's invocation. The block sizes are those of the launches in the compiled file,
//! where they are constants; else that of `__launch_bounds__`; else the configured one. Which it was is always said.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use stitch_analysis::{Analysis, Function, FunctionKind, Language, Outline};
use stitch_findings::{Code, Finding, Measurement, Producer, Provenance, Quantity, Span};

use super::configurations::{Configuration, Configurations};
use super::pasted;
use super::workings::{ASKED, Files, Workings};
use super::{KernelResources, matching};
use crate::demangle::{self, Name};
use crate::occupancy::{Limits, Occupancy, Usage, limits, theoretical_occupancy, unknown_for};
use crate::ptxas::{Entry, Frame, Resources};

/// Files that are read in search of a kernel's definition, and the size of one.
const MOST_FILES: usize = 64;
const MOST_BYTES: usize = 2 << 20;

/// Where a function of the assembler is defined in the source.
#[derive(Clone)]
struct Definition {
    file: usize,
    function: Function,
    /// Whether its body declares dynamic shared memory.
    dynamic: bool,
}

/// The functions that the assembler speaks of, with their definitions.
pub(super) struct Kernels<'a> {
    workings: &'a Workings,
    names: HashMap<String, Name>,
    definitions: HashMap<String, Definition>,
    launches: Vec<matching::Seen>,
}

/// How often each displayed name occurs for one architecture: names that occur again are shown with their parameters.
type Counts = HashMap<(String, String), usize>;

impl<'a> Kernels<'a> {
    /// Looks for the definition of everything in `resources`: in the compiled file, the file asked about, and the user's headers.
    pub(super) fn look_up(
        workings: &'a Workings,
        files: &mut Files<'_>,
        resources: &Resources,
        dependencies: &[String],
    ) -> Self {
        let mut names = HashMap::new();
        for mangled in resources.entries.iter().map(|entry| &entry.mangled) {
            names.entry(mangled.clone()).or_insert_with(|| demangle::name(mangled));
        }
        for mangled in resources.device_functions.iter().map(|function| &function.mangled) {
            names.entry(mangled.clone()).or_insert_with(|| demangle::name(mangled));
        }
        let mut kernels = Self { workings, names, definitions: HashMap::new(), launches: Vec::new() };
        let unit = workings.unit.display().to_string();
        let first = files.by_name(&unit).into_iter().chain([ASKED]);
        let mut order: Vec<usize> = first.collect();
        let entries: Vec<&Entry> = resources.entries.iter().collect();
        kernels.read(files, &mut order, &entries, resources, dependencies);
        if !kernels.all_found(&entries, resources) {
            kernels.read_macros(files, dependencies);
        }
        kernels
    }

    /// Looks for kernels that macros make.
    fn read_macros(&mut self, files: &mut Files<'_>, dependencies: &[String]) {
        let unit = self.workings.unit.display().to_string();
        let names = std::iter::once(&unit).chain(dependencies);
        let mut indices: Vec<usize> = names.filter_map(|name| files.by_name(name)).chain([ASKED]).collect();
        let mut seen = std::collections::HashSet::new();
        indices.retain(|index| seen.insert(*index) && files.get(*index).text.len() <= MOST_BYTES);
        indices.truncate(MOST_FILES);
        let texts: Vec<_> = indices.iter().map(|index| (*index, files.get(*index).text.clone())).collect();
        let made = pasted::kernels(&texts);
        let functions: Vec<Function> = made.iter().map(|made| made.function.clone()).collect();
        for (mangled, name) in &self.names {
            if !self.definitions.contains_key(mangled)
                && let Some(function) = matching::definition(&functions, name)
                && let Some(made) = made.iter().find(|made| made.function == *function)
            {
                let pasted::Pasted { file, function, dynamic } = made.clone();
                self.definitions.insert(mangled.clone(), Definition { file, function, dynamic });
            }
        }
    }

    fn read(
        &mut self,
        files: &mut Files<'_>,
        order: &mut Vec<usize>,
        entries: &[&Entry],
        resources: &Resources,
        dependencies: &[String],
    ) {
        order.dedup();
        let compiled = order.first().copied();
        let mut dependencies = dependencies.iter();
        let mut read = 0;
        let mut next = std::mem::take(order).into_iter();
        while read < MOST_FILES {
            let index = match next.next() {
                Some(index) => index,
                None if self.all_found(entries, resources) => return,
                None => match dependencies.by_ref().find_map(|name| files.by_name(name)) {
                    Some(index) => index,
                    None => return,
                },
            };
            let text = files.get(index).text.clone();
            let is_unit = compiled == Some(index);
            if text.len() <= MOST_BYTES && (is_unit || self.may_define(&text)) {
                self.read_file(index, &text, is_unit);
                read += 1;
            }
        }
    }

    fn all_found(&self, entries: &[&Entry], resources: &Resources) -> bool {
        let known = |mangled: &String| self.definitions.contains_key(mangled);
        entries.iter().all(|entry| known(&entry.mangled))
            && resources
                .device_functions
                .iter()
                .all(|function| known(&function.mangled) || function.frame == Frame::default())
    }

    /// Whether a text has the name of something that was not found yet.
    fn may_define(&self, text: &str) -> bool {
        let missing = self.names.iter().filter(|(mangled, _)| !self.definitions.contains_key(*mangled));
        missing.map(|(_, name)| name.base()).any(|base| !base.is_empty() && text.contains(base))
    }

    fn read_file(&mut self, file: usize, text: &Arc<str>, is_unit: bool) {
        let analysis = Analysis::of(Language::Cuda, text);
        let outline = analysis.outline();
        for (mangled, name) in &self.names {
            if !self.definitions.contains_key(mangled)
                && let Some(function) = matching::definition(&outline.functions, name)
            {
                let dynamic = declares_dynamic(text, function);
                self.definitions
                    .insert(mangled.clone(), Definition { file, function: function.clone(), dynamic });
            }
        }
        if !is_unit {
            return;
        }
        let whole = self.workings.foreign.as_ref().and_then(|foreign| foreign.whole.as_ref());
        let seen = match whole {
            Some(whole) => launches_in(whole, Analysis::of(Language::Cuda, whole).outline(), file),
            None => launches_in(text, outline, file),
        };
        self.launches.extend(seen);
    }

    /// The file and the name's span of what the assembler calls `mangled`.
    pub(super) fn definition(&mut self, mangled: &str) -> Option<(usize, Span)> {
        self.definitions.get(mangled).map(|found| (found.file, found.function.name_span))
    }

    /// One finding for each function that spills, each instantiation for itself; architectures are told in one.
    pub(super) fn spills(&self, files: &mut Files<'_>, resources: &Resources) {
        let kernels = resources.entries.iter().map(|entry| {
            (
                &entry.mangled,
                Some(entry.architecture.as_str()),
                entry.frame.unwrap_or_default(),
                entry.registers,
            )
        });
        let functions = resources
            .device_functions
            .iter()
            .map(|function| (&function.mangled, function.architecture.as_deref(), function.frame, None));
        let mut told: Vec<(&String, Vec<String>)> = Vec::new();
        for (mangled, architecture, frame, registers) in kernels.chain(functions) {
            if frame.spill_stores == 0 && frame.spill_loads == 0 {
                continue;
            }
            let architecture =
                architecture.or(self.workings.default_architecture.as_deref()).unwrap_or("this architecture");
            let registers = registers.map_or(String::new(), |registers| format!(" at {registers} registers"));
            let Frame { spill_stores, spill_loads, .. } = frame;
            let part = format!(
                "{spill_stores} bytes stored and {spill_loads} loaded a thread{registers} on {architecture}"
            );
            match told.iter_mut().find(|(known, _)| *known == mangled) {
                Some((_, parts)) if !parts.contains(&part) => parts.push(part),
                Some(_) => {}
                None => told.push((mangled, vec![part])),
            }
        }
        for (mangled, parts) in told {
            let Some((definition, name)) = self.definitions.get(mangled).zip(self.names.get(mangled)) else {
                continue;
            };
            let shown = if definition.function.kind == FunctionKind::Kernel {
                name.display()
            } else {
                name.signature()
            };
            let message = format!("`{shown}` spills registers to local memory: {}.", parts.join("; "));
            let advice = "Keep fewer values alive in a thread (smaller tiles, less unrolling), or allow it more registers: \
                          fewer threads in `__launch_bounds__`, a higher `-maxrregcount`.";
            let finding = Finding::new(Code::PTXAS_SPILL, definition.function.name_span, message)
                .advise(advice)
                .about(shown);
            files.add(definition.file, finding);
        }
    }

    /// The resources of each kernel, and the same as measurements at the kernels' names.
    pub(super) fn measure(
        &self,
        files: &mut Files<'_>,
        resources: &Resources,
        notes: &mut Vec<String>,
    ) -> Vec<KernelResources> {
        let mut counts = Counts::new();
        for entry in &resources.entries {
            *counts.entry((self.names[&entry.mangled].display(), entry.architecture.clone())).or_default() +=
                1;
        }
        let kernels = resources.entries.iter().filter_map(|entry| self.kernel(files, entry, &counts, notes));
        let kernels: Vec<(Option<usize>, KernelResources)> = kernels.collect();
        let architectures: BTreeSet<&str> =
            kernels.iter().map(|(_, kernel)| kernel.architecture.as_str()).collect();
        notes.extend(architectures.into_iter().filter_map(unknown_for).map(|unknown| {
            format!("{unknown}: what one of its multiprocessors holds is not in this version's table")
        }));
        for (file, kernel) in &kernels {
            if let (Some(file), Some((_, span))) = (file, &kernel.place) {
                for measurement in measurements(kernel, *span, &self.workings.tool) {
                    files.measure(*file, measurement);
                }
            }
        }
        kernels.into_iter().map(|(_, kernel)| kernel).collect()
    }

    fn kernel(
        &self,
        files: &Files<'_>,
        entry: &Entry,
        counts: &Counts,
        notes: &mut Vec<String>,
    ) -> Option<(Option<usize>, KernelResources)> {
        let name = self.names.get(&entry.mangled)?;
        let definition = self.definitions.get(&entry.mangled);
        let again = counts.get(&(name.display(), entry.architecture.clone())).is_some_and(|count| *count > 1);
        let shown = if again { name.signature() } else { name.display() };
        let Configurations { mut known, unknown } = self.configurations(files, name, definition);
        let frame = entry.frame.unwrap_or_default();
        if known.iter().any(|one| one.dynamic_shared.is_none()) {
            notes.push(format!("the dynamic shared memory of `{shown}` is not known before it runs; its occupancy is without it"));
        }
        if unknown > 0 {
            let launches = if unknown == 1 { "a launch".to_owned() } else { format!("{unknown} launches") };
            notes.push(format!("{launches} of `{shown}` have a block size that is not known before it runs"));
        }
        let limits = entry.architecture.parse().ok().and_then(limits);
        for one in &mut known {
            one.occupancy = limits
                .zip(entry.registers)
                .map(|(limits, registers)| occupancy(entry, registers, limits, one));
        }
        // The first of the worst stands for all where only one can be shown.
        let share = |one: &Configuration| one.occupancy.as_ref().map_or(1.0, |occupancy| occupancy.ratio());
        let worst = known.iter().min_by(|a, b| share(a).total_cmp(&share(b)))?.clone();
        let resources = KernelResources {
            signature: name.signature(),
            mangled: entry.mangled.clone(),
            architecture: entry.architecture.clone(),
            place: definition.map(|found| (files.get(found.file).path.clone(), found.function.name_span)),
            registers: entry.registers,
            shared: entry.shared,
            dynamic_shared: worst.dynamic_shared,
            stack: entry.cumulative_stack.unwrap_or(frame.stack),
            spill_stores: frame.spill_stores,
            spill_loads: frame.spill_loads,
            barriers: entry.barriers,
            constant: entry.constants.values().sum(),
            block: worst.block,
            block_from: worst.from,
            occupancy: worst.occupancy,
            configurations: known,
            name: shown,
        };
        Some((definition.map(|found| found.file), resources))
    }

    /// How the kernel is launched: each block and dynamic shared memory once; where no launch tells, as its bounds say or as assumed.
    fn configurations(
        &self,
        files: &Files<'_>,
        name: &Name,
        definition: Option<&Definition>,
    ) -> Configurations {
        let kernels: Vec<&Name> = self.names.values().collect();
        let launches = matching::launches(&self.launches, name, &kernels);
        let text = |file: usize| files.get(file).text.clone();
        let found = Configurations::of(&launches, &text);
        if !found.known.is_empty() {
            return found;
        }
        let dynamic = definition.is_some_and(|found| found.dynamic);
        let dynamic_shared = match launches.first() {
            Some(seen) => super::configurations::dynamic_shared(&seen.launch),
            None => (!dynamic).then_some(0),
        };
        let bounds = definition.and_then(|found| found.function.launch_bounds.as_ref());
        let bounds = bounds.and_then(|bounds| bounds.max_threads.value);
        let (block, from) = match bounds.and_then(super::configurations::threads) {
            Some(threads) => (threads, "launch bounds"),
            None => (self.workings.block_size, "assumed"),
        };
        let from = from.to_owned();
        let one = Configuration { block, dynamic_shared, from, occupancy: None };
        Configurations { known: vec![one], unknown: 0 }
    }
}

fn occupancy(entry: &Entry, registers: u32, limits: &Limits, one: &Configuration) -> Occupancy {
    let shared = entry.shared.saturating_add(one.dynamic_shared.unwrap_or(0));
    let barriers = entry.barriers.unwrap_or(0);
    theoretical_occupancy(limits, &Usage { registers, shared, barriers, block: one.block })
}

fn launches_in(text: &str, outline: &Outline, file: usize) -> Vec<matching::Seen> {
    outline.launches.iter().map(|launch| matching::Seen::new(file, text, launch, outline)).collect()
}

/// Whether the body of a kernel has `extern __shared__`.
fn declares_dynamic(text: &str, function: &Function) -> bool {
    let body = function.body.and_then(|body| text.get(body.range())).unwrap_or("");
    body.match_indices("extern")
        .any(|(at, _)| body[at..].chars().take(60).collect::<String>().contains("__shared__"))
}

fn measurements(kernel: &KernelResources, span: Span, tool: &str) -> Vec<Measurement> {
    let mut rows: Vec<(Quantity, f64, Option<String>)> = Vec::new();
    #[allow(clippy::cast_precision_loss, reason = "bytes of a kernel are far below 2^52")]
    let bytes = |value: u64| value as f64;
    rows.extend(kernel.registers.map(|registers| (Quantity::Registers, f64::from(registers), None)));
    rows.push((Quantity::SharedMemory, bytes(kernel.shared), None));
    rows.push((Quantity::Stack, bytes(kernel.stack), None));
    rows.push((Quantity::SpillStores, bytes(kernel.spill_stores), None));
    rows.push((Quantity::SpillLoads, bytes(kernel.spill_loads), None));
    rows.extend(kernel.barriers.map(|barriers| (Quantity::Barriers, f64::from(barriers), None)));
    if kernel.constant > 0 {
        rows.push((Quantity::ConstantMemory, bytes(kernel.constant), None));
    }
    if let Some(occupancy) = &kernel.occupancy {
        let note = super::configurations::words(&kernel.configurations, kernel.block, kernel.dynamic_shared);
        rows.push((Quantity::TheoreticalOccupancy, occupancy.ratio(), Some(note)));
    }
    let provenance = Provenance {
        producer: Producer::Ptxas,
        tool: tool.to_owned(),
        device: kernel.architecture.clone(),
        runs: 1,
    };
    rows.into_iter()
        .map(|(quantity, value, note)| Measurement {
            quantity,
            value,
            subject: kernel.name.clone(),
            span,
            note,
            provenance: provenance.clone(),
        })
        .collect()
}
