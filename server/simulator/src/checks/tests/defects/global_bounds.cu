// run: past_the_end <<<4, 256>>> blank:1000 1000
__global__ void past_the_end(float* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  a[i] = 1.f;  // defect: out-of-bounds
}
