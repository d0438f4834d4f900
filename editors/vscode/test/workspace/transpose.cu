// Transposes a matrix. Right, and slower than it need be:
// neighbouring threads read along a row and write down a column.
#include <cstdio>
#include <vector>

__global__ void transpose(float* out, const float* in, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) {
    out[x * height + y] = in[y * width + x];
  }
}

int main() {
  const int width = 500, height = 300;
  std::vector<float> in(width * height), out(width * height);
  for (int i = 0; i < width * height; ++i) in[i] = 0.25f * i;

  float *device_in, *device_out;
  cudaMalloc(&device_in, in.size() * sizeof(float));
  cudaMalloc(&device_out, out.size() * sizeof(float));
  cudaMemcpy(device_in, in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice);

  dim3 block(32, 32), grid((width + 31) / 32, (height + 31) / 32);
  transpose<<<grid, block>>>(device_out, device_in, width, height);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  cudaMemcpy(out.data(), device_out, out.size() * sizeof(float), cudaMemcpyDeviceToHost);

  double sum = 0;
  for (int i = 0; i < 10; ++i) sum += out[i];
  printf("the first ten elements sum up to %g\n", sum);
  cudaFree(device_in);
  cudaFree(device_out);
  return 0;
}
