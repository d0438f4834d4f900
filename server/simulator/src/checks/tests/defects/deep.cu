// run: falls <<<1, 32>>> zeros:32 1000000
__device__ __noinline__ int deeper(int* a, int n) {
  int own[64];
  own[n & 63] = a[n & 31];
  return n == 0 ? own[0] : deeper(a, n - 1) + own[n & 63];  // defect: stack-overflow
}
__global__ void falls(int* a, int n) { a[threadIdx.x] = deeper(a, n); }
