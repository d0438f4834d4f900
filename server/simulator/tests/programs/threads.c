#include "cuda.h"
#include <pthread.h>

enum { THREADS = 16, ROUNDS = 200 };

static void *work(void *number)
{
    intptr_t own = (intptr_t)number, wrong = 0;
    cudaStream_t stream;
    wrong += cudaStreamCreate(&stream) != 0;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned char *device, back[256];
        wrong += cudaMalloc((void **)&device, 256) != 0;
        wrong += cudaMemsetAsync(device, (int)own, 256, stream) != 0;
        wrong += cudaMemcpyAsync(back, device, 256, DeviceToHost, stream) != 0;
        for (int i = 0; i < 256; i++)
            wrong += back[i] != own;
        wrong += cudaFree(device) != 0;
        /* Errors are a thread's own. */
        if (own % 2)
            cudaFree(back);
        wrong += cudaGetLastError() != (own % 2 ? 1 : 0);
    }
    wrong += cudaStreamDestroy(stream) != 0;
    return (void *)wrong;
}

int main(void)
{
    pthread_t threads[THREADS];
    intptr_t wrong = 0;
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        wrong += (intptr_t)result;
    }
    printf("wrong: %d\n", (int)wrong);
    return 0;
}
