//! Profiles that are kept: by all that they were made from, so that what was measured once need not be measured again.
//!
//! A profile of a program stands while its sources, the files that they include, the flags, nvcc, this program, the device, the arguments and the ways to
//! profile that there are stay what they are. The compiler lists what it read, as for a compile on save. What a program reads when it runs is not known, but
//! for its declared inputs and for arguments that are files; `--fresh` measures again. A program with a build of its own, or of several sources, is not
//! kept: what goes into it is not known.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stitch_profiles::profile::Profile;
use stitch_session::cache::{Cache, Key};

use super::take::{Taken, Wanted};
use crate::compile::cached::{fingerprint, fingerprint_of_program, lookups};
use crate::compile::plan::Plan;
use crate::program::{Built, End, Ran, build};
use crate::simulation::Report;

/// What is kept on disk.
#[derive(Serialize, Deserialize)]
struct Kept {
    profile: Profile,
    run: Option<KeptRun>,
    took: Duration,
    files: Vec<(String, u64)>,
    /// Which of the paths that the compiler looked at exist.
    lookups: u64,
}

/// A run on the simulator that came to a good end.
#[derive(Serialize, Deserialize)]
struct KeptRun {
    report: Report,
    wall: Duration,
}

/// Where one profile is kept, if it is.
pub(super) struct Place {
    cache: Cache,
    key: Key,
    plan: Plan,
}

impl Place {
    /// The place of what is wanted; `None` for what is not kept. `ways` are those to profile that there are.
    pub(super) async fn of(wanted: &Wanted<'_>, cache: Cache, ways: &str) -> Option<Self> {
        let Wanted { program, builder, running, only, .. } = wanted;
        let [source] = &program.sources[..] else { return None };
        if program.own.is_some() {
            return None;
        }
        let (plan, flags) = build::planned(builder, program).await.ok()?;
        let options = &running.simulation;
        let mut parts: Vec<Vec<u8>> = vec![
            fingerprint_of_program(&options.executable)?.into_bytes(),
            fingerprint_of_program(&plan.nvcc)?.into_bytes(),
            flags.join("\0").into_bytes(),
            ways.as_bytes().to_vec(),
            running.device.to_string().into_bytes(),
            format!("{only:?} {:?} {:?} {:?}", options.sample, options.budget, options.checks).into_bytes(),
            vec![u8::from(options.caches)],
            source.file_name()?.as_encoded_bytes().to_vec(),
            std::fs::read(source).ok()?,
        ];
        parts.push(program.folder.as_os_str().as_encoded_bytes().to_vec());
        if plan.from_database {
            // Else it is where the source lies, which for a harness is another folder each time.
            parts.push(plan.directory.as_os_str().as_encoded_bytes().to_vec());
        }
        let variables =
            ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN", "PATH", "CPATH", "LD_LIBRARY_PATH"];
        parts.extend(variables.map(|name| std::env::var_os(name).unwrap_or_default().into_encoded_bytes()));
        for argument in program.arguments.iter().chain(&running.arguments) {
            parts.push(argument.as_bytes().to_vec());
            parts.extend(print(&program.folder.join(argument)));
        }
        parts.extend(program.inputs.iter().filter_map(|input| print(input)));
        let key = Key::of("profile", parts.iter().map(Vec::as_slice));
        Some(Self { cache, key, plan })
    }

    /// What is kept there, if it still holds.
    pub(super) fn get(&self) -> Option<Taken> {
        let mut kept: Kept = serde_json::from_slice(&self.cache.get(&self.key)?).ok()?;
        let same =
            |(name, print): &(String, u64)| fingerprint(&self.plan.directory.join(name)) == Some(*print);
        let names = kept.files.iter().map(|(name, _)| name);
        if !kept.files.iter().all(same) || kept.lookups != lookups(&self.plan, names) {
            return None;
        }
        kept.profile.way.kept = true;
        let ran = kept.run.map(|KeptRun { report, wall }| Ran {
            end: End::Status(0),
            stdout: String::new(),
            stderr: String::new(),
            wall,
            report: Some(Arc::new(report)),
            copies: None,
            perturbed: 0,
            unseen: Vec::new(),
        });
        Some(Taken { profile: kept.profile, ran, took: kept.took })
    }

    /// Keeps what came to a good end. Whether it was kept; nothing depends on it but time.
    pub(super) fn put(&self, taken: &Taken, built: &Built) -> bool {
        let Some(read) = &built.read else { return false };
        let run = match &taken.ran {
            None => None,
            Some(Ran { end: End::Status(0), report: Some(report), wall, .. }) if report.faults.is_empty() => {
                Some(KeptRun { report: Report::clone(report), wall: *wall })
            }
            Some(_) => return false,
        };
        // The source itself may lie in a scratch folder; its content is in the key.
        let is_source =
            |name: &str| built.program.sources.iter().any(|source| self.plan.directory.join(name) == *source);
        let files: Option<Vec<(String, u64)>> = read
            .iter()
            .filter(|name| !is_source(name))
            .map(|name| Some((name.clone(), fingerprint(&self.plan.directory.join(name))?)))
            .collect();
        let Some(files) = files else { return false };
        let lookups = lookups(&self.plan, files.iter().map(|(name, _)| name));
        let kept = Kept { profile: taken.profile.clone(), run, took: taken.took, files, lookups };
        serde_json::to_vec(&kept).is_ok_and(|bytes| self.cache.put(&self.key, &bytes))
    }
}

/// What tells the content of a file from another, where it is one.
fn print(path: &Path) -> Option<Vec<u8>> {
    path.is_file().then(|| fingerprint(path)).flatten().map(|print| print.to_le_bytes().to_vec())
}
