//! What the stub and the simulator say to each other: calls one way, answers with actions the other.
//!
//! The tables here are the only ones: the header that the stub is compiled with is written from them.

use std::fmt::Write as _;
use std::io::{self, Read, Write};

/// The most bytes that a call may bring along (device code of a program).
const MAX_BLOB: u64 = 4 << 30;

macro_rules! operations {
    ($($name:ident $c:literal,)*) => {
        /// What a call asks for. Numbers go from 1 in this order.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs)] // Each is one function of the runtime; where it is answered says more.
        pub enum Operation { $($name,)* }

        /// Each with its name in the stub.
        pub const OPERATIONS: &[(Operation, &str)] = &[$((Operation::$name, $c),)*];
    };
}

operations! {
    Hello "HELLO", Continue "CONTINUE", Missing "MISSING",
    Image "IMAGE", Function "FUNCTION", Variable "VARIABLE", ManagedVariable "MANAGED_VARIABLE",
    Parameters "PARAMETERS", Launch "LAUNCH", HostFunction "HOST_FUNCTION",
    FunctionCheck "FUNCTION_CHECK", FunctionName "FUNCTION_NAME",
    FunctionAttributes "FUNCTION_ATTRIBUTES", FunctionSetAttribute "FUNCTION_SET_ATTRIBUTE",
    OccupancyBlocks "OCCUPANCY_BLOCKS", OccupancyShared "OCCUPANCY_SHARED",
    OccupancyClusters "OCCUPANCY_CLUSTERS", OccupancyClusterSize "OCCUPANCY_CLUSTER_SIZE",
    Malloc "MALLOC", MallocPitch "MALLOC_PITCH", MallocManaged "MALLOC_MANAGED", Free "FREE",
    HostAlloc "HOST_ALLOC", FreeHost "FREE_HOST", HostRegister "HOST_REGISTER", HostUnregister "HOST_UNREGISTER",
    HostDevicePointer "HOST_DEVICE_POINTER", HostFlags "HOST_FLAGS",
    MallocAsync "MALLOC_ASYNC", FreeAsync "FREE_ASYNC",
    PoolCreate "POOL_CREATE", PoolDestroy "POOL_DESTROY", PoolOfDevice "POOL_OF_DEVICE", PoolSet "POOL_SET",
    PoolGet "POOL_GET", PoolSetAttribute "POOL_SET_ATTRIBUTE",
    MemoryInfo "MEMORY_INFO", PointerAttributes "POINTER_ATTRIBUTES", Attach "ATTACH",
    Advise "ADVISE", RangeAttribute "RANGE_ATTRIBUTE",
    Copy "COPY", Fill "FILL", Symbol "SYMBOL",
    StreamCreate "STREAM_CREATE", StreamDestroy "STREAM_DESTROY", StreamSynchronize "STREAM_SYNCHRONIZE",
    StreamQuery "STREAM_QUERY", StreamWait "STREAM_WAIT", StreamGet "STREAM_GET",
    EventCreate "EVENT_CREATE", EventDestroy "EVENT_DESTROY", EventRecord "EVENT_RECORD",
    EventSynchronize "EVENT_SYNCHRONIZE", EventQuery "EVENT_QUERY", EventElapsed "EVENT_ELAPSED",
    CaptureBegin "CAPTURE_BEGIN", CaptureEnd "CAPTURE_END", CaptureState "CAPTURE_STATE",
    CaptureExchangeMode "CAPTURE_EXCHANGE_MODE",
    GraphCreate "GRAPH_CREATE", GraphDestroy "GRAPH_DESTROY", GraphDestroyNode "GRAPH_DESTROY_NODE",
    GraphAdd "GRAPH_ADD", GraphSet "GRAPH_SET", GraphNodeType "GRAPH_NODE_TYPE", GraphNodeChild "GRAPH_NODE_CHILD",
    GraphFindInClone "GRAPH_FIND_IN_CLONE", GraphList "GRAPH_LIST", GraphLink "GRAPH_LINK",
    GraphInstantiate "GRAPH_INSTANTIATE", GraphExecDestroy "GRAPH_EXEC_DESTROY", GraphExecFlags "GRAPH_EXEC_FLAGS",
    GraphExecUpdate "GRAPH_EXEC_UPDATE", GraphLaunch "GRAPH_LAUNCH",
    GraphSetEnabled "GRAPH_SET_ENABLED", GraphGetEnabled "GRAPH_GET_ENABLED",
    DeviceCheck "DEVICE_CHECK", DeviceProperties "DEVICE_PROPERTIES", DeviceAttribute "DEVICE_ATTRIBUTE",
    DeviceSynchronize "DEVICE_SYNCHRONIZE", DeviceReset "DEVICE_RESET",
    DeviceSetFlags "DEVICE_SET_FLAGS", DeviceGetFlags "DEVICE_GET_FLAGS",
    LimitGet "LIMIT_GET", LimitSet "LIMIT_SET", Profiler "PROFILER",
}

/// Set in the number of a call where 0 means the per-thread default stream, not the legacy one.
const PER_THREAD: u32 = 1 << 31;

/// A call.
#[derive(Debug, Clone)]
pub struct Call {
    /// By 0 the caller means the per-thread default stream (`--default-stream per-thread`).
    pub per_thread: bool,
    /// What is asked for.
    pub operation: Operation,
    /// Which thread of the program calls.
    pub thread: u64,
    /// Its numbers.
    pub arguments: Vec<u64>,
    /// Bytes that belong to it: names, images, parameters.
    pub blob: Vec<u8>,
}

impl Call {
    /// The argument at `index`; 0 where there is none.
    #[must_use]
    pub fn argument(&self, index: usize) -> u64 {
        self.arguments.get(index).copied().unwrap_or(0)
    }

    /// The argument at `index`, cut to 32 bits as the C caller's `int` or `unsigned` was.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)]
    pub fn small(&self, index: usize) -> u32 {
        self.argument(index) as u32
    }

    /// Its bytes as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.blob).into_owned()
    }

    /// Reads one, or `None` where the other side has gone.
    ///
    /// # Errors
    /// Where the connection breaks within a call, or the bytes are no call.
    pub fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let mut head = [0; 24];
        match from.read_exact(&mut head) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        let [a, b, c, d, e, f, g, h, ref rest @ ..] = head;
        let (number, count) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        let (size, thread) = match words(rest)[..] {
            [size, thread] => (size, thread),
            _ => (0, 0),
        };
        let known = OPERATIONS.get(((number & !PER_THREAD) as usize).wrapping_sub(1));
        let Some(&(operation, _)) = known.filter(|_| count <= 64 && size <= MAX_BLOB) else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("no call: {number}, {count}, {size}"),
            ));
        };
        let mut numbers = vec![0; count as usize * 8];
        from.read_exact(&mut numbers)?;
        let mut blob = Vec::new();
        from.take(size).read_to_end(&mut blob)?;
        if blob.len() as u64 != size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (per_thread, arguments) = (number & PER_THREAD != 0, words(&numbers));
        Ok(Some(Self { per_thread, operation, thread, arguments, blob }))
    }
}

/// 64-bit words of bytes; what is left over is dropped.
#[must_use]
pub fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks::<8>().0.iter().map(|&word| u64::from_le_bytes(word)).collect()
}

/// What the stub has to do, since it lies in the program's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // The fields of a copy are those of `cudaMemcpy3D`.
pub enum Action {
    /// Copy rows of bytes between the program's memory and the region.
    Copy(Rows),
    /// Let the program touch a range of the region, or no longer.
    Protect { start: u64, size: u64, open: bool },
    /// Put pages of the region under memory of the program.
    Share { own: u64, region: u64, size: u64 },
    /// Give the program pages of its own again.
    Unshare { own: u64, region: u64, size: u64 },
    /// Write so many bytes, which follow, to standard error.
    Complain { bytes: u64 },
    /// Call a function of the program; a callback is also told the stream and an error.
    Call { function: u64, data: u64, callback: Option<(u64, i32)> },
}

/// Bytes in rows and slices, at two places. Lengths in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct Rows {
    pub to: u64,
    pub from: u64,
    pub width: u64,
    pub height: u64,
    pub depth: u64,
    pub to_pitch: u64,
    pub from_pitch: u64,
    pub to_slice: u64,
    pub from_slice: u64,
}

impl Rows {
    /// Bytes that are copied.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.width.saturating_mul(self.height).saturating_mul(self.depth)
    }

    /// The first address of each row that is written.
    pub fn targets(&self) -> impl Iterator<Item = u64> {
        let (height, pitch, slice, to) = (self.height, self.to_pitch, self.to_slice, self.to);
        (0..self.depth).flat_map(move |z| (0..height).map(move |y| to + z * slice + y * pitch))
    }
}

/// The kinds of actions, with their names in the stub.
const ACTIONS: [(u64, &str); 6] =
    [(1, "COPY"), (2, "PROTECT"), (3, "SHARE"), (4, "UNSHARE"), (5, "CALL"), (6, "COMPLAIN")];

impl Action {
    #[allow(clippy::cast_sign_loss)]
    pub(super) fn words(&self) -> [u64; 10] {
        match *self {
            Self::Copy(rows) => [
                1,
                rows.to,
                rows.from,
                rows.width,
                rows.height,
                rows.depth,
                rows.to_pitch,
                rows.from_pitch,
                rows.to_slice,
                rows.from_slice,
            ],
            Self::Protect { start, size, open } => [2, start, u64::from(open), size, 0, 0, 0, 0, 0, 0],
            Self::Share { own, region, size } => [3, region, own, size, 0, 0, 0, 0, 0, 0],
            Self::Unshare { own, region, size } => [4, region, own, size, 0, 0, 0, 0, 0, 0],
            Self::Complain { bytes } => [6, 0, 0, bytes, 0, 0, 0, 0, 0, 0],
            Self::Call { function, data, callback } => {
                let (stream, error) = callback.unwrap_or((0, 0));
                [
                    5,
                    function,
                    data,
                    stream,
                    u64::from(callback.is_some()),
                    u64::from(error as u32),
                    0,
                    0,
                    0,
                    0,
                ]
            }
        }
    }
}

/// What is answered when nothing went wrong.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// Numbers.
    pub results: Vec<u64>,
    /// What the stub does before its caller goes on.
    pub actions: Vec<Action>,
    /// Bytes.
    pub blob: Vec<u8>,
    /// Not 0: the stub comes back with this number; after the actions, or, where there are none, after the bell in the region has
    /// rung since it stood at the first result.
    pub more: u64,
}

impl Answer {
    /// Nothing but success.
    #[must_use]
    pub fn done() -> Self {
        Self::default()
    }

    /// Success with numbers.
    #[must_use]
    pub fn results(results: impl Into<Vec<u64>>) -> Self {
        Self { results: results.into(), ..Self::default() }
    }

    /// With actions.
    #[must_use]
    pub fn with(mut self, actions: Vec<Action>) -> Self {
        self.actions = actions;
        self
    }

    /// Writes it, with the error of the call (0 for none) and what kernels printed.
    ///
    /// # Errors
    /// Where the connection is broken.
    #[allow(clippy::cast_possible_truncation)]
    pub fn write(&self, error: i32, printed: &[u8], to: &mut impl Write) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(64 + self.blob.len());
        bytes.extend(error.to_le_bytes());
        bytes.extend((self.results.len() as u32).to_le_bytes());
        bytes.extend((self.actions.len() as u32).to_le_bytes());
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend((self.blob.len() as u64).to_le_bytes());
        bytes.extend(self.more.to_le_bytes());
        bytes.extend((printed.len() as u64).to_le_bytes());
        let words = self.actions.iter().flat_map(Action::words);
        bytes.extend(self.results.iter().copied().chain(words).flat_map(u64::to_le_bytes));
        bytes.extend(&self.blob);
        bytes.extend(printed);
        to.write_all(&bytes)
    }
}

/// `protocol.h`: the tables as C.
#[must_use]
pub fn header() -> String {
    let mut text = String::from("/* Written from protocol.rs and errors.txt. */\n#include <stdint.h>\n");
    let _ = writeln!(text, "#define PER_THREAD_FLAG {PER_THREAD}u");
    for (index, (_, name)) in OPERATIONS.iter().enumerate() {
        let _ = writeln!(text, "#define OP_{name} {}", index + 1);
    }
    for (number, name) in ACTIONS {
        let _ = writeln!(text, "#define ACTION_{name} {number}");
    }
    for (number, name, _) in super::errors::all() {
        let _ = writeln!(text, "#define {name} {number}");
    }
    text.push_str(
        "struct call_head { uint32_t operation, arguments; uint64_t blob, thread; };\n\
         struct reply_head { int32_t error; uint32_t results, actions, unused; uint64_t blob, more, printed; };\n\
         struct action { uint64_t kind, to, from, width, height, depth, to_pitch, from_pitch, to_slice, from_slice; };\n",
    );
    text
}
