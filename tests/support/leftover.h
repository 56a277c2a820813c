/* The name of a temporary file that a dead process left behind. */
#ifndef KS_TEST_LEFTOVER_H
#define KS_TEST_LEFTOVER_H

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/path.h"
#include "io/file.h"
#include "test.h"

/* Sets host to the part of a temporary file's name that identifies the machine. `path` is a file
 * that can be created. */
static inline void find_host_name(const char *path, char host[9])
{
    struct ks_file file;

    assert_ok(ks_file_create(path, &file));
    assert_int_equal(
        sscanf(ks_path_base(file.temporary), ".kappascope-%8[0-9a-f]-%*d-%*u.tmp", host), 1);
    ks_file_close(&file);
}

/* The id of a process that has ended. */
static inline long dead_process(void)
{
    pid_t child = fork();
    int status;

    if (child == 0)
        _exit(0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return (long)child;
}

/* Sets name to that of a leftover temporary file; `path` as above. */
static inline void name_leftover(const char *path, char name[64])
{
    char host[9];

    find_host_name(path, host);
    snprintf(name, 64, ".kappascope-%s-%ld-3.tmp", host, dead_process());
}

#endif
