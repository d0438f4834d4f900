//! Copies and fills. Ranges are checked here; bytes between two places of the region are moved here, bytes of the
//! program's own memory by the stub.

use super::context::Context;
use super::errors::Code;
use super::estimate;
use super::processor::{Processor, Task};
use super::protocol::{Action, Answer, Call, Rows};
use super::report::Direction;
use super::work::Work;
use crate::memory::{Kind, Memory};

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

/// The bytes from the first to the last of some rows. `None` where that is no number, or where rows overlap: a program may ask for any
/// number of rows at one place.
fn span(width: u64, height: u64, depth: u64, pitch: u64, slice: u64) -> Option<u64> {
    let overlap = height > 1 && pitch < width || depth > 1 && slice < pitch.checked_mul(height)?.max(width);
    if overlap {
        return None;
    }
    let rows = pitch.checked_mul(height.saturating_sub(1))?;
    let slices = slice.checked_mul(depth.saturating_sub(1))?;
    slices.checked_add(rows)?.checked_add(width)
}

/// Where a range lies. A range that starts in an allocation must end in it.
fn place(memory: &Memory, address: u64, size: Option<u64>) -> Result<Place, Code> {
    let size = size.ok_or(Code::INVALID_VALUE)?;
    let base = memory.base();
    match memory.find(address) {
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

/// The longest copy from the program's own memory that is put aside, so that the program need not wait until its stream gets
/// there. Source: CUDA Runtime API, "API synchronization behavior": "For transfers from pageable host memory to device memory,
/// host memory is copied to a staging buffer immediately"; of longer ones, part by part. 64 KB is the size up to which
/// `cudaMemcpy` itself does not wait, there too.
const LONGEST_ASIDE: u64 = 64 << 10;

pub(super) fn copy(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let work = copy_work(context, call, 0)?;
    let (stream, asynchronous) = (call.argument(10), call.argument(11) != 0);
    if !asynchronous && !call.per_thread {
        context.check_legacy()?;
    }
    if context.capture_work(stream, &Work::Copy(Box::new(work)))?.is_some() || work.rows.bytes() == 0 {
        return Ok(Answer::done());
    }
    let (to, from) = check_copy(context.memory(), &work)?;
    let on_device = to != Place::Host && from != Place::Host;
    if asynchronous && on_device {
        context.issue(stream, false, Task::Copy(Box::new(work)));
        return Ok(Answer::done());
    }
    let rows = work.rows;
    let short = (rows.height, rows.depth) == (1, 1) && rows.width <= LONGEST_ASIDE;
    if asynchronous && from == Place::Host && to != Place::Host && short && context.is_busy(stream) {
        return put_aside(context, stream, rows);
    }
    context.take_turn(stream)?;
    let Some((rows, direction)) = perform_copy(&context.processor, &work)? else { return Ok(Answer::done()) };
    if direction == Direction::HostToDevice {
        context.announced = Some(rows);
    }
    Ok(Answer::done().with(vec![Action::Copy(rows)]))
}

/// The program copies the bytes out of its way, and comes back.
fn put_aside(context: &mut Context, stream: u64, rows: Rows) -> Result<Answer, Code> {
    let aside = context.memory().allocate(rows.width, 16, Kind::Module).map_err(|error| {
        context.shared.report().refused(&error);
        Code::MEMORY_ALLOCATION
    })?;
    let first = Rows { to: aside, to_pitch: rows.width, ..rows };
    let more = context.ticket(super::context::Ticket::Staged { stream, rows, aside });
    Ok(Answer { more, ..Answer::done().with(vec![Action::Copy(first)]) })
}

/// The copy that a call describes from its argument `first` on, checked.
pub(super) fn copy_work(context: &Context, call: &Call, first: usize) -> Result<CopyWork, Code> {
    let shifted = Call { arguments: call.arguments.iter().skip(first).copied().collect(), ..call.clone() };
    let work = CopyWork { rows: rows_of(&shifted), kind: shifted.small(9) };
    check_copy(context.memory(), &work)?;
    Ok(work)
}

fn check_copy(memory: &Memory, work: &CopyWork) -> Result<(Place, Place), Code> {
    let rows = &work.rows;
    if rows.bytes() == 0 {
        return Ok((Place::Host, Place::Host));
    }
    if rows.to == 0 || rows.from == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let to = place(memory, rows.to, span(rows.width, rows.height, rows.depth, rows.to_pitch, rows.to_slice))?;
    let from = place(
        memory,
        rows.from,
        span(rows.width, rows.height, rows.depth, rows.from_pitch, rows.from_slice),
    )?;
    agrees(work.kind, to, from)?;
    Ok((to, from))
}

/// Copies within the region. Where one end is the program's own memory, the rows are returned instead, and which way they go:
/// the program copies them.
pub(super) fn perform_copy(on: &Processor, work: &CopyWork) -> Result<Option<(Rows, Direction)>, Code> {
    let memory = &on.shared.memory;
    let (to, from) = check_copy(memory, work)?;
    let rows = &work.rows;
    if rows.bytes() == 0 {
        return Ok(None);
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
    on.pass(estimate::copy(on.shared.device, rows.bytes(), direction != Direction::DeviceToDevice));
    on.shared.report().copied(direction, rows.bytes());
    match direction {
        Direction::DeviceToHost => on.shared.watch.to_host(memory, rows),
        Direction::DeviceToDevice => on.shared.watch.before_use(memory),
        Direction::HostToDevice | Direction::HostToHost => {}
    }
    if to == Place::Host || from == Place::Host {
        if to != Place::Host {
            // The program writes them itself.
            rows.targets().for_each(|row| memory.mark(row, rows.width));
        }
        return Ok(Some((*rows, direction)));
    }
    move_rows(memory, rows)?;
    if direction == Direction::HostToDevice {
        on.shared.watch.to_device(rows);
    }
    Ok(None)
}

fn move_rows(memory: &Memory, rows: &Rows) -> Result<(), Code> {
    // A row may be as long as all memory: it goes piece by piece.
    const PIECE: u64 = 1 << 20;
    let mut piece = vec![0; usize::try_from(rows.width.min(PIECE)).unwrap_or(0)];
    for slice in 0..rows.depth {
        for line in 0..rows.height {
            let from = rows.from + slice * rows.from_slice + line * rows.from_pitch;
            let to = rows.to + slice * rows.to_slice + line * rows.to_pitch;
            let mut done = 0;
            while done < rows.width {
                let length = (rows.width - done).min(PIECE);
                let bytes = &mut piece[..usize::try_from(length).unwrap_or(0)];
                memory.read(from + done, bytes).map_err(|_| Code::INVALID_VALUE)?;
                memory.copy(from + done, to + done, bytes).map_err(|_| Code::INVALID_VALUE)?;
                done += length;
            }
        }
    }
    Ok(())
}

pub(super) fn fill(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let work = fill_work(context, call, 0)?;
    let (stream, asynchronous) = (call.argument(8), call.argument(9) != 0);
    if !asynchronous && !call.per_thread {
        context.check_legacy()?;
    }
    if context.capture_work(stream, &Work::Fill(Box::new(work)))?.is_some() {
        return Ok(Answer::done());
    }
    // The program may look at once.
    if !asynchronous && check_fill(context.memory(), &work)? == Place::Both {
        context.take_turn(stream)?;
        perform_fill(&context.processor, &work)?;
    } else {
        context.issue(stream, false, Task::Fill(Box::new(work)));
    }
    Ok(Answer::done())
}

/// The fill that a call describes from its argument `first` on, checked.
pub(super) fn fill_work(context: &Context, call: &Call, first: usize) -> Result<FillWork, Code> {
    let [to, _, element, width, height, depth, pitch, slice] =
        std::array::from_fn(|index| call.argument(first + index));
    let work = FillWork { to, value: call.small(first + 1), element, width, height, depth, pitch, slice };
    check_fill(context.memory(), &work)?;
    Ok(work)
}

fn check_fill(memory: &Memory, work: &FillWork) -> Result<Place, Code> {
    if ![1, 2, 4].contains(&work.element) {
        return Err(Code::INVALID_VALUE);
    }
    if work.width == 0 || work.height == 0 || work.depth == 0 {
        return Ok(Place::Device);
    }
    let width = work.width.checked_mul(work.element).ok_or(Code::INVALID_VALUE)?;
    let size = span(width, work.height, work.depth, work.pitch, work.slice);
    match place(memory, work.to, size)? {
        Place::Host => Err(Code::INVALID_VALUE),
        place => Ok(place),
    }
}

pub(super) fn perform_fill(on: &Processor, work: &FillWork) -> Result<(), Code> {
    // A row may be as long as all memory: it goes piece by piece.
    const PIECE: u64 = 1 << 20;
    let memory = &on.shared.memory;
    check_fill(memory, work)?;
    if work.width == 0 || work.height == 0 || work.depth == 0 {
        return Ok(());
    }
    let element = &work.value.to_le_bytes()[..usize::try_from(work.element).unwrap_or(1)];
    let width = work.width * work.element;
    let piece = element.repeat(usize::try_from(work.width.min(PIECE / work.element)).unwrap_or(0));
    for slice in 0..work.depth {
        for line in 0..work.height {
            let to = work.to + slice * work.slice + line * work.pitch;
            let mut done = 0;
            while done < width {
                let length = (width - done).min(piece.len() as u64);
                let bytes = &piece[..usize::try_from(length).unwrap_or(0)];
                memory.write(to + done, bytes).map_err(|_| Code::INVALID_VALUE)?;
                done += length;
            }
        }
    }
    on.pass(estimate::copy(on.shared.device, width * work.height * work.depth, false));
    Ok(())
}

/// Whether a copy or a fill can still be done as it was asked for.
pub(super) fn check(memory: &Memory, work: &Work) -> Result<(), Code> {
    match work {
        Work::Copy(copy) => check_copy(memory, copy).map(|_| ()),
        Work::Fill(fill) => check_fill(memory, fill).map(|_| ()),
        _ => Ok(()),
    }
}
