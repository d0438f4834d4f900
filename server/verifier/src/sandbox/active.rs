//! What of the sandbox is active: seen from inside, not assumed; and what is not, with the reason.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One kind of protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Layer {
    /// The mounts and namespaces were made by `bwrap`.
    Bubblewrap,
    /// Root inside is nobody outside.
    UserNamespace,
    /// A file system of its own: the system read-only, no home folder, `/tmp` and `/dev/shm` private and small.
    Files,
    /// Other processes can't be seen, and all of its own end with the first.
    PidNamespace,
    /// No network device.
    NetworkNamespace,
    /// No shared memory or queues of others.
    IpcNamespace,
    /// A host name of its own.
    UtsNamespace,
    /// No sight of the cgroups outside.
    CgroupNamespace,
    /// Paths are also checked by the kernel's Landlock.
    Landlock,
    /// No signal to a process outside, by Landlock.
    LandlockSignals,
    /// System calls are filtered: no tracing, no mounts, no sockets but unix ones.
    Seccomp,
    /// No capability, also for root.
    NoCapabilities,
    /// No program gives it more rights.
    NoNewPrivileges,
    /// The kernel ends it when it takes too much memory.
    CgroupMemory,
    /// The kernel refuses it more processes.
    CgroupTasks,
    /// Its memory is looked at many times a second.
    WatchedMemory,
    /// Its processes and threads are counted many times a second.
    WatchedTasks,
    /// Processor time, the size of files, open files; no core dumps.
    Limits,
}

impl Layer {
    /// In words, as part of a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::Bubblewrap => "bubblewrap",
            Self::UserNamespace => "user namespace",
            Self::Files => "file system of its own (system read-only, no home)",
            Self::PidNamespace => "process namespace",
            Self::NetworkNamespace => "network namespace",
            Self::IpcNamespace => "IPC namespace",
            Self::UtsNamespace => "host name namespace",
            Self::CgroupNamespace => "cgroup namespace",
            Self::Landlock => "Landlock on paths",
            Self::LandlockSignals => "Landlock on signals",
            Self::Seccomp => "seccomp",
            Self::NoCapabilities => "no capabilities",
            Self::NoNewPrivileges => "no new privileges",
            Self::CgroupMemory => "memory limited by cgroup",
            Self::CgroupTasks => "processes limited by cgroup",
            Self::WatchedMemory => "memory watched",
            Self::WatchedTasks => "processes counted",
            Self::Limits => "limits on processor time and files",
        }
    }
}

/// What is not active, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// What it would be.
    pub what: String,
    /// Why it is not, and what to do where something can be done; a sentence without its full stop.
    pub why: String,
}

/// What of the sandbox is active.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Active {
    /// What is, in the order of [`Layer`].
    pub layers: Vec<Layer>,
    /// What is not.
    pub missing: Vec<Missing>,
}

impl Active {
    /// Whether a kind of protection is active.
    pub fn has(&self, layer: Layer) -> bool {
        self.layers.contains(&layer)
    }

    /// Whether there is no way to the network.
    pub fn hides_network(&self) -> bool {
        self.has(Layer::NetworkNamespace) || self.has(Layer::Seccomp)
    }

    /// Whether the home folder, and other files of the person, can't be read, nor the system written.
    pub fn hides_files(&self) -> bool {
        self.has(Layer::Files) || self.has(Layer::Landlock)
    }

    /// Whether the variables and the memory of other processes can't be read.
    pub fn hides_processes(&self) -> bool {
        self.has(Layer::PidNamespace) || self.has(Layer::UserNamespace) || self.has(Layer::Landlock)
    }

    /// Whether what matters most holds: no network, no files of the person, no other process.
    pub fn is_tight(&self) -> bool {
        self.hides_network() && self.hides_files() && self.hides_processes()
    }

    pub(super) fn add(&mut self, layer: Layer) {
        self.layers.push(layer);
        self.layers.sort_unstable();
        self.layers.dedup();
    }

    pub(super) fn lack(&mut self, what: impl Into<String>, why: impl fmt::Display) {
        let missing = Missing { what: what.into(), why: why.to_string() };
        if !self.missing.contains(&missing) {
            self.missing.push(missing);
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        other.layers.into_iter().for_each(|layer| self.add(layer));
        other.missing.into_iter().for_each(|missing| self.lack(missing.what, missing.why));
    }
}

impl fmt::Display for Active {
    /// Sentences for a person.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.layers.is_empty() {
            formatter.write_str("Nothing confines it.")?;
        } else {
            let words: Vec<_> = self.layers.iter().map(|layer| layer.words()).collect();
            write!(formatter, "It runs in a sandbox: {}.", words.join(", "))?;
        }
        for missing in &self.missing {
            write!(formatter, " Without {}: {}.", missing.what, missing.why)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_reads_what_is_active_and_what_is_not() {
        let mut active = Active::default();
        assert_eq!(active.to_string(), "Nothing confines it.");
        active.add(Layer::Seccomp);
        assert!(active.hides_network() && !active.hides_files() && !active.is_tight());
        active.add(Layer::PidNamespace);
        active.add(Layer::Seccomp);
        active.lack("Landlock", "the kernel has none");
        active.lack("Landlock", "the kernel has none");
        assert_eq!(
            active.to_string(),
            "It runs in a sandbox: process namespace, seccomp. Without Landlock: the kernel has none."
        );
        active.add(Layer::Landlock);
        assert!(active.is_tight());
    }

    #[test]
    fn it_can_be_written_and_read() {
        let mut active = Active::default();
        active.add(Layer::CgroupTasks);
        active.lack("a", "b");
        let text = serde_json::to_string(&active).unwrap();
        assert_eq!(text, r#"{"layers":["cgroupTasks"],"missing":[{"what":"a","why":"b"}]}"#);
        assert_eq!(serde_json::from_str::<Active>(&text).unwrap(), active);
    }
}
