// A chain of elementwise kernels, as a framework launches them: normalise, square, smooth. Right, and slower than it need be: double
// literals in float arithmetic, and powers computed the long way.
#include <cstdio>
#include <vector>

__global__ void normalise(float* x, float mean, float deviation, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    x[i] = (x[i] - mean) / (deviation + 1e-5);
  }
}

__global__ void energy(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    y[i] = 0.5 * pow(x[i], 2) + 0.125 * pow(x[i], 4);
  }
}

__global__ void gelu(float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float v = y[i];
    y[i] = 0.5 * v * (1.0 + tanhf(0.79788456f * (v + 0.044715 * v * v * v)));
  }
}

int main() {
  const int n = 50000, threads = 256, blocks = (n + threads - 1) / threads;
  std::vector<float> x(n), y(n);
  for (int i = 0; i < n; ++i) x[i] = (i % 1000) * 0.004f - 2.0f;

  float *device_x, *device_y;
  cudaMalloc(&device_x, n * sizeof(float));
  cudaMalloc(&device_y, n * sizeof(float));
  cudaMemcpy(device_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice);

  normalise<<<blocks, threads>>>(device_x, 0.1f, 1.5f, n);
  energy<<<blocks, threads>>>(device_y, device_x, n);
  gelu<<<blocks, threads>>>(device_y, n);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  cudaMemcpy(y.data(), device_y, n * sizeof(float), cudaMemcpyDeviceToHost);

  printf("y[0] %.4f, y[500] %.4f, y[999] %.4f\n", y[0], y[500], y[999]);
  cudaFree(device_x);
  cudaFree(device_y);
  return 0;
}
