#include "cuda.h"

/* The host reads device memory through its pointer. */
int main(void)
{
    volatile int *pointer;
    cudaMalloc((void **)&pointer, 4);
    printf("before\n");
    fflush(stdout);
    printf("after: %d\n", *pointer);
    return 0;
}
