//! `stitchcuda profile FILE.py::Name`: what of a module's or a function's time on the GPU goes to which line.

use std::io::Write;

use anyhow::Result;
use stitch_session::jobs::{JobKind, Request as Job};
use stitch_verifier::profile::sources;
use stitch_verifier::torch::find::{self, FindError, Said};
use stitch_verifier::torch::request::Request;
use stitch_verifier::torch::subject::Subject;
use stitch_verifier::torch::verify::profiled::profile;

use stitch_worker::client::Elsewhere;
use stitch_worker::files::Wanted;
use stitch_worker::order::{Order, Outcome, ProfileTorch};

use super::{Arguments, Shown};
use crate::elsewhere::{self, Ordered};
use crate::interrupt;
use crate::progress::{Spinner, Telling};
use crate::settings::Surrounding;
use crate::setup::machine;
use crate::status::Status;
use crate::verify::torch::{failed, limit_of};

/// Profiles and prints.
///
/// # Errors
/// Wrong usage; writing to `out`; a system that gives no threads.
pub(super) fn run(
    name: &str,
    arguments: &Arguments,
    surrounding: &Surrounding,
    page: &Shown,
    out: &mut impl Write,
) -> Result<Status> {
    let subject = match subject(name, arguments, surrounding) {
        Ok(subject) => subject,
        Err(error) => {
            anstream::eprintln!("error: {error}");
            return Ok(Status::Usage);
        }
    };
    let mut files = sources::of_folders(vec![surrounding.folder.clone()]);
    files.folders.extend(subject.path.parent().map(std::path::Path::to_owned));
    let config = surrounding.config_for(Some(&subject.path));
    if let Some(elsewhere) = Elsewhere::configured(&config.worker) {
        let device = arguments.shared.device.clone().unwrap_or_else(|| config.device.clone());
        let (file, python) = (Some(&*subject.path), arguments.called.python.clone());
        let settings = elsewhere::settings(surrounding, &arguments.shared, &config, device, file, python);
        let workspace = crate::setup::workspace_around(surrounding, file);
        let wanted = Wanted::of(&workspace).with_subject(&subject);
        let (title, named) = (format!("Profile {name}"), name.to_owned());
        let order =
            ProfileTorch { settings, subject, name: named, folders: files.folders, fresh: arguments.fresh };
        let order = Order::ProfileTorch(Box::new(order));
        return match (Ordered { elsewhere, order, wanted, title, kind: JobKind::Profile }).done()? {
            Ok(Outcome::Profile { profile }) => {
                let status = if profile.has_kernels() { Status::Good } else { Status::Bad };
                page.print(&profile, None, status, surrounding, out)
            }
            Ok(_) => Ok(elsewhere::other_outcome()),
            Err(status) => Ok(status),
        };
    }
    let fresh = arguments.fresh;
    let result = interrupt::until_done(1, |jobs, _| async move {
        let spinner = Spinner::new();
        let request = match request(arguments, surrounding, subject).await {
            Ok(request) => request,
            Err(status) => {
                spinner.clear();
                return Ok(Err(status));
            }
        };
        let job = Job::new(JobKind::Profile, format!("Profile {name}")).limit(limit_of(&request));
        let named = name.to_owned();
        let profiled = spinner.watch(&jobs, job, async move |telling: Telling| {
            let progress = |message: &str, share: Option<f32>| telling.say(message, share);
            Ok(profile(&named, &request, &files, fresh, &progress, telling.cancellation()).await)
        });
        Ok::<_, anyhow::Error>(Ok(profiled.await))
    })??;
    match result {
        Err(status) => Ok(status),
        Ok(Err(error)) => Ok(Status::of_job(&error)),
        Ok(Ok(Err(error))) => Ok(failed(&error)),
        Ok(Ok(Ok(profile))) => {
            let status = if profile.has_kernels() { Status::Good } else { Status::Bad };
            page.print(&profile, None, status, surrounding, out)
        }
    }
}

/// What is profiled: what was named, or a candidate for it, with its inputs.
fn subject(name: &str, arguments: &Arguments, surrounding: &Surrounding) -> Result<Subject, FindError> {
    let said = Said {
        inputs: arguments.called.inputs.clone(),
        init: arguments.called.init.clone(),
        ..Said::default()
    };
    let reference = find::reference(name, &surrounding.folder, &said)?;
    match &arguments.candidate {
        Some(candidate) => find::candidate(candidate, &surrounding.folder, &reference),
        None => Ok(reference),
    }
}

/// How it is run. `Err` with the status where something is missing, which was said.
async fn request(
    arguments: &Arguments,
    surrounding: &Surrounding,
    subject: Subject,
) -> std::result::Result<Request, Status> {
    let config = surrounding.config_for(Some(&subject.path));
    let asked = arguments.shared.device.clone().unwrap_or_else(|| config.device.clone());
    let machine = machine(surrounding, &config, &asked, arguments.called.python.as_deref()).await?;
    let time_limit = arguments.shared.limit();
    Ok(Request { time_limit, ..machine.request(subject.clone(), subject) })
}
