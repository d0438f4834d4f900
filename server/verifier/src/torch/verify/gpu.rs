//! Who may use a GPU when. Comparisons share it; what is timed has it alone, since what one process runs, another would time. A comparison lets go of
//! it between its rounds, while the processor compares, so that nobody waits long.

use std::path::PathBuf;

use stitch_session::CancellationToken;
use stitch_session::folders::Folders;
use stitch_session::locks::{DeviceLock, LockError};

use crate::torch::host::Place;
use crate::torch::request::{Request, TorchError};

/// Verifications that may keep contexts on one GPU at a time, two contexts each. Kernelauto's cap is 12 contexts a GPU; many more at once have wedged drivers.
const PLACES: usize = 6;

/// The device of a verification, with the folder of its locks; nothing where there is no GPU.
#[derive(Clone, Debug)]
pub(super) struct Gpu {
    device: Option<(PathBuf, String)>,
    cancel: CancellationToken,
}

impl Gpu {
    /// That of a request.
    pub fn of(request: &Request, cancel: &CancellationToken) -> Self {
        let device = match (request.place, Folders::find().runtime) {
            (Place::Cuda(index), Some(runtime)) => Some((runtime, format!("cuda:{index}"))),
            _ => None,
        };
        Self { device, cancel: cancel.clone() }
    }

    /// One of the places for contexts on it.
    pub async fn place(&self) -> Result<Option<DeviceLock>, TorchError> {
        let Some((runtime, device)) = &self.device else { return Ok(None) };
        locked(DeviceLock::acquire_place(runtime, device, PLACES, &self.cancel).await)
    }

    /// Leave to use it beside others.
    pub async fn share(&self) -> Result<Option<DeviceLock>, TorchError> {
        let Some((runtime, device)) = &self.device else { return Ok(None) };
        locked(DeviceLock::share(runtime, device, &self.cancel).await)
    }

    /// The device itself, and nobody beside.
    pub async fn alone(&self) -> Result<Option<DeviceLock>, TorchError> {
        let Some((runtime, device)) = &self.device else { return Ok(None) };
        locked(DeviceLock::acquire(runtime, device, &self.cancel, |_| {}).await)
    }
}

fn locked(result: Result<DeviceLock, LockError>) -> Result<Option<DeviceLock>, TorchError> {
    match result {
        Ok(lock) => Ok(Some(lock)),
        Err(LockError::Cancelled { .. }) => Err(TorchError::Cancelled),
        Err(error) => Err(TorchError::Device(error.to_string())),
    }
}
