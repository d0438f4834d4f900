//! Where a program runs: `auto`, `cuda:N`, `sim:NAME`.

use std::fmt;

use stitch_session::config::Device as Configured;
use stitch_simulator::device::{DEVICES, Device as Simulated};

use crate::architecture::Architecture;
use crate::device::devices;

/// A device that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunDevice {
    /// A GPU of this machine.
    Cuda {
        /// As in `cuda:0`.
        index: u32,
        /// `NVIDIA H200`.
        name: String,
        /// Its compute capability.
        architecture: Architecture,
    },
    /// A simulated one.
    Simulator(&'static Simulated),
}

/// Why there is no such device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// The machine has no such GPU.
    #[error("There is no GPU cuda:{index} on this machine ({}). Take another device, or the simulator: `--device sim:h200`.", found(*count))]
    NoGpu {
        /// The number that was asked for.
        index: u32,
        /// GPUs that are there.
        count: usize,
    },
    /// The processor was asked for.
    #[error(
        "A CUDA program does not run on `cpu`, which is for PyTorch code. Without a GPU, take the simulator: `--device sim:h200`."
    )]
    NoCudaOnCpu,
    /// No simulated device has the name.
    #[error("`sim:{name}` can't be simulated. These can: {}.", simulated())]
    NoSuchSimulation {
        /// The name that was asked for.
        name: String,
    },
}

fn found(count: usize) -> String {
    match count {
        0 => "the driver finds none".to_owned(),
        1 => "it has one, cuda:0".to_owned(),
        count => format!("it has {count}, from cuda:0 on"),
    }
}

fn simulated() -> String {
    DEVICES.iter().map(|device| format!("`sim:{}`", device.name)).collect::<Vec<_>>().join(", ")
}

/// The simulated device where nothing is asked for and no GPU is there.
const DEFAULT_SIMULATION: &str = "h200";

/// The device that was asked for. For `auto` the first GPU, or else a simulated one.
///
/// # Errors
/// There is no such device; the message says which there are.
pub async fn choose(configured: &Configured) -> Result<RunDevice, DeviceError> {
    let gpus = devices().await;
    let gpu = |index: u32| {
        gpus.iter().find(|device| device.index == index).map(|device| RunDevice::Cuda {
            index,
            name: device.name.clone(),
            architecture: device.architecture,
        })
    };
    match configured {
        Configured::Auto => match gpus.first().and_then(|first| gpu(first.index)) {
            Some(device) => Ok(device),
            None => simulation(DEFAULT_SIMULATION),
        },
        Configured::Cuda(index) => gpu(*index).ok_or(DeviceError::NoGpu { index: *index, count: gpus.len() }),
        Configured::Simulator(name) => simulation(name),
        Configured::Cpu => Err(DeviceError::NoCudaOnCpu),
    }
}

fn simulation(name: &str) -> Result<RunDevice, DeviceError> {
    let device = Simulated::named(name);
    device.map(RunDevice::Simulator).ok_or_else(|| DeviceError::NoSuchSimulation { name: name.to_owned() })
}

impl RunDevice {
    /// As a person writes it: `cuda:0`.
    pub fn id(&self) -> String {
        match self {
            Self::Cuda { index, .. } => format!("cuda:{index}"),
            Self::Simulator(device) => format!("sim:{}", device.name),
        }
    }

    /// Its compute capability.
    pub fn architecture(&self) -> Architecture {
        match self {
            Self::Cuda { architecture, .. } => *architecture,
            Self::Simulator(device) => {
                let (major, minor) = device.capability;
                // Compute capabilities are small.
                Architecture::new(u16::try_from(major).unwrap_or(u16::MAX), u16::try_from(minor).unwrap_or(0))
            }
        }
    }
}

impl fmt::Display for RunDevice {
    /// As a verdict says it: `cuda:0 (NVIDIA H200)`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cuda { name, .. } => write!(formatter, "{} ({name})", self.id()),
            Self::Simulator(_) => formatter.write_str(&self.id()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn devices_are_found_by_name_or_said_to_be_missing() {
        let device = choose(&Configured::Simulator("H200".into())).await.unwrap();
        assert_eq!((device.id().as_str(), device.architecture()), ("sim:h200", Architecture::new(9, 0)));
        let error = choose(&Configured::Simulator("h201".into())).await.unwrap_err().to_string();
        assert!(error.contains("`sim:h201`") && error.contains("`sim:a100`"), "{error}");
        let error = choose(&Configured::Cuda(99)).await.unwrap_err().to_string();
        assert!(error.contains("cuda:99") && error.contains("--device sim:h200"), "{error}");
        assert!(choose(&Configured::Auto).await.is_ok());
    }
}
