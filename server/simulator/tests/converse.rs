//! What a program may say that no stub says: the simulator answers, or ends the conversation, and goes on. Each case was found by fuzzing
//! (`fuzz/src/bin/protocol.rs`).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Duration;

use stitch_simulator::device::Device;
use stitch_simulator::runtime::protocol::{OPERATIONS, Operation};
use stitch_simulator::runtime::{Executor, converse};

/// A program's end of a conversation.
struct Program {
    socket: UnixStream,
    server: JoinHandle<()>,
}

impl Program {
    fn new() -> Self {
        let (socket, theirs) = UnixStream::pair().unwrap();
        let device = Device::named("h200").unwrap();
        let server = std::thread::spawn(move || {
            let engine = Box::new(Executor::new(device, true, None));
            converse(theirs, device, engine, 32 << 20, Duration::from_secs(3)).unwrap();
        });
        let mut program = Self { socket, server };
        assert_eq!(program.call(Operation::Hello, &[13, 0, 0], &[]).0, 0);
        program.socket.read_exact(&mut [0]).unwrap();
        program
    }

    /// The error, and the first result.
    fn call(&mut self, operation: Operation, arguments: &[u64], blob: &[u8]) -> (i32, u64) {
        let number = OPERATIONS.iter().position(|(one, _)| *one == operation).unwrap() as u32 + 1;
        let mut bytes = number.to_le_bytes().to_vec();
        bytes.extend((arguments.len() as u32).to_le_bytes());
        bytes.extend((blob.len() as u64).to_le_bytes());
        bytes.extend(7_u64.to_le_bytes());
        bytes.extend(arguments.iter().flat_map(|word| word.to_le_bytes()));
        bytes.extend(blob);
        self.socket.write_all(&bytes).unwrap();
        let mut head = [0; 40];
        self.socket.read_exact(&mut head).unwrap();
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap());
        let body = word(4) * 8 + word(8) * 80 + word(16) + word(32);
        let mut rest = vec![0; body as usize];
        self.socket.read_exact(&mut rest).unwrap();
        let first = rest.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        (word(0) as i32, if word(4) > 0 { first } else { 0 })
    }

    fn memory(&mut self, bytes: u64) -> u64 {
        let (error, address) = self.call(Operation::Malloc, &[bytes], &[]);
        assert_eq!(error, 0);
        address
    }

    fn end(self) {
        self.socket.shutdown(Shutdown::Both).unwrap();
        self.server.join().expect("the simulator does not panic");
    }
}

/// `cudaErrorInvalidValue`.
const INVALID_VALUE: i32 = 1;
/// An address of the program's own.
const OWN: u64 = 0x7f00_0000_0000;

#[test]
fn rows_may_be_more_than_a_number_holds() {
    let mut program = Program::new();
    let many = 1 << 63;
    let (error, _) = program.call(Operation::Copy, &[OWN, OWN, 1, many, 4, 0, 0, 0, 0, 0, 0, 0], &[]);
    assert_eq!(error, INVALID_VALUE);
    program.end();
}

#[test]
fn rows_may_not_lie_on_each_other() {
    let mut program = Program::new();
    let device = program.memory(4096);
    // A byte, 2^60 times: nobody waits for that.
    let (error, _) = program.call(Operation::Fill, &[device, 7, 1, 1, 1 << 30, 1 << 30, 0, 0, 0, 0], &[]);
    assert_eq!(error, INVALID_VALUE);
    let (error, _) =
        program.call(Operation::Copy, &[device, device, 1, 1 << 60, 1, 0, 0, 0, 0, 3, 0, 0], &[]);
    assert_eq!(error, INVALID_VALUE);
    // Rows side by side, and slices after each other, are as they were.
    let (error, _) =
        program.call(Operation::Copy, &[device, device + 2048, 16, 4, 4, 16, 32, 64, 128, 3, 0, 0], &[]);
    assert_eq!(error, 0);
    program.end();
}

#[test]
fn clusters_may_be_more_than_a_number_holds() {
    let mut program = Program::new();
    let image = include_bytes!("images/speed.fatbin");
    assert_eq!(program.call(Operation::Image, &[1], image).0, 0);
    assert_eq!(program.call(Operation::Function, &[1, 2], b"scale").0, 0);
    let huge = u64::from(u32::MAX);
    let launch = [2, 1, 1, 1, 32, 1, 1, 0, 0, 0, huge, huge, huge];
    assert_ne!(program.call(Operation::Launch, &launch, &[0; 16]).0, 0);
    program.end();
}

/// As many blocks as a grid may have: no list of them is made. It is stopped when the program goes.
#[test]
fn grids_may_have_more_blocks_than_fit_in_memory() {
    let mut program = Program::new();
    let image = include_bytes!("images/speed.fatbin");
    assert_eq!(program.call(Operation::Image, &[1], image).0, 0);
    assert_eq!(program.call(Operation::Function, &[1, 2], b"scale").0, 0);
    let launch = [2, 0x7fff_ffff, 65_535, 65_535, 32, 1, 1, 0, 0, 0, 1, 1, 1];
    assert_eq!(program.call(Operation::Launch, &launch, &[0; 16]).0, 0);
    program.end();
}
