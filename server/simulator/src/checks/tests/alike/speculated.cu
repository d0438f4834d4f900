// run: pops <<<1, 32>>> zeros:32 16
// run: news <<<1, 32>>> zeros:32 16
#include <new>
__device__ __noinline__ bool pop(const int* a, int n, int& value) {
  if (threadIdx.x >= n) return false;
  value = a[threadIdx.x] + n;
  return true;
}
// The compiler loads `value` before it looks at whether there is one.
__global__ void pops(int* out, int n) {
  int value;
  bool ok = pop(out, n, value);
  out[threadIdx.x] = ok ? value : -1;
}
struct Shape {
  __device__ virtual int size() const = 0;
};
struct Square : Shape {
  int side;
  __device__ explicit Square(int side) : side(side) {}
  __device__ int size() const override { return side * side; }
};
struct Other : Shape {
  __device__ int size() const override { return 0; }
};
// Memory that the kernel itself has just allocated.
__global__ void news(int* out, int n) {
  Shape* shape = threadIdx.x < n ? static_cast<Shape*>(new Square(n)) : new Other;
  out[threadIdx.x] = shape->size();
  delete shape;
}
