//! The parser on what compilers wrote, on forms written by hand, on damaged text, and on text that the printer made.

use super::ast::*;
use super::parse;
use proptest::prelude::*;

/// Made from `statements.cu` by NVRTC 11.8 and 12.4 and nvcc 13.5; the name says the options.
const COMPILED: [(&str, &str); 4] = [
    ("11 -lineinfo", include_str!("fixtures/statements.11.lineinfo.ptx")),
    ("12 -G", include_str!("fixtures/statements.12.debug.ptx")),
    ("13 -lineinfo", include_str!("fixtures/statements.13.lineinfo.ptx")),
    ("13 -rdc=true", include_str!("fixtures/statements.13.rdc.ptx")),
];
const WRITTEN: &str = include_str!("fixtures/written.ptx");

fn flat<'a>(body: &'a [Statement], all: &mut Vec<&'a Statement>) {
    for statement in body {
        match statement {
            Statement::Block(inner) => flat(inner, all),
            other => all.push(other),
        }
    }
}

/// Every statement of every function, without the blocks around them.
fn statements(module: &Module) -> Vec<&Statement> {
    let mut all = Vec::new();
    for function in &module.functions {
        flat(function.body.as_deref().unwrap_or_default(), &mut all);
    }
    all
}

fn instructions(module: &Module) -> Vec<&Instruction> {
    let mut found = Vec::new();
    for statement in statements(module) {
        if let Statement::Instruction(instruction) = statement {
            found.push(instruction);
        }
    }
    found
}

/// How many instructions a text has, counted another way: statements that end in `;` and begin with a small letter or a guard.
fn counted(text: &str) -> usize {
    let mut in_section = false;
    let mut joined = String::new();
    for line in text.lines() {
        let line = line.split("//").next().unwrap().trim();
        in_section |= line.starts_with(".section");
        if !in_section && !line.starts_with(".loc\t") && !line.ends_with(':') {
            joined.push_str(line.trim_start_matches(['{', '}', ' ']));
            joined.push('\n');
        }
        in_section &= line != "}";
    }
    let begins =
        |part: &&str| part.trim().starts_with(|first: char| first.is_ascii_lowercase() || first == '@');
    joined.split(';').filter(begins).filter(|part| !part.contains(".callprototype")).count()
}

#[test]
fn what_compilers_write_is_read_whole() {
    for (name, text) in COMPILED {
        let module = parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let found = instructions(&module);
        assert_eq!(found.len(), counted(text), "{name}");
        let lines: Vec<&str> = text.lines().collect();
        for instruction in found {
            let from = instruction.line as usize - 1;
            let mut there: String = lines[from..lines.len().min(from + 12)].concat();
            there.retain(|character| !character.is_whitespace());
            let mut printed = instruction.to_string();
            printed.retain(|character| !character.is_whitespace());
            assert!(there.replace("+0]", "]").contains(&printed), "{name}: {printed} is not in {there}");
        }
        for statement in statements(&module) {
            if let Statement::Location(Location { function: Some(key), file, .. }) = statement {
                assert!(module.strings.contains_key(key), "{name}: {key}");
                assert!(module.files.contains_key(file), "{name}: file {file}");
            }
        }
    }
}

#[test]
fn a_module_says_what_it_holds() {
    let module = parse(COMPILED[2].1).unwrap();
    assert_eq!((module.version, module.target.as_str(), module.address_size), ((9, 5), "sm_90", 64));
    let variable = |name: &str| module.variables.iter().find(|variable| variable.name == name).unwrap();
    assert!(variable("total").managed && variable("total").initial == [Initial::Int(7)]);
    assert_eq!((variable("weights").space, variable("weights").initial.len()), (Space::Const, 16));
    let generic = |name: &str| Initial::Symbol { name: name.into(), offset: 0, generic: true, mask: None };
    assert_eq!(variable("names").initial, [generic("$str"), generic("$str$1")]);
    let kernel = module.functions.iter().find(|function| function.is_entry).unwrap();
    assert_eq!(
        (kernel.name.as_str(), kernel.linkage, kernel.parameters.len()),
        ("statements", Linkage::Visible, 4)
    );
    assert!(kernel.directives.contains(&("maxntid".into(), vec![256, 1, 1])), "{:?}", kernel.directives);
    assert!(kernel.directives.contains(&("minnctapersm".into(), vec![2])));
    let inlined = statements(&module).into_iter().any(|statement| {
        matches!(statement, Statement::Location(Location { function: Some(key), inlined_at: Some((1, 41, _)), .. })
            if module.strings[key].contains("clamped"))
    });
    assert!(inlined, "{:?}", module.strings);
}

#[test]
fn seldom_forms_are_read() {
    let module = parse(WRITTEN).unwrap();
    assert_eq!(module.target, "sm_100a");
    assert_eq!(module.files[&1], r#"a "quoted" \ path.cu"#);
    assert_eq!(module.strings["$text"], "abc");
    assert_eq!(module.strings["$text+4"], "def");
    assert_eq!(module.aliases, [("other".into(), "helper".into())]);
    let variable = |name: &str| module.variables.iter().find(|variable| variable.name == name).unwrap();
    assert_eq!((variable("dynamic").align, &variable("dynamic").dimensions[..]), (128, &[0][..]));
    assert_eq!(variable("numbers").initial, [1.0, -1.5, 2e-3].map(Initial::Float));
    let colours: Vec<f64> = (variable("colours").initial.iter())
        .map(|initial| match initial {
            Initial::Int(value) => *value as f64,
            Initial::Float(value) => *value,
            Initial::Symbol { .. } => f64::NAN,
        })
        .collect();
    assert_eq!(colours, [1., 2., 3., 4., 0., 0., 0., 0., 5., 0., 0., 0., 6., 7., 0., 0.]);
    assert_eq!((variable("colours").vector, variable("colours").align), (4, 16));
    assert_eq!(variable("radix").dimensions, [7]);
    assert_eq!(variable("radix").initial, [31, 15, 5, 42, 0, u64::MAX, u64::MAX].map(Initial::Int));
    let symbol = |offset, generic, mask| Initial::Symbol { name: "target".into(), offset, generic, mask };
    assert_eq!(variable("addressed").initial[0], symbol(0, false, Some(0xff)));
    assert_eq!(variable("addressed").initial[2], symbol(4, true, Some(0xff_0000)));
    assert_eq!(variable("pointers").initial, [symbol(8, true, None), symbol(-4, false, None)]);
    assert_eq!((variable("target").initial.len(), variable("mask_free").initial.len()), (1, 0));
    assert_eq!(variable("sampler").properties[1], ("filter_mode".into(), "linear".into()));
    assert!(module.functions[0].no_return && module.functions[0].body.is_none());
    assert_eq!(module.functions[0].returns[0].dimensions, [32]);
    let kernel = &module.functions[2];
    assert_eq!(kernel.parameters[1].align, 64);
    assert_eq!(kernel.directives[0], ("explicitcluster".into(), vec![]));
    assert_eq!(kernel.directives[1], ("reqnctapercluster".into(), vec![2, 1, 1]));
}

#[test]
fn seldom_instructions_print_as_they_stand() {
    let module = parse(WRITTEN).unwrap();
    let printed: Vec<String> = instructions(&module).iter().map(ToString::to_string).collect();
    for wanted in [
        "mov.u32 t, 32;",
        "@!q mov.b32 %r1, t;",
        "setp.lt.and.s32 %p1|%p2, %r1, -4, !%p3;",
        "shfl.sync.idx.b32 %r2|_, %r1, 0, 31, 4294967295;",
        "mad.lo.s32 %r3, %r1, 16, -2147483648;",
        "ld.global.L2::128B.v4.b32 {%r1, %r2, _, %r4}, [%rd1-16];",
        "ld.shared::cluster.u32 %r1, [16];",
        "st.volatile.shared.f64 [dynamic+8], 0d3FF8000000000000;",
        "mov.u64 %rd2, target+12;",
        "mov.u32 %r1, 19;",
        "mov.u32 %r1, 11;",
        "ld.global.u32 %r1, [%rd1+28];",
        "mov.f32 pair.x, 0f3F800000;",
        "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [image, sampler, {%f5, %f6}];",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, {{%r1, %r2}, {%r3, %r4}}, %rd5, %p1, 1, -1, 0;",
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1+64, {%r2, %r3}], [%r4];",
        "mbarrier.arrive.shared::cta.b64 _, [%r1];",
        "call (%r1), %rd3, (%r2, 7), prototype;",
        "ret;",
    ] {
        assert!(printed.iter().any(|line| line == wanted), "{wanted} is not in {printed:#?}");
    }
    let found = statements(&module);
    let targets = Statement::BranchTargets("table".into(), vec!["$L1".into(), "$L2".into()]);
    assert!(found.contains(&&targets));
    assert!(
        found.iter().any(|statement| matches!(statement,
        Statement::CallPrototype { returns, parameters, .. } if returns.len() == 1 && parameters.len() == 2))
    );
}

#[test]
fn truncated_text_is_refused_with_a_line() {
    for (name, text) in COMPILED.into_iter().chain([("written", WRITTEN)]) {
        let body = text.find(".entry").unwrap();
        let end = body + text[body..].find("ret;").unwrap();
        for at in (0..text.len()).step_by(31).filter(|at| text.is_char_boundary(*at)) {
            let result = parse(&text[..at]);
            if (body..end).contains(&at) {
                let Err(error) = result else { panic!("{name} cut at {at} was read") };
                let lines = text[..at].lines().count() as u32;
                assert!((1..=lines + 1).contains(&error.line), "{name} cut at {at}: {error}");
            }
        }
    }
}

#[test]
fn garbage_is_refused() {
    let header = ".version 8.0\n.target sm_90\n.address_size 64\n";
    let body = format!("{header}.entry k() {{\n");
    for (text, line) in [
        (String::new(), 1),
        ("\x7fELF".into(), 1),
        ("{".repeat(5_000_000), 1),
        (format!("{body}{}", "{".repeat(5_000_000)), 5),
        (format!("{body}mov.b32 %r1, {}", "{".repeat(5_000_000)), 5),
        (format!("{body}mov.b32 %r1, {}", "a|".repeat(5_000_000)), 5),
        (format!("{body}ld.u32 %r1, [];"), 5),
        (format!("{body}mov.b32 %r1, 1 / 0;"), 5),
        (format!("{body}mov.b32 %r1, 1 + {}", "(".repeat(5_000_000)), 5),
        (format!("{body}mov.b32 %r1, {}", "-".repeat(5_000_000)), 5),
        (format!("{header}.global .b32 x{};", "[1]".repeat(5_000_000)), 4),
        (format!("{header}.global .b8 x[2][0xffffffffffffffff] = {{{{1}}, {{2}}}};"), 4),
        (format!("{header}.global .b8 x[2] = {}", "{".repeat(5_000_000)), 4),
        (format!("{header}.global .align 3 .b8 x;"), 4),
        (format!("{header}.global .b32 x = 0x1ffffffffffffffff;"), 4),
        (format!("{header}.global .f32 x = 0f3F80;"), 4),
        (format!("{header}.nothing"), 4),
        (format!("{header}/* {}", "x\n".repeat(1000)), 4),
        (format!("{header}.file 1 \"{}", "x".repeat(5_000_000)), 4),
        (format!("{header}\u{fffd}"), 4),
        (format!("{header}{}", "9".repeat(5_000_000)), 4),
    ] {
        let error = parse(&text).expect_err(&text[..text.len().min(120)]);
        assert_eq!(error.line, line, "{error}");
        assert!(error.message.len() < 300, "{error}");
    }
}

fn name() -> impl Strategy<Value = String> {
    "(%|[$])[a-z][a-z0-9_$]{0,6}(\\.[xyzw])?"
}

fn operand() -> impl Strategy<Value = Operand> {
    let small = -100_000i64..100_000;
    let leaf = prop_oneof![
        name().prop_map(Operand::Name),
        name().prop_map(Operand::Not),
        name().prop_map(Operand::Negated),
        (name(), small.clone().prop_filter("shown", |offset| *offset != 0))
            .prop_map(|(name, offset)| Operand::NameOffset(name, offset)),
        any::<u64>().prop_map(Operand::Int),
        any::<u32>().prop_map(Operand::F32),
        any::<u64>().prop_map(Operand::F64),
        (proptest::option::of(name()), small).prop_map(|(base, offset)| Operand::Address { base, offset }),
        Just(Operand::Sink),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        let some = proptest::collection::vec(inner.clone(), 2..5);
        prop_oneof![
            some.clone().prop_map(Operand::Vector),
            some.clone().prop_map(Operand::Bracketed),
            some.prop_map(Operand::List),
            (name(), inner).prop_map(|(first, second)| {
                Operand::Pair(Box::new(Operand::Name(first)), Box::new(second))
            }),
        ]
    })
}

fn instruction() -> impl Strategy<Value = Instruction> {
    let guard = proptest::option::of((name(), any::<bool>()));
    let modifiers = proptest::collection::vec("[a-z0-9]{1,6}(::[a-zA-Z0-9_]{1,5}){0,2}", 0..5);
    (guard, "[a-z][a-z0-9]{1,6}", modifiers, proptest::collection::vec(operand(), 0..5)).prop_map(
        |(guard, opcode, modifiers, operands)| Instruction {
            guard: guard.map(|(register, negated)| Guard { register: register.replace('.', "_"), negated }),
            opcode,
            modifiers,
            operands,
            line: 4,
        },
    )
}

proptest! {
    #[test]
    fn a_printed_instruction_reads_as_itself(wanted in instruction()) {
        let text = format!(".version 8.0\n.target sm_90\n.entry k()\n{{ {wanted} }}");
        let module = parse(&text).map_err(|error| TestCaseError::fail(format!("{error}: {wanted}")))?;
        prop_assert_eq!(instructions(&module), vec![&wanted]);
    }

    #[test]
    fn damaged_text_never_panics(which in 0..4usize, damage in proptest::collection::vec((any::<prop::sample::Index>(), 0u8..128), 1..8)) {
        let mut bytes = COMPILED[which].1.as_bytes().to_vec();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let text = String::from_utf8(bytes).unwrap();
        if let Err(error) = parse(&text) {
            prop_assert!(error.line as usize <= text.lines().count() + 1);
        }
    }
}
