/* What nvcc's start-up code says of a program's device code. It is kept, and sent when the runtime is first used: most of
 * the libraries of a program are never asked for theirs. */

#define FAT_BINARY_MAGIC 0xBA55ED50u

struct fat_binary_head {
    uint32_t magic;
    uint16_t version, head_length;
    uint64_t length;
};
struct fat_binary_wrapper {
    uint32_t magic, version;
    const struct fat_binary_head *image;
    /* version 2 (separate compilation): the images of the objects, ended by a null pointer */
    const struct fat_binary_head **objects;
};

/* One registration, in the order in which they came. */
struct registration {
    struct registration *next;
    unsigned operation;
    uint64_t arguments[5];
    const void *blob;
    size_t size;
};

static struct registration *first, **end = &first;
static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;
static uint64_t images; /* handles of images are numbers from 1 */

/* A managed variable: the program finds it through a pointer that is ours to set. */
struct managed {
    struct managed *next;
    void **pointer;
};
static struct managed *unset;

status exchange(struct reply *reply, unsigned operation, const uint64_t *arguments, unsigned count, const void *blob,
                size_t size, int keep);

static void enter(unsigned operation, uint64_t a, uint64_t b, uint64_t c, uint64_t d, const void *blob, size_t size)
{
    struct registration *entry = calloc(1, sizeof *entry);
    if (!entry)
        abort();
    entry->operation = operation;
    entry->arguments[0] = a;
    entry->arguments[1] = b;
    entry->arguments[2] = c;
    entry->arguments[3] = d;
    entry->blob = blob;
    entry->size = size;
    pthread_mutex_lock(&registering);
    *end = entry;
    end = &entry->next;
    pthread_mutex_unlock(&registering);
}

void send_registrations(void)
{
    struct reply reply;
    pthread_mutex_lock(&registering);
    struct registration *entry = first;
    struct managed *variable = unset;
    first = 0;
    end = &first;
    unset = 0;
    pthread_mutex_unlock(&registering);
    while (entry) {
        struct registration *next = entry->next;
        exchange(&reply, entry->operation, entry->arguments, 4, entry->blob, entry->size, 0);
        free(entry);
        entry = next;
    }
    while (variable) {
        struct managed *next = variable->next;
        uint64_t argument = U(variable->pointer);
        if (!exchange(&reply, OP_MANAGED_VARIABLE, &argument, 1, 0, 0, 0))
            *variable->pointer = (void *)(uintptr_t)reply.value[0];
        free(variable);
        variable = next;
    }
}

static void enter_image(uint64_t handle, uint64_t relocatable, const struct fat_binary_head *image)
{
    if (image && image->magic == FAT_BINARY_MAGIC)
        enter(OP_IMAGE, handle, relocatable, 0, 0, image, image->head_length + image->length);
}

API void **__cudaRegisterFatBinary(void *fat_binary)
{
    const struct fat_binary_wrapper *wrapper = fat_binary;
    uint64_t handle = __atomic_add_fetch(&images, 1, __ATOMIC_RELAXED);
    if (wrapper->version < 2)
        enter_image(handle, 0, wrapper->image);
    else
        for (const struct fat_binary_head **object = wrapper->objects; *object; object++)
            enter_image(handle, 1, *object);
    return (void **)(uintptr_t)handle;
}

API void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

API void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle; /* at the end of the program, or of a library: its code may still be asked for by other destructors */
}

API void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int thread_limit,
                                void *thread, void *block, void *block_size, void *grid_size, int *warp_size)
{
    (void)device, (void)thread_limit, (void)thread, (void)block, (void)block_size, (void)grid_size, (void)warp_size;
    enter(OP_FUNCTION, U(handle), U(host), 0, 0, name, strlen(name));
}

API void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int is_extern, size_t size,
                           int constant, int global)
{
    (void)device, (void)is_extern, (void)global;
    enter(OP_VARIABLE, U(handle), U(host), size, (uint64_t)(constant != 0), name, strlen(name));
}

API void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int is_extern, size_t size,
                                  int constant, int global)
{
    struct managed *variable = calloc(1, sizeof *variable);
    (void)device, (void)is_extern, (void)constant, (void)global;
    if (!variable)
        abort();
    enter(OP_VARIABLE, U(handle), U(host), size, 2, name, strlen(name));
    variable->pointer = host;
    pthread_mutex_lock(&registering);
    variable->next = unset;
    unset = variable;
    pthread_mutex_unlock(&registering);
}

API void __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t size)
{
    (void)handle, (void)name, (void)host, (void)size; /* tells debuggers of host variables that kernels use */
}

API char __cudaInitModule(void **handle)
{
    (void)handle;
    return (char)(connected() == cudaSuccess);
}

API status __cudaGetKernel(handle *kernel, const void *function)
{
    /* A kernel's handle is the address of its host function, so that every call takes either. */
    *kernel = (handle)function;
    return cudaSuccess;
}

API status cudaGetKernel(handle *kernel, const void *function)
{
    struct reply reply;
    if (!kernel)
        return failed(cudaErrorInvalidValue);
    status error = ASK(&reply, OP_FUNCTION_CHECK, U(function));
    if (!error)
        *kernel = (handle)function;
    return error;
}

API status cudaGetFuncBySymbol(handle *function, const void *symbol)
{
    return cudaGetKernel(function, symbol);
}
