// Sums an array, a block at a time. Right, and slower than it need be: of each warp fewer and fewer threads work, and the division
// decides which.
#include <cstdio>
#include <vector>

__global__ void sum_blocks(float* sums, const float* in, int n) {
  __shared__ float partial[256];
  int tid = threadIdx.x;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  partial[tid] = i < n ? in[i] : 0.0f;
  __syncthreads();
  for (int s = 1; s < blockDim.x; s *= 2) {
    if (tid % (2 * s) == 0) {
      partial[tid] += partial[tid + s];
    }
    __syncthreads();
  }
  if (tid == 0) sums[blockIdx.x] = partial[0];
}

int main() {
  const int n = 100000, threads = 256, blocks = (n + threads - 1) / threads;
  std::vector<float> in(n), sums(blocks);
  for (int i = 0; i < n; ++i) in[i] = (i % 7) * 0.5f;

  float *device_in, *device_sums;
  cudaMalloc(&device_in, n * sizeof(float));
  cudaMalloc(&device_sums, blocks * sizeof(float));
  cudaMemcpy(device_in, in.data(), n * sizeof(float), cudaMemcpyHostToDevice);

  sum_blocks<<<blocks, 256>>>(device_sums, device_in, n);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  cudaMemcpy(sums.data(), device_sums, blocks * sizeof(float), cudaMemcpyDeviceToHost);

  double sum = 0;
  for (float one : sums) sum += one;
  printf("the sum is %g\n", sum);
  cudaFree(device_in);
  cudaFree(device_sums);
  return 0;
}
