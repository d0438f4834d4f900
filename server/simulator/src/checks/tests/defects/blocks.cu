// run: shifts <<<4, 64>>> zeros:257 256
__global__ void shifts(int* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int next = a[i + 1];
  __syncthreads();
  a[i] = next + 1;  // defect: block-race
}
