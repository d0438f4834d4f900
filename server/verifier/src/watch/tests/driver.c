/* A driver without a device, as far as the library in front of one calls it: memory of the device is memory of the host under other
 * names, and a stream does nothing until it is synchronised, which is the latest that a driver may do it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>

typedef uint64_t address;
enum { HOST = 1, DEVICE = 2, INVALID = 1, NOT_FOUND = 500 };
#include "structures.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range { address start; size_t size; int type, managed; } ranges[64];
static int count;

static address allocate(size_t size, int type, int managed)
{
    char *start = calloc(1, size);
    pthread_mutex_lock(&lock);
    ranges[count++] = (struct range){(address)start, size, type, managed};
    pthread_mutex_unlock(&lock);
    return (address)start;
}
static struct range *find(address at)
{
    struct range *found = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < count; i++)
        if (at - ranges[i].start < ranges[i].size)
            found = ranges + i;
    pthread_mutex_unlock(&lock);
    return found;
}

int cuMemAlloc_v2(address *p, size_t size) { return *p = allocate(size, DEVICE, 0), 0; }
int cuMemAllocHost_v2(void **p, size_t size) { return *p = (void *)allocate(size, HOST, 0), 0; }
int cuMemAllocManaged(address *p, size_t size, unsigned flags) { return *p = allocate(size, DEVICE, 1), (void)flags, 0; }
int cuPointerGetAttribute(void *data, int which, address at)
{
    struct range *range = find(at);
    if (!range)
        return INVALID;
    *(int *)data = which == 8 ? range->managed : range->type;
    return 0;
}

struct work { void (*function)(void *); void *data; address to, from; size_t size; };
struct stream { struct work work[64]; int count, capturing; };
static struct stream null_stream;
static struct stream *of(void *stream) { return stream ? stream : &null_stream; }
int cuStreamCreate(void **stream, unsigned flags) { return *stream = calloc(1, sizeof(struct stream)), (void)flags, 0; }
int cuStreamBeginCapture(void *stream) { return of(stream)->capturing = 1, 0; }
int cuStreamEndCapture(void *stream) { return of(stream)->capturing = 0, 0; }
int cuStreamIsCapturing(void *stream, int *status) { return *status = of(stream)->capturing, 0; }
int cuStreamSynchronize(void *stream)
{
    struct stream *s = of(stream);
    for (int i = 0; i < s->count; i++)
        if (s->work[i].function)
            s->work[i].function(s->work[i].data);
        else
            memcpy((void *)s->work[i].to, (void *)s->work[i].from, s->work[i].size);
    return s->count = 0;
}
static int enqueue(void *stream, struct work work)
{
    struct stream *s = of(stream);
    if (!s->capturing)
        s->work[s->count++] = work;
    return 0;
}
int cuLaunchHostFunc(void *stream, void (*function)(void *), void *data) { return enqueue(stream, (struct work){function, data, 0, 0, 0}); }

static int copy(address to, address from, size_t size)
{
    return to && from ? memcpy((void *)to, (void *)from, size), 0 : INVALID;
}
static int copy_async(address to, address from, size_t size, void *stream)
{
    /* Pageable memory is read at once, and written before the call returns. */
    if (!find(from))
        return copy(to, from, size);
    enqueue(stream, (struct work){0, 0, to, from, size});
    return find(to) || of(stream)->capturing ? 0 : cuStreamSynchronize(stream);
}
int cuMemcpyHtoD_v2(address to, address from, size_t size) { return copy(to, from, size); }
int cuMemcpyDtoH_v2(address to, address from, size_t size) { return copy(to, from, size); }
int cuMemcpy(address to, address from, size_t size) { return copy(to, from, size); }
int cuMemcpyHtoDAsync_v2(address to, address from, size_t size, void *stream) { return copy_async(to, from, size, stream); }
int cuMemcpyDtoHAsync_v2(address to, address from, size_t size, void *stream) { return copy_async(to, from, size, stream); }
int cuMemcpyAsync(address to, address from, size_t size, void *stream) { return copy_async(to, from, size, stream); }
int cuMemcpyHtoA_v2(address to, size_t offset, address from, size_t size) { return copy(to + offset, from, size); }
int cuMemcpyAtoH_v2(address to, address from, size_t offset, size_t size) { return copy(to, from + offset, size); }
int cuMemcpy2DUnaligned_v2(const struct rectangle *r)
{
    char *to = r->to_kind == HOST ? r->to_host : (char *)r->to_device;
    const char *from = r->from_kind == HOST ? r->from_host : (char *)r->from_device;
    for (size_t y = 0; y < r->height; y++)
        memcpy(to + r->to_x + (r->to_y + y) * r->to_pitch, from + r->from_x + (r->from_y + y) * r->from_pitch, r->width);
    return 0;
}
int cuMemcpy3D_v2(const struct box *b)
{
    char *to = b->to_kind == HOST ? b->to_host : (char *)b->to_device;
    const char *from = b->from_kind == HOST ? b->from_host : (char *)b->from_device;
    for (size_t z = 0; z < b->depth; z++)
        for (size_t y = 0; y < b->height; y++)
            memcpy(to + b->to_x + (b->to_y + y + (b->to_z + z) * b->to_height) * b->to_pitch,
                   from + b->from_x + (b->from_y + y + (b->from_z + z) * b->from_height) * b->from_pitch, b->width);
    return 0;
}
int cuMemcpyBatchAsync_v2(address *to, address *from, size_t *sizes, size_t n, void *a, size_t *i, size_t m, void *stream)
{
    (void)a, (void)i, (void)m;
    for (size_t k = 0; k < n; k++)
        copy_async(to[k], from[k], sizes[k], stream);
    return 0;
}

int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status);
#define KNOW(name, function) {name, (void *)function}
static const struct { const char *name; void *function; } known[] = {
    KNOW("cuMemAlloc", cuMemAlloc_v2), KNOW("cuMemAllocHost", cuMemAllocHost_v2), KNOW("cuMemAllocManaged", cuMemAllocManaged),
    KNOW("cuStreamCreate", cuStreamCreate), KNOW("cuStreamBeginCapture", cuStreamBeginCapture),
    KNOW("cuStreamEndCapture", cuStreamEndCapture), KNOW("cuStreamSynchronize", cuStreamSynchronize),
    KNOW("cuLaunchHostFunc", cuLaunchHostFunc), KNOW("cuMemcpyHtoD", cuMemcpyHtoD_v2), KNOW("cuMemcpyDtoH", cuMemcpyDtoH_v2),
    KNOW("cuMemcpy", cuMemcpy), KNOW("cuMemcpyHtoDAsync", cuMemcpyHtoDAsync_v2), KNOW("cuMemcpyDtoHAsync", cuMemcpyDtoHAsync_v2),
    KNOW("cuMemcpyAsync", cuMemcpyAsync), KNOW("cuMemcpyHtoA", cuMemcpyHtoA_v2), KNOW("cuMemcpyAtoH", cuMemcpyAtoH_v2),
    KNOW("cuMemcpy2DUnaligned", cuMemcpy2DUnaligned_v2), KNOW("cuMemcpy3D", cuMemcpy3D_v2),
    KNOW("cuMemcpyBatchAsync", cuMemcpyBatchAsync_v2), KNOW("cuGetProcAddress", cuGetProcAddress_v2)};
int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status)
{
    (void)version, (void)flags, (void)status;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, name))
            return *function = known[i].function, 0;
    return NOT_FOUND;
}
