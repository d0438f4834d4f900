//! Symbols over several modules; variables placed in memory and initialised.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use crate::checks::short_name;
use crate::code::form::size;
use crate::code::{Kernel, Parameter, Program, Symbol, layout};
use crate::machine::Limits;
use crate::machine::access::FUNCTION_WINDOW;
use crate::memory::{Kind, Memory};
use crate::ptx::ast::{Function, Initial, Linkage, Module, Operand, Scalar, Space, Statement, Variable};

/// Why modules can't be linked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// Two modules define one symbol for all.
    #[error("{name} is defined twice: PTX lines {first} and {second}")]
    Twice {
        /// The symbol.
        name: String,
        /// PTX line of the first definition.
        first: u32,
        /// PTX line of the second.
        second: u32,
    },
    /// A variable does not fit.
    #[error("no memory for {name}, PTX line {line}: {source}")]
    Memory {
        /// The variable.
        name: String,
        /// Its PTX line.
        line: u32,
        /// Why.
        source: crate::memory::OutOfMemory,
    },
    /// A variable's initial value names an unknown symbol.
    #[error("{name}, PTX line {line}: its initial value names {symbol}, which no module defines")]
    Initial {
        /// The variable.
        name: String,
        /// Its PTX line.
        line: u32,
        /// The unknown symbol.
        symbol: String,
    },
    /// The modules use 32-bit addresses.
    #[error("the PTX has {0}-bit addresses; only 64-bit programs run")]
    AddressSize(u32),
    /// A variable could not be written.
    #[error("{0}")]
    Range(#[from] crate::memory::OutOfRange),
}

/// A function's definition: module, index in it.
pub(super) type Definition = (usize, usize);

/// Modules with all symbols resolved.
pub(super) struct Linked {
    pub modules: Vec<Module>,
    /// Names of one module's own.
    variables: Vec<HashMap<String, Symbol>>,
    /// Names for all modules.
    shared_variables: HashMap<String, Symbol>,
    functions: Vec<HashMap<String, Definition>>,
    shared_functions: HashMap<String, Definition>,
    addresses: HashMap<Definition, u64>,
    taken: HashSet<Definition>,
}

impl Linked {
    /// A variable's place, as `module` sees the name.
    pub fn variable(&self, module: usize, name: &str) -> Option<Symbol> {
        self.variables[module].get(name).or_else(|| self.shared_variables.get(name)).copied()
    }

    /// A function's definition, as `module` sees the name.
    pub fn function(&self, module: usize, name: &str) -> Option<Definition> {
        let alias = self.modules[module].aliases.iter().find(|(alias, _)| alias == name);
        let name = alias.map_or(name, |(_, target)| target);
        self.functions[module].get(name).or_else(|| self.shared_functions.get(name)).copied()
    }

    /// The syntax tree of a definition.
    pub fn syntax(&self, (module, index): Definition) -> &Function {
        &self.modules[module].functions[index]
    }

    /// A function's address.
    pub fn address(&self, definition: Definition) -> u64 {
        self.addresses.get(&definition).copied().unwrap_or(0)
    }

    /// Functions whose address something takes: what a call through a pointer can reach.
    pub fn taken(&self) -> impl Iterator<Item = Definition> {
        let mut taken: Vec<Definition> = self.taken.iter().copied().collect();
        taken.sort_unstable();
        taken.into_iter()
    }
}

impl Program {
    /// Links modules: gives variables their places in `memory` and their initial values.
    ///
    /// # Errors
    /// Where symbols clash or are missing, or memory is short.
    pub fn link(modules: Vec<Module>, memory: &Memory) -> Result<Self, LinkError> {
        if let Some(module) = modules.iter().find(|module| module.address_size != 64) {
            return Err(LinkError::AddressSize(module.address_size));
        }
        let mut linked = Linked {
            variables: vec![HashMap::new(); modules.len()],
            functions: vec![HashMap::new(); modules.len()],
            shared_variables: HashMap::new(),
            shared_functions: HashMap::new(),
            addresses: HashMap::new(),
            taken: HashSet::new(),
            modules,
        };
        define_functions(&mut linked)?;
        let placed = place_variables(&mut linked, memory)?;
        for (module, at, symbol) in placed {
            let variable = &linked.modules[module].variables[at];
            let bytes = initial_bytes(&linked, module, variable)?;
            if !bytes.is_empty() {
                memory.write(symbol.address, &bytes[..bytes.len().min(symbol.size as usize)])?;
            }
        }
        find_taken(&mut linked);
        let kernels = kernels(&linked);
        Ok(Program { linked: Arc::new(linked), kernels, limits: Limits::default() })
    }

    /// A kernel by its symbol.
    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.get(name)
    }

    /// Symbols of all kernels, sorted.
    #[must_use]
    pub fn kernel_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.kernels.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// A `.global` or `.const` variable by its symbol; one that is a module's own, too.
    #[must_use]
    pub fn symbol(&self, name: &str) -> Option<Symbol> {
        let own = || self.linked.variables.iter().find_map(|names| names.get(name));
        self.linked.shared_variables.get(name).or_else(own).copied()
    }
}

fn define_functions(linked: &mut Linked) -> Result<(), LinkError> {
    for (module, tree) in linked.modules.iter().enumerate() {
        for (index, function) in tree.functions.iter().enumerate() {
            if function.body.is_none() {
                continue;
            }
            let definition = (module, index);
            linked.addresses.insert(definition, FUNCTION_WINDOW + 16 * (linked.addresses.len() as u64 + 1));
            linked.functions[module].insert(function.name.clone(), definition);
            if function.linkage == Linkage::Internal {
                continue;
            }
            match linked.shared_functions.get(&function.name) {
                None => {
                    linked.shared_functions.insert(function.name.clone(), definition);
                }
                Some(&other) => {
                    let first = &linked.modules[other.0].functions[other.1];
                    if first.linkage != Linkage::Weak && function.linkage != Linkage::Weak {
                        let (name, first, second) = (function.name.clone(), first.line, function.line);
                        return Err(LinkError::Twice { name, first, second });
                    }
                }
            }
        }
    }
    Ok(())
}

/// Places each variable of global and constant memory; those that have initial values of their own are returned.
fn place_variables(linked: &mut Linked, memory: &Memory) -> Result<Vec<(usize, usize, Symbol)>, LinkError> {
    let mut placed = Vec::new();
    let mut lines: HashMap<&str, (u32, bool)> = HashMap::new();
    for (module, tree) in linked.modules.iter().enumerate() {
        for (at, variable) in tree.variables.iter().enumerate() {
            let in_memory = matches!(variable.space, Space::Global | Space::Const);
            if !in_memory || variable.linkage == Linkage::Extern {
                continue;
            }
            let shared = variable.linkage != Linkage::Internal;
            let soft = matches!(variable.linkage, Linkage::Weak | Linkage::Common);
            if shared && let Some(&(first, first_soft)) = lines.get(variable.name.as_str()) {
                if soft || first_soft {
                    continue;
                }
                return Err(LinkError::Twice { name: variable.name.clone(), first, second: variable.line });
            }
            let size = layout::bytes(variable);
            let constant = variable.space == Space::Const;
            let address =
                memory.allocate(size, u64::from(variable.align.max(1)), Kind::Module).map_err(|source| {
                    LinkError::Memory { name: variable.name.clone(), line: variable.line, source }
                })?;
            memory.label(address, short_name(&variable.name));
            let symbol = Symbol { address, size, constant };
            if shared {
                lines.insert(&variable.name, (variable.line, soft));
                linked.shared_variables.insert(variable.name.clone(), symbol);
            } else {
                linked.variables[module].insert(variable.name.clone(), symbol);
            }
            placed.push((module, at, symbol));
        }
    }
    Ok(placed)
}

fn initial_bytes(linked: &Linked, module: usize, variable: &Variable) -> Result<Vec<u8>, LinkError> {
    let width = size(variable.ty) as usize;
    let mut bytes = Vec::with_capacity(width * variable.initial.len());
    for initial in &variable.initial {
        let value = match initial {
            Initial::Int(value) => u128::from(*value),
            Initial::Float(value) if variable.ty == Scalar::F32 => u128::from((*value as f32).to_bits()),
            Initial::Float(value) => u128::from(value.to_bits()),
            Initial::Symbol { name, offset, mask, .. } => {
                let function = || linked.function(module, name).map(|f| linked.address(f));
                let address =
                    linked.variable(module, name).map(|s| s.address).or_else(function).ok_or_else(|| {
                        LinkError::Initial {
                            name: variable.name.clone(),
                            line: variable.line,
                            symbol: name.clone(),
                        }
                    })?;
                let address = address.wrapping_add_signed(*offset);
                u128::from(mask.map_or(address, |mask| (address & mask) >> (mask.trailing_zeros() & 63)))
            }
        };
        bytes.extend_from_slice(&value.to_le_bytes()[..width.clamp(1, 16)]);
    }
    Ok(bytes)
}

/// Finds functions whose address is taken: named by an initial value, or by an operand that is not a call's target.
fn find_taken(linked: &mut Linked) {
    let mut taken = HashSet::new();
    for (module, tree) in linked.modules.iter().enumerate() {
        let mut take = |name: &str| taken.extend(linked.function(module, name));
        for variable in &tree.variables {
            for initial in &variable.initial {
                if let Initial::Symbol { name, .. } = initial {
                    take(name);
                }
            }
        }
        for function in &tree.functions {
            visit(function.body.as_deref().unwrap_or_default(), &mut |statement| {
                if let Statement::Instruction(instruction) = statement
                    && instruction.opcode == "mov"
                    && let Some(Operand::Name(name)) = instruction.operands.get(1)
                {
                    take(name);
                }
            });
        }
    }
    linked.taken = taken;
}

/// Visits statements, those of inner blocks too.
pub(super) fn visit(statements: &[Statement], f: &mut impl FnMut(&Statement)) {
    for statement in statements {
        match statement {
            Statement::Block(inner) => visit(inner, f),
            other => f(other),
        }
    }
}

fn kernels(linked: &Linked) -> HashMap<String, Kernel> {
    let mut kernels = HashMap::new();
    for (module, tree) in linked.modules.iter().enumerate() {
        for (index, function) in tree.functions.iter().enumerate() {
            if !function.is_entry || function.body.is_none() {
                continue;
            }
            let directive = |name: &str| {
                let found = function.directives.iter().find(|(directive, _)| directive == name)?;
                let at = |i: usize| found.1.get(i).map_or(1, |n| *n as u32);
                Some([at(0), at(1), at(2)])
            };
            let places = layout::sequence(&function.parameters);
            let kernel = Kernel {
                name: function.name.clone(),
                parameters: places.iter().map(|&(offset, size)| Parameter { offset, size }).collect(),
                max_threads: directive("maxntid")
                    .or_else(|| directive("reqntid"))
                    .map(|n| n.iter().product()),
                required_block: directive("reqntid"),
                required_cluster: directive("reqnctapercluster"),
                code: OnceLock::new(),
                index: (module, index),
            };
            kernels.entry(function.name.clone()).or_insert(kernel);
        }
    }
    kernels
}
