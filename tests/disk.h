/* Fault injection: replaces the C library's functions that change files. Operations are counted
 * from 1, and at number `fate_at` one of these happens:
 *
 *   DIES    the process is killed (SIGKILL), in the middle of a write
 *   FULL    the disk is full from here on (ENOSPC)
 *   STOPS   the signal `stopping` is raised (SIGTERM by default)
 *
 * The monotonic clock returns the number of calls so far in seconds, so that times and rates are
 * the same in every run. */
#ifndef KS_DISK_H
#define KS_DISK_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

long syscall(long number, ...); /* not in POSIX */

static enum { LIVES, DIES, FULL, STOPS } fate;
static size_t fate_at, operations;
static int stopping = SIGTERM;

/* Counts an operation; true if it must fail, with errno set. */
static inline bool meets_fate(void)
{
    operations++;
    if (fate == DIES && operations == fate_at)
        kill(getpid(), SIGKILL);
    if (fate == STOPS && operations == fate_at)
        raise(stopping);
    errno = ENOSPC;
    return fate == FULL && operations >= fate_at;
}

ssize_t write(int descriptor, const void *bytes, size_t size)
{
    if (descriptor > STDERR_FILENO) {
        if (operations + 1 == fate_at && (fate == DIES || fate == FULL) && size > 1) {
            size = (size_t)syscall(SYS_write, descriptor, bytes, size / 2);
            if (fate == FULL) { /* a partial write; the next one fails */
                operations++;
                return (ssize_t)size;
            }
        }
        if (meets_fate())
            return -1;
    }
    return syscall(SYS_write, descriptor, bytes, size);
}

int fsync(int descriptor)
{
    (void)descriptor; /* data written by a killed process is not lost */
    return meets_fate() ? -1 : 0;
}

int ftruncate(int descriptor, off_t size)
{
    if (fate != FULL) /* works on a full disk */
        meets_fate();
    return (int)syscall(SYS_ftruncate, descriptor, size);
}

int rename(const char *from, const char *to)
{
    return meets_fate() ? -1 : (int)syscall(SYS_rename, from, to);
}

int mkdir(const char *path, mode_t mode)
{
    bool exists = access(path, F_OK) == 0;

    return !exists && meets_fate() ? -1 : (int)syscall(SYS_mkdir, path, mode);
}

int unlink(const char *path)
{
    if (fate != FULL)
        meets_fate();
    return (int)syscall(SYS_unlink, path);
}

int unlinkat(int folder, const char *path, int flags)
{
    if (fate != FULL)
        meets_fate();
    return (int)syscall(SYS_unlinkat, folder, path, flags);
}

int rmdir(const char *path)
{
    if (fate != FULL)
        meets_fate();
    return (int)syscall(SYS_rmdir, path);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static time_t asked;

    if (clock != CLOCK_MONOTONIC)
        return (int)syscall(SYS_clock_gettime, clock, now);
    *now = (struct timespec){.tv_sec = ++asked};
    return 0;
}

#endif
