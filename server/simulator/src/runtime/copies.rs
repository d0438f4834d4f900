//! Copies and fills. Ranges are checked here; bytes between two places of the region are moved here, bytes of the
//! program's own memory by the stub.

use super::context::Context;
use super::errors::Code;
use super::estimate;
use super::protocol::{Action, Answer, Call, Rows};
use super::report::Direction;
use super::work::Work;
use crate::memory::Kind;

/// A copy with its `cudaMemcpyKind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CopyWork {
    pub rows: Rows,
    pub kind: u32,
}

/// A fill with elements of 1, 2 or 4 bytes. Width in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FillWork {
    pub to: u64,
    pub value: u32,
    pub element: u64,
    pub width: u64,
    pub height: u64,
    pub depth: u64,
    pub pitch: u64,
    pub slice: u64,
}

/// Where bytes lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Memory that only the device may touch.
    Device,
    /// Memory that both may touch.
    Both,
    /// The program's own.
    Host,
}

/// The bytes from the first to the last of some rows.
fn span(width: u64, height: u64, depth: u64, pitch: u64, slice: u64) -> Option<u64> {
    let rows = pitch.checked_mul(height.saturating_sub(1))?;
    let slices = slice.checked_mul(depth.saturating_sub(1))?;
    slices.checked_add(rows)?.checked_add(width)
}

/// Where a range lies. A range that starts in an allocation must end in it.
fn place(context: &Context, address: u64, size: Option<u64>) -> Result<Place, Code> {
    let size = size.ok_or(Code::INVALID_VALUE)?;
    let base = context.memory().base();
    match context.memory().find(address) {
        Some(found) if !found.contains(address, size) => Err(Code::INVALID_VALUE),
        Some(found) if matches!(found.kind, Kind::Managed | Kind::Pinned) => Ok(Place::Both),
        Some(_) => Ok(Place::Device),
        // In the region, but nowhere: freed, or never allocated.
        None if (base..base + crate::memory::LENGTH).contains(&address) => Err(Code::INVALID_VALUE),
        None => Ok(Place::Host),
    }
}

/// `cudaMemcpyKind`.
const HOST_TO_HOST: u32 = 0;
const HOST_TO_DEVICE: u32 = 1;
const DEVICE_TO_HOST: u32 = 2;
const DEVICE_TO_DEVICE: u32 = 3;
const BY_ADDRESS: u32 = 4;

/// A kind is held to where it says that the device has memory; that the host has some is not asked, as on an H200.
fn agrees(kind: u32, to: Place, from: Place) -> Result<(), Code> {
    let (to_device, from_device) = (to != Place::Host, from != Place::Host);
    let right = match kind {
        HOST_TO_HOST | BY_ADDRESS => true,
        HOST_TO_DEVICE => to_device,
        DEVICE_TO_HOST => from_device,
        DEVICE_TO_DEVICE => to_device && from_device,
        _ => return Err(Code::INVALID_MEMCPY_DIRECTION),
    };
    if right { Ok(()) } else { Err(Code::INVALID_VALUE) }
}

fn rows_of(call: &Call) -> Rows {
    let [to, from, width, height, depth, to_pitch, from_pitch, to_slice, from_slice] =
        std::array::from_fn(|index| call.argument(index));
    Rows { to, from, width, height, depth, to_pitch, from_pitch, to_slice, from_slice }
}

pub(super) fn copy(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let work = copy_work(context, call, 0)?;
    let (stream, asynchronous) = (call.argument(10), call.argument(11) != 0);
    if !asynchronous && !call.per_thread {
        context.check_legacy()?;
    }
    context.submit(stream, Work::Copy(Box::new(work)))
}

/// The copy that a call describes from its argument `first` on, checked.
pub(super) fn copy_work(context: &Context, call: &Call, first: usize) -> Result<CopyWork, Code> {
    let shifted = Call { arguments: call.arguments.iter().skip(first).copied().collect(), ..call.clone() };
    let work = CopyWork { rows: rows_of(&shifted), kind: shifted.small(9) };
    check_copy(context, &work)?;
    Ok(work)
}

fn check_copy(context: &Context, work: &CopyWork) -> Result<(Place, Place), Code> {
    let rows = &work.rows;
    if rows.bytes() == 0 {
        return Ok((Place::Host, Place::Host));
    }
    if rows.to == 0 || rows.from == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let to =
        place(context, rows.to, span(rows.width, rows.height, rows.depth, rows.to_pitch, rows.to_slice))?;
    let from = place(
        context,
        rows.from,
        span(rows.width, rows.height, rows.depth, rows.from_pitch, rows.from_slice),
    )?;
    agrees(work.kind, to, from)?;
    Ok((to, from))
}

pub(super) fn perform_copy(context: &mut Context, work: &CopyWork) -> Result<Vec<Action>, Code> {
    let (to, from) = check_copy(context, work)?;
    let rows = &work.rows;
    if rows.bytes() == 0 {
        return Ok(Vec::new());
    }
    let direction = match (to, from, work.kind) {
        (Place::Host, Place::Host, _) => Direction::HostToHost,
        (Place::Device, Place::Device, _) => Direction::DeviceToDevice,
        (Place::Both, Place::Host | Place::Both, HOST_TO_HOST) | (Place::Host, Place::Both, HOST_TO_HOST) => {
            Direction::HostToHost
        }
        (_, Place::Host, _) | (Place::Device, Place::Both, _) | (_, _, HOST_TO_DEVICE) => {
            Direction::HostToDevice
        }
        (Place::Host, _, _) | (Place::Both, Place::Device, _) | (_, _, DEVICE_TO_HOST) => {
            Direction::DeviceToHost
        }
        _ => Direction::DeviceToDevice,
    };
    context.clock += estimate::copy(context.device(), rows.bytes(), direction != Direction::DeviceToDevice);
    context.shared.report().copied(direction, rows.bytes());
    match direction {
        Direction::HostToDevice => context.shared.watch.to_device(rows),
        Direction::DeviceToHost => context.shared.watch.to_host(context.memory(), rows),
        Direction::DeviceToDevice => context.shared.watch.before_use(context.memory()),
        Direction::HostToHost => {}
    }
    if to == Place::Host || from == Place::Host {
        return Ok(vec![Action::Copy(*rows)]);
    }
    let mut row = vec![0; usize::try_from(rows.width).map_err(|_| Code::INVALID_VALUE)?];
    for slice in 0..rows.depth {
        for line in 0..rows.height {
            let from = rows.from + slice * rows.from_slice + line * rows.from_pitch;
            let to = rows.to + slice * rows.to_slice + line * rows.to_pitch;
            context.memory().read(from, &mut row).map_err(|_| Code::INVALID_VALUE)?;
            context.memory().write(to, &row).map_err(|_| Code::INVALID_VALUE)?;
        }
    }
    Ok(Vec::new())
}

pub(super) fn fill(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let work = fill_work(context, call, 0)?;
    let (stream, asynchronous) = (call.argument(8), call.argument(9) != 0);
    if !asynchronous && !call.per_thread {
        context.check_legacy()?;
    }
    context.submit(stream, Work::Fill(Box::new(work)))
}

/// The fill that a call describes from its argument `first` on, checked.
pub(super) fn fill_work(context: &Context, call: &Call, first: usize) -> Result<FillWork, Code> {
    let [to, _, element, width, height, depth, pitch, slice] =
        std::array::from_fn(|index| call.argument(first + index));
    let work = FillWork { to, value: call.small(first + 1), element, width, height, depth, pitch, slice };
    check_fill(context, &work)?;
    Ok(work)
}

fn check_fill(context: &Context, work: &FillWork) -> Result<(), Code> {
    if ![1, 2, 4].contains(&work.element) {
        return Err(Code::INVALID_VALUE);
    }
    if work.width == 0 || work.height == 0 || work.depth == 0 {
        return Ok(());
    }
    let width = work.width.checked_mul(work.element).ok_or(Code::INVALID_VALUE)?;
    let size = span(width, work.height, work.depth, work.pitch, work.slice);
    match place(context, work.to, size)? {
        Place::Host => Err(Code::INVALID_VALUE),
        Place::Device | Place::Both => Ok(()),
    }
}

pub(super) fn perform_fill(context: &mut Context, work: &FillWork) -> Result<(), Code> {
    check_fill(context, work)?;
    if work.width == 0 || work.height == 0 || work.depth == 0 {
        return Ok(());
    }
    let element = &work.value.to_le_bytes()[..usize::try_from(work.element).unwrap_or(1)];
    let row = element.repeat(usize::try_from(work.width).map_err(|_| Code::INVALID_VALUE)?);
    for slice in 0..work.depth {
        for line in 0..work.height {
            let to = work.to + slice * work.slice + line * work.pitch;
            context.memory().write(to, &row).map_err(|_| Code::INVALID_VALUE)?;
        }
    }
    let bytes = row.len() as u64 * work.height * work.depth;
    context.clock += estimate::copy(context.device(), bytes, false);
    Ok(())
}
