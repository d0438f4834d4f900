#include "cuda.h"

/* Asks for more memory than there is, in every way, and goes on with less. */
int main(void)
{
    const size_t much = 200ull << 30;
    void *pointer;
    SHOW(cudaMalloc(&pointer, much));
    SHOW(cudaMallocManaged(&pointer, much, 1));
    SHOW(cudaMallocHost(&pointer, much));
    SHOW(cudaMallocAsync(&pointer, much, 0));
    SHOW(cudaMalloc(&pointer, 1 << 20));
    SHOW(cudaMemset(pointer, 1, 1 << 20));
    SHOW(cudaFree(pointer));
    return 0;
}
