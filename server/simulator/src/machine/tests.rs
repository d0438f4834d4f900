//! Whole kernels, from PTX text to memory.

mod cached;
mod cases;
mod faults;
mod full;
mod fuzzed;
mod hardware;
mod hopper;
mod lanes;
mod matrices;
mod programs;
mod sampling;
mod tensors;

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use crate::checks::{Checks, DefectKind};
use crate::code::Program;
use crate::counters::LaunchCounters;
use crate::machine::{Fault, Host, Launch, Options, run, run_as_far_as_it_goes};
use crate::memory::{Kind, Memory};
use crate::ptx;

/// Bytes that a test may allocate.
const LIMIT: u64 = 1 << 30;

#[derive(Default)]
struct Output(Mutex<Vec<u8>>);

impl Host for Output {
    fn print(&self, bytes: &[u8]) {
        self.0.lock().unwrap().extend_from_slice(bytes);
    }
}

/// A program with its memory.
struct Bench {
    memory: Memory,
    program: Program,
    output: Output,
    options: Options,
    cancel: AtomicBool,
}

impl Bench {
    fn new(texts: &[&str]) -> Self {
        let memory = Memory::new(LIMIT).unwrap();
        let modules = texts.iter().map(|text| ptx::parse(text).unwrap()).collect();
        let program = Program::link(modules, &memory).unwrap();
        let options = Options {
            workers: 2,
            counters: true,
            sample: None,
            until: None,
            checks: Checks::All,
            caches: None,
        };
        Bench { memory, program, output: Output::default(), options, cancel: AtomicBool::new(false) }
    }

    /// Device memory that holds these values.
    fn array<T: Copy>(&self, values: &[T]) -> u64 {
        let bytes = size_of_val(values);
        // SAFETY: the values are plain numbers.
        let slice = unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), bytes) };
        let address = self.memory.allocate(bytes as u64, 256, Kind::Device).unwrap();
        self.memory.write(address, slice).unwrap();
        address
    }

    fn read<T: Copy + Default>(&self, address: u64, count: usize) -> Vec<T> {
        let mut values = vec![T::default(); count];
        // SAFETY: as above.
        let slice = unsafe {
            std::slice::from_raw_parts_mut(values.as_mut_ptr().cast::<u8>(), count * size_of::<T>())
        };
        self.memory.read(address, slice).unwrap();
        values
    }

    fn launch(
        &self,
        kernel: &str,
        grid: u32,
        block: u32,
        parameters: &[Parameter],
    ) -> Result<LaunchCounters, Fault> {
        self.launch_with(kernel, [grid, 1, 1], [block, 1, 1], parameters, |_| {})
    }

    fn launch_with(
        &self,
        kernel: &str,
        grid: [u32; 3],
        block: [u32; 3],
        parameters: &[Parameter],
        change: impl Fn(&mut Launch<'_>),
    ) -> Result<LaunchCounters, Fault> {
        let names = self.program.kernel_names();
        let exact = names.iter().find(|name| **name == kernel);
        let name = exact.or_else(|| names.iter().find(|name| name.contains(kernel))).unwrap();
        let bytes = block_of(parameters);
        let mut launch = Launch {
            kernel: name,
            grid,
            block,
            dynamic_shared: 0,
            parameters: &bytes,
            cooperative: false,
            cluster: [1; 3],
        };
        change(&mut launch);
        run(&self.program, &launch, &self.memory, &self.output, &self.options, &self.cancel)
    }

    /// What is found in one block.
    fn defects(
        &self,
        kernel: &str,
        threads: u32,
        dynamic_shared: u32,
        parameters: &[Parameter],
    ) -> Vec<DefectKind> {
        let parameters = block_of(parameters);
        let launch = Launch {
            kernel,
            grid: [1; 3],
            block: [threads, 1, 1],
            dynamic_shared,
            parameters: &parameters,
            cooperative: false,
            cluster: [1; 3],
        };
        let (program, memory, cancel) = (&self.program, &self.memory, &self.cancel);
        let ran = run_as_far_as_it_goes(program, &launch, memory, &self.output, &self.options, cancel);
        ran.defects.iter().map(|defect| defect.kind).collect()
    }

    fn printed(&self) -> String {
        String::from_utf8(self.output.0.lock().unwrap().clone()).unwrap()
    }
}

#[derive(Clone, Copy)]
enum Parameter {
    Pointer(u64),
    Int(i32),
    Long(u64),
    Map([u64; 16]),
}

/// Parameters one after the other, each at a multiple of its size.
fn block_of(parameters: &[Parameter]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for parameter in parameters {
        match parameter {
            Parameter::Pointer(address) => {
                bytes.resize(bytes.len().next_multiple_of(8), 0);
                bytes.extend(address.to_le_bytes());
            }
            Parameter::Int(value) => bytes.extend(value.to_le_bytes()),
            Parameter::Long(value) => {
                bytes.resize(bytes.len().next_multiple_of(8), 0);
                bytes.extend(value.to_le_bytes());
            }
            Parameter::Map(words) => {
                bytes.resize(bytes.len().next_multiple_of(64), 0);
                words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
            }
        }
    }
    bytes
}
