#include "cuda.h"

int main(void)
{
    void *array;
    SHOW(cudaMallocArray(&array, 0, 4, 4, 0));
    return 0;
}
