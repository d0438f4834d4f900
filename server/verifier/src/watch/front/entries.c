/* The functions of the driver that copy, in all their variants: `_v2` has 64-bit sizes, `_ptds` and `_ptsz` mean by stream 0 the
 * thread's own. And those by which programs ask for functions: a runtime takes all of its functions from them. */

#define REAL(name) real_##name
#define DECLARE(name) static void *REAL(name);
#define VARIANTS(X, name, suffix) X(name, 0) X(name##suffix, 1)
#define NAMES(X, name, suffix) X(name) X(name##suffix)

#define WRAPPED(X) \
    NAMES(X, cuMemcpy, _ptds) NAMES(X, cuMemcpyAsync, _ptsz) NAMES(X, cuMemcpyHtoD_v2, _ptds) NAMES(X, cuMemcpyHtoDAsync_v2, _ptsz) \
    NAMES(X, cuMemcpyDtoH_v2, _ptds) NAMES(X, cuMemcpyDtoHAsync_v2, _ptsz) NAMES(X, cuMemcpyHtoA_v2, _ptds) \
    NAMES(X, cuMemcpyHtoAAsync_v2, _ptsz) NAMES(X, cuMemcpyAtoH_v2, _ptds) NAMES(X, cuMemcpyAtoHAsync_v2, _ptsz) \
    NAMES(X, cuMemcpy2D_v2, _ptds) NAMES(X, cuMemcpy2DUnaligned_v2, _ptds) NAMES(X, cuMemcpy2DAsync_v2, _ptsz) \
    NAMES(X, cuMemcpy3D_v2, _ptds) NAMES(X, cuMemcpy3DAsync_v2, _ptsz) NAMES(X, cuMemcpyBatchAsync, _ptsz) \
    NAMES(X, cuMemcpyBatchAsync_v2, _ptsz) NAMES(X, cuMemcpy3DBatchAsync, _ptsz) NAMES(X, cuMemcpy3DBatchAsync_v2, _ptsz) \
    NAMES(X, cuMemcpyWithAttributesAsync, _ptsz) NAMES(X, cuMemcpy3DWithAttributesAsync, _ptsz) \
    X(cuGraphAddMemcpyNode) X(cuGraphAddNode) X(cuGraphAddNode_v2) X(cuGraphAddNode_v3) X(cuGetProcAddress) NAMES(X, cuGetProcAddress_v2, _ptsz)

WRAPPED(DECLARE)

#define PLAIN_COPY(name, thread, way) \
    API result name(address to, address from, size_t size) \
    { \
        const struct call call = { \
            .real = REAL(name), .direction = way, .per_thread = thread, .to = to, .from = from, .size = size}; \
        return copy(&call); \
    }
#define PLAIN_COPY_ASYNC(name, thread, way) \
    API result name(address to, address from, size_t size, stream stream) \
    { \
        const struct call call = {.real = REAL(name), .direction = way, .asynchronous = 1, .per_thread = thread, \
                                  .stream = stream, .to = to, .from = from, .size = size}; \
        return copy(&call); \
    }
#define INTO_DEVICE(name, thread) PLAIN_COPY(name, thread, TO_DEVICE)
#define INTO_DEVICE_ASYNC(name, thread) PLAIN_COPY_ASYNC(name, thread, TO_DEVICE)
#define OUT_OF_DEVICE(name, thread) PLAIN_COPY(name, thread, TO_HOST)
#define OUT_OF_DEVICE_ASYNC(name, thread) PLAIN_COPY_ASYNC(name, thread, TO_HOST)
#define EITHER_WAY(name, thread) PLAIN_COPY(name, thread, BY_ADDRESS)
#define EITHER_WAY_ASYNC(name, thread) PLAIN_COPY_ASYNC(name, thread, BY_ADDRESS)

VARIANTS(EITHER_WAY, cuMemcpy, _ptds)
VARIANTS(EITHER_WAY_ASYNC, cuMemcpyAsync, _ptsz)
VARIANTS(INTO_DEVICE, cuMemcpyHtoD_v2, _ptds)
VARIANTS(INTO_DEVICE_ASYNC, cuMemcpyHtoDAsync_v2, _ptsz)
VARIANTS(OUT_OF_DEVICE, cuMemcpyDtoH_v2, _ptds)
VARIANTS(OUT_OF_DEVICE_ASYNC, cuMemcpyDtoHAsync_v2, _ptsz)

#define INTO_ARRAY_(name, thread) \
    API result name(address array, size_t offset, address from, size_t size) \
    { \
        const struct call call = {.real = REAL(name), .shape = INTO_ARRAY, .direction = TO_DEVICE, .per_thread = thread, \
                                  .to = array, .offset = offset, .from = from, .size = size}; \
        return copy(&call); \
    }
#define INTO_ARRAY_ASYNC(name, thread) \
    API result name(address array, size_t offset, address from, size_t size, stream stream) \
    { \
        const struct call call = {.real = REAL(name), .shape = INTO_ARRAY, .direction = TO_DEVICE, .asynchronous = 1, \
                                  .per_thread = thread, .stream = stream, .to = array, .offset = offset, .from = from, \
                                  .size = size}; \
        return copy(&call); \
    }
#define FROM_ARRAY_(name, thread) \
    API result name(address to, address array, size_t offset, size_t size) \
    { \
        const struct call call = {.real = REAL(name), .shape = FROM_ARRAY, .direction = TO_HOST, .per_thread = thread, \
                                  .to = to, .from = array, .offset = offset, .size = size}; \
        return copy(&call); \
    }
#define FROM_ARRAY_ASYNC(name, thread) \
    API result name(address to, address array, size_t offset, size_t size, stream stream) \
    { \
        const struct call call = {.real = REAL(name), .shape = FROM_ARRAY, .direction = TO_HOST, .asynchronous = 1, \
                                  .per_thread = thread, .stream = stream, .to = to, .from = array, .offset = offset, \
                                  .size = size}; \
        return copy(&call); \
    }

VARIANTS(INTO_ARRAY_, cuMemcpyHtoA_v2, _ptds)
VARIANTS(INTO_ARRAY_ASYNC, cuMemcpyHtoAAsync_v2, _ptsz)
VARIANTS(FROM_ARRAY_, cuMemcpyAtoH_v2, _ptds)
VARIANTS(FROM_ARRAY_ASYNC, cuMemcpyAtoHAsync_v2, _ptsz)

#define SHAPED(name, thread, field, kind) \
    API result name(const struct field *field) \
    { \
        const struct call call = {.real = REAL(name), .shape = kind, .per_thread = thread, .field = field}; \
        return copy(&call); \
    }
#define SHAPED_ASYNC(name, thread, field, kind) \
    API result name(const struct field *field, stream stream) \
    { \
        const struct call call = { \
            .real = REAL(name), .shape = kind, .asynchronous = 1, .per_thread = thread, .stream = stream, .field = field}; \
        return copy(&call); \
    }
#define RECTANGLE_COPY(name, thread) SHAPED(name, thread, rectangle, RECTANGLE)
#define RECTANGLE_COPY_ASYNC(name, thread) SHAPED_ASYNC(name, thread, rectangle, RECTANGLE)
#define BOX_COPY(name, thread) SHAPED(name, thread, box, BOX)
#define BOX_COPY_ASYNC(name, thread) SHAPED_ASYNC(name, thread, box, BOX)

VARIANTS(RECTANGLE_COPY, cuMemcpy2D_v2, _ptds)
VARIANTS(RECTANGLE_COPY, cuMemcpy2DUnaligned_v2, _ptds)
VARIANTS(RECTANGLE_COPY_ASYNC, cuMemcpy2DAsync_v2, _ptsz)
VARIANTS(BOX_COPY, cuMemcpy3D_v2, _ptds)
VARIANTS(BOX_COPY_ASYNC, cuMemcpy3DAsync_v2, _ptsz)

/* What is handed on and told: copies in batches, and copies that are nodes of graphs. */
static void unseen(unsigned why, int is_so)
{
    if (is_so && watched() && !inside)
        tell_unseen(why);
}

static int of_host(const address *to, const address *from, size_t count)
{
    for (size_t i = 0; to && from && i < count; i++)
        if (between(place(to[i]), place(from[i])) != NEITHER)
            return 1;
    return 0;
}

#define HAND_ON(name, types, ...) return REAL(name) ? CALL(REAL(name), types, __VA_ARGS__) : NOT_FOUND

#define BATCH(name, thread) \
    API result name(address *to, address *from, size_t *sizes, size_t count, void *attributes, size_t *indices, size_t number, \
                    size_t *failed, stream stream) \
    { \
        unseen(UNSEEN_BATCH, of_host(to, from, count)); \
        HAND_ON(name, (address *, address *, size_t *, size_t, void *, size_t *, size_t, size_t *, void *), to, from, sizes, \
                count, attributes, indices, number, failed, stream); \
    }
#define BATCH_V2(name, thread) \
    API result name(address *to, address *from, size_t *sizes, size_t count, void *attributes, size_t *indices, size_t number, \
                    stream stream) \
    { \
        unseen(UNSEEN_BATCH, of_host(to, from, count)); \
        HAND_ON(name, (address *, address *, size_t *, size_t, void *, size_t *, size_t, void *), to, from, sizes, count, \
                attributes, indices, number, stream); \
    }
#define BATCH_OF_BOXES(name, thread) \
    API result name(size_t count, void *boxes, size_t *failed, unsigned long long flags, stream stream) \
    { \
        unseen(UNSEEN_BATCH, 1); \
        HAND_ON(name, (size_t, void *, size_t *, unsigned long long, void *), count, boxes, failed, flags, stream); \
    }
#define BATCH_OF_BOXES_V2(name, thread) \
    API result name(size_t count, void *boxes, unsigned long long flags, stream stream) \
    { \
        unseen(UNSEEN_BATCH, 1); \
        HAND_ON(name, (size_t, void *, unsigned long long, void *), count, boxes, flags, stream); \
    }
#define WITH_ATTRIBUTES(name, thread) \
    API result name(address to, address from, size_t size, void *attributes, stream stream) \
    { \
        unseen(UNSEEN_BATCH, of_host(&to, &from, 1)); \
        HAND_ON(name, (address, address, size_t, void *, void *), to, from, size, attributes, stream); \
    }
#define BOX_WITH_ATTRIBUTES(name, thread) \
    API result name(void *box, unsigned long long flags, stream stream) \
    { \
        unseen(UNSEEN_BATCH, 1); \
        HAND_ON(name, (void *, unsigned long long, void *), box, flags, stream); \
    }

VARIANTS(BATCH, cuMemcpyBatchAsync, _ptsz)
VARIANTS(BATCH_V2, cuMemcpyBatchAsync_v2, _ptsz)
VARIANTS(BATCH_OF_BOXES, cuMemcpy3DBatchAsync, _ptsz)
VARIANTS(BATCH_OF_BOXES_V2, cuMemcpy3DBatchAsync_v2, _ptsz)
VARIANTS(WITH_ATTRIBUTES, cuMemcpyWithAttributesAsync, _ptsz)
VARIANTS(BOX_WITH_ATTRIBUTES, cuMemcpy3DWithAttributesAsync, _ptsz)

API result cuGraphAddMemcpyNode(void *node, void *graph, void *needed, size_t count, const struct box *box, void *context)
{
    struct rows rows;
    unseen(UNSEEN_GRAPH, box && describe_box(box, &rows) != NEITHER);
    HAND_ON(cuGraphAddMemcpyNode, (void *, void *, void *, size_t, const void *, void *), node, graph, needed, count, box, context);
}

enum { MEMCPY_NODE = 1 }; /* CUgraphNodeType, the first field of CUgraphNodeParams */

API result cuGraphAddNode(void *node, void *graph, void *needed, size_t count, const int *parameters)
{
    unseen(UNSEEN_GRAPH, parameters && *parameters == MEMCPY_NODE);
    HAND_ON(cuGraphAddNode, (void *, void *, void *, size_t, const void *), node, graph, needed, count, parameters);
}

#define ADD_NODE(name) \
    API result name(void *node, void *graph, void *needed, void *edges, size_t count, const int *parameters) \
    { \
        unseen(UNSEEN_GRAPH, parameters && *parameters == MEMCPY_NODE); \
        HAND_ON(name, (void *, void *, void *, void *, size_t, const void *), node, graph, needed, edges, count, parameters); \
    }
ADD_NODE(cuGraphAddNode_v2)
ADD_NODE(cuGraphAddNode_v3)

API result cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags);
API result cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status);
API result cuGetProcAddress_v2_ptsz(const char *symbol, void **function, int version, uint64_t flags, int *status);

struct entry {
    const char *name;
    void *mine;
    void **real;
};
#define ENTRY(name) {#name, (void *)(uintptr_t)name, &REAL(name)},
static struct entry entries[] = {WRAPPED(ENTRY)};

/* In place of a function of the real library, the one here that wraps it. The driver gives the addresses that it exports, whatever
 * version or variant was asked for. */
static void wrap(void **function)
{
    for (struct entry *entry = entries; entry < entries + sizeof entries / sizeof *entries; entry++)
        if (*entry->real && *entry->real == *function) {
            *function = entry->mine;
            return;
        }
}

API result cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
    if (!REAL(cuGetProcAddress))
        return NOT_FOUND;
    result error = CALL(REAL(cuGetProcAddress), (const char *, void **, int, uint64_t), symbol, function, version, flags);
    if (!error && function)
        wrap(function);
    return error;
}

#define GET_PROC_ADDRESS(name, thread) \
    API result name(const char *symbol, void **function, int version, uint64_t flags, int *status) \
    { \
        if (!REAL(name)) \
            return NOT_FOUND; \
        result error = CALL(REAL(name), (const char *, void **, int, uint64_t, int *), symbol, function, version, flags, status); \
        if (!error && function) \
            wrap(function); \
        return error; \
    }
VARIANTS(GET_PROC_ADDRESS, cuGetProcAddress_v2, _ptsz)
