//! Why nothing came of an order, and what the command line ends with then: the same here and elsewhere.

use stitch_agents::optimize::JudgeError;
use stitch_verifier::measure::MeasureError;
use stitch_verifier::profile::cuda::CollectError;
use stitch_verifier::profile::take::TakeError;
use stitch_verifier::program::{BuildError, RunError};
use stitch_verifier::simulation::SimulationError;
use stitch_verifier::torch::host::HostError;
use stitch_verifier::torch::machine::MachineError;
use stitch_verifier::torch::request::TorchError;
use stitch_verifier::verify::VerifyError;

use crate::protocol::Kind;

/// Why nothing came of an order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Of what kind it is.
    pub kind: Kind,
    /// In sentences.
    pub message: String,
}

impl Failure {
    fn of(kind: Kind, message: impl ToString) -> Self {
        Self { kind, message: message.to_string() }
    }

    /// The answer is bad.
    pub fn bad(message: impl ToString) -> Self {
        Self::of(Kind::Bad, message)
    }

    /// What was asked can't be done.
    pub fn usage(message: impl ToString) -> Self {
        Self::of(Kind::Usage, message)
    }

    /// Something needed is not there.
    pub fn missing(message: impl ToString) -> Self {
        Self::of(Kind::Missing, message)
    }

    /// It was cancelled.
    pub fn cancelled() -> Self {
        Self::of(Kind::Cancelled, "The job was cancelled.")
    }
}

impl From<&VerifyError> for Kind {
    fn from(error: &VerifyError) -> Self {
        match error {
            VerifyError::Cancelled => Self::Cancelled,
            VerifyError::Build(_) => Self::Missing,
            // That a program uses no device is what is wrong with it.
            VerifyError::Run(RunError::Simulation(SimulationError::NotUsed)) => Self::Bad,
            VerifyError::Run(error) => Self::from(error),
            _ => Self::Usage,
        }
    }
}

impl From<&RunError> for Kind {
    fn from(error: &RunError) -> Self {
        match error {
            RunError::Cancelled => Self::Cancelled,
            RunError::Simulation(SimulationError::Missing { .. } | SimulationError::NotUsed) => Self::Missing,
            _ => Self::Bad,
        }
    }
}

impl From<&BuildError> for Kind {
    fn from(error: &BuildError) -> Self {
        match error {
            BuildError::Cancelled => Self::Cancelled,
            // As for a reference that does not build.
            BuildError::Compiler { .. } => Self::Usage,
            _ => Self::Missing,
        }
    }
}

impl From<&CollectError> for Kind {
    fn from(error: &CollectError) -> Self {
        match error {
            CollectError::Cancelled => Self::Cancelled,
            CollectError::NoWay { .. } => Self::Missing,
            CollectError::Run(error) => Self::from(error),
            CollectError::Fails { .. } => Self::Bad,
        }
    }
}

impl From<&TakeError> for Kind {
    fn from(error: &TakeError) -> Self {
        match error {
            TakeError::Cancelled => Self::Cancelled,
            TakeError::Build(error) => Self::from(error),
            TakeError::Run(error) => Self::from(error),
            TakeError::Collect(error) => Self::from(error),
            TakeError::Harness(_) | TakeError::Ended(_) => Self::Bad,
        }
    }
}

impl From<&TorchError> for Kind {
    fn from(error: &TorchError) -> Self {
        match error {
            TorchError::Reference { .. } => Self::Usage,
            TorchError::Host(HostError::NoTorch(_) | HostError::Start { .. } | HostError::Sandbox(_))
            | TorchError::Device(_) => Self::Missing,
            TorchError::Host(_) | TorchError::System { .. } => Self::Bad,
            TorchError::Cancelled => Self::Cancelled,
        }
    }
}

impl From<&MachineError> for Kind {
    fn from(error: &MachineError) -> Self {
        match error {
            MachineError::Missing(_) => Self::Missing,
            MachineError::Device(_) => Self::Usage,
            MachineError::Failed(_) => Self::Bad,
        }
    }
}

impl From<&MeasureError> for Kind {
    fn from(error: &MeasureError) -> Self {
        match error {
            MeasureError::Cancelled => Self::Cancelled,
            MeasureError::Run(RunError::Simulation(SimulationError::Missing { .. })) => Self::Missing,
            MeasureError::Harness(VerifyError::Plan(_) | VerifyError::Kernel(_)) => Self::Usage,
            _ => Self::Bad,
        }
    }
}

impl From<&JudgeError> for Kind {
    fn from(error: &JudgeError) -> Self {
        match error {
            JudgeError::Cancelled => Self::Cancelled,
            JudgeError::Measure(error) => Self::from(error),
            JudgeError::Unsuitable(_) | JudgeError::Torch(TorchError::Reference { .. }) => Self::Usage,
            JudgeError::Torch(TorchError::Host(_) | TorchError::Device(_)) => Self::Missing,
            JudgeError::Elsewhere { status: 3, .. } => Self::Missing,
            JudgeError::Elsewhere { status: 2, .. } => Self::Usage,
            JudgeError::Verify(_) | JudgeError::Torch(_) | JudgeError::Elsewhere { .. } => Self::Bad,
        }
    }
}

macro_rules! failures {
    ($($error:ty),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self { kind: Kind::from(&error), message: error.to_string() }
            }
        }
    )*};
}

failures!(
    VerifyError,
    RunError,
    BuildError,
    CollectError,
    TakeError,
    TorchError,
    MachineError,
    MeasureError,
    JudgeError
);
