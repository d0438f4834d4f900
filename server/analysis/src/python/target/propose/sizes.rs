//! Sizes and values that stand in for names in a proposal. They are no knowledge: a person confirms them.

use std::collections::BTreeMap;

/// What a dimension of this name gets, by the ends and parts of names that are usual in PyTorch code. First match counts.
/// Small enough for a CPU, large enough for more than one block, and different where two that are mixed up should be noticed.
const SIZES: &[(Match, u64)] = &[
    (Match::Whole(&["n", "b", "bs", "bsz", "batch", "batch_size", "n_batch", "nbatch"]), 8),
    (Match::Whole(&["t", "l", "s", "q", "seq", "tgt", "src", "time", "steps"]), 32),
    (Match::Part(&["seq", "len", "token", "time", "frames"]), 32),
    (Match::Part(&["head"]), 4),
    (Match::Part(&["class"]), 10),
    (Match::Part(&["vocab", "ntoken", "num_embeddings"]), 100),
    (Match::Whole(&["h", "w", "height", "width", "hi", "wi", "ho", "wo"]), 32),
    (Match::Part(&["height", "width", "image", "img"]), 32),
    (Match::Whole(&["c", "ch", "cin", "c_in", "chs"]), 16),
    (Match::Part(&["channel", "plane", "chs", "filters"]), 16),
    (Match::Whole(&["d", "e", "f", "m", "p"]), 64),
    (Match::Part(&["dim", "feat", "hidden", "embed", "model", "size", "in", "out"]), 64),
];

/// What an argument of this name gets when a module is made.
const VALUES: &[(Match, &str)] = &[
    (Match::Part(&["factor"]), "2"),
    (Match::Part(&["padding_idx", "blank_idx"]), "0"),
    (Match::Part(&["kernel"]), "3"),
    (Match::Part(&["stride", "dilation", "group", "reduction"]), "1"),
    (Match::Part(&["padding"]), "1"),
    (Match::Part(&["head"]), "4"),
    (Match::Part(&["class"]), "10"),
    (Match::Part(&["vocab", "ntoken", "num_embeddings"]), "100"),
    (Match::Part(&["nlayer", "num_layer", "n_layer", "depth", "num_block", "n_block", "layers"]), "2"),
    (Match::Part(&["drop"]), "0.0"),
    (Match::Whole(&["eps", "epsilon"]), "1e-5"),
    (Match::Part(&["scale", "alpha", "beta", "gamma", "slope", "temperature", "ratio"]), "0.5"),
];

#[derive(Clone, Copy)]
enum Match {
    /// The name is one of these.
    Whole(&'static [&'static str]),
    /// One of these is in it.
    Part(&'static [&'static str]),
}

impl Match {
    fn holds(self, name: &str) -> bool {
        match self {
            Self::Whole(names) => names.contains(&name),
            Self::Part(parts) => parts.iter().any(|part| name.contains(part)),
        }
    }
}

/// The size of a dimension where nothing tells it.
const OTHER: u64 = 16;

/// Sizes by name, the same for one name throughout a proposal.
#[derive(Clone, Debug, Default)]
pub(super) struct Sizes {
    known: BTreeMap<String, String>,
}

impl Sizes {
    /// Says what a name stands for.
    pub(super) fn learn(&mut self, name: &str, value: &str) {
        self.known.insert(name.to_owned(), value.to_owned());
    }

    /// What a dimension's name stands for, as an expression.
    pub(super) fn of(&self, name: &str) -> String {
        let name = name.trim().trim_start_matches("self.");
        if name.parse::<u64>().is_ok() {
            return name.to_owned();
        }
        if let Some(value) = self.known.get(name) {
            return value.clone();
        }
        let lower = name.to_lowercase();
        let found = SIZES.iter().find(|(names, _)| names.holds(&lower));
        found.map_or(OTHER, |(_, size)| *size).to_string()
    }

    /// The value of an argument whose name is known to be that of a number and no tensor's: `kernel_size`, `eps`.
    pub(super) fn number(name: &str) -> Option<String> {
        let lower = name.to_lowercase();
        let numbers =
            VALUES.iter().find(|(names, _)| names.holds(&lower)).map(|(_, value)| (*value).to_owned());
        let size = ["num_", "n_", "in_ch", "out_ch", "in_plane", "out_plane", "inplanes"]
            .iter()
            .any(|start| lower.starts_with(start));
        numbers.or_else(|| size.then(|| Self::default().of(name)))
    }

    /// What an argument of a constructor or function may be, from its name and annotation; `None` where that would be a guess at a type.
    pub(super) fn argument(&self, name: &str, annotation: Option<&str>) -> Option<String> {
        if let Some(value) = self.known.get(name) {
            return Some(value.clone());
        }
        let lower = name.to_lowercase();
        let listed =
            VALUES.iter().find(|(names, _)| names.holds(&lower)).map(|(_, value)| (*value).to_owned());
        match annotation.map(str::trim) {
            Some("bool") => Some("True".to_owned()),
            Some("float") => {
                Some(listed.filter(|value| value.contains(['.', 'e'])).unwrap_or_else(|| "0.5".to_owned()))
            }
            Some("int") => {
                Some(listed.filter(|value| value.parse::<u64>().is_ok()).unwrap_or_else(|| self.of(name)))
            }
            // A plain name that is known to be a size.
            None => {
                listed.or_else(|| SIZES.iter().any(|(names, _)| names.holds(&lower)).then(|| self.of(name)))
            }
            Some(_) => None,
        }
    }
}
