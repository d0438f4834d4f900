//! Operands of instructions: registers, constants, addresses.

use crate::code::HIDDEN;
use crate::code::build::{Body, Draft, Name, Slot, slots};
use crate::code::form::{class, is_signed, size};
use crate::code::op::Class;
use crate::machine::access::{FRAME_RELATIVE, SHORT_ADDRESS};
use crate::machine::{moves, special};
use crate::ptx::ast::{Operand, Scalar};

/// The address of an access.
pub(super) struct Address {
    /// Register, or nothing.
    pub slot: Slot,
    /// Added to it.
    pub immediate: i64,
    /// [`SHORT_ADDRESS`], [`FRAME_RELATIVE`].
    pub aux: u32,
    /// What its symbol names, where it has one.
    pub base: Base,
}

/// What an address's symbol names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// A register, or nothing.
    Register,
    /// Local memory of the frame.
    Frame,
    /// A kernel parameter.
    Parameter,
    /// Shared memory.
    Shared,
    /// A variable of a module.
    Variable,
}

impl Body<'_, '_> {
    /// An operand that is read as `ty`.
    pub fn read(&mut self, operand: &Operand, ty: Scalar) -> Result<Slot, String> {
        let wanted = class(ty);
        match operand {
            Operand::Int(value) if ty == Scalar::F32 => {
                self.fixed(u128::from((*value as f32).to_bits()), wanted)
            }
            Operand::Int(value) if ty == Scalar::F64 => {
                self.fixed(u128::from((*value as f64).to_bits()), wanted)
            }
            Operand::Int(value) => self.fixed(u128::from(*value), wanted),
            Operand::F32(bits) if wanted == Class::Double => {
                self.fixed(u128::from(f64::from(f32::from_bits(*bits)).to_bits()), wanted)
            }
            Operand::F32(bits) => self.fixed(u128::from(*bits), wanted),
            Operand::F64(bits) if wanted == Class::Single => {
                self.fixed(u128::from((f64::from_bits(*bits) as f32).to_bits()), wanted)
            }
            Operand::F64(bits) => self.fixed(u128::from(*bits), wanted),
            Operand::Name(name) => self.read_name(name, 0, wanted),
            Operand::NameOffset(name, offset) => self.read_name(name, *offset, wanted),
            Operand::Not(name) => {
                let slot = self.read_name(name, 0, Class::Predicate)?;
                let negated = self.register(Class::Predicate);
                self.push_hidden(moves::not_predicate(), slots([Slot::Def(negated), slot]), 0);
                Ok(Slot::Use(negated))
            }
            Operand::Vector(elements) => self.pack(elements, ty),
            other => Err(format!("{other:?} can't be read as .{ty:?}")),
        }
    }

    fn fixed(&mut self, bits: u128, class: Class) -> Result<Slot, String> {
        Ok(Slot::Fixed(self.unit.constant(bits, class)))
    }

    fn read_name(&mut self, name: &str, offset: i64, wanted: Class) -> Result<Slot, String> {
        match self.name(name).cloned() {
            Some(Name::Register(reg)) => Ok(self.coerced(reg, wanted)),
            Some(Name::Frame { offset: at, .. }) => {
                let reg = self.register(Class::Double);
                let immediate = i64::from(at) + offset;
                self.push_hidden(special::frame_address(), slots([Slot::Def(reg)]), immediate);
                Ok(self.coerced(reg, wanted))
            }
            Some(Name::Shared(at) | Name::Parameter(at)) => {
                self.fixed(u128::from((i64::from(at) + offset) as u64), wanted)
            }
            Some(Name::VectorRegister | Name::Label(_) | Name::Labels(_) | Name::Prototype) => {
                Err(format!("{name} can't be read here"))
            }
            None => self.read_symbol(name, offset, wanted),
        }
    }

    fn read_symbol(&mut self, name: &str, offset: i64, wanted: Class) -> Result<Slot, String> {
        if name == "WARP_SZ" {
            return self.fixed(32, wanted);
        }
        if let Some(at) = self.unit.reserved(name) {
            return self.fixed(u128::from(at), wanted);
        }
        if let Some((special, is)) = special::find(name) {
            let reg = self.register(is);
            self.push_hidden(special, slots([Slot::Def(reg)]), 0);
            return Ok(self.coerced(reg, wanted));
        }
        if let Some(at) = self.shared(name) {
            return self.fixed(u128::from((i64::from(at) + offset) as u64), wanted);
        }
        let linked = self.unit.linked;
        let function = || linked.function(self.module, name).map(|f| linked.address(f));
        match linked.variable(self.module, name).map(|symbol| symbol.address).or_else(function) {
            Some(address) => self.fixed(u128::from(address.wrapping_add_signed(offset)), wanted),
            None => Err(format!("{name} is neither a register nor a symbol that a module defines")),
        }
    }

    /// A register read as another class: cut, or filled up with zeros.
    fn coerced(&mut self, reg: u32, wanted: Class) -> Slot {
        let is = self.registers[reg as usize];
        let Some(run) = moves::convert(is, wanted, false) else { return Slot::Use(reg) };
        let fresh = self.register(wanted);
        self.push_hidden(run, slots([Slot::Def(fresh), Slot::Use(reg)]), 0);
        Slot::Use(fresh)
    }

    /// An operand that is written as `ty`. A wider register is filled up with zeros, or the sign.
    pub fn write(&mut self, operand: &Operand, ty: Scalar) -> Result<Slot, String> {
        let wanted = class(ty);
        match operand {
            Operand::Sink => Ok(Slot::Def(self.register(wanted))),
            Operand::Name(name) => match self.name(name) {
                Some(&Name::Register(reg)) => {
                    let is = self.registers[reg as usize];
                    let Some(run) = moves::convert(wanted, is, is_signed(ty)) else {
                        return Ok(Slot::Def(reg));
                    };
                    let fresh = self.register(wanted);
                    self.push_after(run, slots([Slot::Def(reg), Slot::Use(fresh)]));
                    Ok(Slot::Def(fresh))
                }
                _ => Err(format!("{name} is not a register, so it can't be written")),
            },
            Operand::Vector(elements) => {
                let whole = self.register(wanted);
                self.unpack_after(elements, whole, ty)?;
                Ok(Slot::Def(whole))
            }
            other => Err(format!("{other:?} can't be written")),
        }
    }

    /// `{a, b}` read as one value: elements from the low bits up.
    fn pack(&mut self, elements: &[Operand], ty: Scalar) -> Result<Slot, String> {
        let (element, part) = part_type(ty, elements.len())?;
        let mut whole = self.fixed(0, class(ty))?;
        for (at, operand) in elements.iter().enumerate() {
            let value = self.read(operand, element)?;
            let next = self.register(class(ty));
            let run = moves::insert(class(ty), class(element)).ok_or("can't pack such elements")?;
            self.push_hidden(run, slots([Slot::Def(next), whole, value]), i64::from(part) * at as i64);
            if let Some(last) = self.drafts.last_mut() {
                last.aux = part;
            }
            whole = Slot::Use(next);
        }
        Ok(whole)
    }

    fn unpack_after(&mut self, elements: &[Operand], whole: u32, ty: Scalar) -> Result<(), String> {
        let (_, part) = part_type(ty, elements.len())?;
        for (at, operand) in elements.iter().enumerate() {
            if *operand == Operand::Sink {
                continue;
            }
            let Operand::Name(name) = operand else { return Err(format!("{operand:?} can't be written")) };
            let Some(&Name::Register(reg)) = self.name(name) else {
                return Err(format!("{name} is not a register"));
            };
            let is = self.registers[reg as usize];
            let run = moves::extract(is, class(ty)).ok_or("can't unpack into such elements")?;
            let draft = self.draft(run, slots([Slot::Def(reg), Slot::Use(whole)]));
            let immediate = i64::from(part) * at as i64;
            self.push_after_draft(Draft { immediate, aux: part, flags: HIDDEN, ..draft });
        }
        Ok(())
    }

    /// A predicate that is written, or nothing.
    pub fn write_predicate(&mut self, operand: Option<&Operand>) -> Result<Slot, String> {
        match operand {
            None | Some(Operand::Sink) => Ok(Slot::None),
            Some(operand) => self.write(operand, Scalar::Pred),
        }
    }

    /// An address as a value of 64 bits.
    pub fn address_value(&mut self, operand: &Operand) -> Result<Slot, String> {
        let address = self.address(operand)?;
        match address.slot {
            Slot::None if address.base == Base::Frame => Err("local memory is not meant here".to_owned()),
            Slot::None => self.fixed(u128::from(address.immediate as u64), Class::Double),
            Slot::Use(reg) => {
                let base = self.coerced(reg, Class::Double);
                if address.immediate == 0 {
                    return Ok(base);
                }
                let sum = self.register(Class::Double);
                self.push_hidden(special::shift_window(), slots([Slot::Def(sum), base]), address.immediate);
                Ok(Slot::Use(sum))
            }
            other => Ok(other),
        }
    }

    /// The address of an access.
    pub fn address(&mut self, operand: &Operand) -> Result<Address, String> {
        let (base, offset) = match operand {
            Operand::Address { base, offset } => (base.as_deref(), *offset),
            other => return Err(format!("{other:?} is not an address")),
        };
        let plain = |immediate, base| Address { slot: Slot::None, immediate, aux: 0, base };
        let Some(name) = base else { return Ok(plain(offset, Base::Register)) };
        match self.name(name).cloned() {
            Some(Name::Register(reg)) => {
                let aux = match self.registers[reg as usize] {
                    Class::Double => 0,
                    Class::Single => SHORT_ADDRESS,
                    _ => return Err(format!("{name} has no address's width")),
                };
                Ok(Address { slot: Slot::Use(reg), immediate: offset, aux, base: Base::Register })
            }
            Some(Name::Frame { offset: at, .. }) => {
                Ok(Address { aux: FRAME_RELATIVE, ..plain(i64::from(at) + offset, Base::Frame) })
            }
            Some(Name::Shared(at)) => Ok(plain(i64::from(at) + offset, Base::Shared)),
            Some(Name::Parameter(at)) => Ok(plain(i64::from(at) + offset, Base::Parameter)),
            Some(_) => Err(format!("{name} is not a place in memory")),
            None => {
                if let Some(at) = self.shared(name) {
                    return Ok(plain(i64::from(at) + offset, Base::Shared));
                }
                match self.unit.linked.variable(self.module, name) {
                    Some(symbol) => {
                        Ok(plain(symbol.address.wrapping_add_signed(offset) as i64, Base::Variable))
                    }
                    None => Err(format!("{name} is neither a register nor a variable that a module defines")),
                }
            }
        }
    }
}

/// The type of one of `n` elements of a packed value, and its bits.
fn part_type(ty: Scalar, n: usize) -> Result<(Scalar, u32), String> {
    let bits = size(ty) * 8 / n.max(1) as u32;
    let element = match bits {
        8 => Scalar::B8,
        16 => Scalar::B16,
        32 => Scalar::B32,
        64 => Scalar::B64,
        _ => return Err(format!("a .{ty:?} does not hold {n} elements")),
    };
    Ok((element, bits))
}
