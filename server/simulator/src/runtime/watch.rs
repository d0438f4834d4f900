//! What a verifier wants of a program's copies: other inputs, and a record of what comes back.
//!
//! Inputs are what the program copies to the device before it first copies anything back; see [`crate::perturb`] for what
//! becomes of them. The bytes are written by the program's own process after the call that announces them, so they are changed
//! when they are first used: at the next launch, or at a copy from the device. What comes back is recorded here, out of the
//! region that both share, not by the program.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::protocol::Rows;
use crate::memory::Memory;
use crate::perturb::perturb;

/// What is wanted.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    /// Change the program's inputs by this seed.
    pub perturb: Option<u64>,
    /// Record copies to the host in this file, one after the other: length in eight bytes, little-endian, then the bytes.
    pub record: Option<PathBuf>,
}

/// More bytes than this are not recorded.
const MOST_RECORDED: u64 = 1 << 30;

/// Carries out a [`Watch`].
pub(super) struct Watcher {
    state: Mutex<State>,
}

struct State {
    /// `None` once the inputs are over.
    seed: Option<u64>,
    /// Copies to the device whose bytes were not used yet.
    waiting: Vec<Rows>,
    /// Copies that were changed.
    perturbed: usize,
    record: Option<BufWriter<File>>,
    recorded: u64,
    /// What went wrong, once.
    trouble: Option<String>,
}

impl Watcher {
    pub(super) fn new(watch: &Watch) -> io::Result<Self> {
        let record = watch.record.as_ref().map(File::create).transpose()?.map(BufWriter::new);
        let state = State {
            seed: watch.perturb,
            waiting: Vec::new(),
            perturbed: 0,
            record,
            recorded: 0,
            trouble: None,
        };
        Ok(Self { state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program copies these rows to the device.
    pub(super) fn to_device(&self, rows: &Rows) {
        let mut state = self.state();
        if state.seed.is_some() {
            state.waiting.push(*rows);
        }
    }

    /// Memory of the device is about to be read.
    pub(super) fn before_use(&self, memory: &Memory) {
        let mut state = self.state();
        let Some(seed) = state.seed else { return };
        for rows in std::mem::take(&mut state.waiting) {
            let Some(mut bytes) = read(memory, rows.to, &rows, rows.to_pitch, rows.to_slice) else {
                continue;
            };
            if perturb(seed, &mut bytes) {
                write(memory, &rows, &bytes);
                state.perturbed += 1;
            }
        }
    }

    /// The program copies these rows to the host: its inputs are over.
    pub(super) fn to_host(&self, memory: &Memory, rows: &Rows) {
        self.before_use(memory);
        let mut state = self.state();
        state.seed = None;
        if state.record.is_none() {
            return;
        }
        let Some(bytes) = read(memory, rows.from, rows, rows.from_pitch, rows.from_slice) else { return };
        let length = bytes.len() as u64;
        if state.recorded.saturating_add(length) > MOST_RECORDED {
            state.record = None;
            state.trouble = Some(format!(
                "only the first {} MB of what was copied to the host were recorded",
                state.recorded >> 20
            ));
            return;
        }
        state.recorded += length;
        let written = state.record.as_mut().map(|file| {
            file.write_all(&length.to_le_bytes())?;
            file.write_all(&bytes)
        });
        if let Some(Err(error)) = written {
            state.record = None;
            state.trouble = Some(format!("what was copied to the host could not be recorded: {error}"));
        }
    }

    /// Writes what is left. How many copies were changed, and what a person should know.
    pub(super) fn finish(&self) -> (usize, Option<String>) {
        let mut state = self.state();
        if let Some(mut file) = state.record.take()
            && let Err(error) = file.flush()
        {
            state.trouble = Some(format!("what was copied to the host could not be recorded: {error}"));
        }
        (state.perturbed, state.trouble.clone())
    }
}

/// The first addresses of the rows that begin at `start`.
fn rows_from(start: u64, rows: &Rows, pitch: u64, slice: u64) -> impl Iterator<Item = u64> {
    let height = rows.height;
    (0..rows.depth).flat_map(move |z| (0..height).map(move |y| start + z * slice + y * pitch))
}

/// The bytes of all rows, one after the other. `None` where they are no longer there.
fn read(memory: &Memory, start: u64, rows: &Rows, pitch: u64, slice: u64) -> Option<Vec<u8>> {
    let width = usize::try_from(rows.width).ok()?;
    let mut bytes = vec![0; usize::try_from(rows.bytes()).ok()?];
    for (row, address) in bytes.chunks_exact_mut(width.max(1)).zip(rows_from(start, rows, pitch, slice)) {
        memory.read(address, row).ok()?;
    }
    Some(bytes)
}

fn write(memory: &Memory, rows: &Rows, bytes: &[u8]) {
    let Ok(width) = usize::try_from(rows.width) else { return };
    let addresses = rows_from(rows.to, rows, rows.to_pitch, rows.to_slice);
    for (row, address) in bytes.chunks_exact(width.max(1)).zip(addresses) {
        // They were there a moment ago.
        let _ = memory.write(address, row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Kind;

    fn rows(to: u64, from: u64, width: u64, height: u64, pitch: u64) -> Rows {
        Rows {
            to,
            from,
            width,
            height,
            depth: 1,
            to_pitch: pitch,
            from_pitch: pitch,
            to_slice: 0,
            from_slice: 0,
        }
    }

    #[test]
    fn inputs_are_changed_when_they_are_used_and_outputs_recorded() {
        let memory = Memory::new(1 << 24).unwrap();
        let (input, other) = (
            memory.allocate(1024, 256, Kind::Device).unwrap(),
            memory.allocate(1024, 256, Kind::Device).unwrap(),
        );
        let record = tempfile::NamedTempFile::new().unwrap();
        let watch = Watch { perturb: Some(7), record: Some(record.path().to_owned()) };
        let watcher = Watcher::new(&watch).unwrap();
        let floats: Vec<u8> = (1..=64u8).flat_map(|value| f32::from(value).to_le_bytes()).collect();
        // Two rows of a pitch of 512, of which 128 bytes each are copied; between them nothing may change.
        watcher.to_device(&rows(input, 0, 128, 2, 512));
        memory.write(input, &floats[..128]).unwrap();
        memory.write(input + 512, &floats[128..]).unwrap();
        memory.write(input + 128, &floats[..128]).unwrap();
        let get = |address: u64| {
            let mut bytes = vec![0; 128];
            memory.read(address, &mut bytes).unwrap();
            bytes
        };
        assert_eq!(get(input), floats[..128]);
        watcher.before_use(&memory);
        let mut expected = floats.clone();
        assert!(perturb(7, &mut expected));
        assert_eq!((get(input), get(input + 512)), (expected[..128].to_vec(), expected[128..].to_vec()));
        assert_eq!(get(input + 128), floats[..128]);
        // Used again, nothing changes again.
        watcher.before_use(&memory);
        assert_eq!(get(input), expected[..128]);
        watcher.to_host(&memory, &rows(0, input, 128, 2, 512));
        // What is copied in later is no input.
        watcher.to_device(&rows(other, 0, 128, 1, 0));
        memory.write(other, &floats[..128]).unwrap();
        watcher.to_host(&memory, &rows(0, other, 128, 1, 0));
        assert_eq!(watcher.finish(), (1, None));
        let mut recorded = 256u64.to_le_bytes().to_vec();
        recorded.extend(&expected);
        recorded.extend(128u64.to_le_bytes());
        recorded.extend(&floats[..128]);
        assert_eq!(std::fs::read(record.path()).unwrap(), recorded);
    }
}
