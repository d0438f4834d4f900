//! The configuration: one documented struct, and the way from what people write to it.
//!
//! `model` holds the struct, `optimize` a part of it. Everything else follows from it through its JSON schema: which keys there are (`keys`), what is
//! read from each source (`sources`, `file`), how a value is checked and what is said of a wrong one (`check`), which
//! source wins for which file (`settings`), and the documentation, the editors' tables and types (`generate`). So a
//! new setting is one documented field.
//!
//! Nothing a person writes makes a start fail: what can't be used is left out, and said once.

mod check;
mod expand;
mod file;
mod generate;
mod keys;
mod model;
mod optimize;
mod runs;
mod settings;
mod severity;
mod sources;
mod target;
mod warning;

pub use generate::{luacats, markdown, package_json_properties, restricted_keys, schema, vimdoc};
pub use keys::{Key, PathKind, keys};
pub use model::{
    Architecture, Cache, Clang, CodeLens, Compile, Config, Device, Diagnostics, Files, Hover, InlayHints,
    Level, Log, LogLevel, Nvcc, Occupancy, StaleHints, StaticRules, Switch,
};
pub use optimize::{EngineChoice, Model, Optimize};
pub use runs::{Checks, OnSave, OnSaveProfile, Worker};
pub use settings::{FILE_NAME, Folder, Settings, Surroundings, workspace_of};
pub use target::{NamedTarget, Precision, Target};
pub use warning::{Position, Source, Warning};
