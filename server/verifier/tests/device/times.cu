// Kernels whose times stand in a known relation, for `examples/time_check.rs`. The launches say the sizes: 64 MB an array, more than caches hold, and 16 MB for arithmetic.
#include <cuda_runtime.h>

constexpr int N = 1 << 24;

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

// Arithmetic, 1000 and 1010 steps of it: a hundredth apart.
__global__ void steps1010(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < n ? x[i] : 0.0f;
#pragma unroll 10
  for (int k = 0; k < 1010; ++k) v = v * 0.999f + 1e-9f;
  if (i < n) y[i] = v * 0.0f + 1.0f;
}
__global__ void steps1000(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < n ? x[i] : 0.0f;
#pragma unroll 10
  for (int k = 0; k < 1000; ++k) v = v * 0.999f + 1e-9f;
  if (i < n) y[i] = v * 0.0f + 1.0f;
}
__global__ void steps2000(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < n ? x[i] : 0.0f;
#pragma unroll 10
  for (int k = 0; k < 2000; ++k) v = v * 0.999f + 1e-9f;
  if (i < n) y[i] = v * 0.0f + 1.0f;
}

// It works in its first call alone, which its output shows only where that is made anew.
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
  lazy<<<N / 256, 256>>>(y, x, N);
  strided<<<N / 256, 256>>>(y, x, N);
  float *a, *b;
  cudaMalloc(&a, (1 << 22) * sizeof(float));
  cudaMalloc(&b, (1 << 22) * sizeof(float));
  steps1010<<<(1 << 22) / 256, 256>>>(b, a, 1 << 22);
  steps1000<<<(1 << 22) / 256, 256>>>(b, a, 1 << 22);
  steps2000<<<(1 << 22) / 256, 256>>>(b, a, 1 << 22);
  return cudaDeviceSynchronize() != cudaSuccess;
}
