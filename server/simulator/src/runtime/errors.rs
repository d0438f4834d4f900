//! The numbers, names and texts of `cudaError_t`: what `cudaGetErrorName` and `cudaGetErrorString` return: those of
//! CUDA 13.5, and 10000, which it no longer knows. CUDA 12.9 and 13.0 do not know 10, 227 and 917 to 919.

/// An error as the runtime numbers it. Never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub i32);

const TABLE: &str = include_str!("errors.txt");

/// Number, name and text of every error, in rising order.
pub fn all() -> impl Iterator<Item = (i32, &'static str, &'static str)> {
    TABLE.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ' ');
        Some((parts.next()?.parse().ok()?, parts.next()?, parts.next()?))
    })
}

#[allow(missing_docs)] // Named as in the table.
impl Code {
    pub const INVALID_VALUE: Self = Self(1);
    pub const MEMORY_ALLOCATION: Self = Self(2);
    pub const INVALID_CONFIGURATION: Self = Self(9);
    pub const INVALID_SYMBOL: Self = Self(13);
    pub const INVALID_MEMCPY_DIRECTION: Self = Self(21);
    pub const DEVICES_UNAVAILABLE: Self = Self(46);
    pub const INVALID_DEVICE_FUNCTION: Self = Self(98);
    pub const INVALID_DEVICE: Self = Self(101);
    pub const INVALID_KERNEL_IMAGE: Self = Self(200);
    pub const NO_KERNEL_IMAGE: Self = Self(209);
    pub const INVALID_PTX: Self = Self(218);
    pub const UNSUPPORTED_LIMIT: Self = Self(215);
    pub const INVALID_HANDLE: Self = Self(400);
    pub const ILLEGAL_STATE: Self = Self(401);
    pub const NOT_READY: Self = Self(600);
    pub const ILLEGAL_ADDRESS: Self = Self(700);
    pub const LAUNCH_TIMEOUT: Self = Self(702);
    pub const ASSERT: Self = Self(710);
    pub const ALREADY_REGISTERED: Self = Self(712);
    pub const NOT_REGISTERED: Self = Self(713);
    pub const MISALIGNED: Self = Self(716);
    pub const LAUNCH_FAILURE: Self = Self(719);
    pub const COOPERATIVE_TOO_LARGE: Self = Self(720);
    pub const NOT_PERMITTED: Self = Self(800);
    pub const NOT_SUPPORTED: Self = Self(801);
    pub const CAPTURE_UNSUPPORTED: Self = Self(900);
    pub const CAPTURE_INVALIDATED: Self = Self(901);
    pub const CAPTURE_MERGE: Self = Self(902);
    pub const CAPTURE_UNMATCHED: Self = Self(903);
    pub const CAPTURE_UNJOINED: Self = Self(904);
    pub const CAPTURE_ISOLATION: Self = Self(905);
    pub const CAPTURE_IMPLICIT: Self = Self(906);
    pub const CAPTURED_EVENT: Self = Self(907);
    pub const CAPTURE_WRONG_THREAD: Self = Self(908);
    pub const GRAPH_UPDATE_FAILURE: Self = Self(910);
    pub const INVALID_CLUSTER_SIZE: Self = Self(912);
    pub const UNKNOWN: Self = Self(999);

    /// Its name: `cudaErrorInvalidValue`.
    #[must_use]
    pub fn name(self) -> &'static str {
        all().find(|&(number, ..)| number == self.0).map_or("unrecognized error code", |(_, name, _)| name)
    }
}
