// Kernels that compute much on what they load.
#pragma once
#include <cuda_fp16.h>
#include <mma.h>

// 64 x 64 results a block, 4 x 4 a thread, 16 columns of the factors at a time.
__global__ void gemm_registers(float* c, const float* a, const float* b, int n) {
  __shared__ float as[16][64 + 4], bs[16][64];
  int tx = threadIdx.x % 16, ty = threadIdx.x / 16, row = blockIdx.y * 64, column = blockIdx.x * 64;
  float sums[4][4] = {};
  for (int k = 0; k < n; k += 16) {
    for (int i = threadIdx.x; i < 1024; i += 256) {
      as[i % 16][i / 16] = a[(row + i / 16) * n + k + i % 16];
      bs[i / 64][i % 64] = b[(k + i / 64) * n + column + i % 64];
    }
    __syncthreads();
    for (int j = 0; j < 16; j++) {
      float x[4], y[4];
      for (int i = 0; i < 4; i++) x[i] = as[j][ty * 4 + i], y[i] = bs[j][tx * 4 + i];
      for (int i = 0; i < 4; i++)
        for (int l = 0; l < 4; l++) sums[i][l] += x[i] * y[l];
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; i++)
    for (int l = 0; l < 4; l++) c[(row + ty * 4 + i) * n + column + tx * 4 + l] = sums[i][l];
}

// 16 x 16 results a warp, on tensor cores, factors straight from global memory.
__global__ void gemm_fragments(float* c, const __half* a, const __half* b, int n) {
  using namespace nvcuda::wmma;
  int column = (blockIdx.x * 4 + threadIdx.x / 32) * 16, row = blockIdx.y * 16;
  fragment<accumulator, 16, 16, 16, float> sum;
  fill_fragment(sum, 0.0f);
  for (int k = 0; k < n; k += 16) {
    fragment<matrix_a, 16, 16, 16, __half, row_major> x;
    fragment<matrix_b, 16, 16, 16, __half, row_major> y;
    load_matrix_sync(x, a + row * n + k, n);
    load_matrix_sync(y, b + k * n + column, n);
    mma_sync(sum, x, y, sum);
  }
  store_matrix_sync(c + row * n + column, sum, n, mem_row_major);
}

__global__ void convolve(float* out, const float* in, const float* weights, int width, int height) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  float sum = 0;
  for (int v = -2; v <= 2; v++)
    for (int u = -2; u <= 2; u++) {
      int i = min(max(x + u, 0), width - 1), j = min(max(y + v, 0), height - 1);
      sum += in[j * width + i] * weights[(v + 2) * 5 + u + 2];
    }
  out[y * width + x] = sum;
}

__global__ void bodies(float4* out, const float4* in, int n) {
  __shared__ float4 tile[128];
  int i = blockIdx.x * 128 + threadIdx.x;
  float4 own = in[i];
  float x = 0, y = 0, z = 0;
  for (int k = 0; k < n; k += 128) {
    tile[threadIdx.x] = in[k + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < 128; j++) {
      float4 other = tile[j];
      float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
      float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-4f);
      float force = other.w * inverse * inverse * inverse;
      x += dx * force, y += dy * force, z += dz * force;
    }
    __syncthreads();
  }
  out[i] = make_float4(x, y, z, 0);
}

__global__ void bodies_double(double* out, const float4* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 own = in[i];
  double sum = 0;
  for (int j = 0; j < n; j++) {
    float4 other = in[j];
    double dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
    double square = dx * dx + dy * dy + dz * dz + 1e-4;
    sum += other.w / sqrt(square);
  }
  out[i] = sum;
}

// A Fourier transform of 512 numbers a block, in shared memory.
__global__ void transform(float2* out, const float2* in) {
  __shared__ float2 data[512];
  int t = threadIdx.x;
  for (int i = t; i < 512; i += 256) data[__brev(i) >> 23] = in[blockIdx.x * 512 + i];
  for (int half = 1; half < 512; half *= 2) {
    __syncthreads();
    int k = t % half, i = (t / half) * half * 2 + k;
    float sine, cosine;
    sincospif(-float(k) / half, &sine, &cosine);
    float2 x = data[i], y = data[i + half];
    y = make_float2(y.x * cosine - y.y * sine, y.x * sine + y.y * cosine);
    data[i] = make_float2(x.x + y.x, x.y + y.y);
    data[i + half] = make_float2(x.x - y.x, x.y - y.y);
  }
  __syncthreads();
  for (int i = t; i < 512; i += 256) out[blockIdx.x * 512 + i] = data[i];
}

// Eight lanes of a warp want words of one bank.
__global__ void banks(float* out, int rounds) {
  __shared__ volatile float data[2048];
  for (int i = threadIdx.x; i < 2048; i += 256) data[i] = i;
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < rounds; k++) sum += data[(threadIdx.x * 8 + k) % 2048];
  out[blockIdx.x * 256 + threadIdx.x] = sum;
}

__global__ void mandelbrot(int* out, int side, int most) {
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  float re = -2.0f + 2.5f * x / side, im = -1.25f + 2.5f * y / side, a = 0, b = 0;
  int n = 0;
  while (n < most && a * a + b * b < 4.0f) {
    float next = a * a - b * b + re;
    b = 2 * a * b + im;
    a = next;
    n++;
  }
  out[y * side + x] = n;
}
