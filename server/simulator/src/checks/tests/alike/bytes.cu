// run: own_bytes <<<1, 64>>> zeros:64 5
// run: exchanged <<<1, 64>>> blank:64 5
// Each thread has a byte of its own in a word that it shares with three others.
__global__ void own_bytes(int* out, int n) {
  __shared__ unsigned char count[4 * 64];
  for (int i = 0; i < 4; ++i) count[i * 64 + threadIdx.x] = 0;
  for (int i = 0; i < n; ++i) count[(i * threadIdx.x & 3) * 64 + threadIdx.x]++;
  __syncthreads();
  out[threadIdx.x] = count[63 - threadIdx.x];
}
// An exchange writes, whatever was there.
__global__ void exchanged(int* out, int n) {
  __shared__ int one;
  atomicExch(&one, 0);
  __syncthreads();
  atomicAdd(&one, n);
  atomicExch(&out[threadIdx.x], 1);
}
