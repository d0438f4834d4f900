#include <cstdio>
__global__ void energy(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = powf(x[i], 3.0f);  // π
}
int main() {
  float *x, *y, host[256];
  for (int i = 0; i < 256; ++i) host[i] = i * 0.25f;
  cudaMalloc(&x, sizeof host);
  cudaMalloc(&y, sizeof host);
  cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
  energy<<<1, 256>>>(y, x, 256);
  cudaMemcpy(host, y, sizeof host, cudaMemcpyDeviceToHost);
  printf("%g\n", host[100]);
}
