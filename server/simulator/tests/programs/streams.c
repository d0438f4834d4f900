#include "cuda.h"

/* Written by the thread that calls host functions; read after a call that waits for them. */
static int calls, inside, called;

static void host_function(void *data)
{
    void *pointer;
    calls += *(int *)data;
    inside = cudaMalloc(&pointer, 4);
}

static void callback(cudaStream_t stream, cudaError_t error, void *data)
{
    called = 100 * (stream == *(cudaStream_t *)data) + 10 * error + calls;
}

int main(void)
{
    cudaStream_t one, two;
    cudaEvent_t start, end, never;
    cudaMemPool_t pool;
    float time = -1;
    int add = 5, state;
    uint64_t used;
    char *device, host[64] = "through a graph", back[64] = "";

    SHOW(cudaStreamCreate(&one));
    SHOW(cudaStreamCreate(&two));
    SHOW(cudaStreamQuery(one));
    SHOW(cudaStreamSynchronize((cudaStream_t)0x12345));
    SHOW(cudaEventCreate(&start));
    SHOW(cudaEventCreate(&end));
    SHOW(cudaEventCreate(&never));
    SHOW(cudaEventRecord(start, one));
    SHOW(cudaMalloc((void **)&device, 1 << 20));
    SHOW(cudaMemsetAsync(device, 0, 1 << 20, one));
    SHOW(cudaEventRecord(end, one));
    SHOW(cudaEventSynchronize(end));
    SHOW(cudaEventElapsedTime(&time, start, end));
    printf("time passes: %d\n", time > 0 && time < 1);
    SHOW(cudaEventElapsedTime(&time, start, never));
    SHOW(cudaStreamWaitEvent(two, end, 0));
    SHOW(cudaLaunchHostFunc(one, host_function, &add));
    SHOW(cudaStreamAddCallback(one, callback, &one, 0));
    SHOW(cudaStreamSynchronize(one));
    printf("in a host function: %d; callback: %d\n", inside, called);

    SHOW(cudaMallocAsync((void **)&device, 1000, one));
    SHOW(cudaDeviceGetDefaultMemPool(&pool, 0));
    SHOW(cudaMemPoolGetAttribute(pool, 7, &used));
    printf("used: %d\n", (int)used);
    SHOW(cudaFreeAsync(device, one));
    SHOW(cudaFreeAsync(device, one));
    SHOW(cudaMemPoolGetAttribute(pool, 7, &used));
    printf("used: %d\n", (int)used);

    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaGraphNode_t nodes[8];
    size_t count = 8;
    SHOW(cudaMalloc((void **)&device, 64));
    SHOW(cudaStreamBeginCapture(0, 0));
    SHOW(cudaStreamBeginCapture(one, 0));
    SHOW(cudaStreamIsCapturing(one, &state));
    printf("capturing: %d\n", state);
    SHOW(cudaMemcpyAsync(device, host, 64, HostToDevice, one));
    SHOW(cudaEventRecord(start, one));
    SHOW(cudaStreamWaitEvent(two, start, 0));
    SHOW(cudaLaunchHostFunc(two, host_function, &add));
    SHOW(cudaEventRecord(end, two));
    SHOW(cudaStreamWaitEvent(one, end, 0));
    SHOW(cudaMemcpyAsync(back, device, 64, DeviceToHost, one));
    printf("nothing yet: '%s' %d\n", back, calls);
    SHOW(cudaStreamEndCapture(one, &graph));
    SHOW(cudaGraphGetNodes(graph, nodes, &count));
    printf("nodes: %zu", count);
    for (size_t i = 0; i < count; i++) {
        cudaGraphNodeGetType(nodes[i], &state);
        printf(" %d", state);
    }
    printf("\n");
    count = 4;
    SHOW(cudaGraphGetRootNodes(graph, nodes + 4, &count));
    printf("roots: %zu %d\n", count, nodes[4] == nodes[0]);
    SHOW(cudaGraphInstantiateWithFlags(&executable, graph, 0));
    SHOW(cudaGraphLaunch(executable, one));
    SHOW(cudaStreamSynchronize(one));
    printf("replayed: '%s' %d\n", back, calls);
    SHOW(cudaGraphExecMemcpyNodeSetParams1D(executable, nodes[0], device, "other", 6, HostToDevice));
    SHOW(cudaGraphLaunch(executable, one));
    SHOW(cudaStreamSynchronize(one));
    printf("replayed: '%s' %d\n", back, calls);
    SHOW(cudaGraphExecUpdate(executable, graph, 0));
    SHOW(cudaGraphExecDestroy(executable));
    SHOW(cudaGraphDestroy(graph));
    SHOW(cudaGraphDestroy(graph));

    SHOW(cudaStreamBeginCapture(one, 0));
    SHOW(cudaMalloc((void **)&device, 64));
    SHOW(cudaStreamEndCapture(one, &graph));
    SHOW(cudaStreamBeginCapture(one, 0));
    SHOW(cudaStreamSynchronize(one));
    SHOW(cudaStreamEndCapture(one, &graph));
    SHOW(cudaStreamBeginCapture(one, 0));
    SHOW(cudaEventRecord(start, one));
    SHOW(cudaStreamWaitEvent(two, start, 0));
    SHOW(cudaLaunchHostFunc(two, host_function, &add));
    SHOW(cudaStreamEndCapture(one, &graph));
    SHOW(cudaStreamBeginCapture(one, 2));
    SHOW(cudaMemcpy(host, back, 4, HostToHost));
    SHOW(cudaStreamEndCapture(one, &graph));

    /* As programs call that are built for per-thread default streams: 0 is one that can be captured. */
    SHOW(cudaStreamBeginCapture_ptsz(0, 0));
    SHOW(cudaLaunchHostFunc_ptsz(0, host_function, &add));
    SHOW(cudaStreamEndCapture_ptsz(0, &graph));
    count = 8;
    SHOW(cudaGraphGetNodes(graph, nodes, &count));
    printf("nodes: %zu\n", count);

    SHOW(cudaEventDestroy(start));
    SHOW(cudaEventDestroy(start));
    SHOW(cudaStreamDestroy(one));
    SHOW(cudaStreamDestroy(one));
    SHOW(cudaDeviceSynchronize());
    return 0;
}
