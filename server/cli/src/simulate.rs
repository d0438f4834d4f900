//! `stitchcuda simulate`: the simulator's own process, started by `verify` and `profile` as an outside program.
//!
//! It takes its order on standard input. The program that it runs inherits standard output and standard error.

use std::io::Read;
use std::process::ExitCode;

use stitch_session::folders::Folders;
use stitch_verifier::simulation::{Order, obey, shield};

use crate::status::Status;

/// Carries out the order, and ends with the status of the program.
pub fn run() -> ExitCode {
    // The program may not look into this process, which knows how its inputs are perturbed.
    if let Err(error) = shield() {
        anstream::eprintln!("error: the simulator can't be shielded from the program: {error}");
        return Status::Bad.into();
    }
    let mut text = String::new();
    let order = std::io::stdin().read_to_string(&mut text).map_err(anyhow::Error::from);
    let order = order.and_then(|_| Ok(serde_json::from_str::<Order>(&text)?));
    let order = match order {
        Ok(order) => order,
        Err(error) => {
            anstream::eprintln!(
                "error: no order on standard input ({error}); `verify` and `profile` start this"
            );
            return Status::Usage.into();
        }
    };
    let cache = Folders::find().cache.unwrap_or_else(std::env::temp_dir).join("simulator");
    match obey(&order, &cache) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            anstream::eprintln!("error: {error}");
            Status::Missing.into()
        }
    }
}
