//! What a machine has: all that `stitchcuda doctor` looks at, here and elsewhere.

use stitch_toolchain::discovery::Search;
use stitch_toolchain::doctor::{self, Health, Item, Status};
use stitch_verifier::device;
use stitch_verifier::sandbox::{GpuProof, Sandbox};

/// Looks at everything.
pub async fn examine(search: &Search) -> Health {
    let facts = device::facts().await;
    let mut health = doctor::examine(search, Some(&facts)).await;
    health.items.extend(sandbox(!facts.devices.is_empty()).await);
    health
}

/// What the sandbox would have active, and whether a GPU works in there: a kernel is run to see.
async fn sandbox(has_gpu: bool) -> Vec<Item> {
    let why = "Candidates run in it: code that nobody has read.";
    let item = |status, detail: String| Item::new("sandbox", why, status, detail);
    let made = match std::env::current_exe() {
        Ok(executable) => Sandbox::probe(&executable).await.map_err(|error| error.to_string()),
        Err(error) => Err(format!("This program does not know where it lies: {error}.")),
    };
    let sandbox = match made {
        Ok(sandbox) => sandbox,
        Err(error) => {
            let remedy = "Run it again where the cache folder can be written; if it fails again, report it with this text.";
            return vec![item(Status::Problem, error).remedy(remedy)];
        }
    };
    let text = sandbox.active().to_string();
    let first = match sandbox.remedy() {
        None => item(Status::Ok, text),
        Some(remedy) => item(Status::Optional, text).remedy(remedy),
    };
    let gpu = |status, detail: String| {
        Item::new("GPU in the sandbox", "Candidates use it from in there.", status, detail)
    };
    let second = if !has_gpu {
        gpu(Status::Optional, "There is no GPU to try it with.".into())
    } else {
        match sandbox.prove_gpu().await {
            GpuProof::Works(name) => {
                gpu(Status::Ok, format!("A kernel ran on {name} inside, and wrote what it should."))
            }
            GpuProof::None(why) | GpuProof::Fails(why) => {
                let remedy =
                    "Report it with this text and what `stitchcuda sandbox-exec --all --gpu` prints.";
                gpu(Status::Problem, format!("It does not work inside: {why}.")).remedy(remedy)
            }
        }
    };
    vec![first, second]
}
