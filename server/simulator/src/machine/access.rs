//! Where an address points: state spaces, generic addresses, bounds.
//!
//! Generic addresses of global and constant memory are the region's own. The other spaces have windows below it.

use std::sync::Arc;

use crate::checks::DefectKind;
use crate::code::{NONE, Op};
use crate::machine::Exec;
use crate::machine::fault::FaultKind;
use crate::machine::lanes::{FULL, Lane, each, lanes};
use crate::memory::{LENGTH, PAGE};

/// First generic address of the window of shared memory.
pub const SHARED_WINDOW: u64 = 0x1000_0000_0000;
/// First generic address of the window of local memory.
pub const LOCAL_WINDOW: u64 = 0x1100_0000_0000;
/// First generic address of the window of kernel parameters.
pub const PARAMETER_WINDOW: u64 = 0x1200_0000_0000;
/// First address of a function; they lie 16 apart.
pub const FUNCTION_WINDOW: u64 = 0x1300_0000_0000;
/// Bytes of each window.
pub const WINDOW: u64 = 1 << 40;

/// In an address of shared memory, the block's rank in its cluster plus 1 lies above this bit; 0 is the own block.
pub const RANK_SHIFT: u32 = 24;

/// First address that no program has: user space is 47 bits wide.
const HOST_END: u64 = 1 << 47;

/// A range of addresses that one allocation holds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Span {
    pub start: u64,
    pub end: u64,
}

impl Span {
    #[inline(always)]
    fn holds(&self, first: u64, end: u64) -> bool {
        first >= self.start && end <= self.end && first <= end
    }
}

/// What a lane may read and write in memory as it stands: integers.
pub(crate) trait Pod: Lane + Default {}
impl Pod for u8 {}
impl Pod for i8 {}
impl Pod for u16 {}
impl Pod for i16 {}
impl Pod for u32 {}
impl Pod for u64 {}
impl Pod for u128 {}

/// The addresses of an access, by lane.
pub(crate) struct Addresses {
    /// Inactive lanes hold the address of the first active one.
    pub by_lane: [u64; 32],
    /// The lowest.
    pub first: u64,
    /// The end of the highest.
    pub end: u64,
    /// All of them or'ed.
    pub bits: u64,
}

/// The slot of an access's address; slots 0 to 3 are its data.
pub(crate) const ADDRESS: usize = 4;
/// In [`Op::aux`]: elements of the vector.
pub(crate) const ELEMENTS: u32 = 7;
/// In [`Op::aux`]: the address is in a single row.
pub(crate) const SHORT_ADDRESS: u32 = 8;
/// In [`Op::aux`]: the immediate is relative to the frame's local memory.
pub(crate) const FRAME_RELATIVE: u32 = 16;

/// In [`Op::aux`]: another thread may have written what is read (see [`POLL`](crate::machine::warp::POLL)).
pub(crate) const POLLS: u32 = 32;

/// In [`Op::aux`] of loads and stores: what is read need not be written.
pub(crate) const UNCHECKED: u32 = 64;
/// In [`Op::aux`] of loads and stores: it is volatile.
pub(crate) const AS_VOLATILE: u32 = 128;
/// In [`Op::aux`] of loads and stores: it is one of C++'s atomic accesses.
pub(crate) const AS_ATOMIC: u32 = 256;

/// Computes the addresses of an access of `size` bytes a lane.
///
/// # Safety
/// The op must be an access: its address slot a double row, a single row ([`SHORT_ADDRESS`]), or nothing.
#[inline(always)]
pub(crate) unsafe fn addresses(x: &Exec<'_>, op: &Op, mask: u32, size: u64) -> Addresses {
    let mut offset = op.immediate as u64;
    if op.aux & FRAME_RELATIVE != 0 {
        offset += u64::from(x.warp.frames[x.group.frame as usize].local) * 4;
    }
    let slot = op.slots[ADDRESS];
    // SAFETY: the caller's promise.
    let mut by_lane: [u64; 32] = unsafe {
        if slot == NONE {
            [offset; 32]
        } else if op.aux & SHORT_ADDRESS != 0 {
            let row = x.registers.row::<u32>(slot).cast::<[u32; 32]>().read();
            each(|i| u64::from(row[i].wrapping_add(offset as u32)))
        } else {
            let row = x.registers.row::<u64>(slot).cast::<[u64; 32]>().read();
            each(|i| row[i].wrapping_add(offset))
        }
    };
    if mask != FULL {
        let stand_in = by_lane[mask.trailing_zeros() as usize];
        for (lane, address) in by_lane.iter_mut().enumerate() {
            *address = if mask >> lane & 1 == 1 { *address } else { stand_in };
        }
    }
    let (mut first, mut last, mut bits) = (u64::MAX, 0, 0);
    for &address in &by_lane {
        first = first.min(address);
        last = last.max(address);
        bits |= address;
    }
    Addresses { by_lane, first, end: last.saturating_add(size), bits }
}

/// Why a lane's access failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bad;

/// A state space as instructions name it.
pub(crate) trait Space {
    /// Its name, for messages.
    const NAME: &'static str;
    /// What is added to each address to make a pointer, where one piece of memory holds them all.
    fn whole(x: &mut Exec<'_>, a: &Addresses) -> Option<u64>;
    /// A pointer to `size` bytes; for local memory, see [`local_cell`].
    fn pointer(x: &mut Exec<'_>, address: u64, size: u64) -> Result<*mut u8, Bad>;
    /// The address in local memory, if it points there.
    #[inline(always)]
    fn local(_address: u64) -> Option<u64> {
        None
    }
    /// Are sectors counted for this address, or wavefronts?
    fn kind(address: u64) -> Kind;
}

/// How an access is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Global,
    Shared,
    Local,
    Other,
}

pub(crate) struct Global;
pub(crate) struct SharedSpace;
pub(crate) struct LocalSpace;
pub(crate) struct Parameters;
pub(crate) struct Generic;

impl Space for Global {
    const NAME: &'static str = "global";

    #[inline(always)]
    fn whole(x: &mut Exec<'_>, a: &Addresses) -> Option<u64> {
        (x.span.holds(a.first, a.end) || x.find_span(a.first, a.end)).then_some(0)
    }

    #[inline(always)]
    fn pointer(x: &mut Exec<'_>, address: u64, size: u64) -> Result<*mut u8, Bad> {
        let end = address.checked_add(size).ok_or(Bad)?;
        let found = x.span.holds(address, end) || x.find_span(address, end);
        if found { Ok(address as *mut u8) } else { Err(Bad) }
    }

    fn kind(_: u64) -> Kind {
        Kind::Global
    }
}

impl Space for SharedSpace {
    const NAME: &'static str = "shared";

    #[inline(always)]
    fn whole(x: &mut Exec<'_>, a: &Addresses) -> Option<u64> {
        if a.end <= u64::from(x.block.bytes) { Some(x.block.memory.as_mut_ptr() as u64) } else { None }
    }

    #[inline(always)]
    fn pointer(x: &mut Exec<'_>, address: u64, size: u64) -> Result<*mut u8, Bad> {
        let offset = address & ((1 << RANK_SHIFT) - 1);
        let (base, bytes) = match (address >> RANK_SHIFT) as usize {
            0 => (x.block.memory.as_mut_ptr().cast::<u8>(), x.block.bytes),
            rank => x.cluster.memories.get(rank - 1).copied().ok_or(Bad)?,
        };
        if offset + size > u64::from(bytes) {
            return Err(Bad);
        }
        Ok(base.wrapping_add(offset as usize))
    }

    fn kind(_: u64) -> Kind {
        Kind::Shared
    }
}

impl Space for LocalSpace {
    const NAME: &'static str = "local";

    #[inline(always)]
    fn whole(_: &mut Exec<'_>, _: &Addresses) -> Option<u64> {
        None
    }

    fn pointer(_: &mut Exec<'_>, _: u64, _: u64) -> Result<*mut u8, Bad> {
        Err(Bad)
    }

    #[inline(always)]
    fn local(address: u64) -> Option<u64> {
        Some(address)
    }

    fn kind(_: u64) -> Kind {
        Kind::Local
    }
}

impl Space for Parameters {
    const NAME: &'static str = "parameter";

    #[inline(always)]
    fn whole(x: &mut Exec<'_>, a: &Addresses) -> Option<u64> {
        if a.end <= x.grid.parameters.len() as u64 { Some(x.grid.parameters.as_ptr() as u64) } else { None }
    }

    fn pointer(x: &mut Exec<'_>, address: u64, size: u64) -> Result<*mut u8, Bad> {
        let end = address.checked_add(size).ok_or(Bad)?;
        if end > x.grid.parameters.len() as u64 {
            return Err(Bad);
        }
        Ok(x.grid.parameters.as_ptr().cast_mut().wrapping_add(address as usize))
    }

    fn kind(_: u64) -> Kind {
        Kind::Other
    }
}

impl Space for Generic {
    const NAME: &'static str = "generic";

    #[inline(always)]
    fn whole(x: &mut Exec<'_>, a: &Addresses) -> Option<u64> {
        if a.first.wrapping_sub(SHARED_WINDOW) < WINDOW {
            let inside = a.end - SHARED_WINDOW <= u64::from(x.block.bytes);
            return inside.then(|| (x.block.memory.as_mut_ptr() as u64).wrapping_sub(SHARED_WINDOW));
        }
        Global::whole(x, a)
    }

    fn pointer(x: &mut Exec<'_>, address: u64, size: u64) -> Result<*mut u8, Bad> {
        match window(address) {
            SHARED_WINDOW => SharedSpace::pointer(x, address - SHARED_WINDOW, size),
            PARAMETER_WINDOW => Parameters::pointer(x, address - PARAMETER_WINDOW, size),
            _ => Global::pointer(x, address, size),
        }
    }

    #[inline(always)]
    fn local(address: u64) -> Option<u64> {
        (window(address) == LOCAL_WINDOW).then(|| address - LOCAL_WINDOW)
    }

    fn kind(address: u64) -> Kind {
        match window(address) {
            SHARED_WINDOW => Kind::Shared,
            LOCAL_WINDOW => Kind::Local,
            PARAMETER_WINDOW | FUNCTION_WINDOW => Kind::Other,
            _ => Kind::Global,
        }
    }
}

/// The window that holds an address; 0 for global memory.
#[inline(always)]
pub(crate) fn window(address: u64) -> u64 {
    let window = address & !(WINDOW - 1);
    if (SHARED_WINDOW..=FUNCTION_WINDOW).contains(&window) { window } else { 0 }
}

impl Exec<'_> {
    /// Looks for one allocation that holds all of these addresses, and remembers it.
    #[inline(never)]
    fn find_span(&mut self, first: u64, end: u64) -> bool {
        for fresh in [false, true] {
            if fresh {
                let now = self.grid.memory.snapshot();
                if Arc::ptr_eq(&now, self.allocations) {
                    return false;
                }
                *self.allocations = now;
            }
            if let Some(found) = self.allocations.find(first) {
                let span = Span { start: found.start, end: found.end() };
                if span.holds(first, end) {
                    self.span = span;
                    return true;
                }
            }
        }
        false
    }

    /// A word of a lane's local memory.
    #[inline(always)]
    fn local_word(&mut self, lane: usize, word: u64) -> Result<*mut u32, Bad> {
        let row = self.warp.local.get_mut(usize::try_from(word).map_err(|_| Bad)?).ok_or(Bad)?;
        Ok(&raw mut row.0[lane])
    }

    /// Reads a lane's local memory; the address is a multiple of the size.
    #[inline(always)]
    pub(crate) fn load_local<M: Pod>(&mut self, lane: usize, address: u64) -> Result<M, Bad> {
        let mut value = M::default();
        let bytes = (&raw mut value).cast::<u8>();
        // SAFETY: each piece copied lies inside the value and, since the address is aligned, inside a word.
        unsafe {
            if size_of::<M>() <= 4 {
                let word = self.local_word(lane, address / 4)?.cast::<u8>();
                bytes.copy_from_nonoverlapping(word.add((address % 4) as usize), size_of::<M>());
            } else {
                for at in 0..size_of::<M>() / 4 {
                    let word = self.local_word(lane, address / 4 + at as u64)?;
                    bytes.cast::<u32>().add(at).write_unaligned(*word);
                }
            }
        }
        Ok(value)
    }

    /// Writes a lane's local memory; the address is a multiple of the size.
    #[inline(always)]
    pub(crate) fn store_local<M: Pod>(&mut self, lane: usize, address: u64, value: M) -> Result<(), Bad> {
        let bytes = (&raw const value).cast::<u8>();
        // SAFETY: as in `load_local`.
        unsafe {
            if size_of::<M>() <= 4 {
                let word = self.local_word(lane, address / 4)?.cast::<u8>();
                word.add((address % 4) as usize).copy_from_nonoverlapping(bytes, size_of::<M>());
            } else {
                for at in 0..size_of::<M>() / 4 {
                    *self.local_word(lane, address / 4 + at as u64)? =
                        bytes.cast::<u32>().add(at).read_unaligned();
                }
            }
        }
        Ok(())
    }

    /// Reads a byte string of a thread, up to a zero; none if it leaves its memory.
    pub(crate) fn text(&mut self, lane: usize, address: u64) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        loop {
            let at = address.checked_add(text.len() as u64)?;
            let byte: u8 = self.peek(lane, at)?;
            if byte == 0 || text.len() > 1 << 20 {
                return Some(text);
            }
            text.push(byte);
        }
    }

    /// Reads a generic address of a thread.
    pub(crate) fn peek<M: Pod>(&mut self, lane: usize, address: u64) -> Option<M> {
        if let Some(local) = Generic::local(address) {
            return self.load_local(lane, local).ok();
        }
        let pointer = Generic::pointer(self, address, size_of::<M>() as u64).ok()?;
        // SAFETY: `pointer` checked the range.
        Some(unsafe { pointer.cast::<M>().read_unaligned() })
    }

    /// The fault of the first lane whose access is wrong.
    #[cold]
    pub(crate) fn access_fault<S: Space>(
        &mut self,
        what: &str,
        a: &Addresses,
        mask: u32,
        size: u64,
    ) -> crate::machine::Next {
        for lane in lanes(mask) {
            let address = a.by_lane[lane];
            if !address.is_multiple_of(size) {
                let message = format!(
                    "{what} of {size} bytes at {} address {address:#x}, which is not a multiple of {size}",
                    S::NAME
                );
                let object = self.object_near::<S>(address);
                let kind = FaultKind::Misaligned;
                return self.fault_of(DefectKind::Misaligned, kind, lane, Some(address), message, object);
            }
            let inside = match S::local(address) {
                Some(local) => (local + size).div_ceil(4) <= self.warp.local.len() as u64,
                None => S::pointer(self, address, size).is_ok(),
            };
            if !inside {
                let near = self.neighbourhood::<S>(address);
                let message = format!("{what} of {size} bytes at {} address {address:#x}{near}", S::NAME);
                let (defect, object) = (self.defect_at::<S>(address), self.object_near::<S>(address));
                let kind = FaultKind::IllegalAddress;
                return self.fault_of(defect, kind, lane, Some(address), message, object);
            }
        }
        let lane = mask.trailing_zeros() as usize;
        let message = format!("{what} of {size} bytes failed");
        self.fault(FaultKind::IllegalAddress, lane, Some(a.by_lane[lane]), message)
    }

    /// What is wrong with a wrong address.
    fn defect_at<S: Space>(&self, address: u64) -> DefectKind {
        let base = self.grid.memory.base();
        match S::kind(address) {
            Kind::Global if self.allocations.freed(address).is_some() => DefectKind::UseAfterFree,
            Kind::Global
                if (PAGE..HOST_END).contains(&address) && !(base..base + LENGTH).contains(&address) =>
            {
                DefectKind::HostPointer
            }
            _ => DefectKind::OutOfBounds,
        }
    }

    /// The allocation or variable that a wrong address is next to.
    fn object_near<S: Space>(&self, address: u64) -> Option<String> {
        match S::kind(address) {
            Kind::Shared => Some(format!("the block's {} bytes of shared memory", self.block.bytes)),
            Kind::Local => Some("the thread's local memory".to_owned()),
            Kind::Other => None,
            Kind::Global => match (self.allocations.freed(address), self.allocations.around(address).0) {
                (Some(freed), _) => Some(format!("{} freed bytes at {:#x}", freed.size, freed.start)),
                (None, Some(before)) if before.size > 0 && address < before.end() + (1 << 20) => {
                    Some(match self.allocations.track(before.start) {
                        Some(track) => track.describe(),
                        None => format!("an allocation of {} bytes at {:#x}", before.size, before.start),
                    })
                }
                _ => None,
            },
        }
    }

    /// What lies near a wrong address, in words.
    fn neighbourhood<S: Space>(&self, address: u64) -> String {
        match S::kind(address) {
            Kind::Shared => format!(": the block has {} bytes of shared memory", self.block.bytes),
            Kind::Local => format!(": the thread has {} bytes of local memory", self.warp.local.len() * 4),
            Kind::Other => String::new(),
            Kind::Global if address < PAGE => ": a null pointer".to_owned(),
            Kind::Global if let Some(freed) = self.allocations.freed(address) => format!(
                ", {} bytes into an allocation of {} bytes at {:#x} that was freed",
                address - freed.start,
                freed.size,
                freed.start
            ),
            Kind::Global if self.defect_at::<S>(address) == DefectKind::HostPointer => {
                ", where the device has no memory: this is an address of the host's".to_owned()
            }
            Kind::Global => match self.allocations.around(address) {
                (Some(before), _) if address < before.end() + (1 << 20) => format!(
                    ", {} bytes past the end of an allocation of {} bytes at {:#x}",
                    address.saturating_sub(before.end()),
                    before.size,
                    before.start
                ),
                (_, Some(after)) if address + (1 << 20) > after.start => format!(
                    ", {} bytes before an allocation of {} bytes at {:#x}",
                    after.start - address,
                    after.size,
                    after.start
                ),
                _ => ", where nothing is allocated".to_owned(),
            },
        }
    }
}
