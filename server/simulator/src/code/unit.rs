//! What lowering collects over all functions of a kernel: constants, shared variables, source places, call sites.

use std::collections::HashMap;

use crate::checks::short_name;
use crate::code::build::{FALSE, TRUE};
use crate::code::layout;
use crate::code::link::{Definition, Linked};
use crate::code::op::{CONSTANT, Class, ROW};
use crate::code::{CallSite, SourcePlace};
use crate::machine::matrix::Matrix;
use crate::machine::matrix::wide::Fragment;
use crate::machine::warp::Row;
use crate::ptx::ast::{Instruction, Location, Space, Variable};

/// Bytes of shared memory a block that the system keeps for itself. Source: CUDA C++ Programming Guide, "Technical
/// Specifications per Compute Capability", 8.0 and later.
pub const RESERVED_SHARED: u32 = 1024;

/// What is collected over a kernel's functions.
pub(super) struct Unit<'a> {
    pub linked: &'a Linked,
    pub functions: Vec<Definition>,
    pub constants: HashMap<(u128, Class), u32>,
    pub rows: Vec<Row>,
    /// Bytes of static shared memory.
    pub shared: u32,
    /// Where `extern __shared__` is taken to begin, and its alignment.
    pub dynamic_shared: u32,
    pub shared_align: u32,
    /// Where memory lies that the system keeps for itself: see [`Unit::reserved`].
    pub reserved: Option<u32>,
    /// Shared variables of modules that are placed already.
    pub shared_names: HashMap<(usize, String), u32>,
    /// All shared variables: offset, bytes (0 where a launch says how many), name.
    pub shared_variables: Vec<(u32, u32, String)>,
    pub places: Vec<SourcePlace>,
    pub place_index: HashMap<(usize, Location), u32>,
    pub opcodes: Vec<String>,
    pub opcode_index: HashMap<String, u32>,
    pub calls: Vec<CallSite>,
    pub tables: Vec<Vec<u32>>,
    pub matrices: Vec<Matrix>,
    pub fragments: Vec<Fragment>,
    /// Something calls through a pointer.
    pub indirect: bool,
    /// Something's result can depend on the order of blocks.
    pub ordered: bool,
}

impl<'a> Unit<'a> {
    /// Nothing collected yet; dynamic shared memory is taken to begin at `dynamic_shared`.
    pub fn new(linked: &'a Linked, kernel: Definition, dynamic_shared: u32) -> Self {
        Unit {
            linked,
            functions: vec![kernel],
            dynamic_shared,
            constants: HashMap::new(),
            rows: Vec::new(),
            shared: 0,
            shared_align: 16,
            reserved: None,
            shared_names: HashMap::new(),
            shared_variables: Vec::new(),
            places: Vec::new(),
            place_index: HashMap::new(),
            opcodes: Vec::new(),
            opcode_index: HashMap::new(),
            calls: Vec::new(),
            tables: Vec::new(),
            matrices: Vec::new(),
            fragments: Vec::new(),
            indirect: false,
            ordered: false,
        }
    }

    /// The number of a function in this kernel's code.
    pub fn function(&mut self, definition: Definition) -> u32 {
        let found = self.functions.iter().position(|f| *f == definition);
        found.unwrap_or_else(|| {
            self.functions.push(definition);
            self.functions.len() - 1
        }) as u32
    }

    /// The slot of a constant: the value in all lanes.
    pub fn constant(&mut self, bits: u128, class: Class) -> u32 {
        let bits = match class {
            Class::Predicate => return if bits == 0 { FALSE } else { TRUE },
            Class::Single => bits & u128::from(u32::MAX),
            Class::Double => bits & u128::from(u64::MAX),
            Class::Quad => bits,
        };
        let rows = &mut self.rows;
        *self.constants.entry((bits, class)).or_insert_with(|| {
            let slot = (rows.len() as u32 * ROW) | CONSTANT;
            let words = class.rows() as usize;
            // Lanes lie side by side, each of `words` words.
            let word = |at: usize| (bits >> (at % words * 32)) as u32;
            for row in 0..words {
                rows.push(Row(std::array::from_fn(|lane| word(row * 32 + lane))));
            }
            slot
        })
    }

    pub fn opcode(&mut self, instruction: &Instruction) -> u32 {
        let mut text = instruction.opcode.clone();
        for modifier in &instruction.modifiers {
            text.push('.');
            text.push_str(modifier);
        }
        let opcodes = &mut self.opcodes;
        *self.opcode_index.entry(text.clone()).or_insert_with(|| {
            opcodes.push(text);
            opcodes.len() as u32 - 1
        })
    }

    pub fn place(&mut self, module: usize, location: &Location) -> u32 {
        if location.line == 0 {
            return u32::MAX;
        }
        let tree = &self.linked.modules[module];
        let places = &mut self.places;
        *self.place_index.entry((module, location.clone())).or_insert_with(|| {
            let file = |index: u32| tree.files.get(&index).cloned().unwrap_or_default();
            places.push(SourcePlace {
                file: file(location.file),
                line: location.line,
                column: location.column,
                function: location.function.as_ref().and_then(|label| tree.strings.get(label).cloned()),
                inlined_at: location.inlined_at.map(|(index, line, column)| (file(index), line, column)),
            });
            places.len() as u32 - 1
        })
    }

    /// A module's shared variable, placed when a function of this kernel first names it.
    pub fn shared(&mut self, module: usize, name: &str) -> Option<u32> {
        let linked = self.linked;
        let own = linked.modules[module].variables.iter().map(|variable| (module, variable));
        let others = linked
            .modules
            .iter()
            .enumerate()
            .flat_map(|(m, tree)| tree.variables.iter().map(move |v| (m, v)));
        let is_it = |(_, v): &(usize, &Variable)| v.name == name && v.space == Space::Shared;
        let (module, variable) = own.chain(others).find(is_it)?;
        if let Some(&offset) = self.shared_names.get(&(module, name.to_owned())) {
            return Some(offset);
        }
        let offset = self.place_shared(variable);
        self.shared_names.insert((module, name.to_owned()), offset);
        Some(offset)
    }

    /// `%reserved_smem_offset_…`: where shared memory lies that the system keeps for itself, 1 KiB a block. Cooperative groups
    /// use the first part, `_1`, for tiles of several warps.
    pub fn reserved(&mut self, name: &str) -> Option<u32> {
        let suffix = name.strip_prefix("%reserved_smem_offset_")?;
        let inside = match suffix {
            "begin" | "0" | "1" => 0,
            "cap" | "end" => RESERVED_SHARED,
            _ => return None,
        };
        if suffix == "cap" {
            return Some(RESERVED_SHARED);
        }
        let shared = &mut self.shared;
        let begin = *self.reserved.get_or_insert_with(|| layout::grow(shared, RESERVED_SHARED, 128));
        self.shared_align = self.shared_align.max(128);
        Some(begin + inside)
    }

    pub fn place_shared(&mut self, variable: &Variable) -> u32 {
        let bytes = layout::bytes(variable) as u32;
        let offset = if bytes == 0 {
            self.shared_align = self.shared_align.max(variable.align);
            self.dynamic_shared
        } else {
            layout::grow(&mut self.shared, bytes, variable.align)
        };
        self.shared_variables.push((offset, bytes, short_name(&variable.name).to_owned()));
        offset
    }
}
