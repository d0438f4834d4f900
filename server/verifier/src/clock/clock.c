// Holds the date still for a program, so that two runs of it seed alike: `srand(time(NULL))`, `std::random_device`.
//
// Durations stay right. The first call of each of `time`, the precise clocks and `clock` gives the base; every later one gives the base
// and what has really gone by since that first call. So what seeds gets the same number in each run, however long the start took, and
// what waits for the clock waits as long as it would have. The numbers of the random functions follow from the base alone.
//
// Calls from the driver and from CUDA's libraries go through as they are: these must not be the first ones, and need no date.
//
// Not held: a program that is linked statically, the processor's own random numbers (`rdrand`), /dev/urandom, system calls made
// without the library.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))
#define SECOND 1000000000ll

// The base in seconds since 1970; 0 where the date is not held.
static long long base;

__attribute__((constructor)) static void begin(void) {
  const char *text = getenv("STITCHCUDA_DATE");
  base = text ? strtoll(text, NULL, 10) : 0;
}

// Past the library, so that nothing of it is asked before it is there.
static long long now(clockid_t clock) {
  struct timespec at = {0, 0};
  syscall(SYS_clock_gettime, clock, &at);
  return at.tv_sec * SECOND + at.tv_nsec;
}

// Whether the code at `caller` is the program's, or of a library that asks for it, as C++'s own does.
static bool is_of_the_program(const void *caller) {
  static _Thread_local const void *last;
  static _Thread_local bool known;
  if (caller == last) return known;
  Dl_info info;
  bool is = true;
  if (dladdr(caller, &info) && info.dli_fname) {
    const char *slash = strrchr(info.dli_fname, '/');
    const char *name = slash ? slash + 1 : info.dli_fname;
    static const char *const others[] = {"libcuda", "libcu", "libnv", "libc.so", "libpthread", "ld-linux", NULL};
    for (int i = 0; others[i]; ++i) is = is && strncmp(name, others[i], strlen(others[i])) != 0;
  }
  last = caller;
  known = is;
  return is;
}

#define HELD() (base > 0 && is_of_the_program(__builtin_return_address(0)))

// What has gone by on `clock` since the first call for `first`, in nanoseconds.
static long long since(_Atomic long long *first, clockid_t clock) {
  long long at = now(clock), none = 0;
  if (atomic_compare_exchange_strong(first, &none, at)) return 0;
  return at - none;
}

// When each family was first asked: on the clock that only goes forward, or the processor's time.
static _Atomic long long seconds_first, precise_first, processor_first;

static long long date(void) { return base * SECOND + since(&precise_first, CLOCK_MONOTONIC); }

// How far the real date is ahead of what the program was told, for deadlines that it makes of it.
static long long ahead(void) {
  long long first = atomic_load(&precise_first);
  if (first == 0) first = atomic_load(&seconds_first);
  if (base == 0 || first == 0) return 0;
  return now(CLOCK_REALTIME) - (base * SECOND + now(CLOCK_MONOTONIC) - first);
}

static struct timespec split(long long nanoseconds) {
  return (struct timespec){.tv_sec = nanoseconds / SECOND, .tv_nsec = nanoseconds % SECOND};
}

// A deadline as the system must be told it. The dates of clocks that count from the start of the machine are left alone.
static struct timespec real(const struct timespec *deadline) {
  const time_t year_2001 = 1000000000;
  if (!deadline || deadline->tv_sec < year_2001) return deadline ? *deadline : (struct timespec){0, 0};
  return split(deadline->tv_sec * SECOND + deadline->tv_nsec + ahead());
}

#define NEXT(function) ((__typeof__(&function))dlsym(RTLD_NEXT, #function))

PUBLIC time_t time(time_t *to) {
  long long at = HELD() ? base + since(&seconds_first, CLOCK_MONOTONIC) / SECOND : now(CLOCK_REALTIME) / SECOND;
  if (to) *to = at;
  return at;
}

PUBLIC int gettimeofday(struct timeval *restrict to, void *restrict zone) {
  long long at = HELD() ? date() : now(CLOCK_REALTIME);
  *to = (struct timeval){.tv_sec = at / SECOND, .tv_usec = at % SECOND / 1000};
  if (zone) memset(zone, 0, sizeof(struct timezone));
  return 0;
}

PUBLIC int clock_gettime(clockid_t clock, struct timespec *to) {
  if ((clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) && HELD()) {
    *to = split(date());
    return 0;
  }
  // The library's own is faster, but is not there yet while others begin.
  static _Atomic(int (*)(clockid_t, struct timespec *)) next;
  int (*function)(clockid_t, struct timespec *) = atomic_load(&next);
  if (!function) {
    function = NEXT(clock_gettime);
    atomic_store(&next, function);
  }
  return function ? function(clock, to) : (int)syscall(SYS_clock_gettime, clock, to);
}

PUBLIC int timespec_get(struct timespec *to, int kind) {
  if (kind != TIME_UTC) return 0;
  *to = split(HELD() ? date() : now(CLOCK_REALTIME));
  return kind;
}

PUBLIC clock_t clock(void) {
  // A millisecond, as a program has used that just started.
  const long long start = SECOND / 1000;
  long long used = HELD() ? start + since(&processor_first, CLOCK_PROCESS_CPUTIME_ID) : now(CLOCK_PROCESS_CPUTIME_ID);
  return used / (SECOND / CLOCKS_PER_SEC);
}

PUBLIC int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left) {
  struct timespec then = until ? *until : (struct timespec){0, 0};
  if (clock == CLOCK_REALTIME && (flags & TIMER_ABSTIME)) then = real(until);
  return syscall(SYS_clock_nanosleep, clock, flags, &then, left) == 0 ? 0 : errno;
}

PUBLIC int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict until) {
  struct timespec then = real(until);
  return NEXT(sem_timedwait)(semaphore, &then);
}

PUBLIC int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict until) {
  struct timespec then = real(until);
  return NEXT(pthread_mutex_timedlock)(mutex, &then);
}

PUBLIC int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                                  const struct timespec *restrict until) {
  typedef int (*wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
  struct timespec then = real(until);
  // There are two of this name; the older one takes another kind of condition.
  wait next = (wait)dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
  if (!next) next = (wait)dlsym(RTLD_NEXT, "pthread_cond_timedwait");
  return next(condition, mutex, &then);
}

// ---- Random numbers ------------------------------------------------------------------------------------------------------

// splitmix64, from the base.
static uint64_t draw(void) {
  static _Atomic uint64_t drawn;
  uint64_t z = (uint64_t)base + (atomic_fetch_add(&drawn, 1) + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

static void fill(void *to, size_t size) {
  for (size_t at = 0; at < size; at += 8) {
    uint64_t number = draw();
    memcpy((char *)to + at, &number, size - at < 8 ? size - at : 8);
  }
}

PUBLIC ssize_t getrandom(void *to, size_t size, unsigned flags) {
  if (!HELD()) return syscall(SYS_getrandom, to, size, flags);
  fill(to, size);
  return (ssize_t)size;
}

PUBLIC int getentropy(void *to, size_t size) {
  if (size > 256) {
    errno = EIO;
    return -1;
  }
  if (HELD()) {
    fill(to, size);
    return 0;
  }
  return syscall(SYS_getrandom, to, size, 0) == (long)size ? 0 : -1;
}

// `std::random_device::operator()` of GNU's C++ library, which asks the processor where it can.
PUBLIC unsigned random_device(void *self) __asm__("_ZNSt13random_device9_M_getvalEv");
unsigned random_device(void *self) {
  unsigned (*next)(void *) = (unsigned (*)(void *))dlsym(RTLD_NEXT, "_ZNSt13random_device9_M_getvalEv");
  return base > 0 || !next ? (unsigned)draw() : next(self);
}
