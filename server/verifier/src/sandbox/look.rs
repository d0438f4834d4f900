//! Looks around inside: what a program there can really do, whatever the layers promise.

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// What a program inside can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// It can write its scratch folder.
    pub writes_scratch: bool,
    /// It can open a socket to the network. In a network namespace it leads nowhere.
    pub opens_sockets: bool,
    /// It can list the person's home folder.
    pub lists_home: bool,
    /// It can make a file in a folder of the system.
    pub writes_system: bool,
}

/// Tries, in this process. `home` is the folder of the person outside.
pub fn look(home: Option<&Path>) -> Seen {
    let scratch = std::env::var_os("TMPDIR").unwrap_or_default();
    let writes = |folder: &Path| {
        let path = folder.join(format!(".stitchcuda-{}", std::process::id()));
        let written = fs::write(&path, "x").is_ok();
        // One that was written must not stay.
        let _ = fs::remove_file(path);
        written
    };
    Seen {
        writes_scratch: writes(Path::new(&scratch)),
        opens_sockets: UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).is_ok(),
        // Its scratch folder may lie in it: then it is there, with nothing else in it.
        lists_home: home.is_some_and(|home| fs::read_dir(home).is_ok_and(|entries| entries.count() > 1)),
        writes_system: ["/usr", "/etc", "/var/tmp", "/"].iter().any(|folder| writes(Path::new(folder))),
    }
}
