/* What graphs are asked about, and their executable forms. */

API status cudaGraphNodeGetType(handle node, int *type)
{
    TELL_RESULT(type, int, OP_GRAPH_NODE_TYPE, U(node));
}

API status cudaGraphChildGraphNodeGetGraph(handle node, handle *graph)
{
    TELL_RESULT(graph, handle, OP_GRAPH_NODE_CHILD, U(node));
}

API status cudaGraphNodeFindInClone(handle *found, handle original, handle clone)
{
    TELL_RESULT(found, handle, OP_GRAPH_FIND_IN_CLONE, U(original), U(clone));
}

/* Lists of nodes: the count alone where there is no place for them; null in the places that are too many. */
enum { LIST_NODES, LIST_ROOTS, LIST_DEPENDENCIES, LIST_DEPENDENTS, LIST_EDGES };

static status list(handle owner, int which, handle *places, handle *second, size_t *count)
{
    struct reply reply;
    if (!count)
        return failed(cudaErrorInvalidValue);
    status error = ask_bytes(&reply, OP_GRAPH_LIST, LIST(U(owner), which) + 1, 2, 0, 0);
    if (error)
        return error;
    const handle *nodes = reply.bytes;
    size_t width = which == LIST_EDGES ? 2 : 1, found = reply.size / sizeof(handle) / width;
    if (places) {
        for (size_t index = 0; index < *count; index++) {
            places[index] = index < found ? nodes[index * width] : 0;
            if (second)
                second[index] = index < found ? nodes[index * width + 1] : 0;
        }
        if (*count > found)
            *count = found;
    } else {
        *count = found;
    }
    free(reply.bytes);
    return cudaSuccess;
}

API status cudaGraphGetNodes(handle graph, handle *nodes, size_t *count)
{
    return list(graph, LIST_NODES, nodes, 0, count);
}

API status cudaGraphGetRootNodes(handle graph, handle *nodes, size_t *count)
{
    return list(graph, LIST_ROOTS, nodes, 0, count);
}

static status link_nodes(handle graph, const handle *from, const handle *to, size_t count, int remove)
{
    struct reply reply;
    size_t size = count * sizeof *from;
    char *blob = malloc(2 * size + 1);
    if (!blob || (count && (!from || !to))) {
        free(blob);
        return failed(cudaErrorInvalidValue);
    }
    if (size) {
        memcpy(blob, from, size);
        memcpy(blob + size, to, size);
    }
    status error = ASK_WITH(&reply, OP_GRAPH_LINK, blob, 2 * size, U(graph), count, remove);
    free(blob);
    return error;
}

#if CUDART >= 13
API status cudaGraphGetEdges(handle graph, handle *from, handle *to, void *edges, size_t *count)
{
    (void)edges;
    return list(graph, LIST_EDGES, from, to, count);
}

API status cudaGraphNodeGetDependencies(handle node, handle *nodes, void *edges, size_t *count)
{
    (void)edges;
    return list(node, LIST_DEPENDENCIES, nodes, 0, count);
}

API status cudaGraphNodeGetDependentNodes(handle node, handle *nodes, void *edges, size_t *count)
{
    (void)edges;
    return list(node, LIST_DEPENDENTS, nodes, 0, count);
}

API status cudaGraphAddDependencies(handle graph, const handle *from, const handle *to, const void *edges, size_t count)
{
    (void)edges;
    return link_nodes(graph, from, to, count, 0);
}

API status cudaGraphRemoveDependencies(handle graph, const handle *from, const handle *to, const void *edges, size_t count)
{
    (void)edges;
    return link_nodes(graph, from, to, count, 1);
}
#else
API status cudaGraphGetEdges(handle graph, handle *from, handle *to, size_t *count)
{
    return list(graph, LIST_EDGES, from, to, count);
}

API status cudaGraphNodeGetDependencies(handle node, handle *nodes, size_t *count)
{
    return list(node, LIST_DEPENDENCIES, nodes, 0, count);
}

API status cudaGraphNodeGetDependentNodes(handle node, handle *nodes, size_t *count)
{
    return list(node, LIST_DEPENDENTS, nodes, 0, count);
}

API status cudaGraphAddDependencies(handle graph, const handle *from, const handle *to, size_t count)
{
    return link_nodes(graph, from, to, count, 0);
}

API status cudaGraphRemoveDependencies(handle graph, const handle *from, const handle *to, size_t count)
{
    return link_nodes(graph, from, to, count, 1);
}
#endif

API status cudaGraphInstantiate(handle *executable, handle graph, unsigned long long flags)
{
    TELL_RESULT(executable, handle, OP_GRAPH_INSTANTIATE, U(graph), flags);
}

API status cudaGraphInstantiateWithFlags(handle *executable, handle graph, unsigned long long flags)
{
    TELL_RESULT(executable, handle, OP_GRAPH_INSTANTIATE, U(graph), flags);
}

/* cudaGraphInstantiateParams */
struct instantiate {
    unsigned long long flags;
    handle stream, error_node;
    int result;
};

API status cudaGraphInstantiateWithParams(handle *executable, handle graph, struct instantiate *parameters)
{
    if (!parameters)
        return failed(cudaErrorInvalidValue);
    parameters->error_node = 0;
    status error = cudaGraphInstantiate(executable, graph, parameters->flags);
    parameters->result = error ? 1 : 0;
    return error;
}

API status cudaGraphExecDestroy(handle executable)
{
    TELL(OP_GRAPH_EXEC_DESTROY, U(executable));
}

API status cudaGraphExecGetFlags(handle executable, unsigned long long *flags)
{
    TELL_RESULT(flags, unsigned long long, OP_GRAPH_EXEC_FLAGS, U(executable));
}

API status cudaGraphLaunch(handle executable, handle stream)
{
    TELL(OP_GRAPH_LAUNCH, U(executable), U(stream));
}

API status cudaGraphUpload(handle executable, handle stream)
{
    (void)stream;
    TELL(OP_GRAPH_EXEC_FLAGS, U(executable));
}

/* cudaGraphExecUpdateResultInfo */
struct update_result {
    int result;
    handle node, from;
};

API status cudaGraphExecUpdate(handle executable, handle graph, struct update_result *result)
{
    struct reply reply;
    status error = ASK(&reply, OP_GRAPH_EXEC_UPDATE, U(executable), U(graph));
    if (result)
        *result = (struct update_result){(int)reply.value[0], (handle)(uintptr_t)reply.value[1], 0};
    return error ? error : failed((status)reply.value[2]);
}

API status cudaGraphNodeSetEnabled(handle executable, handle node, unsigned enabled)
{
    TELL(OP_GRAPH_SET_ENABLED, U(executable), U(node), enabled);
}

API status cudaGraphNodeGetEnabled(handle executable, handle node, unsigned *enabled)
{
    TELL_RESULT(enabled, unsigned, OP_GRAPH_GET_ENABLED, U(executable), U(node));
}

API status cudaDeviceGraphMemTrim(int device)
{
    return check_device(device);
}

API status cudaDeviceGetGraphMemAttribute(int device, int attribute, void *value)
{
    (void)attribute;
    if (!value)
        return failed(cudaErrorInvalidValue);
    *(uint64_t *)value = 0;
    return check_device(device);
}
