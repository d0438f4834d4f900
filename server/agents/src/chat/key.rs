//! A key that is never shown.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

/// Where keys are looked for, in this order.
pub const KEY_VARIABLES: [&str; 2] = ["STITCHCUDA_API_KEY", "OPENAI_API_KEY"];
/// What stands in a text in place of a key.
const REDACTED: &str = "[key]";
/// Shorter ones are placeholders that servers without keys ask for (`none`, `EMPTY`), and words of every text.
const SHORTEST_SECRET: usize = 8;
/// As many letters of a key in a row as give it away.
const TELLING_PART: usize = 12;

/// A key for an endpoint. It can be sent, but not printed.
#[derive(Clone)]
pub struct Key {
    secret: SecretString,
    from: String,
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Key(from {})", self.from)
    }
}

impl Key {
    /// A key and where it came from, in words: the name of a variable, `the editor's secret store`. `None` for an empty one. Line ends
    /// and spaces around it are how files of keys look, and not part of it.
    pub fn new(secret: &str, from: impl Into<String>) -> Option<Self> {
        let secret = secret.trim();
        (!secret.is_empty()).then(|| Self { secret: SecretString::from(secret), from: from.into() })
    }

    /// The key that the environment has, `variable` telling the value of each.
    pub fn find(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        KEY_VARIABLES.iter().find_map(|name| Self::new(&variable(name)?, *name))
    }

    /// Where it came from.
    pub fn from(&self) -> &str {
        &self.from
    }

    pub(super) fn secret(&self) -> &SecretString {
        &self.secret
    }

    /// The text without the key, should it be in there.
    pub(super) fn redact(&self, text: &str) -> String {
        let secret = self.secret.expose_secret();
        if secret.len() < SHORTEST_SECRET { text.to_owned() } else { text.replace(secret, REDACTED) }
    }

    /// What an endpoint says, without the key or a telling part of it.
    pub(super) fn redact_parts(&self, text: &str) -> String {
        let mut text = self.redact(text);
        let secret: Vec<_> = self.secret.expose_secret().chars().collect();
        for part in secret.windows(TELLING_PART) {
            let part: String = part.iter().collect();
            if let Some(at) = text.find(&part) {
                // The rest of the word is the rest of the key.
                let is_key = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '_' | '.' | '*');
                let end = text[at..].find(|one| !is_key(one)).map_or(text.len(), |length| at + length);
                text.replace_range(at..end, REDACTED);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_sent_and_not_shown() {
        let variables = |name: &str| match name {
            "STITCHCUDA_API_KEY" => Some(" \n".to_owned()),
            "OPENAI_API_KEY" => Some("sk-abcdefghijklmnop\n".to_owned()),
            _ => None,
        };
        let key = Key::find(variables).unwrap();
        assert_eq!(format!("{key:?}"), "Key(from OPENAI_API_KEY)");
        assert_eq!(key.secret().expose_secret(), "sk-abcdefghijklmnop");
        assert_eq!(key.redact("a sk-abcdefghijklmnop b"), "a [key] b");
        assert_eq!(key.redact_parts("key sk-abcdefghijklm***, sorry"), "key [key], sorry");
        assert!(Key::find(|_| None).is_none());
        let placeholder = Key::new("none", "x").unwrap();
        assert_eq!(placeholder.redact_parts("there is none"), "there is none");
    }
}
