/* MuJoCo with a limited address space (ulimit -v). A failed allocation in its model compiler throws
 * an uncaught exception, which ends the process. So a child process compiles first: if it dies, the
 * program can report an error instead. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/memory.h"
#include "env/physics.h"

/* Waits for the child; returns its wait status. */
static int wait_for(pid_t child)
{
    int result = 0;

    while (waitpid(child, &result, 0) < 0)
        if (errno != EINTR)
            return 0;
    return result;
}

ks_status ks_physics_try(void (*work)(void *argument), void *argument, const char *what)
{
    const struct rlimit none = {0, 0};
    pid_t child;
    int null;

    if (isinf(ks_memory_left_by_limits("")))
        return KS_OK;
    child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &none);
        null = open("/dev/null", O_WRONLY);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        _exit(ks_physics_guard(work, argument) == KS_OK ? 0 : 1);
    }
    if (child > 0 && WIFSIGNALED(wait_for(child)))
        return ks_physics_no_memory(what, "it aborted");
    return KS_OK;
}

bool ks_physics_lacks_memory(const char *words)
{
    return strstr(words, "allocat") || strstr(words, "alloc:");
}

ks_status ks_physics_no_memory(const char *what, const char *words)
{
    double left = ks_memory_left_by_limits("");

    if (isinf(left))
        return ks_fail(KS_MEMORY, "%s: MuJoCo is out of memory: %s", what, words);
    return ks_fail(KS_MEMORY,
                   "%s: MuJoCo is out of memory: %s; the limit of this process's address space "
                   "(ulimit -v) leaves %.0f MiB, which is too little",
                   what, words, floor(left / (1 << 20)));
}
