/* Uses as many MiB of one kind of memory as asked, all of them: fill | copy | managed | pinned | pool. */
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

int main(int count, char **arguments)
{
    const char *kind = arguments[1];
    size_t size = (size_t)atoi(arguments[2]) << 20, part = 4 << 20;
    char *memory, *host = calloc(1, part);
    (void)count;
    if (!strcmp(kind, "managed"))
        SHOW(cudaMallocManaged((void **)&memory, size, 1));
    else if (!strcmp(kind, "pinned"))
        SHOW(cudaHostAlloc((void **)&memory, size, 0));
    else if (!strcmp(kind, "pool"))
        SHOW(cudaMallocAsync((void **)&memory, size, 0));
    else
        SHOW(cudaMalloc((void **)&memory, size));
    for (size_t at = 0; at < size; at += part) {
        size_t length = size - at < part ? size - at : part;
        memset(host, 'x', length);
        if (!strcmp(kind, "managed") || !strcmp(kind, "pinned"))
            memset(memory + at, 'x', length);
        else if (!strcmp(kind, "copy") && cudaMemcpy(memory + at, host, length, HostToDevice))
            return 1;
    }
    SHOW(cudaMemset(memory, 1, size));
    SHOW(cudaDeviceSynchronize());
    return 0;
}
