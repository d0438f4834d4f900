// A small program that is right and slower than it need be: what StitchCUDA says about it is what `demo` shows.
#include <cstdio>
#include <cuda_runtime.h>

constexpr int TILE = 32;

// Reads along rows, writes down columns: each warp's store touches 32 sectors instead of 4.
__global__ void transpose(const float* in, float* out, int n) {
  int x = blockIdx.x * TILE + threadIdx.x;
  int y = blockIdx.y * TILE + threadIdx.y;
  if (x < n && y < n) out[x * n + y] = in[y * n + x];
}

// The same through a shared tile, whose columns all lie in one bank.
__global__ void transpose_tiled(const float* in, float* out, int n) {
  __shared__ float tile[TILE][TILE];
  int x = blockIdx.x * TILE + threadIdx.x;
  int y = blockIdx.y * TILE + threadIdx.y;
  if (x < n && y < n) tile[threadIdx.y][threadIdx.x] = in[y * n + x];
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x;
  y = blockIdx.x * TILE + threadIdx.y;
  if (x < n && y < n) out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}

// Every second thread idles in the first round, three of four in the next.
__global__ void sum(const float* in, float* out, int n) {
  __shared__ float part[256];
  int tid = threadIdx.x;
  int i = blockIdx.x * blockDim.x + tid;
  part[tid] = i < n ? in[i] : 0.0f;
  __syncthreads();
  for (int s = 1; s < blockDim.x; s *= 2) {
    if (tid % (2 * s) == 0) part[tid] += part[tid + s];
    __syncthreads();
  }
  if (tid == 0) out[blockIdx.x] = part[0];
}

// Double arithmetic and a call of pow where float products would do; a stride between neighbouring threads.
__global__ void polynomial(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i * 4 < n) x[i * 4] = 0.5 * x[i * 4] + powf(x[i * 4], 2.0f);
}

int main() {
  const int n = 1024;
  float *in, *out;
  cudaMalloc(&in, n * n * sizeof(float));
  cudaMalloc(&out, n * n * sizeof(float));
  cudaMemset(in, 0, n * n * sizeof(float));
  dim3 grid(n / TILE, n / TILE), block(TILE, TILE);
  for (int round = 0; round < 10; ++round) {
    transpose<<<grid, block>>>(in, out, n);
    transpose_tiled<<<grid, block>>>(out, in, n);
    cudaDeviceSynchronize();
  }
  sum<<<n * n / 256, 256>>>(in, out, n * n);
  polynomial<<<n * n / 1000 + 1, 250>>>(in, n * n);
  cudaError_t error = cudaDeviceSynchronize();
  printf("%s\n", cudaGetErrorString(error));
  cudaFree(in);
  cudaFree(out);
  return error != cudaSuccess;
}
