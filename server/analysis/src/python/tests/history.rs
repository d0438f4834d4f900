//! Any history of edits, however often it is cut off, and any text at all.

use std::cell::Cell;
use std::sync::Arc;

use proptest::prelude::*;
use stitch_findings::Span;

use super::read;
use crate::Workspace;
use crate::python::reader::{Read, Reader};

/// One reader through many edits, and one that is cut off all the time, both give what a fresh one gives.
fn same_after_edits(mut source: String, edits: Vec<(prop::sample::Index, usize, String)>) {
    let (mut one, mut patient) = (Reader::new(), Reader::new());
    let workspace = Workspace::default();
    for (at, length, new) in edits {
        let floor = |mut at: usize| {
            while !source.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let start = floor(at.index(source.len() + 1));
        let end = floor((start + length).min(source.len())).max(start);
        source.replace_range(start..end, &new);
        let text: Arc<str> = source.as_str().into();
        let fresh = Reader::new().update(&text, &workspace, &|| true).unwrap();
        same(&one.update(&text, &workspace, &|| true).unwrap(), &fresh, &source);
        let resumed = read_in_bits(&mut patient, &text);
        // Where there is an error, what a parse that was stopped makes of it may differ. It is not kept.
        let mut parser = tree_sitter::Parser::new();
        parser.set_language(&tree_sitter_python::LANGUAGE.into()).unwrap();
        if !parser.parse(&source, None).unwrap().root_node().has_error() {
            same(&resumed, &fresh, &source);
        }
    }
    let text: Arc<str> = source.as_str().into();
    let fresh = Reader::new().update(&text, &workspace, &|| true).unwrap();
    same(&patient.update(&text, &workspace, &|| true).unwrap(), &fresh, &source);
}

/// Reads a text with ever more questions allowed before each cut.
fn read_in_bits(reader: &mut Reader, text: &Arc<str>) -> Read {
    let left = Cell::new(0);
    let mut allowed = 1;
    loop {
        left.set(allowed);
        let keep_going = || {
            left.set(left.get() - 1);
            left.get() > 0
        };
        if let Ok(read) = reader.update(text, &Workspace::default(), &keep_going) {
            return read;
        }
        allowed += 1;
    }
}

fn same(a: &Read, b: &Read, source: &str) {
    assert_eq!(a.outline, b.outline, "{source}");
    assert_eq!(a.findings, b.findings, "{source}");
    assert_eq!(a.unknown, b.unknown, "{source}");
    assert_eq!(a.units.len(), b.units.len(), "{source}");
    for (a, b) in a.units.iter().zip(&b.units) {
        assert_eq!(
            (a.role, a.span, &a.text, &a.name, &a.options),
            (b.role, b.span, &b.text, &b.name, &b.options)
        );
        assert_eq!((&a.map, a.needs_torch, &a.holes), (&b.map, b.needs_torch, &b.holes));
        assert_eq!(a.analysis.outline(), b.analysis.outline());
        assert_eq!(a.analysis.findings(), b.analysis.findings());
    }
}

const SAMPLE: &str = r#"import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <torch/extension.h>
__global__ void add(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { b[i] = a[i] * 2.0; }
}
void go(torch::Tensor a) { add<<<4, 100>>>(a, a, 3); }
"""
ext = load_inline(name="é", cpp_sources="void go(torch::Tensor a);", cuda_sources=SOURCE + '''// \u00e9 end''', functions=["go"])

class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.fc = nn.Linear(n, n)
        self.register_buffer("mask", torch.ones(n))

    def forward(self, x):
        m = torch.ones(3)
        return self.fc(x) * m.to(x.device) + torch.rand(3).cuda()

def train(loader):
    for x in loader:
        print(x.item(), [y.item() for y in x])
"#;

fn edit() -> impl Strategy<Value = (prop::sample::Index, usize, String)> {
    let new = prop_oneof![
        3 => prop::sample::select(vec![
            "\n", "\r\n", "\r", "    ", "\t", "(", ")", "[", "{", "}", "\"\"\"", "'", "\"", "\\", "#", ":", "=", ",", ".", "@",
            "class A(nn.Module):\n    x = 1\n", "def f(self):\n        ", "\n    def g(self):\n        self.y = 1\n", ".item()",
            "load_inline('m', '', ", "for x in y:\n    ", "é", "😀", "\0", "else:", "return ", "import torch as t\n", "+ 'x'", "f'{",
            "parts = []\n", "parts.append('x')\n", "load_inline('m', '', ''.join(parts))\n", "from k import SRC\n", "SRC",
            "__global__ void k() {}", ".strip()", "\\x41",
        ]).prop_map(str::to_owned),
        1 => "[a-z ]{0,5}",
    ];
    (any::<prop::sample::Index>(), prop_oneof![4 => Just(0_usize), 2 => 1_usize..4, 1 => 0_usize..200], new)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_history_of_edits_reads_as_a_fresh_file(edits in prop::collection::vec(edit(), 1..12)) {
        same_after_edits(SAMPLE.to_owned(), edits);
    }

    #[test]
    fn places_in_a_unit_lead_to_the_file_and_back(edits in prop::collection::vec(edit(), 0..4)) {
        let mut source = SAMPLE.replace("x[", "é").to_owned();
        for (at, _, new) in edits {
            let mut start = at.index(source.len());
            while !source.is_char_boundary(start) {
                start -= 1;
            }
            source.insert_str(start, &new);
        }
        let read = read(&source);
        for unit in &read.units {
            for (at, character) in unit.text.char_indices() {
                let place = unit.to_file(at);
                prop_assert!(source.is_char_boundary(place));
                let span = unit.span_to_file(Span::new(at, at + character.len_utf8())).unwrap();
                prop_assert!(span.start == place && source.get(span.range()).is_some_and(|text| !text.is_empty()));
                if source[place..].starts_with(character) && !unit.holes.iter().any(|hole| hole.touches(place)) {
                    let back = unit.to_text(place).unwrap();
                    prop_assert!(unit.text[back..].starts_with(character));
                }
            }
        }
        for function in &read.outline.functions {
            prop_assert!(source.get(function.span.range()).is_some() && function.span.contains(function.name_span));
        }
    }
}

#[test]
fn nothing_a_file_holds_stops_the_reader() {
    let nested = 100_000;
    let repeated =
        |open: &str, close: &str, times| format!("x = {}1{}\n", open.repeat(times), close.repeat(times));
    let deep = |open: &str, close: &str| repeated(open, close, nested);
    let less = |open: &str, close: &str| repeated(open, close, nested / 20);
    for source in [
        String::new(),
        "\u{feff}".to_owned(),
        "\0\0\0".to_owned(),
        "x = '\\".to_owned(),
        "'''".to_owned(),
        "f'{".to_owned(),
        "\\".to_owned(),
        deep("(", ")"),
        deep("[", ""),
        deep("{", "}"),
        less("f(", ")"),
        deep("", ")"),
        deep("-", ""),
        less("1+", ""),
        less("not ", ""),
        less("lambda: ", ""),
        less("'' '' + ", ""),
        less("a.b().", ""),
        less("f'{", "}'"),
        less("[x.item() for x in ", "]"),
        format!("x = {}\n", "a.".repeat(nested)),
        (0..2000).map(|depth| format!("{}if x:\n", " ".repeat(depth))).collect(),
        (0..2000).map(|depth| format!("{}class A(nn.Module):\n", " ".repeat(depth))).collect(),
        "class A(nn.Module): pass\n".repeat(5000),
        "import a\r".repeat(5000),
        format!("import torch\n{}", "x = x + x\n".repeat(300)) + "load_inline('m', '', x)",
        format!("x = '__global__ void k() {{}}'\n{}load_inline('m', '', x)", "x = x + 'a' + x\n".repeat(60)),
        format!("load_inline('m', '', '{}')", "\\N{".repeat(500)),
    ] {
        let read = read(&source);
        assert!(read.outline.functions.is_empty() || !source.is_empty());
    }
}
