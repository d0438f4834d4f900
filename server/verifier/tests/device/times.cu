// Kernels whose times stand in a known relation, for `examples/time_check.rs`. The launches say the sizes: 64 MB an array, more than caches hold, and
// 16 MB for arithmetic.
#include <cuda_runtime.h>

constexpr int N = 1 << 24;
constexpr int M = 1 << 22;

__global__ void copy(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}

// Neighbouring threads 32 elements apart: each sector is read by other threads at other times.
__global__ void strided(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int j = (i % (n / 32)) * 32 + i / (n / 32);
  if (i < n) y[j] = x[j];
}

// The sums of blocks.
__global__ void reduce(float* sums, const float* x, int n) {
  __shared__ float part[256];
  float sum = 0.0f;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += x[i];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}

// It does next to nothing: launching it is what takes time.
__global__ void little(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + 1.0f;
}

// Each call changes what the one before left: after a hundred, all is infinite.
__global__ void grow(float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = y[i] * 3.0f;
}
__global__ void grow_twice(float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = y[i] + 2.0f * y[i];
}

// Arithmetic in a chain, where each step waits for the one before: 1000, 1010, 1020 and 2000 steps.
template <int STEPS> __device__ void chain(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < n ? x[i] : 0.0f;
#pragma unroll 10
  for (int k = 0; k < STEPS; ++k) v = fmaf(v, 0.999f, 1e-9f);
  if (i < n) y[i] = fmaf(v, 0.0f, 1.0f);
}
__global__ void steps1000(float* y, const float* x, int n) { chain<1000>(y, x, n); }
__global__ void steps1010(float* y, const float* x, int n) { chain<1010>(y, x, n); }
__global__ void steps1020(float* y, const float* x, int n) { chain<1020>(y, x, n); }
__global__ void steps2000(float* y, const float* x, int n) { chain<2000>(y, x, n); }
// About a tenth of a second.
__global__ void steps_long(float* y, const float* x, int n) { chain<700000>(y, x, n); }

// It works in its first calls alone, which its output shows only where that is made anew.
__device__ unsigned started;
__global__ void lazy(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool is_first = atomicAdd(&started, 0) < gridDim.x;
  __syncthreads();
  if (threadIdx.x == 0 && is_first) atomicAdd(&started, 1);
  if (is_first && i < n) y[i] = x[i];
}

int main() {
  float *x, *y;
  cudaMalloc(&x, N * sizeof(float));
  cudaMalloc(&y, N * sizeof(float));
  cudaMemset(x, 0, N * sizeof(float));
  copy<<<N / 256, 256>>>(y, x, N);
  strided<<<N / 256, 256>>>(y, x, N);
  lazy<<<N / 256, 256>>>(y, x, N);
  grow<<<N / 256, 256>>>(y, N);
  grow_twice<<<N / 256, 256>>>(y, N);
  float* sums;
  cudaMalloc(&sums, 1024 * sizeof(float));
  reduce<<<1024, 256>>>(sums, x, N);
  float *a, *b;
  cudaMalloc(&a, M * sizeof(float));
  cudaMalloc(&b, M * sizeof(float));
  steps1000<<<M / 256, 256>>>(b, a, M);
  steps1010<<<M / 256, 256>>>(b, a, M);
  steps1020<<<M / 256, 256>>>(b, a, M);
  steps2000<<<M / 256, 256>>>(b, a, M);
  steps_long<<<M / 256, 256>>>(b, a, M);
  float *c, *d;
  cudaMalloc(&c, 1024 * sizeof(float));
  cudaMalloc(&d, 1024 * sizeof(float));
  little<<<4, 256>>>(d, c, 1024);
  return cudaDeviceSynchronize() != cudaSuccess;
}
