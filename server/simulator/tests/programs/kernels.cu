// Launches in their forms, symbols, managed variables, printf, graphs with kernels: each line says what came out.
#include <cooperative_groups.h>
#include <cstdio>
#include <cuda_runtime.h>

__device__ int counter;
__constant__ float factors[4];
__managed__ int managed[4] = {1, 2, 3, 4};

struct Pair {
  char tag;
  double value;
};

__global__ void add(const float *a, const float *b, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
__global__ void scale(float *x, int n, int which) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= factors[which];
}
__global__ void take(Pair pair, double *out) { *out = pair.value + pair.tag; }
__global__ void count() { atomicAdd(&counter, 1); }
__global__ void grow() { managed[threadIdx.x] += 10; }
__global__ void speak() { printf("block %d thread %d\n", blockIdx.x, threadIdx.x); }
__global__ void reverse(int *x) {
  extern __shared__ int s[];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
__global__ void together(int *x) {
  x[blockIdx.x] = blockIdx.x;
  cooperative_groups::this_grid().sync();
  if (blockIdx.x == 0 && threadIdx.x == 0)
    for (int i = 1; i < gridDim.x; i++) x[0] += x[i];
}
int main() {
  const int n = 1000;
  float host[n], *a, *b, *c;
  for (int i = 0; i < n; i++) host[i] = i;
  cudaMalloc(&a, sizeof host), cudaMalloc(&b, sizeof host), cudaMalloc(&c, sizeof host);
  cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice);
  cudaMemcpy(b, host, sizeof host, cudaMemcpyHostToDevice);
  add<<<(n + 255) / 256, 256>>>(a, b, c, n);
  float factor[4] = {1, 2, 3, 4};
  cudaMemcpyToSymbol(factors, factor, sizeof factor);
  scale<<<4, 256>>>(c, n, 2);
  cudaMemcpy(host, c, sizeof host, cudaMemcpyDeviceToHost);
  printf("add, scale: %g %g %g\n", host[0], host[1], host[n - 1]);

  double *out, value;
  cudaMalloc(&out, sizeof *out);
  take<<<1, 1>>>(Pair{2, 0.5}, out);
  cudaMemcpy(&value, out, sizeof value, cudaMemcpyDeviceToHost);
  printf("structure: %g\n", value);

  count<<<10, 100>>>();
  int counted;
  cudaMemcpyFromSymbol(&counted, counter, sizeof counted);
  printf("counted: %d\n", counted);

  grow<<<1, 4>>>();
  cudaDeviceSynchronize();
  managed[0] += 100;
  printf("managed: %d %d %d %d\n", managed[0], managed[1], managed[2], managed[3]);

  printf("host before\n");
  speak<<<2, 2>>>();
  cudaDeviceSynchronize();
  printf("host after\n");

  int numbers[32], *x;
  for (int i = 0; i < 32; i++) numbers[i] = i;
  cudaMalloc(&x, sizeof numbers);
  cudaMemcpy(x, numbers, sizeof numbers, cudaMemcpyHostToDevice);
  reverse<<<1, 32, 32 * sizeof(int)>>>(x);
  cudaMemcpy(numbers, x, sizeof numbers, cudaMemcpyDeviceToHost);
  printf("dynamic shared: %d %d\n", numbers[0], numbers[31]);

  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  for (int i = 0; i < 3; i++) count<<<1, 1, 0, stream>>>();
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&executable, graph, 0);
  for (int i = 0; i < 5; i++) cudaGraphLaunch(executable, stream);
  cudaStreamSynchronize(stream);
  cudaMemcpyFromSymbol(&counted, counter, sizeof counted);
  printf("graph: %d\n", counted);
  void *arguments[] = {&x};
  cudaLaunchCooperativeKernel((void *)together, dim3(32), dim3(32), arguments, 0, 0);
  cudaMemcpy(numbers, x, sizeof numbers, cudaMemcpyDeviceToHost);
  printf("cooperative: %d\n", numbers[0]);
  printf("last error: %d\n", cudaGetLastError());
  return 0;
}
