use stitch_findings::Span;

use super::compose::{Argument, Verified, VerifiedCall, compose, settings_script};
use super::denote::{Denoted, Offer, denoted, offer};
use super::inputs::{Inputs, inputs_of, inputs_of_statements};
use super::targets::{named, targets};

/// A text with its markers taken out, and what is between them; one marker is a cursor.
fn marked(text: &str) -> (String, Span) {
    let start = text.find("$0").unwrap();
    let rest = text.replacen("$0", "", 1);
    match rest.find("$0") {
        Some(end) => (rest.replacen("$0", "", 1), Span::new(start, end)),
        None => (rest, Span::new(start, start)),
    }
}

/// What a selection denotes, in one line.
fn shown(text: &str) -> String {
    let (text, selection) = marked(text);
    match denoted(&text, selection) {
        Ok(Denoted::Target(target)) => target.name,
        Ok(Denoted::Statements(found)) => {
            let [first, last] = found.lines;
            format!("{first}-{last}: {} -> {}", found.reads.join(" "), found.sets.join(" "))
        }
        Err(why) => why,
    }
}

const NET: &str = "import torch\nfrom torch import nn\nclass Net(nn.Module):\n    def __init__(self, dim):\n        super().__init__()\n        \
                   self.fc = nn.Linear(dim, dim)\n    def forward(self, x):\n        y = x * 2\n        z = y + self.fc.bias\n        return z + y\n";

#[test]
fn a_selection_denotes_statements_or_what_is_around_it() {
    let f = "import torch\nK = 3\ndef f(x, w, n):\n";
    let cases = [
        (NET.replace("y = x * 2", "y = $0x * 2"), "Net"),
        (NET.replace("x * 2\n", "x * 2$0\n"), "Net"),
        (NET.replace("        y = x * 2\n", "$0        y = x * 2\n$0"), "8-8: x -> y"),
        (
            NET.replace(
                "y = x * 2\n        z = y + self.fc.bias",
                "$0y = x * 2\n        z = y + self.fc.bias$0",
            ),
            "8-9: x self.fc -> y z",
        ),
        (NET.replace("y = x * 2", "y = $0x *$0 2"), "Net"),
        (NET.replace("        y = x", "$0        y = x").replace("z + y\n", "z + y$0\n"), "Net"),
        (
            NET.replace("import torch\n", "import $0torch\n"),
            "There is no module and no function here; put the cursor into one, or select statements.",
        ),
        (
            NET.replace("        return z + y\n", "        $0a = z\n        return z + y\n$0"),
            "Line 11 returns from the function around the selection.",
        ),
        (format!("{f}    $0y = x @ w\n    y += K$0\n    return y\n"), "4-5: x w -> y"),
        (format!("{f}    y = x\n    $0if n:\n        y = w$0\n    return y\n"), "5-6: n w y -> y"),
        (
            format!("{f}    $0if n:\n        y = w\n    else:\n        y = x$0\n    return y\n"),
            "4-7: n w x -> y",
        ),
        (format!("{f}    $0if n:\n        q = w$0\n    return q\n"), "4-5: n w q -> q"),
        (format!("{f}    for i in range(n):\n        $0w = w + i * x$0\n    return w\n"), "5-5: w i x -> w"),
        (
            format!(
                "{f}    for i in x:\n        $0if i:\n            break\n        w = i$0\n    return w\n"
            ),
            "Line 6 leaves a loop around the selection.",
        ),
        (format!("{f}    $0y = [i * w for i in x]$0\n    return y\n"), "4-4: w x -> y"),
        (format!("{f}    $0yield x$0\n    return x\n"), "Line 4 yields."),
        (
            format!("{f}    $0x.add_(1)$0\n    return x\n"),
            "Nothing that the selection sets is read later, so there is nothing to compare.",
        ),
        ("import torch\nx = torch.ones(3)\n$0y = x + 1$0\nprint(y)\n".to_owned(), "3-3: x -> y"),
        ("async def f$0(x):\n    return x\n".to_owned(), "`f` is asynchronous."),
        ("def f(x):\n    def g(y):\n        return $0y\n    return g(x)\n".to_owned(), "f"),
        ("class A:\n    @staticmethod\n    def f(x):\n        return $0x\n".to_owned(), "A.f"),
        (
            "class A:\n    def f(self, x):\n        return $0x\n".to_owned(),
            "`A.f` is a method: point at its class, or at statements of it.",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(&text), expected, "{text}");
    }
}

#[test]
fn modules_and_functions_of_tensors_are_targets() {
    let text = "import torch as th\nimport torch.nn.functional as F\nfrom torch.nn import Module as M\nclass Base(M):\n    def forward(self, x): ...\n\
                class Part(Base): pass\nclass Empty(M): pass\nclass Other: pass\ndef act(x):\n    return F.relu(x)\ndef typed(x: 'th.Tensor'): ...\n\
                def plain(x):\n    return x + 1\ndef get_inputs(): ...\n";
    let names: Vec<_> = targets(text).into_iter().map(|target| target.name).collect();
    assert_eq!(names, ["Base", "Part", "act", "typed"]);
    assert_eq!(named(text, "plain").unwrap().name, "plain");
    assert_eq!(
        named(text, "Empty").unwrap_err(),
        "`Empty` has no `forward` in this file, so it can't be called."
    );
    assert!(named(text, "Other").unwrap_err().contains("does not derive from `torch.nn.Module`"));
    assert!(named(text, "get_inputs").unwrap_err().contains("takes no arguments"));
}

/// What is proposed for `name`: the comments and where they come from.
fn proposed(text: &str, name: &str) -> Vec<(String, String)> {
    match inputs_of(text, &named(text, name).unwrap()).unwrap() {
        Inputs::Missing { proposals, .. } => proposals
            .into_iter()
            .map(|one| (one.comment.replace("# stitchcuda: ", "").replace('\n', " "), one.origin))
            .collect(),
        Inputs::Given(given) => panic!("{given:?}"),
    }
}

#[test]
fn comments_give_inputs_and_are_checked() {
    let text =
        |comment: &str| format!("import torch\n{comment}\ndef f(x, n):\n    return torch.sum(x) * n\n");
    let given = |comment: &str| {
        let text = text(comment);
        match inputs_of(&text, &named(&text, "f").unwrap()) {
            Ok(Inputs::Given(given)) => {
                let cases = given.cases.into_iter().map(|case| format!("{:?} {:?}", case.inputs, case.dtype));
                cases
                    .map(|case| {
                        case.split(", span").next().unwrap_or_default().to_owned()
                            + if case.ends_with("None") { "" } else { " typed" }
                    })
                    .collect()
            }
            Ok(other) => vec![format!("{other:?}")],
            Err(error) => vec![format!("{} at {:?}", error.message, &text[error.span.range()])],
        }
    };
    let expression = |text: &str| format!("Expression {{ text: {text:?}");
    assert_eq!(given("# stitchcuda: inputs(randn(8, 3), n=4)"), [expression("randn(8, 3), n=4")]);
    assert_eq!(
        given("# stitchcuda: inputs(randn(8,\n#   3),\n#   n=4, dtype=torch.half)\n# more"),
        [expression("randn(8,\n3), n=4") + " typed"]
    );
    assert_eq!(
        given("# stitchcuda: inputs(ones(1), 1)\n# other\n# stitchcuda: inputs(\")\", 2)"),
        [expression("ones(1), 1"), expression("\")\", 2")]
    );
    assert_eq!(given("# stitchcuda: inputs(file=\"a.pt\")"), ["File { path: \"a.pt\""]);
    assert_eq!(
        given("# stitchcuda: inputs(randn(8, 3)"),
        ["The parenthesis of `inputs(` is not closed. at \"inputs(randn(8, 3)\""]
    );
    assert_eq!(
        given("# stitchcuda: input(1)"),
        ["`input` is not known here; write `inputs(...)` or `init(...)`. at \"input\""]
    );
    assert!(
        given("# stitchcuda: inputs(x, dtype=int4)")[0]
            .starts_with("`dtype=int4` is not known; use one of float64")
    );
    assert!(given("# stitchcuda: inputs(x, file='a.pt')")[0].starts_with("`file=` stands alone"));
    assert!(given("# stitchcuda: tolerance=1e-3")[0].starts_with("Missing"));
}

#[test]
fn functions_of_the_file_give_inputs() {
    for (function, good) in [
        ("get_inputs", true),
        ("Net_inputs", true),
        ("get_net_inputs", true),
        ("other_inputs", false),
        ("net_inputs", true),
    ] {
        let text =
            format!("{NET}def {function}():\n    return [1]\ndef get_init_inputs():\n    return [4]\n");
        let found = inputs_of(&text, &named(&text, "Net").unwrap()).unwrap();
        assert_eq!(matches!(found, Inputs::Given(_)), good, "{function}");
    }
}

#[test]
fn proposals_say_where_they_come_from() {
    let first = |text: &str, name: &str| {
        let (comment, origin) = proposed(text, name).swap_remove(0);
        format!("{comment} <- {origin}")
    };
    let call = format!(
        "{NET}BATCH = 4\ndef main():\n    net = Net(16).to(device)\n    x = torch.randn(BATCH, 16, device='cuda')\n    y = net(x.cuda())\n"
    );
    assert_eq!(
        first(&call, "Net"),
        "init(16) inputs(torch.randn(BATCH, 16)) <- the call on line 13; the call on line 15"
    );
    assert_eq!(
        first(NET, "Net"),
        "init(64) inputs(randn(8, 64)) <- usual values for the names of its arguments; a guess at `x`, of whose shape nothing is told"
    );
    let conv = "from torch import nn\nclass A(nn.Module):\n    def __init__(self, cin, k=3):\n        super().__init__()\n        self.c = nn.Sequential(nn.Conv2d(cin, 8, k))\n    \
                def forward(self, x):\n        return self.c(x)\n";
    assert_eq!(
        first(conv, "A"),
        "init(16) inputs(randn(8, 16, 32, 32)) <- usual values for the names of its arguments; `self.c`, a `Conv2d` that is given `x`"
    );
    let cases = [
        (
            "def f(x: Float[Tensor, \"batch 3 dim\"], n: int): return x",
            "inputs(randn(8, 3, 64), 8) <- the annotation of `x`; the annotation of `n`",
        ),
        ("def f(x: TensorType[\"batch\", 5]): return x", "inputs(randn(8, 5)) <- the annotation of `x`"),
        (
            "def f(x, ids: Int[Tensor, \"batch\"]): \n    \"\"\"Does.\n\n    Args:\n        x (Tensor): of shape (N, C, H, W)\n    \"\"\"\n    return x",
            "inputs(randn(8, 16, 32, 32), randint(0, 10, (8,))) <- the docstring, about `x`; the annotation of `ids`",
        ),
        (
            "def f(x):\n    '''\n    x : Tensor\n        Input [batch, seq, dim].\n    '''\n    return x",
            "inputs(randn(8, 32, 64)) <- the docstring, about `x`",
        ),
        (
            "def f(x):\n    b, c, _ = x.shape\n    return x",
            "inputs(randn(8, 16, 64)) <- line 3, which takes `x.shape` apart",
        ),
        (
            "def f(x):\n    assert x.dim() == 4\n    return x",
            "inputs(randn(8, 16, 32, 32)) <- the check on line 3",
        ),
        (
            "def f(x, eps): return x\nf(torch.ones(3), 1e-6)\n",
            "inputs(torch.ones(3), 1e-6) <- the call on line 3",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(first(&format!("import torch\n{text}"), "f"), expected);
    }
}

#[test]
fn a_proposal_is_ready_to_be_inserted_and_is_then_read() {
    let text = "import torch\r\nif True:\r\n    # Above.\r\n    @torch.no_grad()\r\n    def f(x: torch.Tensor):\r\n        return x\r\n";
    let Inputs::Missing { proposals, .. } = inputs_of(text, &named(text, "f").unwrap()).unwrap() else {
        panic!()
    };
    let (at, insert) = (proposals[0].insert_at, &proposals[0].insert);
    assert_eq!(insert, "    # stitchcuda: inputs(randn(8, 64))\r\n");
    let edited = format!("{}{insert}{}", &text[..at], &text[at..]);
    assert!(matches!(inputs_of(&edited, &named(&edited, "f").unwrap()), Ok(Inputs::Given(_))), "{edited}");
    let (text, selection) = marked(&NET.replace("        y = x * 2\n", "$0        y = x * 2\n$0"));
    let Ok(Denoted::Statements(found)) = denoted(&text, selection) else { panic!() };
    let Ok(Inputs::Missing { proposals, .. }) = inputs_of_statements(&text, &found) else { panic!() };
    assert_eq!(proposals[0].insert, "        # stitchcuda: inputs(randn(8, 64))\n");
}

#[test]
fn a_menu_is_told_what_is_missing() {
    let offered = |text: &str| {
        let (text, selection) = marked(text);
        offer(&text, selection)
    };
    assert!(matches!(offered(&format!("$0{NET}")), Offer::Disabled { .. }));
    let text = NET.replace("class Net", "# stitchcuda: init(4) inputs(randn(2, 4))\nclass $0Net");
    assert!(matches!(offered(&text), Offer::Ready { denoted } if denoted.title() == "Net"));
    let Offer::NeedsInputs { reason, proposals, .. } = offered(&NET.replace("Net", "$0Net")) else {
        panic!()
    };
    assert_eq!(reason, "No example inputs are given for `Net`, nor what `Net` is made with (dim).");
    assert_eq!(proposals.len(), 1);
    let Offer::Disabled { reason } = offered(&text.replace("4))", "4)")) else { panic!() };
    assert!(reason.contains("not closed"), "{reason}");
}

fn verified() -> Verified {
    let tensor = Argument::Tensor {
        device: "cpu".to_owned(),
        dtype: "float32".to_owned(),
        shape: vec![2, 4],
        strides: None,
    };
    let calls = vec![VerifiedCall { arguments: vec![tensor], ..VerifiedCall::default() }];
    Verified { calls, training: vec![true], ..Verified::default() }
}

fn composed(text: &str, name: &str, candidate: &str) -> Result<String, String> {
    compose(text, &Denoted::Target(named(text, name)?), candidate, &verified()).map(|composition| {
        // The edits and the spans describe the same text.
        let mut again = text.to_owned();
        for (span, new) in composition.edits.iter().rev() {
            again.replace_range(span.range(), new);
        }
        assert_eq!(again, composition.text);
        for (span, (_, new)) in composition.changed.iter().zip(&composition.edits) {
            assert_eq!(&composition.text[span.range()], new);
        }
        composition.text
    })
}

#[test]
fn what_can_not_be_composed_is_refused_with_its_reason() {
    let new = |init: &str, forward: &str| {
        format!(
            "from torch import nn\nimport torch\nclass ModelNew(nn.Module):\n    def __init__(self, dim):\n        super().__init__()\n        {init}\n    {forward}\n"
        )
    };
    let good = "def forward(self, x): return self.fc(x)";
    let fc = "self.fc = nn.Linear(dim, dim)";
    assert!(composed(NET, "Net", &new(fc, good)).is_ok());
    let cases = [
        (
            new("self.w = nn.Parameter(torch.ones(dim))", good),
            "The candidate adds `w`, which would be new in the state dict.",
        ),
        (
            new("self.fc2 = nn.Linear(dim, dim)", good),
            "The candidate adds `fc2`, which would be new in the state dict.",
        ),
        (
            new(fc, "def forward(self, x, y): return x"),
            "The candidate takes `(x, y)` and the file's code `(x)`.",
        ),
        (
            new("self.fc = Fast(dim)", good),
            "`self.fc` is `Fast(dim)` in the candidate and `nn.Linear(dim, dim)` in the file, so the candidate can't use the file's own.",
        ),
        (
            new("h = dim // 2; self.h = h", "def forward(self, x): return self.h"),
            "`self.h` is set by the candidate's `__init__` from the local name `h`, which the file's class does not keep.",
        ),
        (
            new("torch.backends.cudnn.benchmark = True", good)
                .replace("class", "torch.set_num_threads(1)\nN = 1\nclass"),
            "Line 3 of the candidate changes a setting of the whole process.",
        ),
        (
            new(fc, good).replace("from torch import nn", "from torch.nn import *"),
            "Line 1 of the candidate imports everything of a module, which can't be kept apart from the file's names.",
        ),
        ("def f(".to_owned(), "The candidate is no valid Python."),
        ("x = 1\n".to_owned(), "The candidate has no module; name it `ModelNew`."),
    ];
    for (candidate, expected) in cases {
        assert_eq!(composed(NET, "Net", &candidate).unwrap_err(), expected, "{candidate}");
    }
    let twice = composed(NET, "Net", &new(fc, good)).unwrap();
    assert!(composed(&twice, "Net", &new(fc, good)).unwrap_err().contains("has verified code already"));
    assert!(settings_script().contains("def settings_of(module)"));
}

#[test]
fn the_style_of_the_file_is_kept() {
    let candidate = "import torch\nfrom torch.utils.cpp_extension import load_inline\nS = '''\n    a\n'''\ndef helper(x):\n    if x:\n        return S\ndef f_new(x):\n    return helper(x)\n";
    let text = "\u{feff}#!/usr/bin/python\n# coding: utf-8\n'''Doc.'''\nfrom __future__ import annotations\nimport torch as th\nimport torch\n\n# Above.\n@th.no_grad()\ndef f(x):  # why\n\t'''Says.'''\n\t# how\n\treturn th.relu(x)\n";
    for newline in ["\n", "\r\n"] {
        let text = text.replace('\n', newline);
        let result = composed(&text, "f", candidate).unwrap();
        assert_eq!(result.matches('\n').count(), result.matches(newline).count(), "one kind of line end");
        let plain = result.replace("\r\n", "\n");
        let start = "\u{feff}#!/usr/bin/python\n# coding: utf-8\n'''Doc.'''\nfrom __future__ import annotations\nimport torch as th\nimport torch\nimport functools\n";
        assert!(plain.starts_with(start), "{plain}");
        assert!(
            plain.contains("\n\tS = '''\n    a\n'''\n\tdef helper(x):\n\t\tif x:\n\t\t\treturn S\n"),
            "{plain}"
        );
        let end = "# Above.\n@th.no_grad()\ndef f(x):\n\t'''Says.'''\n\tif not torch.jit.is_scripting():\n\t\tresult = _verified_f(None, x)\n\t\tif result is not NotImplemented:\n\t\t\treturn result\n\treturn _reference_f(x)\n\n\ndef _reference_f(x):  # why\n\t# how\n\treturn th.relu(x)\n";
        assert!(plain.ends_with(end), "{plain}");
        assert_eq!(plain.matches("import torch\n").count(), 1, "{plain}");
    }
}
