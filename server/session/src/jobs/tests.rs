use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::time::{Instant, sleep};

use super::*;

fn jobs_with(processors: usize) -> Jobs {
    Jobs::new(Handle::current(), CancellationToken::new(), processors)
}

fn request() -> Request {
    Request::new(JobKind::Compile, "Compile a.cu")
}

/// Work that ends when it is cancelled, and not before.
async fn until_cancelled(context: Context) -> Result<(), JobError> {
    context.cancellation().cancelled().await;
    Err(JobError::failed("told to stop"))
}

fn states(jobs: &Jobs) -> Vec<State> {
    jobs.list().iter().map(|job| job.state).collect()
}

/// What a listener hears until all of `count` jobs have finished.
async fn hear(listener: &mut Listener, count: usize) -> Vec<String> {
    let mut heard = Vec::new();
    let mut finished = 0;
    while finished < count {
        let event = listener.next().await.unwrap();
        finished += usize::from(matches!(event.happening, Happening::Finished(_)));
        heard.push(format!("{} {:?}", event.job, event.happening));
    }
    heard
}

#[tokio::test(start_paused = true)]
async fn a_job_is_queued_started_reports_and_ends() {
    let jobs = jobs_with(1);
    let mut listener = jobs.listen();
    let job = jobs.start(request(), |context| async move {
        context.progress("nvcc", Some(0.5));
        context.note("sm_90, a stated default");
        sleep(Duration::from_secs(3)).await;
        context.progress("reading", Some(f32::NAN));
        Ok(42)
    });
    assert_eq!(states(&jobs), [State::Queued]);
    assert_eq!(job.wait().await, Ok(42));
    assert_eq!(
        hear(&mut listener, 1).await,
        [
            "job-1 Started",
            "job-1 Progress { message: \"nvcc\", fraction: Some(0.5) }",
            "job-1 Note { message: \"sm_90, a stated default\" }",
            "job-1 Progress { message: \"reading\", fraction: None }",
            "job-1 Finished(Done)",
        ]
    );
    let listed = &jobs.list()[0];
    assert_eq!((listed.state, listed.ran_seconds, listed.waited_seconds), (State::Done, 3.0, 0.0));
}

#[tokio::test(start_paused = true)]
async fn failures_and_panics_have_a_message_and_harm_no_other_job() {
    let jobs = jobs_with(1);
    let limited = || request().limit(Limit::Processor).slot("one");
    let failed = jobs.start::<(), _, _>(request(), |_| async { Err(JobError::failed("no nvcc")) });
    assert_eq!(failed.wait().await, Err(JobError::Failed("no nvcc".into())));
    let panicked = jobs.start(limited(), |context| async move {
        assert!(context.cancellation().is_cancelled(), "lost {}", context.id());
        Ok(())
    });
    let Err(JobError::Failed(message)) = panicked.wait().await else { panic!("it panicked") };
    assert!(message.contains("lost job-2") && message.contains("bug"), "{message}");
    let early =
        jobs.start::<(), _, _>(limited(), |_| -> std::future::Ready<_> { panic!("before the first await") });
    assert!(
        matches!(early.wait().await, Err(JobError::Failed(message)) if message.contains("before the first"))
    );
    assert_eq!(jobs.start(limited(), |_| async { Ok(1) }).wait().await, Ok(1));
    assert_eq!(states(&jobs), [State::Failed, State::Failed, State::Failed, State::Done]);
    assert_eq!(jobs.list()[0].message.as_deref(), Some("no nvcc"));
}

#[tokio::test(start_paused = true)]
async fn tokens_form_a_tree_from_session_to_stage() {
    let session = CancellationToken::new();
    let jobs = Jobs::new(Handle::current(), session.clone(), 1);
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let job = jobs.start(request(), |context| async move {
        let (first, second) = (context.stage(), context.stage());
        first.cancel();
        assert!(!context.cancellation().is_cancelled() && !second.is_cancelled());
        sender.send(second).unwrap();
        until_cancelled(context).await
    });
    let stage = receiver.await.unwrap();
    assert!(jobs.cancel(job.id()));
    stage.cancelled().await;
    assert!(!session.is_cancelled());
    let id = job.id();
    assert_eq!(job.wait().await, Err(JobError::Cancelled));
    assert!(!jobs.cancel(id), "it has ended");
    let other = jobs.start(request(), until_cancelled);
    session.cancel();
    assert_eq!(other.wait().await, Err(JobError::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn in_a_slot_the_newest_wins_after_the_older_has_ended() {
    let jobs = jobs_with(8);
    let mut listener = jobs.listen();
    let inside = Arc::new(AtomicUsize::new(0));
    let save = |inside: Arc<AtomicUsize>| {
        move |context: Context| async move {
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two in one slot");
            // Takes a second to stop, like a compiler that is asked to end.
            let ended = context.cancellation().run_until_cancelled(sleep(Duration::from_secs(10))).await;
            sleep(Duration::from_secs(1)).await;
            inside.fetch_sub(1, Ordering::SeqCst);
            ended.map(|()| context.id()).ok_or(JobError::Cancelled)
        }
    };
    let mut saves = Vec::new();
    for _ in 0..5 {
        saves.push(jobs.start(request().slot("a.cu"), save(inside.clone())));
        sleep(Duration::from_millis(100)).await;
    }
    let other = jobs.start(request().slot("b.cu"), |_| async { Ok(()) });
    assert_eq!(other.wait().await, Ok(()), "another slot is free");
    let newest = saves.pop().unwrap();
    for save in saves {
        assert_eq!(save.wait().await, Err(JobError::Cancelled));
    }
    let id = newest.id();
    assert_eq!(newest.wait().await, Ok(id));
    let mut ends = hear(&mut listener, 6).await;
    ends.retain(|event| event.contains("job-1 ") || event.contains("job-5 "));
    assert_eq!(ends, ["job-1 Started", "job-1 Finished(Cancelled)", "job-5 Started", "job-5 Finished(Done)"]);
    let times: Vec<_> = jobs.list().iter().map(|job| (job.state, job.ran_seconds > 0.0)).collect();
    // The second to fourth were overtaken while they waited for the first to end, and never ran.
    assert_eq!(times[..2], [(State::Cancelled, true), (State::Cancelled, false)]);
    assert_eq!(times[3..5], [(State::Cancelled, false), (State::Done, true)]);
    settle().await;
    assert_eq!(jobs.shared.slots.len(), 0, "an empty slot is forgotten");
}

/// Lets all tasks run until they wait.
async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_waiting_job_does_not_let_another_past_the_one_that_runs() {
    let jobs = jobs_with(8);
    let slow = |_| async {
        sleep(Duration::from_secs(3)).await;
        Ok(Instant::now())
    };
    let first = jobs.start(request().slot("s"), slow);
    settle().await;
    let second = jobs.start(request().slot("s"), slow);
    settle().await;
    second.cancel();
    assert_eq!(second.wait().await, Err(JobError::Cancelled));
    let third = jobs.start(request().slot("s"), |_| async { Ok(Instant::now()) });
    let first = first.wait().await.unwrap();
    assert!(third.wait().await.unwrap() >= first);
}

#[tokio::test(start_paused = true)]
async fn limits_bound_how_many_run_at_once() {
    let jobs = jobs_with(3);
    let cases = [(Limit::None, 12), (Limit::Processor, 3), (Limit::Device("cuda:0".into()), 1)];
    for (limit, most) in cases {
        let (now, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let handles: Vec<_> = (0..12)
            .map(|_| {
                let (now, peak) = (now.clone(), peak.clone());
                jobs.start(request().limit(limit.clone()), |_| async move {
                    peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    sleep(Duration::from_secs(1)).await;
                    now.fetch_sub(1, Ordering::SeqCst);
                    Ok(())
                })
            })
            .collect();
        for handle in handles {
            handle.wait().await.unwrap();
        }
        assert_eq!(peak.load(Ordering::SeqCst), most, "{limit:?}");
    }
    assert!(Jobs::processors() >= 1);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_ignores_its_token_is_dropped_after_the_grace() {
    struct Process(Arc<AtomicUsize>);
    impl Drop for Process {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let jobs = jobs_with(1);
    let killed = Arc::new(AtomicUsize::new(0));
    let process = Process(killed.clone());
    let stubborn = jobs.start::<(), _, _>(request().slot("s"), |_| async move {
        let _process = process;
        std::future::pending().await
    });
    settle().await;
    let started = Instant::now();
    let next = jobs.start(request().slot("s"), |_| async { Ok(()) });
    assert_eq!(next.wait().await, Ok(()));
    assert_eq!(stubborn.wait().await, Err(JobError::Cancelled));
    assert_eq!((started.elapsed(), killed.load(Ordering::SeqCst)), (GRACE, 1));
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_two_seconds_for_what_runs_and_drops_the_rest() {
    let jobs = jobs_with(1);
    let mut listener = jobs.listen();
    let quick = jobs.start(request(), until_cancelled);
    let stubborn = jobs.start::<(), _, _>(request(), |_| std::future::pending());
    let waiting = jobs.start(request().limit(Limit::Processor), until_cancelled);
    let queued = jobs.start(request().limit(Limit::Processor), until_cancelled);
    settle().await;
    let started = Instant::now();
    assert_eq!(jobs.shutdown().await, 1);
    assert_eq!(started.elapsed(), SHUTDOWN_GRACE);
    for handle in [quick, stubborn, waiting, queued] {
        assert_eq!(handle.wait().await, Err(JobError::Cancelled));
    }
    assert_eq!(hear(&mut listener, 4).await.len(), 7, "four ends, and three had started");
    assert_eq!(listener.next().await, None);
    let late = jobs.start(request(), |_| async { Ok(()) });
    assert_eq!(late.wait().await, Err(JobError::Cancelled));
    assert_eq!(jobs.listen().next().await, None);
    assert_eq!(jobs.shutdown().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_slow_listener_loses_progress_and_never_an_end() {
    let jobs = jobs_with(1);
    let (mut slow, dropped) = (jobs.listen(), jobs.listen());
    drop(dropped);
    for _ in 0..150 {
        let job = jobs.start(request(), |context| async move {
            for step in 0..1000 {
                context.progress(format!("step {step}"), None);
                if step % 100 == 0 {
                    context.note("a note");
                }
            }
            Ok(())
        });
        job.wait().await.unwrap();
    }
    let heard = hear(&mut slow, 150).await;
    assert_eq!(heard.iter().filter(|event| event.contains("Finished(Done)")).count(), 150);
    assert!(heard.len() <= 300 + listener::LONGEST_QUEUE, "{}", heard.len());
    assert_eq!(jobs.list().len(), KEPT);
    assert_eq!(jobs.list().last().unwrap().id, JobId(150));
}

#[tokio::test(start_paused = true)]
async fn only_the_last_progress_waits_for_a_listener() {
    let jobs = jobs_with(1);
    let mut listener = jobs.listen();
    let job = jobs.start(request(), |context| async move {
        context.progress("one", None);
        context.progress("two", Some(2.0));
        Ok(context)
    });
    let context = job.wait().await.unwrap();
    context.progress("after the end", None);
    context.note("after the end");
    let two = "job-1 Progress { message: \"two\", fraction: Some(1.0) }";
    assert_eq!(hear(&mut listener, 1).await, ["job-1 Started", two, "job-1 Finished(Done)"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_saves_from_many_tasks_leave_one_result_and_no_slot() {
    let jobs = jobs_with(2);
    let inside = Arc::new(AtomicUsize::new(0));
    let starters: Vec<_> = (0..200)
        .map(|_| {
            let (jobs, inside) = (jobs.clone(), inside.clone());
            tokio::spawn(async move {
                let job = jobs.start(request().slot("s").limit(Limit::Processor), |context| async move {
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two in one slot");
                    let done =
                        context.cancellation().run_until_cancelled(sleep(Duration::from_millis(20))).await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    done.ok_or(JobError::Cancelled)
                });
                job.wait().await
            })
        })
        .collect();
    let mut done = 0;
    for starter in starters {
        match starter.await.unwrap() {
            Ok(()) => done += 1,
            Err(JobError::Cancelled) => {}
            Err(JobError::Failed(message)) => panic!("{message}"),
        }
    }
    assert!(done >= 1);
    assert_eq!(jobs.shutdown().await, 0);
    assert_eq!(jobs.shared.slots.len(), 0);
}

#[test]
fn events_are_flat_json_and_can_be_read_back() {
    let event = |happening| Event { job: JobId(7), kind: JobKind::TypeCheck, title: "t".into(), happening };
    let cases = [
        (Happening::Started, r#"{"event":"started"}"#),
        (
            Happening::Progress { message: "m".into(), fraction: None },
            r#"{"event":"progress","message":"m","fraction":null}"#,
        ),
        (Happening::Note { message: "m".into() }, r#"{"event":"note","message":"m"}"#),
        (Happening::Finished(Outcome::Done), r#"{"event":"finished","outcome":"done"}"#),
        (
            Happening::Finished(Outcome::Failed { message: "m".into() }),
            r#"{"event":"finished","outcome":"failed","message":"m"}"#,
        ),
        (Happening::Finished(Outcome::Cancelled), r#"{"event":"finished","outcome":"cancelled"}"#),
    ];
    for (happening, json) in cases {
        let mut expected: serde_json::Value = serde_json::from_str(json).unwrap();
        for (key, value) in [("job", 7.into()), ("kind", "type-check".into()), ("title", "t".into())] {
            expected[key] = value;
        }
        let event = event(happening);
        assert_eq!(serde_json::to_value(&event).unwrap(), expected);
        assert_eq!(serde_json::from_value::<Event>(expected).unwrap(), event);
    }
}
