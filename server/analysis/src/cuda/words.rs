//! The names and keywords of a text, its comments and literals left out.

use super::lexer::{Kind, Lexer, Token};

/// The names and keywords of a CUDA text in its order, those of preprocessor lines included, each with the byte where it
/// starts.
pub fn words(text: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut add = |token: &Token| {
        let word = (token.kind == Kind::Word).then(|| text.get(token.start..token.end)).flatten();
        words.extend(word.map(|word| (token.start, word)));
    };
    for token in Lexer::at(text, 0) {
        match token.kind {
            Kind::Directive => Lexer::within(text, token.start, token.end).for_each(|inner| add(&inner)),
            _ => add(&token),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn comments_and_literals_hold_no_words() {
        let text = "#define T half // float\nT f(/* int */ char c) { return \"double\"[0] + 1.0f; }";
        let found: Vec<&str> = words(text).into_iter().map(|(_, word)| word).collect();
        assert_eq!(found, ["define", "T", "half", "T", "f", "char", "c", "return"]);
        assert_eq!(words(text)[2].0, 10);
    }
}
