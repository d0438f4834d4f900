//! The one place that knows where our files live.
//!
//! On Linux and macOS the XDG folders, on Windows the native ones. Each can be moved by an environment variable, which
//! is how a cluster points them at a local disk, and how tests stay out of the user's home. A folder that can't be
//! known (no home, an unsafe one in `/tmp`) is `None`; its user then does without.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

/// The name of our folder inside each of the user's.
const NAME: &str = "stitchcuda";

/// The variables that move a folder, in the order of the fields of [`Folders`].
pub const OVERRIDES: [&str; 4] =
    ["STITCHCUDA_CACHE_DIR", "STITCHCUDA_CONFIG_DIR", "STITCHCUDA_STATE_DIR", "STITCHCUDA_RUNTIME_DIR"];

/// Where our files live. Nothing is created by asking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folders {
    /// What can be made again: compile results, private toolkits. `~/.cache/stitchcuda`, or `STITCHCUDA_CACHE_DIR`.
    pub cache: Option<PathBuf>,
    /// What the user writes: `stitchcuda.toml`. `~/.config/stitchcuda`, or `STITCHCUDA_CONFIG_DIR`.
    pub config: Option<PathBuf>,
    /// What should outlive a restart but is of no worth elsewhere: logs. `~/.local/state/stitchcuda`, or
    /// `STITCHCUDA_STATE_DIR`.
    pub state: Option<PathBuf>,
    /// What ends with the login: locks. `$XDG_RUNTIME_DIR/stitchcuda`, else a folder of the user's own in the temporary
    /// folder, or `STITCHCUDA_RUNTIME_DIR`.
    pub runtime: Option<PathBuf>,
}

impl Folders {
    /// The folders of the user who runs this process.
    pub fn find() -> Self {
        let base = etcetera::choose_base_strategy().ok();
        let base = base.as_ref().map(|base| base as &dyn BaseStrategy);
        Self::from(&|name| std::env::var_os(name), base)
    }

    /// The folders for an environment and a user's base folders.
    pub fn from(environment: &dyn Fn(&str) -> Option<OsString>, base: Option<&dyn BaseStrategy>) -> Self {
        // A relative path would mean another folder for each working directory, so it is taken as unset, as XDG does.
        let moved = |name| environment(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let [cache, config, state, runtime] = OVERRIDES;
        let home_of = |of: &dyn Fn(&dyn BaseStrategy) -> PathBuf| base.map(|base| of(base).join(NAME));
        Self {
            cache: moved(cache).or_else(|| home_of(&|base| base.cache_dir())),
            config: moved(config).or_else(|| home_of(&|base| base.config_dir())),
            state: moved(state)
                .or_else(|| home_of(&|base| base.state_dir().unwrap_or_else(|| base.data_dir()))),
            runtime: moved(runtime)
                .or_else(|| base.and_then(BaseStrategy::runtime_dir).map(|path| path.join(NAME)))
                .or_else(|| Some(std::env::temp_dir().join(temporary_name()))),
        }
    }
}

/// The name of a user's own folder in a temporary folder that all users share.
fn temporary_name() -> String {
    #[cfg(unix)]
    return format!("{NAME}-{}", nix::unistd::geteuid());
    #[cfg(not(unix))]
    NAME.to_owned()
}

/// Creates a folder that only its user can enter, with its parents.
///
/// # Errors
/// When it can't be created or is no folder. Directly in the temporary folder, which all users share, also when it
/// belongs to someone else, who could have put it there to mislead us.
pub fn create_private(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    #[cfg(unix)]
    if path.parent() == Some(std::env::temp_dir().as_path()) {
        check_owner(std::os::unix::fs::MetadataExt::uid(&std::fs::symlink_metadata(path)?), path)?;
    }
    Ok(())
}

#[cfg(unix)]
fn check_owner(owner: u32, path: &Path) -> io::Result<()> {
    if owner == nix::unistd::geteuid().as_raw() {
        return Ok(());
    }
    let message =
        format!("{} belongs to another user; set {} to a folder of your own", path.display(), OVERRIDES[3]);
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A home on disk, with or without a runtime folder.
    struct Home(&'static str, Option<&'static str>);

    impl BaseStrategy for Home {
        fn home_dir(&self) -> &Path {
            Path::new(self.0)
        }
        fn config_dir(&self) -> PathBuf {
            self.home_dir().join(".config")
        }
        fn data_dir(&self) -> PathBuf {
            self.home_dir().join(".local/share")
        }
        fn cache_dir(&self) -> PathBuf {
            self.home_dir().join(".cache")
        }
        fn state_dir(&self) -> Option<PathBuf> {
            Some(self.home_dir().join(".local/state"))
        }
        fn runtime_dir(&self) -> Option<PathBuf> {
            self.1.map(PathBuf::from)
        }
    }

    fn nothing_set(_: &str) -> Option<OsString> {
        None
    }

    #[test]
    fn the_users_folders_are_used() {
        let folders = Folders::from(&nothing_set, Some(&Home("/home/u", Some("/run/user/7"))));
        let at = |path: &str| Some(PathBuf::from(path));
        assert_eq!(folders.cache, at("/home/u/.cache/stitchcuda"));
        assert_eq!(folders.config, at("/home/u/.config/stitchcuda"));
        assert_eq!(folders.state, at("/home/u/.local/state/stitchcuda"));
        assert_eq!(folders.runtime, at("/run/user/7/stitchcuda"));
    }

    #[test]
    fn without_a_home_only_the_runtime_folder_is_left() {
        let folders = Folders::from(&nothing_set, None);
        assert_eq!((folders.cache, folders.config, folders.state), (None, None, None));
        let runtime = folders.runtime.unwrap();
        assert!(runtime.starts_with(std::env::temp_dir()));
        assert!(runtime.file_name().unwrap().to_string_lossy().starts_with("stitchcuda"));
    }

    #[test]
    fn each_folder_can_be_moved_but_not_to_a_relative_path() {
        let moved =
            Folders::from(&|name| Some(format!("/moved/{name}").into()), Some(&Home("/home/u", None)));
        for (folder, name) in
            [moved.cache, moved.config, moved.state, moved.runtime].into_iter().zip(OVERRIDES)
        {
            assert_eq!(folder, Some(Path::new("/moved").join(name)));
        }
        let relative = Folders::from(&|_| Some("here".into()), Some(&Home("/home/u", Some("/run/user/7"))));
        assert_eq!(relative, Folders::from(&nothing_set, Some(&Home("/home/u", Some("/run/user/7")))));
    }

    #[cfg(unix)]
    #[test]
    fn a_private_folder_is_closed_to_others_and_a_foreign_one_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("a/b");
        create_private(&path).unwrap();
        create_private(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::write(temporary.path().join("file"), "").unwrap();
        assert!(create_private(&temporary.path().join("file")).is_err());
        let own = nix::unistd::geteuid().as_raw();
        assert!(check_owner(own, &path).is_ok());
        assert!(check_owner(own + 1, &path).unwrap_err().to_string().contains("STITCHCUDA_RUNTIME_DIR"));
    }
}
