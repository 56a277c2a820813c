#include "disk.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

long syscall(long number, ...); /* not in POSIX */

enum fault fault;
size_t fault_at, operations;
int signal_raised = SIGTERM;

/* Counts an operation, and kills or signals the process if it is the one. True if the operation
 * must fail, with errno set. */
static bool inject_fault(void)
{
    operations++;
    if (fault == KILL && operations == fault_at)
        kill(getpid(), SIGKILL);
    if (fault == SIGNAL && operations == fault_at)
        raise(signal_raised);
    errno = ENOSPC;
    return fault == DISK_FULL && operations >= fault_at;
}

ssize_t write(int descriptor, const void *bytes, size_t size)
{
    if (descriptor > STDERR_FILENO) {
        if (operations + 1 == fault_at && (fault == KILL || fault == DISK_FULL) && size > 1) {
            size = (size_t)syscall(SYS_write, descriptor, bytes, size / 2);
            if (fault == DISK_FULL) { /* a partial write; the next one fails */
                operations++;
                return (ssize_t)size;
            }
        }
        if (inject_fault())
            return -1;
    }
    return syscall(SYS_write, descriptor, bytes, size);
}

int fsync(int descriptor)
{
    (void)descriptor; /* data written by a killed process is not lost */
    return inject_fault() ? -1 : 0;
}

int ftruncate(int descriptor, off_t size)
{
    if (fault != DISK_FULL) /* this and removing files work on a full disk */
        inject_fault();
    return (int)syscall(SYS_ftruncate, descriptor, size);
}

int rename(const char *from, const char *to)
{
    return inject_fault() ? -1 : (int)syscall(SYS_rename, from, to);
}

int mkdir(const char *path, mode_t mode)
{
    bool exists = access(path, F_OK) == 0;

    return !exists && inject_fault() ? -1 : (int)syscall(SYS_mkdir, path, mode);
}

int unlink(const char *path)
{
    if (fault != DISK_FULL)
        inject_fault();
    return (int)syscall(SYS_unlink, path);
}

int unlinkat(int folder, const char *path, int flags)
{
    if (fault != DISK_FULL)
        inject_fault();
    return (int)syscall(SYS_unlinkat, folder, path, flags);
}

int rmdir(const char *path)
{
    if (fault != DISK_FULL)
        inject_fault();
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
