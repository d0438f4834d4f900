//! What the scanner notices about an item before its body: enough to tell where the item ends.

use super::lexer::{Kind, Token};

/// What was seen of an item outside braces.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// How many words stand outside parentheses.
    words: u32,
    /// The only word so far, if it could be the name of a macro that is called.
    only_word: Option<Token>,
    /// Whether anything but words and groups in parentheses was seen.
    other: bool,
    /// Whether a group in parentheses was closed that may hold parameters.
    parameters: bool,
    /// Whether the group that is open belongs to an attribute.
    attribute_group: bool,
    class: bool,
    using: bool,
    namespace: bool,
    names: Vec<u8>,
    template: bool,
    angles: u32,
    /// The last token was `requires`, or the end of its parameters.
    requires: bool,
    requires_group: bool,
    /// The braces that are open are those of a requires-expression.
    requirement: bool,
    initialiser_list: bool,
    /// Whether it is an operator.
    operator: bool,
    /// Whether something is assigned, so that braces are a value's.
    assigned: bool,
}

fn is_attribute(word: &[u8]) -> bool {
    matches!(word, b"alignas" | b"decltype" | b"noexcept" | b"explicit" | b"requires" | b"sizeof" | b"throw")
        || (word.starts_with(b"__") && word.ends_with(b"__"))
        || word.starts_with(b"__declspec")
}

/// Words that may follow the parameters of a function on a new line.
fn follows_parameters(word: &[u8]) -> bool {
    matches!(word, b"noexcept" | b"try" | b"requires" | b"throw")
}

impl Head {
    /// Notes one token outside braces; `parentheses` are those open around it, its own included.
    pub fn note(&mut self, token: Token, bytes: &[u8], parentheses: u32, last: Option<Token>) {
        let word = token.text(bytes);
        if parentheses > 0 {
            if parentheses == 1 && token.is(b'(') {
                self.requires_group = std::mem::take(&mut self.requires);
                self.attribute_group = last.is_some_and(|l| is_attribute(l.text(bytes)));
            }
            return;
        }
        self.requires = token.is(b')') && std::mem::take(&mut self.requires_group);
        match token.kind {
            Kind::Word => self.note_word(token, word),
            Kind::Byte(b')') => self.parameters |= !self.attribute_group,
            Kind::Byte(b'<') if self.angles > 0 || self.template => self.open_angle(),
            Kind::Byte(b'>') if self.angles > 0 && !last.is_some_and(|l| l.is(b'-')) => self.angles -= 1,
            Kind::Byte(b':') => {
                self.initialiser_list |=
                    self.parameters && !last.is_some_and(|l| l.is(b':') && l.end == token.start);
                self.other = true;
            }
            Kind::Byte(b'=') if self.angles == 0 => {
                self.assigned |= !self.operator;
                self.other = true;
            }
            _ => self.other = true,
        }
        if self.namespace
            && (token.kind == Kind::Word || token.is(b':'))
            && word != b"namespace"
            && word != b"inline"
        {
            self.names.extend_from_slice(word);
        }
    }

    fn open_angle(&mut self) {
        self.template = false;
        self.angles += 1;
        self.other = true;
    }

    fn note_word(&mut self, token: Token, word: &[u8]) {
        self.words += 1;
        self.only_word = (self.words == 1).then_some(token);
        if self.angles > 0 {
            return;
        }
        match word {
            b"class" | b"struct" | b"union" | b"enum" => self.class = true,
            b"using" => self.using = true,
            b"namespace" => self.namespace = true,
            b"template" => self.template = true,
            b"operator" => self.operator = true,
            b"requires" => self.requires = true,
            _ => {}
        }
    }

    /// The names of the namespace that an opening brace after this head opens.
    pub fn opens_namespace(&self) -> Option<String> {
        let opens = self.namespace && !self.using && !self.class && !self.parameters;
        opens.then(|| String::from_utf8_lossy(&self.names).into_owned())
    }

    /// Notes that braces begin; those of a requires-expression are not the item's body.
    pub fn begins_braces(&mut self) {
        self.requirement = std::mem::take(&mut self.requires);
    }

    /// Whether the braces that end were those of a requires-expression.
    pub fn ends_requirement(&mut self) -> bool {
        std::mem::take(&mut self.requirement)
    }

    /// Whether it declares a type, so that names may follow its body.
    pub fn is_class(&self) -> bool {
        self.class && !self.parameters
    }

    /// Whether braces that ended were a function's body, behind which a semicolon means nothing.
    pub fn is_function(&self) -> bool {
        self.parameters && !self.assigned
    }

    /// Whether braces may initialise a member before the body comes.
    pub fn has_initialiser_list(&self) -> bool {
        self.initialiser_list
    }

    /// Whether it is nothing but `NAME(…)`, as a macro that stands for declarations is called.
    pub fn is_macro_call(&self, bytes: &[u8], last: Option<Token>) -> bool {
        self.words == 1
            && !self.other
            && last.is_some_and(|l| l.is(b')'))
            && self.only_word.is_some_and(|w| {
                let name = w.text(bytes);
                let attribute = [b"BOUNDS".as_slice(), b"ATTR", b"ALIGN"]
                    .iter()
                    .any(|part| memchr::memmem::find(name, part).is_some());
                !is_attribute(name) && !attribute
            })
    }

    /// Whether `token`, on a new line after a macro call, begins another item.
    pub fn begins_another(token: Token, bytes: &[u8]) -> bool {
        token.kind == Kind::Word && !follows_parameters(token.text(bytes))
    }
}
