// run: lanes <<<1, 32>>> zeros:32 16
// run: halves <<<1, 32>>> zeros:32 16
// run: few <<<1, 20>>> zeros:32 20
__global__ void lanes(int* out, int n) {
  int v = threadIdx.x;
  if (v < n) {
    for (int d = 8; d > 0; d >>= 1) v += __shfl_down_sync(0x0000ffffu, v, d, 16);
  } else {
    for (int d = 8; d > 0; d >>= 1) v += __shfl_xor_sync(0xffff0000u, v, d, 16);
  }
  __syncwarp();
  out[threadIdx.x] = v;
}
// Lanes 8 to 15 read beyond the mask; nobody uses what they get.
__global__ void halves(int* out, int n) {
  int v = threadIdx.x;
  if (threadIdx.x < 16) {
    for (int d = 8; d > 0; d >>= 1) v += __shfl_down_sync(0x0000ffffu, v, d);
    if (threadIdx.x == 0) out[0] = v;
  }
}
__global__ void few(int* out, int n) {
  unsigned mask = __activemask();
  unsigned odd = __ballot_sync(mask, threadIdx.x & 1);
  if (threadIdx.x >= 10) return;
  out[threadIdx.x] = __popc(odd) + __shfl_sync(0x3ffu, n, 9);
}
