//! From syntax to drafts: names become registers, addresses and labels.

use std::collections::HashMap;

use crate::code::emit;
use crate::code::form::{Form, class};
use crate::code::layout;
use crate::code::link::{Definition, Linked};
use crate::code::op::{ATOMIC, Class, HIDDEN, Handler, NONE, SLOTS};
use crate::code::unit::{RESERVED_SHARED, Unit};
use crate::code::{Code, Refusal, Source, refused, supported};
use crate::ptx::ast::{Instruction, Operand, Scalar, Space, Statement, Variable};

/// A virtual register of a function: index into [`Body::registers`].
pub(super) type Reg = u32;

/// An operand of a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// Nothing.
    None,
    /// A register, read.
    Use(Reg),
    /// A register, written.
    Def(Reg),
    /// A constant's slot, or one of the masks that never change.
    Fixed(u32),
}

/// The mask that is all ones, and the one that is all zeros.
pub(super) const TRUE: u32 = 0;
pub(super) const FALSE: u32 = 1;

/// Where a draft leads besides the draft after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Flow {
    /// Nowhere else.
    Next,
    /// To a label, if the guard holds.
    Branch(usize),
    /// To a block: a jump that layout put in.
    Block(usize),
    /// To one of these labels; the op's table is filled in.
    Table(Vec<usize>),
    /// Out of the function.
    Leave,
}

/// An op whose registers and targets are not yet places.
#[derive(Clone)]
pub(super) struct Draft {
    pub run: Handler,
    pub slots: [Slot; SLOTS],
    /// Operands beyond the slots.
    pub more: Vec<Slot>,
    pub immediate: i64,
    pub aux: u32,
    pub flags: u16,
    /// Register and whether it is negated.
    pub guard: Option<(Reg, bool)>,
    pub flow: Flow,
    pub source: Source,
}

impl Draft {
    /// Registers that it reads, its guard too.
    pub fn uses(&self) -> impl Iterator<Item = Reg> {
        let slots = self.slots.iter().chain(&self.more).filter_map(|slot| match slot {
            Slot::Use(reg) => Some(*reg),
            _ => None,
        });
        slots.chain(self.guard.map(|(reg, _)| reg))
    }

    /// Registers that it writes.
    pub fn defs(&self) -> impl Iterator<Item = Reg> {
        self.slots.iter().chain(&self.more).filter_map(|slot| match slot {
            Slot::Def(reg) => Some(*reg),
            _ => None,
        })
    }
}

/// What a name stands for in a function.
#[derive(Debug, Clone)]
pub(super) enum Name {
    Register(Reg),
    /// A vector register, `.reg .v4`: nvcc writes none, and no instruction here takes one.
    VectorRegister,
    /// Bytes from the start of the frame's local memory: `.local`, parameters of device functions, arguments of calls. Its
    /// size and alignment too.
    Frame {
        offset: u32,
        bytes: u32,
        align: u32,
    },
    /// Bytes from the start of shared memory.
    Shared(u32),
    /// Bytes from the start of the kernel's parameters.
    Parameter(u32),
    Label(usize),
    Labels(Vec<String>),
    /// Parameters and returns of a call through a pointer.
    Prototype,
}

/// A function being lowered.
pub(super) struct Body<'a, 'u> {
    pub unit: &'u mut Unit<'a>,
    pub module: usize,
    pub is_entry: bool,
    scopes: Vec<HashMap<String, Name>>,
    pub registers: Vec<Class>,
    pub drafts: Vec<Draft>,
    /// Drafts that follow the one that is being made.
    after: Vec<Draft>,
    /// The draft that each label stands before.
    pub labels: Vec<usize>,
    /// Bytes of local memory.
    pub local: u32,
    /// The carry flag, `CC.CF`.
    carry: Option<Reg>,
    guard: Option<(Reg, bool)>,
    source: Source,
}

/// What lowering an instruction gives: nothing, or what is wrong with it.
pub(super) type Lowered = Result<(), String>;

/// Lowers a kernel and all functions that it can reach.
pub(super) fn kernel(linked: &Linked, kernel: Definition) -> Result<Code, Refusal> {
    // Where dynamic shared memory begins is known when all static variables have been met: then once more.
    let code = lower_with(linked, kernel, 0)?;
    match code.dynamic_shared {
        0 => Ok(code),
        offset => lower_with(linked, kernel, offset),
    }
}

fn lower_with(linked: &Linked, kernel: Definition, dynamic_shared: u32) -> Result<Code, Refusal> {
    let mut unit = Unit::new(linked, kernel, dynamic_shared);
    let mut ops = emit::Emitter::default();
    let mut at = 0;
    let mut pointers = HashMap::new();
    while at < unit.functions.len() {
        let definition = unit.functions[at];
        let body = function(&mut unit, definition)?;
        ops.function(&linked.syntax(definition).name, body, &mut unit.tables, &unit.opcodes);
        if unit.indirect && pointers.is_empty() {
            for taken in linked.taken() {
                let index = unit.function(taken);
                pointers.insert(linked.address(taken), index);
            }
        }
        at += 1;
    }
    let dynamic_shared = unit.shared.next_multiple_of(unit.shared_align);
    Ok(Code {
        ops: ops.ops,
        sources: ops.sources,
        places: unit.places,
        opcodes: unit.opcodes,
        functions: ops.functions,
        calls: unit.calls,
        constants: unit.rows,
        lists: ops.lists,
        matrices: unit.matrices,
        fragments: unit.fragments,
        tables: unit.tables,
        pointers,
        ordered: unit.ordered,
        shared_bytes: unit.shared,
        reserved_shared: unit.reserved.map_or(0, |_| RESERVED_SHARED),
        reserved_at: unit.reserved.unwrap_or(0),
        shared_variables: unit.shared_variables,
        dynamic_shared,
    })
}

/// A function's drafts, without the names that made them.
pub(super) struct Finished {
    pub drafts: Vec<Draft>,
    pub labels: Vec<usize>,
    pub registers: Vec<Class>,
    pub local: u32,
}

fn function(unit: &mut Unit<'_>, definition: Definition) -> Result<Finished, Refusal> {
    let linked = unit.linked;
    let syntax = linked.syntax(definition);
    let mut body = Body {
        unit,
        module: definition.0,
        is_entry: syntax.is_entry,
        scopes: vec![HashMap::new()],
        registers: Vec::new(),
        drafts: Vec::new(),
        after: Vec::new(),
        labels: Vec::new(),
        local: 0,
        carry: None,
        guard: None,
        source: Source { line: syntax.line, place: u32::MAX, opcode: 0 },
    };
    body.signature(&syntax.parameters, &syntax.returns);
    body.statements(syntax.body.as_deref().unwrap_or_default())?;
    body.drop_unused_results();
    // A body may end without `ret`.
    let end = body.draft(crate::machine::control::ret(), [Slot::None; SLOTS]);
    body.drafts.push(Draft { flow: Flow::Leave, flags: HIDDEN, guard: None, ..end });
    Ok(Finished { drafts: body.drafts, labels: body.labels, registers: body.registers, local: body.local })
}

/// Where parameters and returns lie in a device function's frame: caller and callee agree without knowing each other.
pub(super) fn convention(sizes: &[(u32, u32)]) -> (Vec<u32>, u32) {
    let mut end = 0;
    let offsets = sizes.iter().map(|&(bytes, align)| layout::grow(&mut end, bytes, align.max(4))).collect();
    (offsets, end.next_multiple_of(4))
}

/// Registers that a function may declare. The largest kernels of libraries declare some ten thousands; a text that is damaged may ask for any
/// number, and each takes memory here.
const MOST_REGISTERS: u64 = 1 << 18;

impl Body<'_, '_> {
    fn signature(&mut self, parameters: &[Variable], returns: &[Variable]) {
        if self.is_entry {
            for (variable, (offset, _)) in parameters.iter().zip(layout::sequence(parameters)) {
                self.declare(&variable.name, Name::Parameter(offset));
            }
            return;
        }
        let all: Vec<&Variable> = parameters.iter().chain(returns).collect();
        let sizes: Vec<(u32, u32)> = all.iter().map(|v| (layout::bytes(v) as u32, v.align)).collect();
        let (offsets, end) = convention(&sizes);
        self.local = end;
        for ((variable, offset), (bytes, align)) in all.into_iter().zip(offsets).zip(sizes) {
            self.declare(&variable.name, Name::Frame { offset, bytes, align });
        }
    }

    pub fn declare(&mut self, name: &str, meaning: Name) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned(), meaning);
        }
    }

    /// What a name stands for here.
    pub fn name(&self, name: &str) -> Option<&Name> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    /// A fresh register.
    pub fn register(&mut self, class: Class) -> Reg {
        self.registers.push(class);
        self.registers.len() as u32 - 1
    }

    /// The carry flag, `CC.CF`.
    pub fn carry(&mut self) -> Reg {
        let fresh = self.registers.len() as u32;
        if self.carry.is_none() {
            self.registers.push(Class::Predicate);
        }
        *self.carry.get_or_insert(fresh)
    }

    fn statements(&mut self, statements: &[Statement]) -> Result<(), Refusal> {
        for statement in statements {
            if let Statement::Label(name) = statement {
                self.labels.push(usize::MAX);
                self.declare(name, Name::Label(self.labels.len() - 1));
            }
        }
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &Statement) -> Result<(), Refusal> {
        match statement {
            Statement::Block(inner) => {
                self.scopes.push(HashMap::new());
                let result = self.statements(inner);
                self.scopes.pop();
                result?;
            }
            Statement::Label(name) => {
                if let Some(&Name::Label(label)) = self.name(name) {
                    self.labels[label] = self.drafts.len();
                }
            }
            Statement::Registers { ty, vector, names } => {
                for (name, count) in names {
                    self.declare_registers(name, *count, *ty, *vector).map_err(|message| Refusal {
                        message,
                        line: self.source.line,
                        place: self.unit.places.get(self.source.place as usize).cloned(),
                    })?;
                }
            }
            Statement::Variable(variable) => self.variable(variable),
            Statement::Location(location) => self.source.place = self.unit.place(self.module, location),
            Statement::BranchTargets(name, labels) => self.declare(name, Name::Labels(labels.clone())),
            Statement::CallPrototype { name, .. } | Statement::CallTargets(name, _) => {
                self.declare(name, Name::Prototype);
            }
            Statement::Pragma(_) => {}
            Statement::Instruction(instruction) => {
                self.instruction(instruction).map_err(|message| Refusal {
                    message,
                    line: instruction.line,
                    place: self.unit.places.get(self.source.place as usize).cloned(),
                })?;
            }
        }
        Ok(())
    }

    fn declare_registers(
        &mut self,
        name: &str,
        count: Option<u32>,
        ty: Scalar,
        vector: u32,
    ) -> Result<(), String> {
        let all = self.registers.len() as u64 + u64::from(count.unwrap_or(1));
        if all > MOST_REGISTERS {
            return Err(format!(
                "{all} registers are declared in one function; at most {MOST_REGISTERS} may be"
            ));
        }
        let one = |body: &mut Self, name: &str| {
            let meaning = match vector {
                1 => Name::Register(body.register(class(ty))),
                _ => Name::VectorRegister,
            };
            body.declare(name, meaning);
        };
        match count {
            None => one(self, name),
            Some(count) => (0..count).for_each(|at| one(self, &format!("{name}{at}"))),
        }
        Ok(())
    }

    fn variable(&mut self, variable: &Variable) {
        let meaning = match variable.space {
            Space::Shared => Name::Shared(self.unit.place_shared(variable)),
            _ => {
                let (bytes, align) = (layout::bytes(variable) as u32, variable.align);
                let offset = layout::grow(&mut self.local, bytes.next_multiple_of(4), align.max(4));
                Name::Frame { offset, bytes, align }
            }
        };
        self.declare(&variable.name, meaning);
    }

    fn instruction(&mut self, instruction: &Instruction) -> Lowered {
        self.source.line = instruction.line;
        self.source.opcode = self.unit.opcode(instruction);
        self.guard = match &instruction.guard {
            None => None,
            Some(guard) => match self.name(&guard.register) {
                Some(&Name::Register(reg)) => Some((reg, guard.negated)),
                _ => return Err(format!("{} guards an instruction but is no register", guard.register)),
            },
        };
        let mut form = Form::new(instruction);
        let text = self.unit.opcodes[self.source.opcode as usize].clone();
        let Some(support) = supported::find(&instruction.opcode) else {
            let why = refused::reason(&instruction.opcode)
                .map_or_else(String::new, |why| format!(": {why} are not simulated"));
            return Err(format!("the simulator has no {text}{why}"));
        };
        (support.lower)(self, &mut form, instruction).map_err(|why| format!("{text}: {why}"))?;
        if let [word, ..] = form.rest() {
            return Err(format!("the simulator has no {text}: .{word} is not supported there"));
        }
        let after = std::mem::take(&mut self.after);
        self.drafts.extend(after);
        Ok(())
    }

    /// Results of atomics: one that nobody reads is not kept; one that somebody reads can depend on the order of blocks.
    fn drop_unused_results(&mut self) {
        let mut used = vec![false; self.registers.len()];
        self.drafts.iter().flat_map(Draft::uses).for_each(|reg| used[reg as usize] = true);
        for draft in self.drafts.iter_mut().filter(|draft| draft.flags & ATOMIC != 0) {
            match draft.slots[0] {
                Slot::Def(reg) if used[reg as usize] => self.unit.ordered = true,
                _ => draft.slots[0] = Slot::None,
            }
        }
    }

    /// A draft of the current instruction.
    pub fn draft(&self, run: Handler, slots: [Slot; SLOTS]) -> Draft {
        Draft {
            run,
            slots,
            more: Vec::new(),
            immediate: 0,
            aux: 0,
            flags: 0,
            guard: self.guard,
            flow: Flow::Next,
            source: self.source,
        }
    }

    /// Appends a draft.
    pub fn push(&mut self, draft: Draft) {
        self.drafts.push(draft);
    }

    /// Appends an op that the text does not hold: before the current instruction's own.
    pub fn push_hidden(&mut self, run: Handler, slots: [Slot; SLOTS], immediate: i64) {
        let draft = self.draft(run, slots);
        self.drafts.push(Draft { flags: HIDDEN, immediate, ..draft });
    }

    /// Keeps an op until the current instruction's own is there.
    pub fn push_after(&mut self, run: Handler, slots: [Slot; SLOTS]) {
        let draft = self.draft(run, slots);
        self.after.push(Draft { flags: HIDDEN, ..draft });
    }

    /// Keeps a finished draft until the current instruction's own is there.
    pub fn push_after_draft(&mut self, draft: Draft) {
        self.after.push(draft);
    }

    /// A table for `brx.idx`, filled in when blocks have places.
    pub fn table(&mut self) -> u32 {
        self.unit.tables.push(Vec::new());
        self.unit.tables.len() as u32 - 1
    }

    /// A label by its name.
    pub fn label(&self, name: &str) -> Result<usize, String> {
        match self.name(name) {
            Some(&Name::Label(label)) => Ok(label),
            _ => Err(format!("{name} is not a label here")),
        }
    }

    /// Offset, bytes and alignment of a variable in the frame.
    pub fn frame_place(&self, name: &str) -> Option<(u32, u32, u32)> {
        match self.name(name) {
            Some(&Name::Frame { offset, bytes, align }) => Some((offset, bytes, align)),
            _ => None,
        }
    }

    /// A shared variable of a module.
    pub fn shared(&mut self, name: &str) -> Option<u32> {
        self.unit.shared(self.module, name)
    }

    /// The operand at `at`.
    pub fn operand(instruction: &Instruction, at: usize) -> Result<&Operand, String> {
        instruction.operands.get(at).ok_or_else(|| format!("operand {} is missing", at + 1))
    }
}

/// Slots from the first few; the rest is empty.
pub(super) fn slots<const N: usize>(first: [Slot; N]) -> [Slot; SLOTS] {
    let mut all = [Slot::None; SLOTS];
    all[..N].copy_from_slice(&first);
    all
}

const _: () = assert!(NONE != TRUE && NONE != FALSE);
