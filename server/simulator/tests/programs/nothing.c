#include <stdio.h>

int main(void)
{
    printf("nothing of CUDA here\n");
    return 0;
}
