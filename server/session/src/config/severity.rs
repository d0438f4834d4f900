//! Which findings are shown, and how severe they are, as configured.

use stitch_findings::{Code, Producer, Severity};

use super::model::{Config, Level};

impl Level {
    /// The severity; `None` is off.
    pub fn severity(self) -> Option<Severity> {
        match self {
            Self::Off => None,
            Self::Hint => Some(Severity::Hint),
            Self::Information => Some(Severity::Information),
            Self::Warning => Some(Severity::Warning),
            Self::Error => Some(Severity::Error),
        }
    }
}

impl Config {
    /// How severe a finding of this code is, whose own severity is `own`. `None`: it is not shown.
    pub fn severity(&self, code: Code, own: Severity) -> Option<Severity> {
        let info = code.info();
        if info.producer == Producer::Static && !self.static_rules.enable {
            return None;
        }
        if let Some(level) = self.diagnostics.severity.get(code.as_str()) {
            return level.severity();
        }
        if !info.on_by_default {
            return None;
        }
        let patterns =
            self.diagnostics.severity.iter().filter(|(pattern, _)| matches(pattern, code.as_str()));
        // Of two of the same length the later in the alphabet, so that it is the same each time.
        match patterns.max_by_key(|(pattern, _)| (pattern.len(), pattern.as_str())) {
            Some((_, level)) => level.severity(),
            None => Some(own),
        }
    }
}

/// Whether `text` is what `pattern` says, in which each `*` stands for any text.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        // The earliest place leaves the most for the parts after.
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use stitch_findings::CODES;

    use super::*;

    #[test]
    fn patterns_match_whole_codes() {
        let cases = [
            ("static/x", "static/x", true),
            ("static/x", "static/xy", false),
            ("static/*", "static/x", true),
            ("static/*", "sstatic/x", false),
            ("*", "", true),
            ("*", "nvcc/error", true),
            ("*/error", "nvcc/error", true),
            ("*/error", "nvcc/errors", false),
            ("s*c/*x*z", "static/aaxbxcz", true),
            ("a*a", "a", false),
            ("a**a", "aa", true),
            ("", "", true),
            ("", "a", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(matches(pattern, text), expected, "{pattern} on {text}");
        }
    }

    fn config(entries: &[(&str, Level)]) -> Config {
        let mut config = Config::default();
        config.diagnostics.severity =
            entries.iter().map(|(code, level)| ((*code).to_owned(), *level)).collect();
        config
    }

    #[test]
    fn a_code_wins_over_a_pattern_and_a_longer_pattern_over_a_shorter() {
        let code = Code::parse("static/double-literal").unwrap();
        let own = Severity::Information;
        let cases = [
            (&[][..], Some(own)),
            (&[("static/*", Level::Hint)], Some(Severity::Hint)),
            (&[("static/*", Level::Hint), ("*", Level::Error)], Some(Severity::Hint)),
            (&[("static/*", Level::Hint), ("static/double-*", Level::Off)], None),
            (&[("static/*", Level::Off), ("static/double-literal", Level::Warning)], Some(Severity::Warning)),
            (&[("nvcc/*", Level::Off)], Some(own)),
        ];
        for (entries, expected) in cases {
            assert_eq!(config(entries).severity(code, own), expected, "{entries:?}");
        }
    }

    #[test]
    fn what_is_off_by_default_is_turned_on_by_its_own_name_only() {
        for info in CODES {
            let shown = |entries: &[(&str, Level)]| config(entries).severity(info.code, info.severity);
            assert_eq!(shown(&[]).is_some(), info.on_by_default, "{}", info.code);
            assert_eq!(shown(&[("*", Level::Hint)]).is_some(), info.on_by_default, "{}", info.code);
            assert_eq!(shown(&[(info.code.as_str(), Level::Hint)]), Some(Severity::Hint), "{}", info.code);
        }
    }

    #[test]
    fn without_static_rules_only_theirs_are_gone() {
        let mut config = config(&[("static/double-literal", Level::Error)]);
        config.static_rules.enable = false;
        for info in CODES {
            let shown = config.severity(info.code, info.severity).is_some();
            assert_eq!(shown, info.producer != Producer::Static && info.on_by_default, "{}", info.code);
        }
    }
}
