/* Uses the driver as a runtime does: opens it, and asks it for its functions. The first argument says what is tried; the exit status is 0
 * where everything went as without the library in front, but for the numbers on the device. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef uint64_t address;
enum { HOST = 1, DEVICE = 2 };
#include "structures.h"

#define CHECK(condition) ((condition) ? (void)0 : (fprintf(stderr, "%d: %s\n", __LINE__, #condition), exit(1)))
#define FUNCTION(name, ...) static int (*name)(__VA_ARGS__);
#define FUNCTIONS(X) \
    X(cuMemAlloc, address *, size_t) X(cuMemAllocHost, void **, size_t) X(cuMemAllocManaged, address *, size_t, unsigned) \
    X(cuStreamCreate, void **, unsigned) X(cuStreamBeginCapture, void *) X(cuStreamEndCapture, void *) X(cuStreamSynchronize, void *) \
    X(cuLaunchHostFunc, void *, void (*)(void *), void *) X(cuMemcpyHtoD, address, const void *, size_t) \
    X(cuMemcpyDtoH, void *, address, size_t) X(cuMemcpy, address, address, size_t) \
    X(cuMemcpyHtoDAsync, address, const void *, size_t, void *) X(cuMemcpyDtoHAsync, void *, address, size_t, void *) \
    X(cuMemcpyAsync, address, address, size_t, void *) X(cuMemcpyHtoA, address, size_t, const void *, size_t) \
    X(cuMemcpyAtoH, void *, address, size_t, size_t) X(cuMemcpy2DUnaligned, const struct rectangle *) \
    X(cuMemcpy3D, const struct box *) X(cuMemcpyBatchAsync, address *, address *, size_t *, size_t, void *, size_t *, size_t, void *)
FUNCTIONS(FUNCTION)

enum { N = 256, BYTES = N * 4 };
static float input[N], output[N];
static address device, other;

static void numbers(float *at)
{
    for (int i = 0; i < N; i++)
        at[i] = (float)(i + 1) / 7;
}

static void begin(void)
{
    int (*get)(const char *, void **, int, uint64_t, int *);
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    CHECK(library);
    CHECK(get = (int (*)(const char *, void **, int, uint64_t, int *))dlsym(library, "cuGetProcAddress_v2"));
    CHECK(!get("cuGetProcAddress", (void **)&get, 12000, 0, 0));
#define GET(name, ...) CHECK(!get(#name, (void **)&name, 12000, 0, 0));
    FUNCTIONS(GET)
    CHECK(get("cuNone", (void **)&cuMemcpy, 12000, 0, 0) == 500);
    /* What is not wrapped is found beyond, and a name is found as an address is. */
    CHECK(dlsym(library, "cuMemAllocManaged") == (void *)cuMemAllocManaged && dlsym(library, "cuMemcpy") == (void *)cuMemcpy);
    numbers(input);
    CHECK(!cuMemAlloc(&device, 2 * BYTES) && !cuMemAlloc(&other, 2 * BYTES));
}

static void plain(void)
{
    float before[N];
    memcpy(before, input, BYTES);
    CHECK(!cuMemcpyHtoD(device, input, BYTES));
    CHECK(!memcmp(before, input, BYTES));
    int whole[N] = {1, 2, 3, -4};
    CHECK(!cuMemcpyHtoD(other, whole, BYTES) && !memcmp((void *)other, whole, BYTES));
    CHECK(cuMemcpyHtoD(device, 0, BYTES) == 1);
    CHECK(!cuMemcpyDtoH(output, device, BYTES) && memcmp(output, input, BYTES));
    /* The inputs are over. */
    CHECK(!cuMemcpy(device, (address)input, BYTES) && !memcmp((void *)device, input, BYTES));
    CHECK(!cuMemcpy((address)output, device, BYTES) && !memcmp(output, input, BYTES));
    CHECK(!cuMemcpy(other, device, BYTES));
}

static void shapes(void)
{
    const struct rectangle in = {.from_x = 16, .from_y = 1, .from_kind = HOST, .from_host = input, .from_pitch = 128, .to_kind = DEVICE,
                                 .to_device = device, .to_pitch = 64, .width = 64, .height = 4};
    const struct box box = {.from_y = 1, .from_z = 1, .from_kind = HOST, .from_host = input, .from_pitch = 64, .from_height = 4,
                            .to_kind = DEVICE, .to_device = other, .to_pitch = 32, .to_height = 2, .width = 32, .height = 2, .depth = 3};
    const struct rectangle out = {.from_kind = DEVICE, .from_device = device, .from_pitch = 64, .to_x = 4, .to_y = 1, .to_kind = HOST,
                                  .to_host = output, .to_pitch = 80, .width = 64, .height = 4};
    CHECK(!cuMemcpy2DUnaligned(&in) && !cuMemcpy3D(&box) && !cuMemcpyHtoA(other, 512, input, 512));
    memset(output, 255, sizeof output);
    CHECK(!cuMemcpy2DUnaligned(&out) && !memcmp((char *)output + 4 + 80, (void *)device, 64));
    CHECK(!memcmp(output, "\377\377\377\377", 4));
    CHECK(!cuMemcpyDtoH(output, other, 192) && !cuMemcpyAtoH(output, other, 512, 512));
}

static void streams(void)
{
    void *one, *two, *pinned, *first, *second;
    CHECK(!cuStreamCreate(&one, 0) && !cuStreamCreate(&two, 0));
    CHECK(!cuMemAllocHost(&pinned, BYTES) && !cuMemAllocHost(&first, BYTES) && !cuMemAllocHost(&second, BYTES));
    /* The stream itself fills the memory that it copies from. */
    CHECK(!cuLaunchHostFunc(one, (void (*)(void *))numbers, pinned) && !cuMemcpyHtoDAsync(device, pinned, BYTES, one));
    float gone[N];
    numbers(gone);
    gone[0] = 8;
    CHECK(!cuMemcpyAsync(other, (address)gone, BYTES, two));
    memset(gone, 0, sizeof gone);
    CHECK(!cuMemcpyDtoHAsync(first, device, BYTES, one) && !cuMemcpyAsync((address)second, other, BYTES, two));
    /* The later one comes first. */
    CHECK(!cuStreamSynchronize(two) && !cuStreamSynchronize(one));
    CHECK(memcmp(first, second, BYTES) && ((float *)pinned)[0] == input[0]);
}

static void *many(void *unused)
{
    float here[N];
    for (int i = 0; i < 40; i++)
        CHECK(!cuMemcpyHtoD(device, input, BYTES) && !cuMemcpyDtoH(here, device, BYTES));
    return unused;
}

static void threads(void)
{
    pthread_t all[8];
    for (int i = 0; i < 8; i++)
        CHECK(!pthread_create(all + i, 0, many, 0));
    for (int i = 0; i < 8; i++)
        pthread_join(all[i], 0);
}

static void forks(void)
{
    int status;
    CHECK(!cuMemcpyHtoD(device, input, BYTES));
    if (!fork()) {
        CHECK(!cuMemcpyHtoD(other, input, BYTES) && !memcmp((void *)other, (void *)device, BYTES));
        CHECK(!cuMemcpyDtoH(output, other, BYTES));
        _exit(0);
    }
    CHECK(wait(&status) > 0 && !status);
    CHECK(!cuMemcpyDtoH(output, device, 512));
}

static void captures(void)
{
    void *stream, *pinned;
    CHECK(!cuStreamCreate(&stream, 0) && !cuMemAllocHost(&pinned, BYTES) && !cuStreamBeginCapture(stream));
    CHECK(!cuMemcpyHtoDAsync(device, pinned, BYTES, stream) && !cuMemcpyDtoHAsync(pinned, device, BYTES, stream));
    CHECK(!cuMemcpyAsync(other, device, BYTES, stream) && !cuStreamEndCapture(stream));
    address to[2] = {device, other}, from[2] = {(address)pinned, device};
    size_t sizes[2] = {BYTES, BYTES};
    CHECK(!cuMemcpyBatchAsync(to, from, sizes, 2, 0, 0, 0, stream));
    CHECK(!cuMemcpyBatchAsync(to, to, sizes, 2, 0, 0, 0, stream) && !cuStreamSynchronize(stream));
}

static void managed(void)
{
    address both;
    CHECK(!cuMemAllocManaged(&both, BYTES, 1));
    CHECK(!cuMemcpy(both, (address)input, BYTES) && memcmp((void *)both, input, BYTES));
    CHECK(!cuMemcpy(device, both, BYTES) && !cuMemcpy((address)output, both, 512) && !cuMemcpy(both, device, BYTES));
}

static void closes(void)
{
    char path[] = "own-XXXXXX";
    CHECK(!cuMemcpyHtoD(device, input, BYTES));
    for (int file = 3; file < 256; file++)
        close(file);
    CHECK(mkstemp(path) == 3);
    for (int file = 4; file < 64; file++)
        dup2(3, file);
    CHECK(!cuMemcpyHtoD(device, input, BYTES) && !cuMemcpyDtoH(output, device, BYTES));
    CHECK(lseek(3, 0, SEEK_END) == 0);
}

int main(int count, char **arguments)
{
    static const struct { const char *name; void (*function)(void); } all[] = {
        {"plain", plain}, {"shapes", shapes}, {"streams", streams}, {"threads", threads}, {"forks", forks},
        {"captures", captures}, {"managed", managed}, {"closes", closes}};
    for (size_t i = 0; count > 1 && i < sizeof all / sizeof *all; i++)
        if (!strcmp(arguments[1], all[i].name)) {
            begin();
            all[i].function();
            return 0;
        }
    return 2;
}
