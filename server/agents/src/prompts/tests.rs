//! Every prompt, with the least and the most that can be known.

use std::sync::Arc;

use expect_test::{expect, expect_file};
use stitch_findings::{Code, Span};
use stitch_profiles::kernel::{Access, Counters, Estimate, KernelLaunch, KernelName, SourceLine, Work};
use stitch_profiles::profile::{Profile, Way};
use stitch_profiles::python::{HostLine, HostTime, Part, PythonTime};

use super::*;

const CODE: &str =
    "__global__ void scale(float* p, int n) {\n    int i = threadIdx.x;\n    if (i < n) p[i] *= 2.0;\n}\n";

/// What the simulator sees of the code: a strided load on line 3.
fn seen() -> Profile {
    let line = SourceLine {
        file: "scale.cu".into(),
        line: 3,
        accesses: vec![Access::GlobalLoad],
        counters: Counters { sectors: Some(3200), sectors_ideal: Some(400), ..Counters::default() },
        ..SourceLine::default()
    };
    let launch = KernelLaunch {
        kernel: KernelName { signature: "scale(float*, int)".into(), base: "scale".into() },
        estimate: Some(Estimate::of([(Work::Sectors, 80.0), (Work::Instructions, 20.0)])),
        lines: vec![line],
        ..KernelLaunch::default()
    };
    let mut profile = Profile::new("scale.cu::scale", Way { by: "the simulator".into(), ..Way::default() });
    profile.device = Some("sim:h200".into());
    profile.launches.push(launch);
    profile
}

fn full() -> Brief {
    let literal = CODE.find("2.0").unwrap();
    let finding = Finding::new(Code::DOUBLE_LITERAL, Span::new(literal, literal + 3), "`2.0` is a double.")
        .advise("Write `2.0f`.")
        .about("scale");
    Brief {
        target: "scale.cu::scale".to_owned(),
        file: "scale.cu".to_owned(),
        reference: CODE.replace("int i", "int  i"),
        current: CODE.to_owned(),
        selection: Some(Span::new(0, CODE.len())),
        scope: vec!["scale".to_owned()],
        device: "sim:h200 (132 SMs, 227 KB of shared memory a block, 4.8 TB/s)".to_owned(),
        tolerance: Some(1e-5),
        precision: Some("fp32".to_owned()),
        findings: vec![finding.clone(); 22],
        profile: "| sectors a request | 4.0 |".to_owned(),
        recorded: Some(Arc::new(seen())),
        tried: vec![
            Tried { task: "Vector loads".to_owned(), outcome: "wrong: copy 1 differs".to_owned() };
            14
        ],
        tokens_left: Some(1000),
    }
}

fn least() -> Brief {
    Brief {
        file: "scale.cu".to_owned(),
        current: CODE.to_owned(),
        reference: CODE.to_owned(),
        ..Brief::default()
    }
}

fn task() -> Task {
    Task {
        title: "Use float literals".to_owned(),
        description: "`2.0` makes the product a double.".to_owned(),
        scope: vec!["scale".to_owned()],
        expected_gain: "double instructions, 3 to 0".to_owned(),
        test: "results differ by more than 1e-5".to_owned(),
        rewrite: None,
    }
}

#[test]
fn every_template_renders_with_the_least_and_the_most() {
    let prompts = Prompts::new().unwrap();
    let findings = full().findings;
    let full_task = task();
    let full_plan = Plan { summary: "Doubles.".to_owned(), tasks: vec![full_task.clone()] };
    let full_feedback = Feedback {
        candidate: CODE.replace("2.0", "2.0f"),
        outcome: "wrong: copy 1 differs in 12 of 64 elements".to_owned(),
        findings: findings[..1].to_vec(),
        profile: "| sectors a request | 8.0 |".to_owned(),
    };
    let (least_plan, least_task, least_feedback) = (Plan::default(), Task::default(), Feedback::default());
    for brief in [least(), full()] {
        for length in [Length::Full, Length::Short] {
            for (plan, task, feedback) in
                [(&least_plan, &least_task, &least_feedback), (&full_plan, &full_task, &full_feedback)]
            {
                for request in [
                    Request::Plan,
                    Request::Replan(plan, "nothing was better"),
                    Request::Code(task),
                    Request::CodeAgain(task, feedback),
                ] {
                    let (system, user) = prompts.render(request, &brief, length).unwrap();
                    for text in [&system, &user, &prompts.repair(request, &brief, "It is empty.").unwrap()] {
                        assert!(
                            !text.contains("{{") && !text.contains("{%") && !text.contains("\n\n\n"),
                            "{text}"
                        );
                    }
                    assert!(user.contains("p[i] *= 2.0;"), "the code is there: {user}");
                    assert_eq!(
                        user.contains("# Measured"),
                        length == Length::Full && !brief.profile.is_empty(),
                        "{user}"
                    );
                    // The code is no longer what was profiled, so that its lines would mislead a coder.
                    assert_eq!(
                        user.contains("# Profile of the original"),
                        length == Length::Full && brief.recorded.is_some() && request.is_plan(),
                        "{user}"
                    );
                }
            }
        }
    }
}

/// All that is sent, as a person may read it. Rewritten by `UPDATE_EXPECT=1`.
#[test]
fn what_is_sent() {
    let prompts = Prompts::new().unwrap();
    let mut brief = full();
    brief.findings.truncate(1);
    brief.tried.truncate(1);
    let task = task();
    let plan = Plan { summary: "Doubles.".to_owned(), tasks: vec![task.clone()] };
    let feedback = Feedback {
        candidate: CODE.replace("2.0", "2.0f"),
        outcome: "wrong: copy 1 differs in 12 of 64 elements".to_owned(),
        findings: brief.findings[..1].to_vec(),
        profile: "| sectors a request | 8.0 |".to_owned(),
    };
    let mut text = prompts.render(Request::Plan, &brief, Length::Full).unwrap().0;
    for request in [
        Request::Plan,
        Request::Replan(&plan, "two tasks failed one after the other"),
        Request::Code(&task),
        Request::CodeAgain(&task, &feedback),
    ] {
        let (_, user) = prompts.render(request, &brief, Length::Full).unwrap();
        text += &format!("\n\n==== {}\n{user}", request.template());
    }
    let problem = "The SEARCH text of block 1 occurs 2 times in `scale.cu`, at lines 8, 14.";
    for request in [Request::Plan, Request::Code(&task)] {
        text += &format!("\n\n==== repair.md\n{}", prompts.repair(request, &brief, problem).unwrap());
    }
    expect_file!["sent.txt"].assert_eq(&(text + "\n"));
}

/// What torch's profiler sees of a module on the CPU.
fn on_cpu() -> Profile {
    let part = |name: &str, ns| Part { name: name.into(), count: 5, ns };
    let operators = vec![part("aten::sigmoid", 60_000), part("aten::mul", 40_000)];
    let line =
        HostLine { file: "gate.py".into(), line: 5, ns: 100_000, share: 1.0, operators: operators.clone() };
    let host = HostTime { operator_ns: 100_000, operators, lines: vec![line] };
    let mut profile =
        Profile::new("gate.py::Gate", Way { by: "torch.profiler on the CPU".into(), ..Way::default() });
    profile.python = Some(PythonTime { host: Some(host), ..PythonTime::default() });
    profile
}

#[test]
fn a_coder_is_told_the_profile_while_its_lines_are_the_codes() {
    let brief = Brief { reference: CODE.to_owned(), ..full() };
    let (task, plan) = (task(), Plan::default());
    for request in [Request::Plan, Request::Replan(&plan, "why"), Request::Code(&task)] {
        let (_, user) = Prompts::new().unwrap().render(request, &brief, Length::Full).unwrap();
        assert!(user.contains("## Profile of the code\n\nRecorded on sim:h200 by the simulator."), "{user}");
        assert!(user.contains("memory-bound by device memory, by estimate (80% sectors of memory"), "{user}");
        assert!(user.contains("- scale.cu:3: 3,200 sectors (400 needed)"), "{user}");
    }
}

/// The same of a module of PyTorch: what a planner and a coder are told.
#[test]
fn what_is_sent_of_a_module() {
    const MODULE: &str = "import torch.nn as nn\n\nclass Gate(nn.Module):\n    def forward(self, x, y):\n        return x.sigmoid() * y\n";
    let prompts = Prompts::new().unwrap();
    let brief = Brief {
        target: "gate.py::Gate".to_owned(),
        file: "gate.py".to_owned(),
        reference: MODULE.to_owned(),
        current: MODULE.to_owned(),
        device: "cuda:0 (NVIDIA H200)".to_owned(),
        recorded: Some(Arc::new(on_cpu())),
        ..Brief::default()
    };
    let fused = Task { title: "Fuse both operations".to_owned(), ..Task::default() };
    let (mut text, plan) = prompts.render(Request::Plan, &brief, Length::Full).unwrap();
    let (_, code) = prompts.render(Request::Code(&fused), &brief, Length::Full).unwrap();
    text += &format!("\n\n==== planner.md\n{plan}\n\n==== coder.md\n{code}\n");
    expect_file!["sent-module.txt"].assert_eq(&text);
}

#[test]
fn code_can_not_end_its_fence() {
    let brief = Brief { current: format!("// ````\n{CODE}"), ..least() };
    let (_, user) =
        Prompts::new().unwrap().render(Request::Code(&Task::default()), &brief, Length::Full).unwrap();
    let fences: Vec<_> = user.lines().filter(|line| line.starts_with("```")).collect();
    expect![[r#"
        `````cuda
        `````"#]]
    .assert_eq(&fences.join("\n"));
}
