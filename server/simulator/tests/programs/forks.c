#include "cuda.h"
#include <sys/wait.h>
#include <unistd.h>

/* A child uses the device before its parent has: it gets one of its own. A child of a process that has: an error. */
int main(void)
{
    void *pointer;
    if (!fork()) {
        SHOW(cudaMalloc(&pointer, 4));
        fflush(stdout);
        _exit(0);
    }
    wait(0);
    SHOW(cudaMalloc(&pointer, 4));
    fflush(stdout);
    if (!fork()) {
        static char properties[4096];
        SHOW(cudaMalloc(&pointer, 4));
        SHOW(cudaGetDeviceProperties(properties, 0));
        SHOW(cudaGetDeviceProperties(properties, 1));
        fflush(stdout);
        _exit(0);
    }
    wait(0);
    SHOW(cudaFree(pointer));
    return 3;
}
