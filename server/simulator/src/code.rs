//! Programs: linked modules, and kernels lowered to the compact form that the machine runs.
//!
//! [`Program::link`] gives each symbol its address and fills in the variables' initial values. A kernel is lowered at its
//! first launch, together with every function that it can reach, so that an instruction that the simulator lacks refuses
//! only the kernels that would execute it.
//!
//! Lowering goes: names to registers and addresses ([`build`]), opcode by opcode ([`lower`]); control flow to an order of
//! blocks in which diverged lanes meet again ([`flow`]); registers to rows ([`allocate`]).

mod allocate;
mod build;
mod emit;
mod flow;
mod form;
mod layout;
mod link;
mod lower;
mod op;
mod operand;
#[cfg(test)]
mod page;
mod place;
mod refused;
mod supported;
mod unit;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

pub use form::{Form, class, is_signed, scalar, size};
pub use link::LinkError;
pub(crate) use lower::Lanes;
pub(crate) use op::handler;
#[cfg(target_arch = "x86_64")]
pub(crate) use op::has_wide_vectors;
pub use op::{CONSTANT, Class, HIDDEN, Handler, JUMPS, LEAVES, NONE, Op, PICKS, ROW, SLOTS};
pub use place::SourcePlace;
pub use refused::{Refused, refused};
pub use supported::{Support, supported};

/// The special registers that the simulator has.
pub use crate::machine::special::NAMES as SPECIAL_REGISTERS;

use crate::machine::Limits;
use crate::machine::matrix::Matrix;
use crate::machine::matrix::wide::Fragment;
use crate::machine::warp::Row;

/// Modules linked together. Immutable.
pub struct Program {
    linked: Arc<link::Linked>,
    kernels: HashMap<String, Kernel>,
    limits: Limits,
}

/// A variable's place in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol {
    /// First address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// In constant memory.
    pub constant: bool,
}

/// A kernel parameter's place in the parameter block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Bytes from the start.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
}

/// A kernel.
pub struct Kernel {
    /// Its symbol (mangled).
    pub name: String,
    /// Parameters in order.
    pub parameters: Vec<Parameter>,
    /// `.maxntid`: the most threads a block, where the source bounds it.
    pub max_threads: Option<u32>,
    /// `.reqntid`: the block that it must be launched with.
    pub required_block: Option<[u32; 3]>,
    /// `.reqnctapercluster`: the cluster that it must be launched with.
    pub required_cluster: Option<[u32; 3]>,
    code: OnceLock<Result<Arc<Code>, Refusal>>,
    index: (usize, usize),
}

/// What the simulator lacks to run a kernel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (PTX line {line})")]
pub struct Refusal {
    /// The instruction or function, and what is wrong with it.
    pub message: String,
    /// Line of the PTX text, from 1.
    pub line: u32,
    /// Source place, where the PTX names it.
    pub place: Option<SourcePlace>,
}

/// A kernel with all functions that it can reach, lowered.
pub struct Code {
    /// Ops of the kernel, then of each function.
    pub ops: Vec<Op>,
    /// For each op: line of the PTX text, index into `places` (or `u32::MAX`), index into `opcodes`.
    pub sources: Vec<Source>,
    /// Source places that ops point at.
    pub places: Vec<SourcePlace>,
    /// Opcodes with modifiers that ops point at.
    pub opcodes: Vec<String>,
    /// The kernel, then the functions.
    pub functions: Vec<Shape>,
    /// Argument lists of calls.
    pub calls: Vec<CallSite>,
    /// Rows of constants.
    pub(crate) constants: Vec<Row>,
    /// Operands of ops that have more than slots: slots, one after the other.
    pub lists: Vec<u32>,
    /// Multiplications of matrices that ops point at.
    pub matrices: Vec<Matrix>,
    /// Fragments that ops load and store.
    pub fragments: Vec<Fragment>,
    /// Targets of `brx.idx`.
    pub tables: Vec<Vec<u32>>,
    /// Functions by address.
    pub pointers: HashMap<u64, u32>,
    /// The result can depend on the order of blocks: they run one after the other.
    pub ordered: bool,
    /// Static shared memory, in bytes, with what is reserved.
    pub shared_bytes: u32,
    /// Bytes of it that the system keeps for itself; 0 where the kernel does not use them.
    pub reserved_shared: u32,
    /// Where they lie.
    pub reserved_at: u32,
    /// Where `extern __shared__` begins: the static part, rounded up.
    pub dynamic_shared: u32,
    /// Variables in shared memory: offset, bytes (0 where a launch says how many), name.
    pub shared_variables: Vec<(u32, u32, String)>,
}

/// What a kernel takes of a multiprocessor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resources {
    /// Static shared memory, in bytes.
    pub shared_bytes: u32,
    /// Local memory that the PTX declares for a thread, in bytes; what a compiler spills comes on top.
    pub local_bytes: u32,
    /// Registers of 32 bits that the PTX keeps live at once, at most: an estimate of what ptxas allots.
    pub registers: u32,
}

/// Where an op stands in the texts.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    /// Line of the PTX text, from 1.
    pub line: u32,
    /// Index into [`Code::places`]; `u32::MAX` for none.
    pub place: u32,
    /// Index into [`Code::opcodes`].
    pub opcode: u32,
}

/// What an activation of a function needs.
#[derive(Debug, Clone, Default)]
pub struct Shape {
    /// Its symbol.
    pub name: String,
    /// First op.
    pub entry: u32,
    /// Rows of registers.
    pub rows: u32,
    /// Masks of predicates; mask 0 is all ones.
    pub predicates: u32,
    /// Words of local memory a thread.
    pub local_rows: u32,
    /// A register may be read before it is written.
    pub reads_unset: bool,
}

/// What a call copies, lane by lane: words from, words to, number of words; each relative to its frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallSite {
    /// From the caller's frame to the callee's.
    pub arguments: Vec<(u32, u32, u32)>,
    /// From the callee's to the caller's.
    pub returns: Vec<(u32, u32, u32)>,
}

impl Code {
    /// PTX line and source place of an op.
    #[must_use]
    pub fn source(&self, pc: u32) -> (u32, Option<&SourcePlace>) {
        let Some(source) = self.sources.get(pc as usize) else { return (0, None) };
        (source.line, self.places.get(source.place as usize))
    }

    /// The variable that an offset of shared memory lies in, and its bytes. `dynamic` is where `extern __shared__` begins, and the bytes of
    /// the launch.
    pub(crate) fn shared_variable(&self, offset: u64, dynamic: (u32, u32)) -> Option<(&str, u32)> {
        self.shared_variables.iter().find_map(|(start, bytes, name)| {
            let bytes = if *bytes == 0 { dynamic.1 } else { *bytes };
            let inside = (u64::from(*start)..u64::from(*start) + u64::from(bytes)).contains(&offset);
            inside.then_some((name.as_str(), bytes))
        })
    }

    /// Where an op is, in words, without the folder of its file. For what is inlined, where that is.
    #[must_use]
    pub(crate) fn describe_short(&self, pc: u32) -> String {
        let name = |file: &str| file.rsplit('/').next().unwrap_or(file).to_owned();
        match self.source(pc) {
            (_, Some(place)) => match &place.inlined_at {
                Some((file, line, _)) => format!("{}:{line}", name(file)),
                None => format!("{}:{}", name(&place.file), place.line),
            },
            (line, None) => format!("PTX line {line}"),
        }
    }

    /// Where an op is, in words.
    #[must_use]
    pub fn describe(&self, pc: u32) -> String {
        match self.source(pc) {
            (_, Some(place)) => format!("{}:{}", place.file, place.line),
            (line, None) => format!("PTX line {line}"),
        }
    }
}

impl Program {
    /// The same program on another device. [`Program::link`] takes an H200.
    #[must_use]
    pub fn on(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// The device that it runs on.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }
}

impl Kernel {
    /// The kernel's code, lowered at the first call.
    ///
    /// # Errors
    /// Where the kernel can reach an instruction that the simulator lacks.
    pub fn code(&self, program: &Program) -> Result<Arc<Code>, Refusal> {
        self.code.get_or_init(|| build::kernel(&program.linked, self.index).map(Arc::new)).clone()
    }

    /// What the kernel takes of a multiprocessor; zeros for one that can't be lowered.
    #[must_use]
    pub fn resources(&self, program: &Program) -> Resources {
        let Ok(code) = self.code(program) else { return Resources::default() };
        let shape = &code.functions[0];
        Resources {
            shared_bytes: code.shared_bytes - code.reserved_shared,
            local_bytes: shape.local_rows * 4,
            registers: code.functions.iter().map(|f| f.rows).max().unwrap_or(0),
        }
    }
}
