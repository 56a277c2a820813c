#include "io/h5_wire.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

bool ks_h5_send(int socket, const void *bytes, size_t size)
{
    const char *next = bytes;

    while (size > 0) {
        ssize_t sent = send(socket, next, size, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        next += sent;
        size -= (size_t)sent;
    }
    return true;
}

/* Waits second by second, so that the time during which a shell has stopped both processes counts
 * as one second at most. */
static bool wait_for(int socket, unsigned seconds)
{
    struct pollfd one = {.fd = socket, .events = POLLIN};

    for (unsigned waited = 0; waited < seconds;) {
        int ready = poll(&one, 1, 1000);

        if (ready > 0)
            return true;
        if (ready < 0 && errno != EINTR)
            return false;
        waited += ready == 0;
    }
    errno = ETIMEDOUT;
    return false;
}

bool ks_h5_receive(int socket, unsigned seconds, void *bytes, size_t size)
{
    char *next = bytes;

    while (size > 0) {
        ssize_t got;

        if (seconds > 0 && !wait_for(socket, seconds))
            return false;
        got = recv(socket, next, size, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = 0; /* the other end is closed */
            return false;
        }
        next += got;
        size -= (size_t)got;
    }
    return true;
}
