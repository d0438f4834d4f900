// run: twice <<<1, 1>>> zeros:1 1
#include <cstdlib>
__global__ void twice(int* out, int n) {
  int* own = static_cast<int*>(malloc(64));
  own[0] = n;
  out[0] = own[0];
  free(own);
  free(own);  // defect: double-free
}
