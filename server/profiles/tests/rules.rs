//! What the rules say about real runs, and what they keep to themselves.

#![allow(clippy::unwrap_used)]

mod common;

use std::io::{Cursor, Read};

use stitch_findings::{Severity, Span};
use stitch_profiles::python::{self, Workspace};
use stitch_profiles::system::rules::RULES;
use stitch_profiles::system::{Insight, System, explain};
use stitch_profiles::{nsys, trace};

fn of_export(name: &str) -> Vec<Insight> {
    explain(&nsys::read(&common::nsys(name).path).unwrap(), None)
}

fn of_trace(events: &str) -> (System, Vec<Insight>) {
    let text = format!("[{events}]");
    let system = trace::read_from("t.json", &mut || {
        Ok(Box::new(Cursor::new(text.clone().into_bytes())) as Box<dyn Read>)
    })
    .unwrap();
    let insights = explain(&system, None);
    (system, insights)
}

fn rule<'i>(insights: &'i [Insight], id: &str) -> Option<&'i Insight> {
    insights.iter().find(|insight| insight.rule == id)
}

fn kernel(start: f64, dur: f64, number: u32) -> String {
    format!(
        r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{},"dur":3,"args":{{"correlation":{number}}}}},
           {{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":{start},"dur":{dur},"args":{{"device":0,"stream":7,"correlation":{number}}}}},"#,
        start - 5.0
    )
}

#[test]
fn a_network_with_a_copy_and_a_wait_in_each_step() {
    let insights = of_export("h200_pytorch_mlp.sqlite");
    let copies = rule(&insights, "pageable-copy").unwrap();
    assert!(
        copies.limits.starts_with("12 copies between pageable memory and the device moved 42."),
        "{}",
        copies.limits
    );
    let waits = rule(&insights, "synchronization").unwrap();
    assert!(
        waits.limits.starts_with(
            "21 calls waited for NVIDIA H200 (20 `cudaStreamSynchronize`, 1 `cudaDeviceSynchronize`)"
        ),
        "{}",
        waits.limits
    );
    assert_eq!(copies.severity, Severity::Information);
    // A small part of this short run, but there in each step.
    assert_eq!(waits.severity, Severity::Hint);
    let idle = rule(&insights, "gpu-idle").unwrap();
    assert_eq!(idle.severity, Severity::Information);
    // The start, 160 ms in which the libraries were loaded, is no step.
    assert!(
        !idle.limits.contains("207 ms") && !insights.iter().any(|insight| insight.limits.contains("160 ms"))
    );
}

#[test]
fn a_program_of_large_kernels() {
    let insights = of_export("h200_kernels.sqlite");
    let overlap = rule(&insights, "copy-overlap").unwrap();
    assert_eq!(overlap.severity, Severity::Information);
    let copies = rule(&insights, "pageable-copy").unwrap();
    assert_eq!(copies.severity, Severity::Information);
    let top: Vec<&str> = insights
        .iter()
        .filter(|insight| insight.rule == "top-kernel")
        .filter_map(|insight| insight.kernel.as_deref())
        .collect();
    assert!(top[0].starts_with("histogram_atomic(") && top.len() == 3, "{top:?}");
    for silent in ["launch-gap", "tiny-kernels", "host-bound", "synchronization"] {
        assert!(rule(&insights, silent).is_none(), "{silent}: {insights:#?}");
    }
}

#[test]
fn nothing_is_said_about_what_was_not_recorded() {
    assert!(of_export("no_kernels.sqlite").is_empty());
    assert!(of_trace("").1.is_empty());
    // Without calls the cause of a gap is not known.
    let events = r#"{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":10},
                    {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":50,"dur":10}"#;
    let (_, insights) = of_trace(events);
    assert!(rule(&insights, "launch-gap").is_none());
    assert!(rule(&insights, "gpu-idle").unwrap().limits.contains("for causes that were not recorded"));
}

#[test]
fn gaps_between_launches_and_tiny_kernels() {
    let events: String = (0..200).map(|n| kernel(100.0 + 20.0 * f64::from(n), 2.0, n + 1)).collect();
    let (system, insights) = of_trace(&events);
    let gaps = rule(&insights, "launch-gap").unwrap();
    // 199 gaps of 18 µs, of 3,982 µs in all.
    assert!((gaps.gain.share - 199.0 * 18.0 / 3_982.0).abs() < 1e-9, "{gaps:?}");
    assert!(gaps.limits.contains("idle for 90% of its time in 199 gaps"), "{}", gaps.limits);
    let tiny = rule(&insights, "tiny-kernels").unwrap();
    assert!(
        tiny.limits.starts_with("200 of 200 launches took less than 5 µs") && tiny.limits.contains("`k`"),
        "{}",
        tiny.limits
    );
    assert_eq!(system.kernels.as_ref().unwrap()[0].ceiling, Some(3_982.0 / (3_982.0 - 400.0)));

    // The same kernels, queued in time: no gap, nothing to say but where the time goes.
    let events: String = (0..200).map(|n| kernel(100.0 + 2.0 * f64::from(n), 2.0, n + 1)).collect();
    let (_, insights) = of_trace(&events);
    assert_eq!(insights.iter().map(|insight| insight.rule.as_str()).collect::<Vec<_>>(), ["top-kernel"]);
    assert!(insights[0].limits.contains("nothing else takes time"));
}

#[test]
fn a_wait_costs_no_more_than_the_host_had_waited() {
    // The host waits 40 µs for a kernel of 50, and takes 30 µs until the next one runs: all of that it could have done meanwhile. In the second
    // pair it waits 10 µs only.
    let wait = |start: f64, dur: f64| {
        format!(
            r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaStreamSynchronize","pid":1,"tid":1,"ts":{start},"dur":{dur},"args":{{"correlation":900}}}},"#
        )
    };
    let events = kernel(100.0, 50.0, 1)
        + &wait(110.0, 40.5)
        + &kernel(180.0, 50.0, 2)
        + &wait(220.0, 10.5)
        + &kernel(260.0, 50.0, 3);
    let (system, insights) = of_trace(&events);
    let idle = &system.devices[0].time.as_ref().unwrap().idle;
    assert_eq!((idle.synchronization.count, idle.synchronization.ns), (2, 30_000 + 10_500));
    assert_eq!((idle.launch.count, idle.launch.ns), (1, 19_500));
    let waits = rule(&insights, "synchronization").unwrap();
    assert!((waits.gain.share - 40.5 / 210.0).abs() < 1e-9, "{waits:?}");
}

#[test]
fn lines_are_named_where_they_are_known() {
    let text = include_str!("data/trace/train_step.json");
    let files = vec!["/w/train.py".into(), "/w/models/net.py".into()];
    let workspace = Workspace { files, ..Workspace::default() };
    let (system, time) = python::read_from("t.json", &workspace, &mut || {
        Ok(Box::new(Cursor::new(text.as_bytes())) as Box<dyn Read>)
    })
    .unwrap();
    let insights = explain(&system, Some(&time));
    let top = rule(&insights, "top-kernel").unwrap();
    assert_eq!((top.lines[0].file.as_str(), top.lines[0].line), ("/w/models/net.py", 8));
    assert_eq!(top.lines[0].what, "launches it once, 150 µs in all");
    let finding = top.finding(Span::new(3, 8));
    assert_eq!((finding.code, finding.span, finding.severity), (top.code, Span::new(3, 8), Severity::Hint));
    assert!(finding.message.contains("by our estimate"), "{}", finding.message);
}

#[test]
fn every_row_is_whole() {
    for (at, rule) in RULES.iter().enumerate() {
        assert!(
            RULES[..at].iter().all(|other| other.id != rule.id && other.code != rule.code),
            "{}",
            rule.id
        );
        assert_eq!(rule.code.as_str(), format!("nsys/{}", rule.id));
        assert!((0.0..1.0).contains(&rule.threshold) && rule.link.starts_with("https://"));
        for text in [rule.limits, rule.advice] {
            assert!(
                text.ends_with('.') && text.starts_with(|c: char| c.is_uppercase() || "{`".contains(c)),
                "{text}"
            );
        }
    }
    for name in ["h200_kernels.sqlite", "h200_pytorch_mlp.sqlite"] {
        for insight in of_export(name) {
            assert!(!insight.limits.contains(['{', '}']), "{}", insight.limits);
            assert!((0.0..=1.0).contains(&insight.gain.share), "{insight:?}");
        }
    }
}

#[test]
fn what_is_told_survives_json() {
    let system = nsys::read(&common::nsys("h200_pytorch_mlp.sqlite").path).unwrap();
    let insights = explain(&system, None);
    let text = serde_json::to_string(&(&system, &insights)).unwrap();
    let (back, told): (System, Vec<Insight>) = serde_json::from_str(&text).unwrap();
    // What has no fraction, for a reader of JSON may be off by the last digit of one.
    assert_eq!((back.devices, back.drawing, back.calls), (system.devices, system.drawing, system.calls));
    assert_eq!(told.len(), insights.len());
    let schema = schemars::schema_for!(System);
    assert!(schema.as_value()["properties"]["kernels"].is_object());
}
