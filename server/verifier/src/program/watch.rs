//! Puts a program on a real device under watch, and adds what was seen to its run.

use stitch_session::folders::Folders;
use stitch_toolchain::process::Program as Process;

use super::run::{Ran, RunError};
use crate::clock;
use crate::device;
use crate::simulation::compiler;
use crate::watch::{Service, VARIABLE, Watched, front, search_path};

/// The process with the library before it that shows its copies, and who looks at them; or the process as it was, and why not.
pub(super) async fn begin(
    process: Process,
    perturb: Option<u64>,
) -> Result<(Process, Service), (Process, String)> {
    let prepared = tokio::task::spawn_blocking(move || prepare(perturb)).await;
    match prepared.unwrap_or_else(|error| Err(error.to_string())) {
        Ok((path, service)) => {
            Ok((process.env("LD_LIBRARY_PATH", path).env(VARIABLE, service.variable()), service))
        }
        Err(why) => {
            let why = format!("The library that shows what a program copies can't be used: {why}.");
            Err((process, why))
        }
    }
}

fn prepare(perturb: Option<u64>) -> Result<(std::ffi::OsString, Service), String> {
    let real = device::library().ok_or("it is not known where the driver's library lies")?;
    let cache = Folders::find().cache.unwrap_or_else(std::env::temp_dir).join("watch");
    let folder = front(&cache, &compiler(), &real).map_err(|error| error.to_string())?;
    let service = Service::start(perturb).map_err(|error| format!("there is no socket ({error})"))?;
    Ok((search_path(&folder, std::env::var_os("LD_LIBRARY_PATH")), service))
}

/// The process with the date held at `date`; as it was, where that can't be done.
pub(super) async fn hold_the_date(process: Process, date: u64) -> Process {
    let held = tokio::task::spawn_blocking(move || {
        let cache = Folders::find().cache.unwrap_or_else(std::env::temp_dir).join("watch");
        clock::variables(date, &cache, &compiler()).map_err(|error| error.to_string())
    });
    match held.await.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(variables) => process.envs(variables),
        Err(why) => {
            tracing::debug!("the date is not held: {why}");
            process
        }
    }
}

/// The run with what was seen of its copies.
pub(super) async fn end(service: Service, mut ran: Ran) -> Result<Ran, RunError> {
    let watched = tokio::task::spawn_blocking(move || service.finish()).await.unwrap_or_default();
    let Watched { processes, perturbed, copies, unseen } = watched;
    tracing::debug!(
        "watched for {:?}: {processes} processes, {perturbed} copies perturbed, {} recorded",
        ran.wall,
        copies.len()
    );
    if processes == 0 {
        ran.unseen.push(
            "The program did not load the driver's library through the one that shows its copies: it made no CUDA call, or sets \
             LD_LIBRARY_PATH itself, or was built to look elsewhere (RPATH)."
                .to_owned(),
        );
        return Ok(ran);
    }
    ran.perturbed = perturbed;
    ran.copies = Some(copies);
    ran.unseen = unseen;
    Ok(ran)
}
