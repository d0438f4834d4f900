/* The socket to the watcher. Each process has one of its own, opened when the library is loaded or, in a child that was forked, at
 * its first copy. Without a watcher every call is handed on as it is. */

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int channel = -1;
static ino_t channel_inode;
static atomic_int without, over; /* no watcher; no copy is an input any more */
static char name[sizeof((struct sockaddr_un *)0)->sun_path];
static uint64_t token;

static int send_all(const void *bytes, size_t size)
{
    const char *next = bytes;
    while (size) {
        ssize_t sent = send(channel, next, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return -1;
        next += sent;
        size -= (size_t)sent;
    }
    return 0;
}

static int receive_all(void *bytes, size_t size)
{
    char *next = bytes;
    while (size) {
        ssize_t got = recv(channel, next, size, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -1;
        next += got;
        size -= (size_t)got;
    }
    return 0;
}

static int say(uint32_t kind, uint32_t detail, uint64_t ticket, uint64_t size)
{
    const struct message message = {kind, detail, ticket, size};
    return send_all(&message, sizeof message);
}

static void lost(void)
{
    if (channel >= 0)
        close(channel);
    channel = -1;
    without = 1;
}

static void open_channel(void)
{
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    struct stat status;
    size_t length = strlen(name);
    /* A name without a folder: its first byte is 0. */
    memcpy(place.sun_path + 1, name, length);
    channel = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (channel < 0 || connect(channel, (struct sockaddr *)&place, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) ||
        fstat(channel, &status) || say(HELLO, (uint32_t)getpid(), token, 0)) {
        lost();
        return;
    }
    channel_inode = status.st_ino;
}

/* With the lock held: whether there is a channel. A program may close descriptors that it does not know, and give their numbers
 * to files of its own. */
static int ready(void)
{
    struct stat status;
    if (without)
        return 0;
    if (channel < 0)
        open_channel();
    else if (fstat(channel, &status) || !S_ISSOCK(status.st_mode) || status.st_ino != channel_inode) {
        channel = -1;
        without = 1;
    }
    return !without;
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
    if (channel >= 0)
        close(channel);
    channel = -1;
    pthread_mutex_init(&lock, 0);
}

static void open_for_good(void)
{
    const char *said = getenv("STITCHCUDA_WATCH");
    const char *second = said ? strchr(said, ':') : 0;
    if (!second || (size_t)(second - said) >= sizeof name - 1) {
        without = 1;
        return;
    }
    memcpy(name, said, (size_t)(second - said));
    token = strtoull(second + 1, 0, 16);
    pthread_atfork(before_fork, in_parent, in_child);
    pthread_mutex_lock(&lock);
    ready();
    pthread_mutex_unlock(&lock);
}

int watched(void)
{
    return !without;
}

int inputs_over(void)
{
    return over;
}

/* With the lock held. Whether the bytes were changed, or -1 where the channel broke. */
static int exchange_input(void *bytes, size_t size)
{
    uint64_t answer;
    if (say(INPUT, 0, 0, size) || receive_all(&answer, sizeof answer))
        return -1;
    if (answer != WANTED) {
        if (answer == OVER)
            over = 1;
        return 0;
    }
    if (send_all(bytes, size) || receive_all(&answer, sizeof answer))
        return -1;
    if (answer != CHANGED)
        return 0;
    return receive_all(bytes, size) ? -1 : 1;
}

int offer_input(void *bytes, size_t size)
{
    pthread_mutex_lock(&lock);
    int changed = ready() ? exchange_input(bytes, size) : 0;
    if (changed < 0)
        lost();
    pthread_mutex_unlock(&lock);
    return changed > 0;
}

uint64_t announce_output(size_t size)
{
    uint64_t ticket = NO_TICKET;
    over = 1;
    pthread_mutex_lock(&lock);
    if (ready() && (say(OUTPUT_BEGINS, 0, 0, size) || receive_all(&ticket, sizeof ticket))) {
        lost();
        ticket = NO_TICKET;
    }
    pthread_mutex_unlock(&lock);
    return ticket;
}

static int send_rows(const struct rows *rows)
{
    for (size_t z = 0; z < rows->depth; z++)
        for (size_t y = 0; y < rows->height; y++)
            if (send_all(rows->start + z * rows->slice + y * rows->pitch, rows->width))
                return -1;
    return 0;
}

void deliver_output(uint64_t ticket, const struct rows *rows)
{
    pthread_mutex_lock(&lock);
    if (ready() && (say(OUTPUT, 0, ticket, rows->width * rows->height * rows->depth) || send_rows(rows)))
        lost();
    pthread_mutex_unlock(&lock);
}

void tell_unseen(unsigned why)
{
    pthread_mutex_lock(&lock);
    if (ready() && say(UNSEEN, why, 0, 0))
        lost();
    pthread_mutex_unlock(&lock);
}
