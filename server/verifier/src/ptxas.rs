//! Reads what `ptxas -v` says of each kernel: registers, shared memory, stack, spills.
//!
//! The text has no grammar: lines of one function follow each other, and a function that is not inlined stands between the
//! kernels with numbers of its own. So each line is given to the function that was named last, and registers only to a kernel.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Registers that were spilled, in bytes a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Stack frame.
    pub stack: u64,
    /// Spilled stores.
    pub spill_stores: u64,
    /// Spilled loads.
    pub spill_loads: u64,
}

/// What one kernel uses, for one architecture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The kernel's name as the compiler writes it: `_Z5sgemmPf`.
    pub mangled: String,
    /// `sm_90`.
    pub architecture: String,
    /// Registers a thread. `None` if the text ended before.
    pub registers: Option<u32>,
    /// Barriers a block. `None` where ptxas does not say, as in CUDA 11 and before for a kernel without any.
    pub barriers: Option<u32>,
    /// Static shared memory a block, in bytes.
    pub shared: u64,
    /// Stack frame and spills. `None` if the text ended before.
    pub frame: Option<Frame>,
    /// Stack of the kernel and all it calls, in bytes, where ptxas says it.
    pub cumulative_stack: Option<u64>,
    /// Local memory in bytes, where ptxas says it.
    pub local: Option<u64>,
    /// Bytes of each constant bank.
    pub constants: BTreeMap<u32, u64>,
}

/// A function that was not inlined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFunction {
    /// Its name as the compiler writes it.
    pub mangled: String,
    /// The architecture of the kernel before it; `None` where none came before.
    pub architecture: Option<String>,
    /// Stack frame and spills.
    pub frame: Frame,
}

/// Everything that `ptxas -v` said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Kernels, in the order of the text: one entry a kernel and architecture.
    pub entries: Vec<Entry>,
    /// Functions that were not inlined.
    pub device_functions: Vec<DeviceFunction>,
    /// Advice that ptxas gives about performance, as it stands.
    pub advice: Vec<String>,
}

/// Which function the next lines are about.
#[derive(Clone, Copy, PartialEq)]
enum Current {
    Nothing,
    Entry(usize),
    Device(usize),
}

/// Reads the text of a compile; lines that are not from `ptxas -v` are passed over.
pub fn parse(text: &str) -> Resources {
    let mut reader = Reader { resources: Resources::default(), entry: None, current: Current::Nothing };
    let mut warned = Vec::new();
    for line in text.lines() {
        let line = line.trim_end();
        if let Some(said) = tool_line(line, "info") {
            reader.info(said);
        } else if let Some(said) = tool_line(line, "warning") {
            warned.extend(spill_warning(said));
        } else if line.starts_with(' ') {
            reader.frame(line.trim_start());
        }
    }
    reader.add_warned(warned);
    reader.resources
}

/// `text` of `ptxas LEVEL : text`, with any number of spaces before the colon.
fn tool_line<'a>(line: &'a str, level: &str) -> Option<&'a str> {
    let rest = line.trim_start().strip_prefix("ptxas")?.trim_start().strip_prefix(level)?;
    rest.trim_start().strip_prefix(':').map(str::trim_start)
}

/// The function and frame of `Registers are spilled to local memory in function 'f', 660 bytes spill stores, …`.
pub(crate) fn spill_warning(said: &str) -> Option<(String, Frame)> {
    let rest = said.strip_prefix("Registers are spilled to local memory in function '")?;
    let (name, numbers) = rest.rsplit_once('\'')?;
    Some((name.to_owned(), read_frame(numbers.trim_start_matches([',', ' ']))?))
}

fn read_frame(text: &str) -> Option<Frame> {
    let mut frame = Frame::default();
    let mut any = false;
    for part in text.split(',').map(str::trim) {
        let Some((number, what)) = part.split_once(" bytes ") else { continue };
        let Ok(number) = number.parse() else { continue };
        match what {
            "stack frame" => frame.stack = number,
            "spill stores" => frame.spill_stores = number,
            "spill loads" => frame.spill_loads = number,
            _ => continue,
        }
        any = true;
    }
    any.then_some(frame)
}

/// `k` and `sm_90` of `Compiling entry function 'k' for 'sm_90'`. A name may hold quotes, so the ends are looked for.
fn entry_line(said: &str) -> Option<(&str, &str)> {
    let rest = said.strip_prefix("Compiling entry function '")?;
    let (name, architecture) = rest.rsplit_once("' for '")?;
    Some((name, architecture.trim_end_matches('\'')))
}

struct Reader {
    resources: Resources,
    entry: Option<usize>,
    current: Current,
}

impl Reader {
    fn info(&mut self, said: &str) {
        if let Some((mangled, architecture)) = entry_line(said) {
            self.entry = Some(self.resources.entries.len());
            self.current = Current::Nothing;
            let (mangled, architecture) = (mangled.to_owned(), architecture.to_owned());
            self.resources.entries.push(Entry { mangled, architecture, ..Entry::default() });
        } else if let Some(name) = said.strip_prefix("Function properties for ") {
            self.properties_of(name.trim_matches('\''));
        } else if let Some(used) = said.strip_prefix("Used ") {
            self.used(used);
        } else if said.contains("Performance Loss") || said.starts_with("(C") {
            self.resources.advice.push(said.to_owned());
        }
    }

    fn properties_of(&mut self, name: &str) {
        let entry = self.entry.filter(|&at| self.resources.entries[at].mangled == name);
        self.current = if let Some(at) = entry {
            Current::Entry(at)
        } else {
            let architecture = self.entry.map(|at| self.resources.entries[at].architecture.clone());
            let function = DeviceFunction { mangled: name.to_owned(), architecture, frame: Frame::default() };
            self.resources.device_functions.push(function);
            Current::Device(self.resources.device_functions.len() - 1)
        };
    }

    fn frame(&mut self, line: &str) {
        let Some(frame) = read_frame(line) else { return };
        match self.current {
            Current::Entry(at) => self.resources.entries[at].frame = Some(frame),
            Current::Device(at) => self.resources.device_functions[at].frame = frame,
            Current::Nothing => {}
        }
    }

    /// `10 registers, used 1 barriers, 512 bytes smem, 360 bytes cmem[0]`. Only a kernel that has none yet takes it.
    fn used(&mut self, used: &str) {
        let Some(entry) = self.entry.map(|at| &mut self.resources.entries[at]) else { return };
        if entry.registers.is_some() {
            return;
        }
        for part in used.split(',').map(str::trim) {
            let part = part.strip_prefix("used ").unwrap_or(part);
            let Some((number, what)) = part.split_once(' ') else { continue };
            // CUDA 4 and before wrote static and system shared memory as a sum.
            let Some(number) = number.split('+').map(|n| n.parse::<u64>().ok()).sum::<Option<u64>>() else {
                continue;
            };
            let small = u32::try_from(number).ok();
            match what {
                "registers" | "register" => entry.registers = small,
                "barriers" | "barrier" => entry.barriers = small,
                "bytes smem" => entry.shared = number,
                "bytes lmem" => entry.local = Some(number),
                "bytes cumulative stack size" => entry.cumulative_stack = Some(number),
                _ => {
                    let bank = what.strip_prefix("bytes cmem[").and_then(|rest| rest.strip_suffix(']'));
                    if let Some(bank) = bank.and_then(|bank| bank.parse().ok()) {
                        entry.constants.insert(bank, number);
                    }
                }
            }
        }
    }

    /// A spill that only the warning names, as when `-v` was not asked for or the text is cut.
    fn add_warned(&mut self, warned: Vec<(String, Frame)>) {
        for (mangled, frame) in warned {
            let mut known = false;
            for entry in self.resources.entries.iter_mut().filter(|entry| entry.mangled == mangled) {
                entry.frame.get_or_insert(frame);
                known = true;
            }
            known |= self.resources.device_functions.iter().any(|function| function.mangled == mangled);
            if !known {
                self.resources.device_functions.push(DeviceFunction { mangled, architecture: None, frame });
            }
        }
    }
}

#[cfg(test)]
mod tests;
