// Calls: virtual functions, pointers to members and functions, recursion, lambdas. Expected values by hand.
#include <cstdio>

struct Shape {
  int scale;
  __device__ Shape(int s) : scale(s) {}
  __device__ virtual int area(int x) const { return scale; }
  __device__ virtual ~Shape() {}
};
struct Square : Shape {
  __device__ Square(int s) : Shape(s) {}
  __device__ int area(int x) const override { return scale * x * x; }
};
struct Strip : Square {
  int width;
  __device__ Strip(int s, int w) : Square(s), width(w) {}
  __device__ int area(int x) const override { return Square::area(1) * width * x; }
};

extern "C" __global__ void virtuals() {
  __shared__ int sums[3];
  int t = threadIdx.x;
  if (t < 3) sums[t] = 0;
  __syncthreads();
  Shape *s = t % 3 == 0 ? new Shape(2) : t % 3 == 1 ? new Square(3) : new Strip(2, 7);
  atomicAdd(&sums[t % 3], s->area(t));
  delete s;
  __syncthreads();
  if (t == 0) printf("virtuals %d %d %d\n", sums[0], sums[1], sums[2]);  // 11 * 2; 3 * (1 + 16 + … + 961); 14 * (2 + 5 + … + 29)
}

__device__ __noinline__ int ackermann(int m, int n) { return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)); }

__device__ int is_odd(int n);
__device__ __noinline__ int is_even(int n) { return n == 0 ? 1 : is_odd(n - 1); }
__device__ __noinline__ int is_odd(int n) { return n == 0 ? 0 : is_even(n - 1); }

extern "C" __global__ void recursion() {
  int t = threadIdx.x, a = ackermann(2, t % 4), even = is_even(t + 20);
  int votes = __popc(__ballot_sync(~0u, even));
  if (t == 7) printf("recursion %d %d %d\n", a, even, votes);  // ackermann(2, 3) = 9
}

typedef int (*binary)(int, int);
__device__ __noinline__ int add(int a, int b) { return a + b; }
__device__ __noinline__ int times(int a, int b) { return a * b; }
__device__ __noinline__ int minus(int a, int b) { return a - b; }
__device__ binary table[3] = {add, times, minus};

template <typename F> __device__ __noinline__ int apply(F f, int n) { int s = 0; for (int i = 0; i < n; ++i) s += f(i); return s; }

struct Counter {
  int n;
  __device__ __noinline__ int up(int by) { return n += by; }
  __device__ __noinline__ int down(int by) { return n -= by; }
};

extern "C" __global__ void pointers() {
  int t = threadIdx.x, r = table[t % 3](t, 5);
  Counter c = {10};
  int (Counter::*step)(int) = t & 1 ? &Counter::up : &Counter::down;
  int m = (c.*step)(t), base = t;
  int l = apply([=](int i) { return i * base; }, 4);
  int sum = __reduce_add_sync(~0u, r);
  if (t == 10) printf("pointers %d %d %d %d\n", r, m, l, sum);
}

struct Big { double a[5]; char tag; short s; };
__device__ __noinline__ Big make(Big in, float f, long long l, unsigned char c) {
  for (int i = 0; i < 5; ++i) in.a[i] += f * i;
  in.tag += c, in.s -= (short)l;
  return in;
}

extern "C" __global__ void structures() {
  Big b = {{1, 2, 3, 4, 5}, 'a', 100};
  b = make(make(b, 0.5f, threadIdx.x, 1), 2.0f, 1000, 2);
  if (threadIdx.x == 20) printf("structures %g %g %c %d\n", b.a[1], b.a[4], b.tag, b.s);  // 4.5 15 d -920
}

extern "C" __global__ void stops(int how) {
  if (how == 1 && threadIdx.x == 3) __trap();
  if (how == 2 && threadIdx.x == 3) asm volatile("exit;");
  printf("%d", (int)threadIdx.x);
}
