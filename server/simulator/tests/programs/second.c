#include "cuda.h"
#include <sys/wait.h>
#include <unistd.h>

/* Two processes use the device at once. */
int main(int count, char **arguments)
{
    void *pointer;
    cudaError_t error = cudaMalloc(&pointer, 4);
    printf("%s: %d\n", count > 1 ? "second" : "first", error);
    fflush(stdout);
    if (count == 1) {
        if (!fork())
            execl(arguments[0], arguments[0], "second", (char *)0);
        wait(0);
        printf("first again: %d\n", cudaFree(pointer));
    }
    return 0;
}
