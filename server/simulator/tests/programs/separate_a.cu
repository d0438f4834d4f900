// With separate_b.cu: separate compilation (-rdc=true).
#include <cstdio>
#include <cuda_runtime.h>

extern __device__ int base;
__device__ int twice(int x);

__global__ void use(int *out) { *out = twice(21) + base; }

int main() {
  int *out, value = 0, number = 8;
  cudaMalloc(&out, sizeof *out);
  cudaMemcpyToSymbol(base, &number, sizeof number);
  use<<<1, 1>>>(out);
  cudaMemcpy(&value, out, sizeof value, cudaMemcpyDeviceToHost);
  printf("%d, error %d\n", value, cudaGetLastError());
}
