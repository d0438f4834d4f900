//! The protocol between the stub and the simulator, from the simulator's side: whatever a program says, it answers.
//!
//! The first byte chooses. Even: the rest goes over the socket as it is. Odd: the rest is a script, of which each step is one
//! well-formed call; numbers that came back may be used in later calls, so that handles and addresses are real ones.
#![no_main]

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use stitch_simulator::device::Device;
use stitch_simulator::runtime::protocol::OPERATIONS;
use stitch_simulator::runtime::{Executor, converse};

/// Bytes of the device's memory.
const MEMORY: u64 = 32 << 20;
/// How long kernels may run.
const PATIENCE: Duration = Duration::from_millis(200);
/// Most calls of a script.
const MOST_CALLS: usize = 64;

/// An image with a kernel, and the kernel's name; `tests/images/shapes.cu` is its source.
const IMAGE: &[u8] = include_bytes!("../../../server/simulator/tests/images/speed.fatbin");
const KERNELS: &[&[u8]] = &[b"scale", b"shift", b"factor"];

fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, rest)) = bytes.split_first() else { return };
    let Some(device) = Device::named("h200") else { return };
    let Ok((ours, theirs)) = UnixStream::pair() else { return };
    let engine = Box::new(Executor::new(device, true, None));
    let server = std::thread::spawn(move || converse(theirs, device, engine, MEMORY, PATIENCE).map(|_| ()));
    // The other side may hang up at any time.
    let _ = if kind % 2 == 0 { raw(&ours, rest) } else { script(&ours, rest) };
    let _ = ours.shutdown(Shutdown::Both);
    drop(ours);
    if let Err(panic) = server.join() {
        std::panic::resume_unwind(panic);
    }
});

fn raw(mut socket: &UnixStream, bytes: &[u8]) -> std::io::Result<()> {
    let mut reading = socket.try_clone()?;
    let drain = std::thread::spawn(move || std::io::copy(&mut reading, &mut std::io::sink()));
    let sent = call(socket, 1, 7, &[12, 0, 0], &[]).and_then(|()| socket.write_all(bytes));
    let _ = socket.shutdown(Shutdown::Write);
    let _ = drain.join();
    sent
}

fn call(mut socket: &UnixStream, number: u32, thread: u64, arguments: &[u64], blob: &[u8]) -> std::io::Result<()> {
    let mut bytes = Vec::with_capacity(24 + arguments.len() * 8 + blob.len());
    bytes.extend(number.to_le_bytes());
    bytes.extend((arguments.len() as u32).to_le_bytes());
    bytes.extend((blob.len() as u64).to_le_bytes());
    bytes.extend(thread.to_le_bytes());
    bytes.extend(arguments.iter().flat_map(|word| word.to_le_bytes()));
    bytes.extend(blob);
    socket.write_all(&bytes)
}

/// Reads an answer: its numbers are kept for later. Returns the number to come back with, if any.
fn answer(mut socket: &UnixStream, known: &mut Vec<u64>) -> std::io::Result<u64> {
    let mut head = [0; 40];
    socket.read_exact(&mut head)?;
    let small = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize;
    let long = |at: usize| u64::from(small(at) as u32) | (small(at + 4) as u64) << 32;
    let (results, actions, blob, more, printed) = (small(4), small(8), long(16), long(24), long(32));
    let mut body = vec![0; results * 8 + actions * 80 + (blob + printed) as usize];
    socket.read_exact(&mut body)?;
    let words = body.as_chunks::<8>().0.iter().take(results + actions * 10).map(|word| u64::from_le_bytes(*word));
    known.extend(words.filter(|&word| word > 255));
    Ok(more)
}

/// A script's bytes; zeros after its end.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn word(&mut self) -> u64 {
        (0..8).fold(0, |word, _| word << 8 | u64::from(self.byte()))
    }

    fn number(&mut self, known: &[u64]) -> u64 {
        let kind = self.byte();
        let pick = |at: u8| known.get(at as usize % known.len().max(1)).copied().unwrap_or(0);
        match kind % 8 {
            0 => u64::from(self.byte()),
            1 => pick(self.byte()),
            2 => self.word(),
            3 => 1 << (self.byte() % 64),
            4 => pick(self.byte()).wrapping_add(u64::from(self.byte())),
            5 => 0x7f00_0000_0000 + u64::from(self.byte()) * 4096,
            6 => u64::from(self.byte()) << 8 | u64::from(self.byte()),
            _ => u64::MAX - u64::from(self.byte()),
        }
    }

    fn blob(&mut self, known: &[u64]) -> Vec<u8> {
        match self.byte() % 8 {
            0 => Vec::new(),
            1 => IMAGE.to_vec(),
            2 => KERNELS[self.byte() as usize % KERNELS.len()].to_vec(),
            3 => (0..self.byte() % 12).flat_map(|_| self.number(known).to_le_bytes()).collect(),
            4 => (0..self.byte()).map(|_| self.byte()).collect(),
            _ => vec![0; self.byte() as usize],
        }
    }
}

fn script(socket: &UnixStream, bytes: &[u8]) -> std::io::Result<()> {
    let mut script = Script(bytes);
    let mut known = vec![0x5000, 0x6000, 0x7000];
    let version = u64::from(12 + script.byte() % 2);
    call(socket, 1, 7, &[version, 0, u64::from(script.byte() % 2)], &[])?;
    answer(socket, &mut known)?;
    // With the files comes one byte; who reads it without them closes them.
    let mut one = [0];
    (&*socket).read_exact(&mut one)?;
    for _ in 0..MOST_CALLS {
        if script.0.is_empty() {
            break;
        }
        let (which, shape) = (script.byte(), script.byte());
        let number = u32::from(which) % OPERATIONS.len() as u32 + 1;
        let arguments: Vec<u64> = (0..shape % 16).map(|_| script.number(&known)).collect();
        let blob = script.blob(&known);
        call(socket, number | u32::from(shape >> 7) << 31, u64::from(shape >> 4 & 1), &arguments, &blob)?;
        let mut more = answer(socket, &mut known)?;
        for _ in 0..2 {
            if more == 0 {
                break;
            }
            call(socket, 2, 0, &[more], &[])?;
            more = answer(socket, &mut known)?;
        }
    }
    Ok(())
}
