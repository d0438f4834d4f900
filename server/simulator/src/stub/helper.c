/* A thread that does what the simulator asks for while the program does something else: calls of the program's functions,
 * copies from and to its memory that are due within a graph, and messages of failed assertions. */
#include <signal.h>

static int helper_socket = -1;

static int help_once(int socket)
{
    struct action action;
    const char done = 1;
    if (receive_from(socket, &action, sizeof action))
        return -1;
    if (action.kind == ACTION_COMPLAIN) {
        if (print(socket, action.width, stderr))
            return -1;
        fflush(stderr);
    } else {
        act(&action);
    }
    return send_to(socket, &done, 1);
}

static void *help(void *socket)
{
    while (!help_once((int)(intptr_t)socket)) {}
    return 0;
}

/* Signals are for the program's own threads. */
static int start_helper(int socket)
{
    sigset_t all, before;
    pthread_t thread;
    helper_socket = socket;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, 0, help, (void *)(intptr_t)socket);
    pthread_sigmask(SIG_SETMASK, &before, 0);
    if (!error)
        pthread_detach(thread);
    return error;
}

/* A child of the program has no such thread. */
static void forget_helper(void)
{
    if (helper_socket >= 0)
        close(helper_socket);
    helper_socket = -1;
}
