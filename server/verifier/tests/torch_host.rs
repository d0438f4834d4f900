//! The processes that run a person's Python, asked for what a verification asks, with a real torch.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "torch/common.rs"]
mod common;

use std::time::Duration;

use common::{Place, data, floats, module, on_cuda, python, read, setting};
use stitch_profiles::python::{LINE_MARK, MODULE_MARK};
use stitch_toolchain::process::Scratch;
use stitch_verifier::torch::host::{Batch, Calling, ChildError, Filled, Load, Profiling, Role, Zygote};
use stitch_verifier::torch::subject::{Callable, Case, Source, Subject};
use stitch_verifier::torch::values::{Dtype, Tree};
use tokio_util::sync::CancellationToken;

const LIMIT: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread")]
async fn inputs_are_drawn_and_a_module_is_called() {
    let Some(python) = python() else { return };
    let mut place = Place::new(&python, Role::Reference, LIMIT).await;
    let load = Load::new(module(&data("scale.py"), "Model"), 7);
    let (mut child, loaded) = place.load_with(&load).await.unwrap();
    assert_eq!((loaded.kind.as_str(), loaded.training), ("module", Some(true)));
    assert_eq!(loaded.parameters[0].name, "weight");
    let buffers: Vec<_> = loaded.buffers.iter().map(|buffer| buffer.name.as_str()).collect();
    assert_eq!(buffers, ["calls", "hidden"]);
    assert_eq!(loaded.changed, Vec::<String>::new());
    assert_eq!(loaded.versions.torch, python.torch);

    let inputs = child.draw(3, 0).await.unwrap();
    assert_eq!(inputs, child.draw(3, 0).await.unwrap());
    assert_ne!(inputs.bytes, child.draw(4, 0).await.unwrap().bytes);
    let [x, y] = &inputs.values.tensors[..] else { panic!("{:?}", inputs.values) };
    assert_eq!((&x.strides, &y.strides), (&Some(vec![1, 3]), &Some(vec![0, 1])));

    let state = child.state().await.unwrap();
    let calling = Calling { seed: 5, poison: true, look: true, ..Calling::default() };
    let called = child.call(&inputs, &calling).await.unwrap();
    let weight = read(&state, 0);
    let expected: Vec<f32> = (0..12).map(|i| read(&inputs, 0)[i] * weight[i % 4] * 2.0 + 1.0).collect();
    assert_eq!(read(&called.outputs, 0), expected);
    assert_eq!(called.inputs_after.unwrap().bytes, inputs.bytes);
    let Tree::Dict { items } = &called.outputs.values.tree else { panic!() };
    let numbers = Tree::Tuple {
        items: vec![Tree::Int { v: "12".into() }, Tree::Float { v: "0.5".into() }, Tree::None],
    };
    assert_eq!(items[1], ("sizes".to_owned(), numbers));
    // The call counted itself.
    assert_eq!(called.state_after.values.tensors.len(), 1);
    assert_eq!(called.state_after.tensor(0), 1i64.to_le_bytes());
    assert_eq!(called.seen.outputs[0].kind, "torch.Tensor");
    assert_eq!(called.seen.threads[0], called.seen.threads[1]);
    assert_eq!(called.seen.changed, Vec::<String>::new());

    // The same seed gives the same noise, another does not.
    let again = child.call(&inputs, &calling).await.unwrap();
    assert_eq!(read(&again.outputs, 1), read(&called.outputs, 1));
    let other = child.call(&inputs, &Calling { seed: 6, ..Calling::default() }).await.unwrap();
    assert_ne!(read(&other.outputs, 1), read(&called.outputs, 1));
    place.zygote.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_goes_from_one_process_to_another_and_must_fit() {
    let Some(python) = python() else { return };
    let mut reference = Place::new(&python, Role::Reference, LIMIT).await;
    let mut candidate = Place::new(&python, Role::Candidate, LIMIT).await;
    let subject = module(&data("scale.py"), "Model");
    let (mut one, _) = reference.load_with(&Load::new(subject.clone(), 1)).await.unwrap();
    let (mut two, _) = candidate.load_with(&Load::new(subject, 2)).await.unwrap();
    let state = one.state().await.unwrap();
    assert_ne!(state.bytes, two.state().await.unwrap().bytes);
    two.set_state(&state).await.unwrap();
    assert_eq!(state, two.state().await.unwrap());

    let mut small = module(&data("scale.py"), "Model");
    let text = "3".to_owned();
    small.callable = Callable::Module { name: "Model".into(), init: Some(Source::Expression { text }) };
    let (mut three, _) = candidate.load_with(&Load::new(small, 2)).await.unwrap();
    let Err(ChildError::Python { kind, message, .. }) = three.set_state(&state).await else { panic!() };
    assert_eq!(kind, "StateError");
    assert!(message.contains("weight has the shape [3] instead of [4]"), "{message}");
    let mut renamed = state.clone();
    let Tree::Dict { items } = &mut renamed.values.tree else { panic!() };
    items[0].0 = "gain".into();
    let Err(ChildError::Python { message, .. }) = two.set_state(&renamed).await else { panic!() };
    assert!(message.contains("it has no gain; it has weight, which the reference has not"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_move_a_state_alike_by_a_seed() {
    let Some(python) = python() else { return };
    let mut reference = Place::new(&python, Role::Reference, LIMIT).await;
    let mut candidate = Place::new(&python, Role::Candidate, LIMIT).await;
    let subject = module(&data("moved.py"), "Model");
    let (mut one, _) = reference.load_with(&Load::new(subject.clone(), 1)).await.unwrap();
    let (mut two, _) = candidate.load_with(&Load::new(subject, 2)).await.unwrap();
    let state = one.state().await.unwrap();
    two.set_state(&state).await.unwrap();
    let mut moved = Vec::new();
    for seed in [9, 10, u64::MAX] {
        one.set_state_again(&state, Some(seed)).await.unwrap();
        two.set_state_again(&state, Some(seed)).await.unwrap();
        let found = one.state().await.unwrap();
        assert_eq!(found, two.state().await.unwrap());
        assert!(!moved.contains(&found));
        moved.push(found);
    }
    for child in [&mut one, &mut two] {
        child.set_state_again(&state, None).await.unwrap();
        assert_eq!(child.state().await.unwrap(), state);
    }

    let names: Vec<_> = match &state.values.tree {
        Tree::Dict { items } => items.iter().map(|(name, value)| (name.as_str(), value)).collect(),
        other => panic!("{other:?}"),
    };
    let place = |wanted: &str| {
        let (_, value) = names.iter().find(|(name, _)| *name == wanted).unwrap();
        let Tree::Tensor { i } = value else { panic!() };
        *i
    };
    assert_eq!(place("drawn"), place("same"));
    for moved in &moved {
        for (name, least, most) in [("ones", 0.5, 2.0), ("zeros", 0.0, 0.5)] {
            let numbers = read(moved, place(name));
            assert!(numbers.iter().all(|number| (least..=most).contains(number)), "{name}: {numbers:?}");
            let mean = numbers.iter().sum::<f32>() / 1000.0;
            assert!((mean - (least + most) / 2.0).abs() < 0.05, "{name}: {mean}");
        }
        for (before, after) in read(&state, place("drawn")).into_iter().zip(read(moved, place("drawn"))) {
            assert!((0.499..1.501).contains(&(after / before)), "{before} became {after}");
        }
        let differ = |name: &str| state.tensor(place(name)) != moved.tensor(place(name));
        assert!(["long", "short", "brain", "complex"].into_iter().all(differ));
        assert!(!["unbounded", "nothing", "count"].into_iter().any(differ));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gradients_and_float64_and_other_types() {
    let Some(python) = python() else { return };
    let mut place = Place::new(&python, Role::Reference, LIMIT).await;
    let mut child = place.load("gradients.py").await.unwrap();
    let inputs = floats(&[&[1.0, 2.0, 3.0]]);
    let grads = Some(floats(&[&[1.0, 10.0, 100.0]]));
    let called = child.call(&inputs, &Calling { seed: 1, grads, ..Calling::default() }).await.unwrap();
    let found = called.grads.unwrap();
    let Tree::Dict { items } = &found.values.tree else { panic!() };
    let names: Vec<_> = items.iter().map(|item| item.0.as_str()).collect();
    assert_eq!(names, ["input.0", "parameter.weight", "parameter.unused"]);
    assert_eq!(items[2].1, Tree::None);
    // y = w x^2: dy/dx = 2 w x, dy/dw = x^2, each times the output's gradient.
    assert_eq!(read(&found, 0), [4.0, 80.0, 1200.0]);
    assert_eq!(read(&found, 1), [941.0]);

    let state = child.state().await.unwrap();
    let double = child.oracle(&inputs).await.unwrap();
    assert_eq!(child.state().await.unwrap(), state);
    assert_eq!(double.values.tensors[0].dtype, Dtype::Float64);
    let numbers: Vec<f64> =
        double.tensor(0).chunks_exact(8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap())).collect();
    assert_eq!(numbers, [2.0, 8.0, 18.0]);
    // What it carries from call to call is in single precision still.
    let called = child.call(&inputs, &Calling::default()).await.unwrap();
    assert_eq!(read(&called.outputs, 0), [2.0, 8.0, 18.0]);

    let mut half = module(&data("gradients.py"), "Model");
    half.cases[0].dtype = Some(Dtype::Bfloat16);
    let load = Load { dtype: Some(Dtype::Bfloat16), train: Some(false), ..Load::new(half, 1) };
    let (mut child, loaded) = place.load_with(&load).await.unwrap();
    assert_eq!((loaded.training, loaded.parameters[0].dtype.as_str()), (Some(false), "bfloat16"));
    let inputs = child.draw(1, 0).await.unwrap();
    assert_eq!(inputs.values.tensors[0].dtype, Dtype::Bfloat16);
    let called = child.call(&inputs, &Calling::default()).await.unwrap();
    assert_eq!(called.outputs.values.tensors[0].dtype, Dtype::Bfloat16);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_timed_together_and_probed() {
    let Some(python) = python() else { return };
    let mut place = Place::new(&python, Role::Candidate, LIMIT).await;
    let mut child = place.load("gradients.py").await.unwrap();
    child.prepare(&[floats(&[&[1.0, 2.0, 3.0]]), floats(&[&[4.0, 5.0, 6.0]])], 1 << 16).await.unwrap();
    let mut batch = Batch {
        calls: vec![(0, 1.0), (1, 0.5), (0, -2.0)],
        probe: vec![u64::MAX, 12345],
        seed: 1,
        empty: true,
        warm: false,
        processor: None,
    };
    let empty = child.time(&batch).await.unwrap();
    assert!(empty.outputs.is_empty() && empty.probed == vec![Vec::<Vec<u8>>::new(); 3]);
    assert!(matches!(child.last_output().await, Err(ChildError::Python { kind, .. }) if kind == "Refused"));
    batch.empty = false;
    let timed = child.time(&batch).await.unwrap();
    assert_eq!(timed.outputs[0].shape, [3]);
    let sets = [[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
    for (call, (set, scale)) in batch.calls.iter().enumerate() {
        for k in 0..2 {
            let place = batch.place(call, k, 3).unwrap() as usize;
            let x = sets[*set][place] * *scale as f32;
            let got = &timed.probed[call][0][k * 4..k * 4 + 4];
            assert_eq!(f32::from_le_bytes(got.try_into().unwrap()), 2.0 * x * x);
        }
    }
    let (last, _) = child.last_output().await.unwrap();
    assert_eq!(read(&last, 0), [8.0, 32.0, 72.0]);
    batch.calls.push((2, 1.0));
    assert!(
        matches!(child.time(&batch).await, Err(ChildError::Python { message, .. }) if message == "set 2 of 2")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_statements_expressions_and_files_are_found() {
    let Some(python) = python() else { return };
    let mut place = Place::new(&python, Role::Reference, LIMIT).await;
    let path = data("parts.py");
    let subject = |callable: Callable, inputs: Source| Subject {
        path: path.clone(),
        callable,
        cases: vec![Case { inputs, dtype: None }],
    };
    let expression = |text: &str| Source::Expression { text: text.into() };
    let function = |name: &str| Callable::Function { name: name.into() };

    let text = "arange(4, dtype=float32), bias=full((4,), OFFSET)";
    let (mut child, loaded) =
        place.load_with(&Load::new(subject(function("Tools.scale"), expression(text)), 1)).await.unwrap();
    assert_eq!(loaded.kind, "function");
    let inputs = child.draw(1, 0).await.unwrap();
    let called = child.call(&inputs, &Calling::default()).await.unwrap();
    assert_eq!(read(&called.outputs, 0), [3.0, 5.0, 7.0, 9.0]);

    let line =
        std::fs::read_to_string(&path).unwrap().lines().position(|line| line.contains("# first")).unwrap();
    let first = line as u32 + 1;
    let lines = Callable::Statements {
        lines: [first, first + 3],
        reads: vec!["x".into(), "gain".into()],
        sets: vec!["y".into(), "total".into()],
    };
    let inputs = expression("tensor([1.0, -2.0]), 3.0");
    let (mut child, _) = place.load_with(&Load::new(subject(lines.clone(), inputs), 1)).await.unwrap();
    let inputs = child.draw(1, 0).await.unwrap();
    let called = child.call(&inputs, &Calling::default()).await.unwrap();
    assert_eq!((read(&called.outputs, 0), read(&called.outputs, 1)), (vec![3.0, 0.0], vec![3.0]));

    let Callable::Statements { reads, sets, .. } = lines else { panic!() };
    let cut = Callable::Statements { lines: [first + 1, first + 3], reads, sets };
    let refused = place.load_with(&Load::new(subject(cut, expression("")), 1)).await.err().unwrap();
    assert!(refused.to_string().contains("in the middle of the statement"), "{refused}");

    let (mut child, _) =
        place.load_with(&Load::new(subject(function("double"), expression("empty(3)")), 1)).await.unwrap();
    let refused = child.draw(1, 0).await.unwrap_err();
    assert!(refused.to_string().contains("use zeros, ones, rand or randn"), "{refused}");

    let saved = place.scratch.path().join("inputs.pt");
    let save = format!("import torch; torch.save((torch.ones(2),), {:?})", saved);
    let status = std::process::Command::new(&python.path).args(["-c", &save]).status().unwrap();
    assert!(status.success());
    let file = Source::File { path: saved };
    let (mut child, _) = place.load_with(&Load::new(subject(function("double"), file), 1)).await.unwrap();
    let inputs = child.draw(1, 0).await.unwrap();
    assert_eq!(read(&child.call(&inputs, &Calling::default()).await.unwrap().outputs, 0), [2.0, 2.0]);
    let missing = place.load_with(&Load::new(subject(function("Tools.none"), expression("")), 1)).await.err();
    assert!(missing.unwrap().to_string().contains("parts.py has no Tools.none"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_says_where_it_was_raised() {
    let Some(python) = python() else { return };
    let mut place = Place::new(&python, Role::Candidate, LIMIT).await;
    let mut child = place.load("raises.py").await.unwrap();
    let Err(ChildError::Python { stage, kind, message, frames, text }) =
        child.call(&floats(&[&[1.0]]), &Calling::default()).await
    else {
        panic!()
    };
    assert_eq!((stage.as_str(), kind.as_str()), ("calling", "ZeroDivisionError"));
    assert!(message.contains("by zero"), "{message}");
    let last = frames.last().unwrap();
    assert_eq!((last.file.clone(), last.line, last.function.as_str()), (data("raises.py"), 9, "divide"));
    assert!(text.contains("Traceback") && !frames.iter().any(|frame| frame.file.ends_with("calls.py")));
    // An error is an answer: the child goes on.
    assert!(child.state().await.is_ok());
    let Err(ChildError::Python { kind, frames, .. }) = place.load("syntax.py").await else { panic!() };
    assert_eq!((kind.as_str(), frames.last().unwrap().line), ("SyntaxError", 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compiler_error_of_an_extension_comes_whole() {
    let Some(python) = python() else { return };
    let mut place = Place::new(&python, Role::Candidate, Duration::from_secs(300)).await;
    let Err(ChildError::Python { stage, message, .. }) = place.load("extension_error.py").await else {
        panic!()
    };
    assert_eq!(stage, "importing");
    assert!(message.contains("error:") && message.contains("no_such_function"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_is_built_in_the_folder_that_is_given() {
    let Some(python) = python() else { return };
    let mut place = Place::new(&python, Role::Candidate, Duration::from_secs(300)).await;
    let build = place.scratch.path().join("build/own");
    let load = Load { build: Some(build.clone()), ..Load::new(module(&data("extension.py"), "Model"), 1) };
    let (mut child, loaded) = place.load_with(&load).await.unwrap();
    assert!(
        loaded.seconds.build > 0.05 && loaded.seconds.import < loaded.seconds.build,
        "{:?}",
        loaded.seconds
    );
    assert!(std::fs::read_dir(&build).unwrap().count() > 0);
    let called = child.call(&floats(&[&[1.0, 2.0]]), &Calling::default()).await.unwrap();
    assert_eq!(read(&called.outputs, 0), [2.0, 3.0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn relative_imports_work_for_a_copy_that_stands_for_a_file_of_a_package() {
    let Some(python) = python() else { return };
    let mut place = Place::new(&python, Role::Candidate, LIMIT).await;
    let copy = place.scratch.path().join("copy.py");
    std::fs::copy(data("package/inner.py"), &copy).unwrap();
    let load = Load { stands_for: Some(data("package/inner.py")), ..Load::new(module(&copy, "Model"), 1) };
    let (mut child, _) = place.load_with(&load).await.unwrap();
    let called = child.call(&floats(&[&[1.0]]), &Calling::default()).await.unwrap();
    assert_eq!(read(&called.outputs, 0), [42.0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn values_without_bytes_pass_too() {
    let Some(python) = python() else { return };
    let mut place = Place::new(&python, Role::Candidate, LIMIT).await;
    let mut child = place.load("echo.py").await.unwrap();
    let called = child.call(&Filled::empty(), &Calling::default()).await.unwrap();
    assert_eq!(called.outputs, Filled::empty());
    let called = child.call(&floats(&[&[], &[1.0]]), &Calling::default()).await.unwrap();
    assert_eq!((read(&called.outputs, 0), read(&called.outputs, 1)), (vec![], vec![1.0]));
    assert_eq!(called.seen.outputs[1].shares_input, Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_is_a_trace_of_calls_and_one_of_lines() {
    let Some(python) = python() else { return };
    let mut place = Place::new(&python, Role::Reference, LIMIT).await;
    let load = Load::new(module(&data("scale.py"), "Model"), 7);
    let (mut child, _) = place.load_with(&load).await.unwrap();
    let inputs = child.draw(3, 0).await.unwrap();
    let path = |name: &str| place.scratch.path().join(name);
    let folders = vec![data("scale.py").parent().unwrap().to_owned()];
    let (lines_path, files_path) = (path("lines.json"), path("files.json"));
    let profiling = Profiling { calls: 3, path: path("calls.json"), lines_path, files_path, folders };
    child.profile(&inputs, &profiling).await.unwrap();
    let read = |path: &std::path::Path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    let (calls, lines) = (read(&profiling.path), read(&profiling.lines_path));
    // A call of an operator has one event; a range of ours may have one on the GPU besides.
    let count = |trace: &str, name: &str| trace.matches(&format!("\"name\": \"{name}\"")).count();
    assert_eq!((count(&calls, "aten::rand"), count(&lines, "aten::rand")), (3, 3), "{calls}");
    assert!(count(&calls, "stitchcuda.call") >= 3 && !calls.contains(LINE_MARK), "{calls}");
    let line = |number: u32| format!("{LINE_MARK}{}:{number}", data("scale.py").display());
    for number in [14, 15, 16, 17, 18, 19] {
        assert!(count(&lines, &line(number)) >= 3, "{number}: {lines}");
    }
    assert_eq!(count(&lines, &line(13)), 0, "a function is entered, not run: {lines}");
    assert!(count(&lines, &format!("{MODULE_MARK}. Model")) >= 3, "{lines}");
    // It goes on as if nothing had been.
    let calling = Calling { seed: 5, ..Calling::default() };
    child.call(&inputs, &calling).await.unwrap();
    place.zygote.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn inputs_that_a_process_drew_are_passed_to_it_no_second_time() {
    let Some(python) = python() else { return };
    let mut place = Place::new(&python, Role::Reference, LIMIT).await;
    let mut child = place.load("scale.py").await.unwrap();
    let weight = read(&child.state().await.unwrap(), 0);
    // The next are drawn before the first are used.
    let (first, second) = (child.draw_held(3, 0).await.unwrap(), child.draw_held(4, 0).await.unwrap());
    assert_ne!((first.held, &first.inputs.bytes), (second.held, &second.inputs.bytes));
    for drawn in [&first, &second, &first] {
        let calling = Calling { held: drawn.held, again: true, ..Calling::default() };
        // What this side has is not looked at.
        let called = child.call(&drawn.inputs, &calling).await.unwrap();
        let expected: Vec<f32> =
            (0..12).map(|i| read(&drawn.inputs, 0)[i] * weight[i % 4] * 2.0 + 1.0).collect();
        assert_eq!((read(&called.outputs, 0), called.inputs_after), (expected, None));
    }
    if !on_cuda() {
        assert_eq!((first.made.on.as_str(), first.made.reason), ("cpu", None));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_comes_again_is_not_fetched_and_another_one_is() {
    let Some(python) = python() else { return };
    let mut place = Place::new(&python, Role::Reference, LIMIT).await;
    let mut child = place.load("scale.py").await.unwrap();
    let mut noisy = child.draw_held(3, 0).await.unwrap();
    let keep = Calling { seed: 5, held: noisy.held, keep: true, ..Calling::default() };
    let repeat = Calling { keep: false, repeats: true, again: true, ..keep.clone() };
    let first = child.call(&noisy.inputs, &keep).await.unwrap();
    assert!(!first.repeated && first.outputs.bytes.len() > 48);
    let second = child.call(&noisy.inputs, &repeat).await.unwrap();
    assert!(second.repeated && second.outputs == Filled::empty());
    // Nothing was kept this time.
    assert!(!child.call(&noisy.inputs, &repeat).await.unwrap().repeated);
    // Under another seed there is other noise.
    child.call(&noisy.inputs, &keep).await.unwrap();
    let other = child.call(&noisy.inputs, &Calling { seed: 6, ..repeat.clone() }).await.unwrap();
    assert!(!other.repeated && other.outputs.bytes != first.outputs.bytes);
    // As there is for another input.
    child.call(&noisy.inputs, &keep).await.unwrap();
    noisy.inputs.tensor_mut(0)[2] ^= 0x40;
    let other = child.call(&noisy.inputs, &Calling { again: false, ..repeat }).await.unwrap();
    assert!(!other.repeated && other.outputs.bytes[..48] != first.outputs.bytes[..48]);
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_every_size_pass_one_after_the_other() {
    let Some(python) = python() else { return };
    let mut place = Place::new(&python, Role::Candidate, LIMIT).await;
    let mut child = place.load("echo.py").await.unwrap();
    for count in [3, 2_000_000, 5, 300_000, 9_000_001, 0, 17] {
        let numbers: Vec<f32> = (0..count).map(|i| (i % 1000) as f32).collect();
        let called = child.call(&floats(&[&numbers, &[1.0]]), &Calling::default()).await.unwrap();
        assert!(read(&called.outputs, 0) == numbers && read(&called.outputs, 1) == [1.0], "{count}");
        assert_eq!(called.inputs_after, None);
        child.give_back().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_input_is_told_and_one_that_is_hidden_is_seen_where_one_looks() {
    let Some(python) = python() else { return };
    let mut place = Place::new(&python, Role::Candidate, LIMIT).await;
    let inputs = floats(&[&[1.0, -2.0], &[3.0]]);
    for (name, is_told) in [("changes", true), ("hides", false)] {
        let mut subject = module(&data("changes.py"), "Model");
        let text = format!("{name:?}");
        subject.callable = Callable::Module { name: "Model".into(), init: Some(Source::Expression { text }) };
        let (mut child, _) = place.load_with(&Load::new(subject, 1)).await.unwrap();
        let told = child.call(&inputs, &Calling::default()).await.unwrap();
        assert_eq!(told.inputs_after.is_some(), is_told, "{name}");
        let looked = child.call(&inputs, &Calling { look: true, ..Calling::default() }).await.unwrap();
        let after = looked.inputs_after.unwrap();
        assert_eq!((read(&after, 0), read(&after, 1)), (vec![0.0, 0.0], vec![3.0]), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_forks_none_ends_by_itself() {
    let Some(python) = python() else { return };
    let scratch = Scratch::new("torch-test").unwrap();
    let cancel = CancellationToken::new();
    let mut setting = setting(&python, &scratch);
    setting.forks = false;
    let mut zygote = Zygote::start(&setting, Role::Candidate, &cancel).await.unwrap();
    let mut child = zygote.child().await.unwrap();
    let mark = scratch.path().join("ended");
    let text = format!("{:?}", mark.to_str().unwrap());
    let mut subject = module(&data("leaves.py"), "Model");
    subject.callable = Callable::Module { name: "Model".into(), init: Some(Source::Expression { text }) };
    child.load(&Load::new(subject, 1)).await.unwrap();
    let called = child.call(&floats(&[&[1.0]]), &Calling::default()).await.unwrap();
    assert_eq!(read(&called.outputs, 0), [2.0]);
    assert!(!mark.exists());
    child.leave();
    let began = std::time::Instant::now();
    zygote.end_by_itself(LIMIT).await;
    // What runs at a program's end has run.
    assert!(mark.exists() && began.elapsed() < LIMIT / 2);
}

#[test]
fn inputs_and_modules_are_made_on_the_device_where_that_makes_no_difference() {
    let Some(python) = python() else { return };
    let runner = data("../../../runner").canonicalize().unwrap();
    let mut command = std::process::Command::new(&python.path);
    command.env("PYTHONDONTWRITEBYTECODE", "1").args([data("making.py"), runner]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && output.stdout == b"fine\n", "{said}");
}
