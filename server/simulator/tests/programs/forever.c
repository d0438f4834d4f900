#include "cuda.h"
#include <unistd.h>

/* Never ends, nor does the child that it leaves behind, whose number it prints. */
int main(void)
{
    void *pointer;
    cudaMalloc(&pointer, 4);
    int child = fork();
    if (child)
        printf("%d\n", child);
    fflush(stdout);
    for (;;)
        pause();
}
