// Memory: atomics of all widths and orders, vectors, volatile, the heap, arrays whose length is known at run time.
#include <cstdint>
#include <cstdio>
#include <cuda/atomic>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

struct alignas(16) Wide { unsigned long long low, high; };
__device__ alignas(16) Wide cell;
__device__ alignas(16) float sums[8];
__device__ alignas(16) __half2 halves[2];
__device__ __nv_bfloat162 brains;
__device__ __half one_half;
__device__ unsigned words[8];
__device__ unsigned short small;
__device__ volatile int flag;

// 128-bit exchange and compare-and-swap: each of 40 threads adds 1 to the low and 3 to the high half.
extern "C" __global__ void sixteen_bytes() {
  Wide old = cell, next, seen;
  for (;;) {
    next.low = old.low + 1, next.high = old.high + 3;
    asm volatile("{\n\t.reg .b128 a, b, d;\n\tmov.b128 a, {%2, %3};\n\tmov.b128 b, {%4, %5};\n\t"
                 "atom.global.cas.b128 d, [%6], a, b;\n\tmov.b128 {%0, %1}, d;\n\t}"
        : "=l"(seen.low), "=l"(seen.high) : "l"(old.low), "l"(old.high), "l"(next.low), "l"(next.high), "l"(&cell) : "memory");
    if (seen.low == old.low && seen.high == old.high) break;
    old = seen;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("{\n\t.reg .b128 a, d;\n\tmov.b128 a, {%2, %3};\n\tatom.global.exch.b128 d, [%4], a;\n\tmov.b128 {%0, %1}, d;\n\t}"
        : "=l"(seen.low), "=l"(seen.high) : "l"(7ull), "l"(8ull), "l"(&cell) : "memory");
    printf("sixteen_bytes %llu %llu %llu\n", seen.low, seen.high, cell.high);
  }
}

extern "C" __global__ void vectors() {
  int t = threadIdx.x;
  asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(sums), "f"(1.0f * t), "f"(0.5f) : "memory");
  float a, b, c, d;
  asm volatile("atom.global.v4.f32.add {%0, %1, %2, %3}, [%4], {%5, %5, %6, %6};"
      : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(sums + 4), "f"(1.0f), "f"(2.0f) : "memory");
  asm volatile("red.global.add.noftz.v2.f16x2 [%0], {%1, %1};" ::"l"(halves), "r"(0x3c004000) : "memory");  // 1.0 and 2.0
  float last = __int_as_float(__reduce_max_sync(~0u, __float_as_int(c)));
  __syncthreads();
  if (t == 0)
    printf("vectors %g %g %g %g %g %g %g\n", sums[0], sums[1], sums[4], sums[7], last, __low2float(halves[1]), __high2float(halves[1]));
}

extern "C" __global__ void narrow() {
  int t = threadIdx.x;
  atomicAdd(&brains, __floats2bfloat162_rn(1.0f, -2.0f));
  atomicAdd(&one_half, __float2half(0.25f));
  unsigned short old = small, seen;
  while ((seen = atomicCAS(&small, old, (unsigned short)(old + 3))) != old) old = seen;
  __syncthreads();
  if (t == 0) printf("narrow %g %g %g %u\n", __low2float(brains), __high2float(brains), __half2float(one_half), small);
}

extern "C" __global__ void operations() {
  unsigned t = threadIdx.x;
  atomicInc(&words[0], 9), atomicDec(&words[1], 4), atomicXor(&words[2], t << 8), atomicMax((int *)&words[3], -(int)t - 1 + 20);
  atomicMin(&words[4], t), atomicAnd(&words[5], ~(1u << t)), atomicOr(&words[6], 1u << t), atomicSub(&words[7], 2u);
  __syncthreads();
  if (t == 0)
    printf("operations %u %u %x %d %u %x %x %d\n", words[0], words[1], words[2], (int)words[3], words[4], words[5], words[6], (int)words[7]);
}

extern "C" __global__ void references() {
  __shared__ int local;
  __shared__ double real;
  if (threadIdx.x == 0) local = 5, real = 1.0;
  __syncthreads();
  cuda::atomic_ref<int, cuda::thread_scope_block> r(local);
  cuda::atomic_ref<double, cuda::thread_scope_block> f(real);
  r.fetch_add(threadIdx.x, cuda::memory_order_relaxed);
  f.fetch_add(0.5);
  r.fetch_max(3);
  __syncthreads();
  if (threadIdx.x == 0) {
    int was = r.exchange(9, cuda::memory_order_acq_rel), expected = 9;
    bool swapped = r.compare_exchange_strong(expected, 10);
    printf("references %d %d %d %g\n", was, swapped, r.load(cuda::memory_order_acquire), f.load());
  }
}

extern "C" __global__ void wide_accesses() {
  __shared__ alignas(16) uint4 rows[32];
  __shared__ alignas(16) double2 pairs[32];
  unsigned t = threadIdx.x;
  rows[t] = make_uint4(t, t + 1, t + 2, t + 3);
  pairs[t] = make_double2(t, -1.0 * t);
  __syncthreads();
  uint4 r = rows[31 - t];
  double2 p = pairs[t ^ 1];
  unsigned char bytes[4] = {(unsigned char)(r.x * 50), 2, 3, 4};
  short signed_half = (short)(r.y * 3000);
  unsigned long long low, high;
  asm volatile("{\n\t.reg .b128 q;\n\tld.shared.b128 q, [%2];\n\tmov.b128 {%0, %1}, q;\n\t}"
      : "=l"(low), "=l"(high) : "r"((unsigned)__cvta_generic_to_shared(&rows[t])));
  if (t == 3) printf("wide %u %u %g %g %d %d %llx %llx\n", r.x, r.w, p.x, p.y, bytes[0], signed_half, low, high);
}

struct Node { Node *next; int value; __device__ Node(Node *n, int v) : next(n), value(v) {} };

extern "C" __global__ void heap() {
  Node *list = nullptr;
  for (int i = 0; i < 10; ++i) list = new Node(list, (int)threadIdx.x * i);
  int sum = 0;
  while (list) {
    Node *next = list->next;
    sum += list->value;
    delete list;
    list = next;
  }
  char *bytes = (char *)malloc(100);
  memset(bytes, 3, 100);
  for (int i = 0; i < 100; ++i) sum += bytes[i];
  free(bytes);
  if (threadIdx.x == 31) printf("heap %d\n", sum);  // 31 * 45 + 300
}

__device__ __noinline__ int fill(int *a, int n) { int s = 0; for (int i = 0; i < n; ++i) a[i] = i * i; for (int i = 0; i < n; ++i) s += a[i]; return s; }

extern "C" __global__ void run_time_arrays() {
  int s = 0;
  for (int k = 0; k < 3; ++k) {
    int n = threadIdx.x + k + 1;
    int *a = (int *)alloca(n * sizeof(int)), *b = (int *)alloca(n * sizeof(int));
    s += fill(a, n) + fill(b, n) - a[n - 1];
  }
  if (threadIdx.x == 6) printf("run_time_arrays %d\n", s);
}

extern "C" __global__ void waits() {
  if (threadIdx.x == 33) {
    __nanosleep(1000);
    flag = 42;
  } else if (threadIdx.x == 0) {
    long long begin = clock64();
    while (flag != 42) __nanosleep(20);
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    printf("waits %d %d %d\n", flag, clock64() > begin, now > 1000000000ull);
  }
}
