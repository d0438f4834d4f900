// run: reads <<<1, 32>>> freed:32 32
__global__ void reads(const int* a, int n) {
  if (a[threadIdx.x] == 7) asm volatile("trap;");  // defect: use-after-free
}
