/* The connection: one socket for the process, made by the first call, used by one call at a time. */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int connection = -1;
static status refusal; /* why there is no connection */
static int forked;     /* this is a child of a process that used the runtime */
static int region_file = -1;
static char *window; /* all of the region, writable: where this library copies */
static uint32_t *bell; /* rises when something ends that a thread sleeps for */
uint64_t region_base, region_length;

static _Thread_local status last_error;
static _Thread_local int inside_callback;
static _Thread_local int per_thread; /* this call means the thread's own stream by 0 */

status failed(status error)
{
    /* That work goes on is an answer, not a failure. */
    if (error && error != cudaErrorNotReady)
        last_error = error;
    return error;
}

status peek_last_error(void)
{
    return last_error;
}

status take_last_error(void)
{
    status error = peek_last_error();
    last_error = cudaSuccess;
    return error;
}

/* The number of this thread. */
static uint64_t caller(void)
{
    static _Thread_local uint64_t number;
    if (!number)
        number = (uint64_t)syscall(SYS_gettid); /* glibc has a function for it since 2.30 only */
    return number;
}

static int send_to(int socket, const void *bytes, size_t size)
{
    const char *next = bytes;
    while (size) {
        ssize_t sent = send(socket, next, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return -1;
        next += sent;
        size -= (size_t)sent;
    }
    return 0;
}

static int receive_from(int socket, void *bytes, size_t size)
{
    char *next = bytes;
    while (size) {
        ssize_t got = recv(socket, next, size, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -1;
        next += got;
        size -= (size_t)got;
    }
    return 0;
}

static int send_all(const void *bytes, size_t size)
{
    return send_to(connection, bytes, size);
}

static int receive_all(void *bytes, size_t size)
{
    return receive_from(connection, bytes, size);
}

/* Ends the connection for good. */
static status lost(const char *what)
{
    fprintf(stderr, "STITCHCUDA: %s\n", what);
    if (connection >= 0)
        close(connection);
    connection = -1;
    return refusal = cudaErrorUnknown;
}

status exchange(struct reply *reply, unsigned operation, const uint64_t *arguments, unsigned count, const void *blob,
                size_t size, int keep);
static int start_helper(int socket); /* helper.c */
static void forget_helper(void);

static void in_child(void)
{
    if (connection >= 0)
        close(connection);
    if (connection >= 0 || refusal)
        forked = 1;
    connection = -1;
    forget_helper();
    pthread_mutex_init(&lock, 0);
}

/* What a child may still ask for, as the runtime of CUDA 13 lets it. */
static struct reply kept_properties;

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
    if (CUDART >= 13 && connection >= 0 && !kept_properties.bytes)
        exchange(&kept_properties, OP_DEVICE_PROPERTIES, LIST(0) + 1, 1, 0, 0, 1);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

/* The file of the region, and the helper's socket, come with one byte. */
static int receive_files(int files[2])
{
    char byte, control[CMSG_SPACE(2 * sizeof(int))];
    struct iovec part = {&byte, 1};
    struct msghdr message = {0};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (recvmsg(connection, &message, MSG_CMSG_CLOEXEC) != 1)
        return -1;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS ||
        head->cmsg_len != CMSG_LEN(2 * sizeof(int)))
        return -1;
    memcpy(files, CMSG_DATA(head), 2 * sizeof(int));
    return 0;
}

/* Maps the region twice: at its own addresses, closed until something there is the program's to touch; and as a window. */
static int map_region(void)
{
    const int flags = MAP_SHARED | MAP_NORESERVE;
    void *place = (void *)(uintptr_t)region_base;
    window = mmap(0, region_length, PROT_READ | PROT_WRITE, flags, region_file, 0);
    bell = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, region_file, (off_t)region_length);
    if (window == MAP_FAILED || bell == MAP_FAILED)
        return -1;
    madvise(window, region_length, MADV_DONTDUMP);
    return mmap(place, region_length, PROT_NONE, flags | MAP_FIXED_NOREPLACE, region_file, 0) == place ? 0 : -1;
}

static status greet(void)
{
    struct call_head call = {.operation = OP_HELLO, .arguments = 3, .thread = caller()};
    struct reply_head reply;
    const char *blocking = getenv("CUDA_LAUNCH_BLOCKING");
    uint64_t arguments[3] = {CUDART, (uint64_t)getpid(), blocking && *blocking == '1'}, values[2];
    int files[2];
    if (send_all(&call, sizeof call) || send_all(arguments, sizeof arguments) || receive_all(&reply, sizeof reply))
        return lost("the simulator closed the connection at once: it serves one process at a time");
    if (reply.error || reply.results != 2 || receive_all(values, sizeof values))
        return lost("the simulator refused this process: another one of the run is using it");
    region_base = values[0];
    region_length = values[1];
    if (receive_files(files))
        return lost("the simulator refused this process: another one of the run is using it");
    region_file = files[0];
    if (map_region() || start_helper(files[1]))
        return lost("the memory of the simulated device can't be mapped in this process (see `ulimit -v`)");
    return cudaSuccess;
}

static status open_connection(void)
{
    static int prepared;
    const char *path = getenv("STITCHCUDA_SIM_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!prepared) {
        pthread_atfork(before_fork, in_parent, in_child);
        prepared = 1;
    }
    if (!path || strlen(path) >= sizeof address.sun_path) {
        fprintf(stderr, "STITCHCUDA: this is the CUDA runtime of the simulator; run the program with "
                        "`stitchcuda profile PROGRAM --device sim:h200`\n");
        return refusal = cudaErrorNoDevice;
    }
    /* A name that starts with @ lies in no folder. */
    size_t length = strlen(path);
    memcpy(address.sun_path, path, length);
    if (*path == '@')
        *address.sun_path = 0;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection < 0 || connect(connection, (struct sockaddr *)&address, size))
        return lost("the simulator can't be reached: it has ended");
    return greet();
}

/* With the lock held. */
static status connect_once(void)
{
    if (forked)
        return cudaErrorInitializationError;
    if (refusal || connection >= 0)
        return refusal;
    return open_connection();
}

status connected(void)
{
    if (inside_callback)
        return cudaErrorNotPermitted;
    pthread_mutex_lock(&lock);
    status error = connect_once();
    if (!error)
        send_registrations();
    pthread_mutex_unlock(&lock);
    return error;
}

/* Whether this is a child of a process that used the device. */
static int is_forked(void)
{
    return forked;
}

static char *visible(uint64_t address)
{
    if (address - region_base < region_length)
        return window + (address - region_base);
    return (char *)(uintptr_t)address;
}

static void do_copy(const struct action *action)
{
    for (uint64_t slice = 0; slice < action->depth; slice++) {
        char *to = visible(action->to) + slice * action->to_slice;
        const char *from = visible(action->from) + slice * action->from_slice;
        for (uint64_t row = 0; row < action->height; row++)
            memmove(to + row * action->to_pitch, from + row * action->from_pitch, action->width);
    }
}

/* Lets the program touch a part of the region, or no longer. */
static void do_protect(const struct action *action)
{
    void *place = (void *)(uintptr_t)action->to;
    mprotect(place, action->width, action->from ? PROT_READ | PROT_WRITE : PROT_NONE);
}

/* Puts pages of the region under memory of the program's own, with what is there. */
static void do_share(const struct action *action)
{
    char *own = (char *)(uintptr_t)action->from;
    memcpy(visible(action->to), own, action->width);
    mmap(own, action->width, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, region_file,
         (off_t)(action->to - region_base));
}

/* Gives the program pages of its own again. They are filled first and then moved there: what runs here may lie on them. */
static void do_unshare(const struct action *action)
{
    void *own = (void *)(uintptr_t)action->from;
    size_t size = action->width;
    void *fresh = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED)
        return; /* the pages stay shared: that is right too, only not private */
    memcpy(fresh, visible(action->to), size);
    if (mremap(fresh, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, own) != own)
        munmap(fresh, size);
}

/* Calls of the program's functions, by the helper. They may not use the runtime. */
static void do_call(const struct action *action)
{
    void *data = (void *)(uintptr_t)action->from;
    inside_callback++;
    if (action->height)
        ((stream_callback)(uintptr_t)action->to)((handle)(uintptr_t)action->width, (status)action->depth, data);
    else
        ((host_function)(uintptr_t)action->to)(data);
    inside_callback--;
}

static void act(const struct action *action)
{
    switch (action->kind) {
    case ACTION_COPY: do_copy(action); break;
    case ACTION_PROTECT: do_protect(action); break;
    case ACTION_SHARE: do_share(action); break;
    case ACTION_UNSHARE: do_unshare(action); break;
    case ACTION_CALL: do_call(action); break;
    default: break;
    }
}

/* What kernels printed goes through the program's own stdout, so that it stays in order with what the host prints. */
static int print(int socket, uint64_t size, FILE *file)
{
    char part[4096];
    while (size) {
        size_t now = size < sizeof part ? size : sizeof part;
        if (receive_from(socket, part, now))
            return -1;
        fwrite(part, 1, now, file);
        size -= now;
    }
    return 0;
}

/* Sleeps until the bell has rung, or for a moment: the simulator may have gone. */
static void wait_for_bell(uint64_t count)
{
    const struct timespec moment = {.tv_nsec = 200000000};
    syscall(SYS_futex, bell, FUTEX_WAIT, (uint32_t)count, &moment, 0, 0);
}

/* Receives an answer. Returns its error. *more says that the simulator wants to go on: after the actions, or after the bell,
 * for which other threads may use the connection. */
static status receive(struct reply *reply, int keep, uint64_t *more)
{
    struct reply_head head;
    uint64_t discarded;
    if (receive_all(&head, sizeof head))
        return lost("the simulator ended while the program was running");
    reply->count = head.results;
    for (unsigned index = 0; index < head.results; index++)
        if (receive_all(index < MAX_VALUES ? &reply->value[index] : &discarded, sizeof discarded))
            return lost("the simulator ended while the program was running");
    struct action *actions = head.actions ? calloc(head.actions, sizeof *actions) : 0;
    char *bytes = head.blob ? malloc(head.blob) : 0;
    if ((head.actions && !actions) || (head.blob && !bytes) ||
        receive_all(actions, head.actions * sizeof *actions) || receive_all(bytes, head.blob)) {
        free(actions);
        free(bytes);
        return lost("the simulator ended while the program was running");
    }
    if (print(connection, head.printed, stdout)) {
        free(actions);
        free(bytes);
        return lost("the simulator ended while the program was running");
    }
    for (unsigned index = 0; index < head.actions; index++)
        act(&actions[index]);
    if (head.more && !head.actions) {
        pthread_mutex_unlock(&lock);
        wait_for_bell(reply->value[0]);
        pthread_mutex_lock(&lock);
    }
    free(actions);
    if (keep) {
        reply->bytes = bytes;
        reply->size = head.blob;
    } else {
        free(bytes);
    }
    *more = head.more;
    return head.error;
}

/* One exchange, with the lock held. */
status exchange(struct reply *reply, unsigned operation, const uint64_t *arguments, unsigned count, const void *blob,
                size_t size, int keep)
{
    const uint64_t thread = caller();
    struct call_head call = {.operation = operation, .arguments = count, .blob = size, .thread = thread};
    if (per_thread)
        call.operation |= PER_THREAD_FLAG;
    uint64_t more = 0;
    memset(reply, 0, sizeof *reply);
    if (send_all(&call, sizeof call) || send_all(arguments, count * sizeof *arguments) || send_all(blob, size))
        return lost("the simulator ended while the program was running");
    status error = receive(reply, keep, &more);
    while (more) {
        if (connection < 0)
            return refusal ? refusal : cudaErrorInitializationError;
        struct call_head next = {.operation = OP_CONTINUE, .arguments = 1, .thread = thread};
        if (send_all(&next, sizeof next) || send_all(&more, sizeof more))
            return lost("the simulator ended while the program was running");
        error = receive(reply, keep, &more);
    }
    return error;
}

static status ask_locked(struct reply *reply, unsigned operation, const uint64_t *arguments, unsigned count,
                         const void *blob, size_t size, int keep)
{
    memset(reply, 0, sizeof *reply);
    if (inside_callback)
        return failed(cudaErrorNotPermitted);
    pthread_mutex_lock(&lock);
    status error = connect_once();
    if (!error) {
        send_registrations();
        error = exchange(reply, operation, arguments, count, blob, size, keep);
    }
    pthread_mutex_unlock(&lock);
    return failed(error);
}

status ask(struct reply *reply, unsigned operation, const uint64_t *arguments, unsigned count, const void *blob, size_t size)
{
    return ask_locked(reply, operation, arguments, count, blob, size, 0);
}

status ask_bytes(struct reply *reply, unsigned operation, const uint64_t *arguments, unsigned count, const void *blob,
                 size_t size)
{
    return ask_locked(reply, operation, arguments, count, blob, size, 1);
}

/* A function that the simulator does not have: said once for each name. */
static status missing(const char *name)
{
    struct reply reply;
    fprintf(stderr, "STITCHCUDA: the simulator has no %s\n", name);
    ASK_WITH(&reply, OP_MISSING, name, strlen(name));
    return failed(cudaErrorNotSupported);
}
