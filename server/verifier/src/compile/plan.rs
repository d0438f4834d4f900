//! Decides what is compiled, with which flags, for which architecture.
//!
//! Flags: the entry of the compile database, unmodified, then those that a person configured. Architecture: the flags', else
//! the configured one, else the device's, else a default, which is then said.

use std::path::{Path, PathBuf};

use stitch_toolchain::compile_commands::{CompileCommands, Flags, FlagsProblem};

use super::{CompileRequest, Trouble, command, headers};
use crate::architecture::Architecture;

/// A compile that is decided.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub nvcc: PathBuf,
    /// The root of the toolkit that nvcc belongs to.
    pub root: PathBuf,
    /// `ptxas 13.5`, as provenance says it.
    pub tool: String,
    pub directory: PathBuf,
    /// Everything but input and output.
    pub arguments: Vec<String>,
    /// The source that nvcc is given.
    pub unit: PathBuf,
    /// What numbers are for where ptxas does not say: `sm_90`.
    pub architecture: Option<String>,
    /// Whether the output holds code for several architectures.
    pub several: bool,
    /// Whether the flags come from a compile database, which knows where headers are.
    pub from_database: bool,
    pub notes: Vec<String>,
}

/// Plans the compile of `path`. `None` for a header that no source includes.
pub(crate) fn plan(request: &CompileRequest, path: &Path) -> Result<Option<Plan>, Trouble> {
    Trouble::refuse_name(path)?;
    let database = database(request, path)?;
    let Some(unit) = headers::unit_of(path, database.as_ref(), request.workspace.as_deref()) else {
        return Ok(None);
    };
    Trouble::refuse_name(&unit)?;
    let mut notes = Vec::new();
    if unit != path {
        notes.push(format!("{} was compiled through {}, which includes it", path.display(), unit.display()));
    }
    let flags = match database.as_ref().and_then(|database| database.flags_for(&unit)) {
        Some(Ok(flags)) => Some(flags),
        Some(Err(problem @ FlagsProblem::OtherCompiler { .. })) => {
            notes.push(problem.to_string());
            None
        }
        Some(Err(problem)) => return Err(problem.into()),
        None => None,
    };
    let from_database = flags.is_some();
    let own_folder = unit.parent().unwrap_or(Path::new("/")).to_owned();
    let mut flags = flags.unwrap_or_else(|| Flags {
        directory: request.workspace.clone().unwrap_or(own_folder),
        compiler: request.toolkit.nvcc.clone(),
        architectures: Vec::new(),
        arguments: Vec::new(),
        unit: unit.clone(),
        note: None,
    });
    flags.arguments.extend(configured_flags(request));
    flags.architectures.extend(command::architectures(&request.flags));
    Ok(Some(Plan { from_database, ..with_flags(request, unit, flags, notes) }))
}

/// Plans the compile, with these flags, of a source that no database can know, such as a string of a Python file.
pub(super) fn plan_alone(
    request: &CompileRequest,
    unit: PathBuf,
    directory: &Path,
    flags: Vec<String>,
) -> Plan {
    let flags = Flags {
        directory: directory.to_owned(),
        compiler: request.toolkit.nvcc.clone(),
        architectures: command::architectures(&flags),
        arguments: flags,
        unit: unit.clone(),
        note: None,
    };
    with_flags(request, unit, flags, Vec::new())
}

/// The flags that a person configured; their relative paths start at the workspace.
pub(super) fn configured_flags(request: &CompileRequest) -> Vec<String> {
    match &request.workspace {
        Some(base) => command::based(&request.flags, base),
        None => request.flags.clone(),
    }
}

fn database(request: &CompileRequest, path: &Path) -> Result<Option<CompileCommands>, Trouble> {
    let found = match &request.compile_commands {
        Some(configured) => {
            let base = request.workspace.as_deref().unwrap_or(Path::new(""));
            Some(CompileCommands::load(&base.join(configured)))
        }
        None => CompileCommands::find(path, request.workspace.as_deref()),
    };
    Ok(found.transpose()?)
}

fn with_flags(request: &CompileRequest, unit: PathBuf, flags: Flags, mut notes: Vec<String>) -> Plan {
    notes.extend(flags.note.clone());
    let (nvcc, root, tool) = compiler(request, &flags.compiler);
    let mut arguments = flags.arguments;
    let mut architectures = flags.architectures;
    if architectures.is_empty() {
        let chosen = choose_architecture(request, &mut notes);
        arguments.push(format!("-arch={chosen}"));
        architectures.push(chosen);
    } else {
        command::add_real_code(&mut arguments, &mut architectures);
    }
    let names_host_compiler =
        arguments.iter().any(|flag| flag.starts_with("-ccbin") || flag.starts_with("--compiler-bindir"));
    if let Some(host) = request.host_compiler.as_ref().filter(|_| !names_host_compiler) {
        arguments.push(format!("-ccbin={}", host.display()));
    }
    let real: Vec<Architecture> = architectures
        .iter()
        .filter(|name| name.starts_with("sm_"))
        .filter_map(|name| name.parse().ok())
        .collect();
    let several = architectures.len() > 1 || architectures.iter().any(|name| name.starts_with("all"));
    let architecture = real.first().map(|one| one.real());
    Plan {
        nvcc,
        root,
        tool,
        directory: flags.directory,
        arguments,
        unit,
        architecture,
        several,
        from_database: false,
        notes,
    }
}

/// The nvcc of the entry if it is a path that exists, since that is what the project is built with; else the toolkit's.
fn compiler(request: &CompileRequest, named: &Path) -> (PathBuf, PathBuf, String) {
    let toolkit = &request.toolkit;
    let known = format!("ptxas {}.{}", toolkit.version.major, toolkit.version.minor);
    let other = named.is_absolute() && named != toolkit.nvcc && named.is_file();
    // A compile that was translated from another compiler's has no nvcc to name.
    let is_nvcc = named.file_name().is_some_and(|name| name.to_string_lossy().starts_with("nvcc"));
    if !(other && is_nvcc) {
        return (toolkit.nvcc.clone(), toolkit.root.clone(), known);
    }
    let canonical = crate::paths::canonical(named);
    let root = canonical.parent().and_then(Path::parent).unwrap_or(&toolkit.root).to_owned();
    let same = canonical == crate::paths::canonical(&toolkit.nvcc);
    (named.to_owned(), root, if same { known } else { "ptxas".to_owned() })
}

/// The newest architecture that each CUDA version takes and that many people have.
const DEFAULTS: [((u32, u32), (u16, u16)); 4] =
    [((11, 8), (9, 0)), ((11, 0), (8, 0)), ((10, 0), (7, 5)), ((9, 0), (7, 0))];

fn choose_architecture(request: &CompileRequest, notes: &mut Vec<String>) -> String {
    if let Some(configured) = request.architecture.as_deref().map(str::trim).filter(|name| !name.is_empty()) {
        return configured
            .parse::<Architecture>()
            .map_or_else(|_| configured.to_owned(), |known| known.to_string());
    }
    if let Some(device) = request.device {
        return device.real();
    }
    let version = (request.toolkit.version.major, request.toolkit.version.minor);
    let row = DEFAULTS.iter().find(|(since, _)| version >= *since).unwrap_or(&DEFAULTS[DEFAULTS.len() - 1]);
    let (major, minor) = row.1;
    let chosen = Architecture::new(major, minor);
    notes.push(format!("neither a device nor the configuration names an architecture; {chosen} was assumed"));
    chosen.real()
}

impl Plan {
    /// Whether the flags say whether device code is relocatable.
    pub(crate) fn is_relocatable(&self) -> bool {
        self.arguments
            .iter()
            .any(|flag| flag.starts_with("-rdc") || flag.starts_with("--relocatable-device-code"))
    }

    /// Folders in which headers are looked for, in no order: those of the flags and of the environment, then the toolkit's and the
    /// system's.
    pub(super) fn include_folders(&self) -> Vec<PathBuf> {
        let resolve = |folder: &str| crate::paths::resolve(folder, &self.directory);
        let mut folders: Vec<PathBuf> =
            command::include_folders(&self.arguments).iter().map(|folder| resolve(folder)).collect();
        for variable in ["CPATH", "CPLUS_INCLUDE_PATH", "INCLUDE"] {
            let value = std::env::var_os(variable).unwrap_or_default();
            folders.extend(std::env::split_paths(&value).filter(|folder| folder.is_absolute()));
        }
        folders.push(self.root.join("include"));
        folders.extend(["/usr/local/include", "/usr/include"].map(PathBuf::from));
        folders
    }

    /// Folders whose headers are not the user's.
    pub(super) fn system_folders(&self) -> Vec<PathBuf> {
        let mut folders = vec![crate::paths::canonical(&self.root)];
        folders.extend(
            command::system_folders(&self.arguments)
                .into_iter()
                .map(|folder| crate::paths::resolve(&folder, &self.directory)),
        );
        folders.extend(
            ["/usr/include", "/usr/lib", "/usr/local/include", "/usr/local/cuda", "/opt/cuda"]
                .map(PathBuf::from),
        );
        folders
    }
}

#[cfg(test)]
impl Plan {
    /// A plan for `k.cu` in a folder, without flags.
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self {
            nvcc: PathBuf::from("nvcc"),
            root: folder.join("toolkit"),
            tool: "ptxas 13.5".to_owned(),
            directory: folder.to_owned(),
            arguments: Vec::new(),
            unit: folder.join("k.cu"),
            architecture: None,
            several: false,
            from_database: false,
            notes: Vec::new(),
        }
    }
}
