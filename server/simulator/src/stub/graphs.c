/* Graphs: nodes are described to the simulator, which keeps and replays them. */

/* What a node does, as the simulator reads it: a type, numbers, and the parameters of a kernel. */
struct node {
    int type;
    uint64_t numbers[12];
    unsigned count;
    void *parameters;
    size_t size;
};

/* cudaGraphNodeType */
enum {
    NODE_KERNEL, NODE_COPY, NODE_FILL, NODE_HOST, NODE_CHILD, NODE_EMPTY, NODE_WAIT, NODE_RECORD, NODE_ALLOCATE = 10, NODE_FREE
};

struct kernel_node {
    void *function;
    struct dim3 grid, block;
    unsigned shared;
    void **arguments, **extra;
};
struct fill_node {
    void *pointer;
    size_t pitch;
    unsigned value, element;
    size_t width, height;
};
struct host_node {
    host_function function;
    void *data;
};
/* cudaMemAllocNodeParams: a cudaMemPoolProps of 88 bytes first. */
struct allocate_node {
    char properties[88];
    const void *access;
    size_t access_count, size;
    void *pointer;
};

#define NUMBERS(node, ...) \
    do { \
        const uint64_t numbers_[] = {__VA_ARGS__}; \
        memcpy((node)->numbers, numbers_, sizeof numbers_); \
        (node)->count = sizeof numbers_ / sizeof *numbers_; \
    } while (0)

static status kernel_node(struct node *node, const struct kernel_node *kernel)
{
    if (!kernel)
        return failed(cudaErrorInvalidValue);
    if (!kernel->function)
        return failed(cudaErrorInvalidDeviceFunction);
    *node = (struct node){.type = NODE_KERNEL};
    NUMBERS(node, U(kernel->function), kernel->grid.x, kernel->grid.y, kernel->grid.z, kernel->block.x, kernel->block.y,
            kernel->block.z, kernel->shared);
    return pack_parameters(kernel->function, kernel->arguments, &node->parameters, &node->size);
}

static void copy_node(struct node *node, const struct copy *rows, int kind)
{
    *node = (struct node){.type = NODE_COPY};
    NUMBERS(node, rows->to, rows->from, rows->width, rows->height, rows->depth, rows->to_pitch, rows->from_pitch,
            rows->to_slice, rows->from_slice, (uint64_t)kind);
}

static status copy3d_node(struct node *node, const struct copy3d *parameters)
{
    struct copy rows;
    status error = copy3d_from(parameters, &rows);
    if (error)
        return failed(error);
    copy_node(node, &rows, parameters->kind);
    return cudaSuccess;
}

static void copy1d_node(struct node *node, uint64_t to, uint64_t from, size_t count, int kind)
{
    const struct copy rows = {to, from, count, 1, 1, count, count, 0, 0};
    copy_node(node, &rows, kind);
}

static status fill_node(struct node *node, const struct fill_node *fill)
{
    if (!fill)
        return failed(cudaErrorInvalidValue);
    *node = (struct node){.type = NODE_FILL};
    NUMBERS(node, U(fill->pointer), fill->value, fill->element, fill->width, fill->height, 1, fill->pitch, 0);
    return cudaSuccess;
}

static status host_node(struct node *node, const struct host_node *host)
{
    if (!host || !host->function)
        return failed(cudaErrorInvalidValue);
    *node = (struct node){.type = NODE_HOST};
    NUMBERS(node, U(host->function), U(host->data));
    return cudaSuccess;
}

static void number_node(struct node *node, int type, uint64_t number)
{
    *node = (struct node){.type = type};
    NUMBERS(node, number);
}

/* Sends a node: a new one of a graph with its dependencies, or new parameters for one. Frees its parameters. */
static status send_node(struct reply *reply, unsigned operation, handle owner, uint64_t second, struct node *node,
                        const handle *dependencies)
{
    uint64_t arguments[16] = {U(owner), second, (uint64_t)node->type};
    size_t links = dependencies ? second * sizeof *dependencies : 0;
    char *blob = malloc(links + node->size + 1);
    status error;
    memcpy(arguments + 3, node->numbers, node->count * sizeof *arguments);
    if (blob) {
        if (links)
            memcpy(blob, dependencies, links);
        if (node->size)
            memcpy(blob + links, node->parameters, node->size);
        error = ask(reply, operation, arguments, 3 + node->count, blob, links + node->size);
    } else {
        error = failed(cudaErrorMemoryAllocation);
    }
    free(blob);
    free(node->parameters);
    return error;
}

static status add(handle *added, handle graph, const handle *dependencies, size_t count, struct node *node)
{
    struct reply reply;
    if (!added || (count && !dependencies)) {
        free(node->parameters);
        return failed(cudaErrorInvalidValue);
    }
    status error = send_node(&reply, OP_GRAPH_ADD, graph, count, node, dependencies);
    if (!error)
        *added = (handle)(uintptr_t)reply.value[0];
    return error;
}

/* New parameters: of a node where `executable` is null, of its instance otherwise. */
static status set(handle executable, handle node, struct node *parameters)
{
    struct reply reply;
    return send_node(&reply, OP_GRAPH_SET, executable, U(node), parameters, 0);
}

API status cudaGraphCreate(handle *graph, unsigned flags)
{
    if (flags)
        return failed(cudaErrorInvalidValue);
    TELL_RESULT(graph, handle, OP_GRAPH_CREATE, 0);
}

API status cudaGraphClone(handle *clone, handle graph)
{
    if (!graph)
        return failed(cudaErrorInvalidValue);
    TELL_RESULT(clone, handle, OP_GRAPH_CREATE, U(graph));
}

API status cudaGraphDestroy(handle graph)
{
    TELL(OP_GRAPH_DESTROY, U(graph));
}

API status cudaGraphDestroyNode(handle node)
{
    TELL(OP_GRAPH_DESTROY_NODE, U(node));
}

API status cudaGraphAddKernelNode(handle *added, handle graph, const handle *dependencies, size_t count,
                                  const struct kernel_node *kernel)
{
    struct node node;
    status error = kernel_node(&node, kernel);
    return error ? error : add(added, graph, dependencies, count, &node);
}

API status cudaGraphAddMemcpyNode(handle *added, handle graph, const handle *dependencies, size_t count,
                                  const struct copy3d *parameters)
{
    struct node node;
    status error = copy3d_node(&node, parameters);
    return error ? error : add(added, graph, dependencies, count, &node);
}

API status cudaGraphAddMemcpyNode1D(handle *added, handle graph, const handle *dependencies, size_t count, void *to,
                                    const void *from, size_t bytes, int kind)
{
    struct node node;
    copy1d_node(&node, U(to), U(from), bytes, kind);
    return add(added, graph, dependencies, count, &node);
}

API status cudaGraphAddMemcpyNodeToSymbol(handle *added, handle graph, const handle *dependencies, size_t count,
                                          const void *symbol, const void *from, size_t bytes, size_t offset, int kind)
{
    struct node node;
    uint64_t to;
    status error = symbol_range(symbol, bytes, offset, &to);
    if (error)
        return error;
    copy1d_node(&node, to, U(from), bytes, kind);
    return add(added, graph, dependencies, count, &node);
}

API status cudaGraphAddMemcpyNodeFromSymbol(handle *added, handle graph, const handle *dependencies, size_t count, void *to,
                                            const void *symbol, size_t bytes, size_t offset, int kind)
{
    struct node node;
    uint64_t from;
    status error = symbol_range(symbol, bytes, offset, &from);
    if (error)
        return error;
    copy1d_node(&node, U(to), from, bytes, kind);
    return add(added, graph, dependencies, count, &node);
}

API status cudaGraphAddMemsetNode(handle *added, handle graph, const handle *dependencies, size_t count,
                                  const struct fill_node *fill)
{
    struct node node;
    status error = fill_node(&node, fill);
    return error ? error : add(added, graph, dependencies, count, &node);
}

API status cudaGraphAddHostNode(handle *added, handle graph, const handle *dependencies, size_t count,
                                const struct host_node *host)
{
    struct node node;
    status error = host_node(&node, host);
    return error ? error : add(added, graph, dependencies, count, &node);
}

API status cudaGraphAddChildGraphNode(handle *added, handle graph, const handle *dependencies, size_t count, handle child)
{
    struct node node;
    number_node(&node, NODE_CHILD, U(child));
    return add(added, graph, dependencies, count, &node);
}

API status cudaGraphAddEmptyNode(handle *added, handle graph, const handle *dependencies, size_t count)
{
    struct node node;
    number_node(&node, NODE_EMPTY, 0);
    return add(added, graph, dependencies, count, &node);
}

API status cudaGraphAddEventRecordNode(handle *added, handle graph, const handle *dependencies, size_t count, handle event)
{
    struct node node;
    number_node(&node, NODE_RECORD, U(event));
    return add(added, graph, dependencies, count, &node);
}

API status cudaGraphAddEventWaitNode(handle *added, handle graph, const handle *dependencies, size_t count, handle event)
{
    struct node node;
    number_node(&node, NODE_WAIT, U(event));
    return add(added, graph, dependencies, count, &node);
}

API status cudaGraphAddMemAllocNode(handle *added, handle graph, const handle *dependencies, size_t count,
                                    struct allocate_node *parameters)
{
    struct node node;
    struct reply reply;
    if (!added || !parameters || (count && !dependencies))
        return failed(cudaErrorInvalidValue);
    number_node(&node, NODE_ALLOCATE, parameters->size);
    status error = send_node(&reply, OP_GRAPH_ADD, graph, count, &node, dependencies);
    if (!error) {
        *added = (handle)(uintptr_t)reply.value[0];
        parameters->pointer = (void *)(uintptr_t)reply.value[1];
    }
    return error;
}

API status cudaGraphAddMemFreeNode(handle *added, handle graph, const handle *dependencies, size_t count, void *pointer)
{
    struct node node;
    number_node(&node, NODE_FREE, U(pointer));
    return add(added, graph, dependencies, count, &node);
}

/* cudaGraphNodeParams: a type, and a union of what the calls above take. */
struct any_node {
    int type, reserved[3];
    union {
        uint64_t reserved[29];
        struct kernel_node kernel;
        struct {
            uint64_t reserved[2];
            struct copy3d copy;
        } copy;
        struct fill_node fill;
        struct host_node host;
        struct allocate_node allocate;
        void *pointer; /* a graph, an event, memory to free */
    } of;
};

static status any_node(struct node *node, const struct any_node *any)
{
    if (!any)
        return failed(cudaErrorInvalidValue);
    switch (any->type) {
    case NODE_KERNEL: return kernel_node(node, &any->of.kernel);
    case NODE_COPY: return copy3d_node(node, &any->of.copy.copy);
    case NODE_FILL: return fill_node(node, &any->of.fill);
    case NODE_HOST: return host_node(node, &any->of.host);
    case NODE_CHILD:
    case NODE_EMPTY:
    case NODE_WAIT:
    case NODE_RECORD:
    case NODE_FREE: number_node(node, any->type, U(any->of.pointer)); return cudaSuccess;
    default: return missing("cudaGraphAddNode for this type of node");
    }
}

static status add_any(handle *added, handle graph, const handle *dependencies, size_t count, struct any_node *any)
{
    struct node node;
    if (any && any->type == NODE_ALLOCATE)
        return cudaGraphAddMemAllocNode(added, graph, dependencies, count, &any->of.allocate);
    status error = any_node(&node, any);
    return error ? error : add(added, graph, dependencies, count, &node);
}

#if CUDART >= 13
API status cudaGraphAddNode(handle *added, handle graph, const handle *dependencies, const void *edges, size_t count,
                            struct any_node *any)
{
    (void)edges;
    return add_any(added, graph, dependencies, count, any);
}
#else
API status cudaGraphAddNode(handle *added, handle graph, const handle *dependencies, size_t count, struct any_node *any)
{
    return add_any(added, graph, dependencies, count, any);
}

API status cudaGraphAddNode_v2(handle *added, handle graph, const handle *dependencies, const void *edges, size_t count,
                               struct any_node *any)
{
    (void)edges;
    return add_any(added, graph, dependencies, count, any);
}
#endif

#define SET(executable, node, read, given) \
    do { \
        struct node parameters_; \
        status error_ = read(&parameters_, given); \
        return error_ ? error_ : set(executable, node, &parameters_); \
    } while (0)

API status cudaGraphNodeSetParams(handle node, const struct any_node *any)
{
    SET(0, node, any_node, any);
}

API status cudaGraphExecNodeSetParams(handle executable, handle node, const struct any_node *any)
{
    SET(executable, node, any_node, any);
}

API status cudaGraphKernelNodeSetParams(handle node, const struct kernel_node *kernel)
{
    SET(0, node, kernel_node, kernel);
}

API status cudaGraphExecKernelNodeSetParams(handle executable, handle node, const struct kernel_node *kernel)
{
    SET(executable, node, kernel_node, kernel);
}

API status cudaGraphMemcpyNodeSetParams(handle node, const struct copy3d *copy)
{
    SET(0, node, copy3d_node, copy);
}

API status cudaGraphExecMemcpyNodeSetParams(handle executable, handle node, const struct copy3d *copy)
{
    SET(executable, node, copy3d_node, copy);
}

API status cudaGraphMemcpyNodeSetParams1D(handle node, void *to, const void *from, size_t count, int kind)
{
    struct node parameters;
    copy1d_node(&parameters, U(to), U(from), count, kind);
    return set(0, node, &parameters);
}

API status cudaGraphExecMemcpyNodeSetParams1D(handle executable, handle node, void *to, const void *from, size_t count,
                                              int kind)
{
    struct node parameters;
    copy1d_node(&parameters, U(to), U(from), count, kind);
    return set(executable, node, &parameters);
}

API status cudaGraphMemsetNodeSetParams(handle node, const struct fill_node *fill)
{
    SET(0, node, fill_node, fill);
}

API status cudaGraphExecMemsetNodeSetParams(handle executable, handle node, const struct fill_node *fill)
{
    SET(executable, node, fill_node, fill);
}

API status cudaGraphHostNodeSetParams(handle node, const struct host_node *host)
{
    SET(0, node, host_node, host);
}

API status cudaGraphExecHostNodeSetParams(handle executable, handle node, const struct host_node *host)
{
    SET(executable, node, host_node, host);
}

API status cudaGraphExecChildGraphNodeSetParams(handle executable, handle node, handle child)
{
    struct node parameters;
    number_node(&parameters, NODE_CHILD, U(child));
    return set(executable, node, &parameters);
}
