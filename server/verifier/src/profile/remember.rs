//! What was found out about this machine's profilers, so that it is found out once: what is refused here, and the metrics of its GPU.
//!
//! It is kept under all that it hangs on: the tools, the driver and its parameters, the user's rights. When one of them changes, everything is
//! tried again.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};
use stitch_session::cache::{Cache, Key};
use stitch_toolchain::discovery::{Profilers, Search};
use tokio_util::sync::CancellationToken;

use super::ladder::Rung;
use super::{Refused, ncu};

/// Files that say what the driver is and allows.
const DRIVER: [&str; 2] = ["proc/driver/nvidia/version", "proc/driver/nvidia/params"];

/// The memory of one machine and user.
#[derive(Clone, Debug)]
pub struct Memory {
    cache: Cache,
    key: Key,
}

/// What is written down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Known {
    /// Words of rungs, and why each does not work here.
    refused: Vec<(String, String)>,
    /// Metrics of the GPU, by their names without endings.
    metrics: BTreeSet<String>,
}

impl Memory {
    /// What is known about these profilers here.
    pub fn of(cache: Cache, search: &Search, profilers: &Profilers) -> Self {
        let tool = |path: &Path| {
            let stamp = std::fs::metadata(path).and_then(|data| data.modified());
            format!("{} {stamp:?}", path.display())
        };
        let mut parts: Vec<String> =
            profilers.ncu.iter().chain(&profilers.nsys).map(|path| tool(path)).collect();
        parts.extend(
            DRIVER
                .iter()
                .map(|file| std::fs::read_to_string(search.environment.under_root(file)).unwrap_or_default()),
        );
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let rights = |line: &&str| line.starts_with("CapEff:") || line.starts_with("Uid:");
        parts.extend(status.lines().filter(rights).map(str::to_owned));
        let key = Key::of("profilers", parts.iter().map(String::as_bytes));
        Self { cache, key }
    }

    /// What is refused here, and why.
    pub fn refused(&self) -> Vec<(Rung, String)> {
        let rung = |(word, why): (String, String)| Some((Rung::named(&word)?, why));
        self.read().refused.into_iter().filter_map(rung).collect()
    }

    /// Writes down that a rung does not work here. Both that need Nsight Compute fail together.
    pub(super) fn refuse(&self, rung: Rung, why: &str) {
        let mut known = self.read();
        let with_ncu = [Rung::NcuAndNsys, Rung::Ncu];
        let rungs: &[Rung] = if with_ncu.contains(&rung) { &with_ncu } else { &[rung] };
        for rung in rungs {
            known.refused.retain(|(word, _)| word != rung.word());
            known.refused.push((rung.word().to_owned(), why.to_owned()));
        }
        self.write(&known);
    }

    /// The metrics that the GPU has, asked once.
    pub(super) async fn metrics(
        &self,
        ncu: &Path,
        cancel: &CancellationToken,
    ) -> Result<BTreeSet<String>, Refused> {
        let known = self.read();
        if !known.metrics.is_empty() {
            return Ok(known.metrics);
        }
        let metrics = ncu::metrics(ncu, None, cancel).await?;
        self.write(&Known { metrics: metrics.clone(), ..self.read() });
        Ok(metrics)
    }

    fn read(&self) -> Known {
        let bytes = self.cache.get(&self.key);
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    fn write(&self, known: &Known) {
        if let Ok(bytes) = serde_json::to_vec(known) {
            self.cache.put(&self.key, &bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use stitch_toolchain::environment::Environment;

    use super::*;

    #[test]
    fn what_is_refused_is_remembered_until_the_driver_or_a_tool_changes() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("proc/driver/nvidia")).unwrap();
        std::fs::write(at("proc/driver/nvidia/params"), "RmProfilingAdminOnly: 1\n").unwrap();
        let search = Search::new(Environment::of_this_process().with_root(folder.path()));
        let cache = Cache::open(Some(&at("cache")), 1 << 20);
        let profilers = Profilers { ncu: Some(at("ncu")), nsys: None };
        let memory = || Memory::of(cache.clone(), &search, &profilers);
        assert_eq!(memory().refused(), []);
        memory().refuse(Rung::NcuAndNsys, "It is refused.");
        memory().refuse(Rung::NcuAndNsys, "It is refused.");
        let rungs: Vec<Rung> = memory().refused().into_iter().map(|(rung, _)| rung).collect();
        assert_eq!(rungs, [Rung::NcuAndNsys, Rung::Ncu]);
        std::fs::write(at("proc/driver/nvidia/params"), "RmProfilingAdminOnly: 0\n").unwrap();
        assert_eq!(memory().refused(), []);
    }
}
