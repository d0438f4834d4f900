//! The library before real programs.

use std::process::Command;
use std::time::Instant;

use super::*;

/// Compiles a C program and gives what runs of it print, each begun at one of `dates`.
fn runs(source: &str, flags: &[&str], dates: &[u64]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let (file, program) = (folder.path().join("p.c"), folder.path().join("p"));
    fs::write(&file, source).unwrap();
    let built = Command::new("cc").arg(&file).args(flags).args(["-pthread", "-o"]).arg(&program).status();
    assert!(built.unwrap().success());
    let run = |date: &u64| {
        let held = variables(*date, &folder.path().join("cache"), "cc -Werror").unwrap();
        let output = Command::new(&program).envs(held).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    dates.iter().map(run).collect()
}

const DATE: u64 = 1_700_000_000;

#[test]
fn what_seeds_is_alike_in_all_runs_of_one_date_and_other_in_another() {
    // The start of a program takes another time in each run.
    let source = "#include <stdio.h>\n#include <stdlib.h>\n#include <sys/random.h>\n#include <sys/time.h>\n#include <time.h>\n#include <unistd.h>\n\
        int main() { usleep(getpid() % 300 * 1000); srand(time(NULL)); struct timeval t; gettimeofday(&t, NULL);\n\
        unsigned r; if (getrandom(&r, sizeof r, 0) != sizeof r) return 1;\n\
        printf(\"%d %ld %ld %u %ld\\n\", rand(), (long)t.tv_sec, (long)t.tv_usec, r, (long)clock()); }\n";
    let said = runs(source, &[], &[DATE, DATE, DATE - 5]);
    assert_eq!(said[0], said[1]);
    assert!(said[0].contains(" 1700000000 0 "), "{said:?}");
    assert_ne!(said[0], said[2]);
}

#[test]
fn waiting_for_the_clock_ends_and_durations_are_right() {
    let source = "#define _GNU_SOURCE\n#include <errno.h>\n#include <pthread.h>\n#include <semaphore.h>\n#include <stdio.h>\n#include <sys/time.h>\n#include <time.h>\n#include <unistd.h>\n\
        static double at(int clock) { struct timespec t; clock_gettime(clock, &t); return t.tv_sec + t.tv_nsec * 1e-9; }\n\
        int main() { time_t start = time(NULL); double real = at(CLOCK_MONOTONIC), date = at(CLOCK_REALTIME);\n\
        while (time(NULL) < start + 1) {}\n\
        double went = at(CLOCK_MONOTONIC) - real, said = at(CLOCK_REALTIME) - date;\n\
        sem_t s; sem_init(&s, 0, 0); struct timespec until; clock_gettime(CLOCK_REALTIME, &until); until.tv_sec += 1;\n\
        real = at(CLOCK_MONOTONIC); int got = sem_timedwait(&s, &until); double waited = at(CLOCK_MONOTONIC) - real;\n\
        pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; pthread_cond_t c = PTHREAD_COND_INITIALIZER; pthread_mutex_lock(&m);\n\
        clock_gettime(CLOCK_REALTIME, &until); until.tv_sec += 1; real = at(CLOCK_MONOTONIC);\n\
        int timed = pthread_cond_timedwait(&c, &m, &until); double stood = at(CLOCK_MONOTONIC) - real;\n\
        printf(\"%d %d %d %d %d\\n\", went >= 0.99 && went < 5, said - went < 0.1 && went - said < 0.1,\n\
          got == -1 && errno == ETIMEDOUT, waited > 0.9 && waited < 5, timed == ETIMEDOUT && stood > 0.9 && stood < 5); }\n";
    let began = Instant::now();
    // A date long ago, whose deadlines have all passed.
    assert_eq!(runs(source, &[], &[DATE]), ["1 1 1 1 1\n"]);
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_static_program_runs_as_it_did() {
    let source =
        "#include <stdio.h>\n#include <time.h>\nint main() { printf(\"%ld\\n\", (long)time(NULL)); }\n";
    let said = runs(source, &["-static"], &[DATE]);
    assert!(said[0].trim().parse::<u64>().unwrap() > DATE, "{said:?}");
}

#[test]
fn dates_are_never_to_come_and_texts_tell_who_seeds() {
    for by in [0, 1, u64::MAX] {
        assert!(earlier(DATE, by) < DATE);
    }
    assert_eq!(earlier(0, 7), 1);
    assert!(
        seeds_by_the_clock("srand(time(0));")
            && seeds_by_the_clock("std::random_device d; std::mt19937 g(d());")
    );
    assert!(
        !seeds_by_the_clock("srand(42); cudaEventElapsedTime(&ms, a, b);") && !seeds_by_the_clock("time(0)")
    );
}
