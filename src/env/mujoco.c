#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "env/mujoco.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "config.h"
#include "core/path.h"

struct ks_mujoco ks_mj;

static const char *missing; /* a name that the library does not have; NULL: none */
static char failure[512];   /* why it cannot be loaded; "" if it is */
static bool no_room;        /* it does not fit into the address space */

/* Stores the address of a symbol in the pointer at `to`, whatever its type. */
static void find(void *library, const char *name, void *to)
{
    void *address = dlsym(library, name);

    if (!address)
        missing = name;
    memcpy(to, &address, sizeof address);
}

/* Whether the process cannot map as many bytes as the file has. The loader's message does not
 * distinguish that from a damaged file. */
static bool is_too_large(const char *path)
{
    struct stat file;
    void *room;

    if (stat(path, &file) != 0 || file.st_size <= 0)
        return false;
    room = mmap(NULL, (size_t)file.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0);
    if (room == MAP_FAILED)
        return true;
    munmap(room, (size_t)file.st_size);
    return false;
}

/* Looks up everything in the library at `path`. */
static void load_from(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

#define FIND(prefix, name) find(library, #prefix #name, &ks_mj.name);
    if (library) {
        KS_MUJOCO_NAMES(FIND)
    }
    if (!library)
        strncpy(failure, dlerror(), sizeof failure - 1);
    else if (missing)
        snprintf(failure, sizeof failure, "%s: it does not have %s", path, missing);
    /* "cannot allocate memory" of the loader, or "Cannot allocate memory" of the system */
    no_room = !library && (strstr(failure, "llocate memory") || is_too_large(path));
}

/* The library installed with the program, or the one that the build used. */
static void load(void)
{
    char *installed = NULL;

    if (ks_installed_find("../lib/kappascope/libmujoco.so", &installed) == KS_OK && installed)
        load_from(installed);
    else /* the name is empty if the build found no library; dlopen("") would open this program */
        load_from(*KS_LIBMUJOCO ? KS_LIBMUJOCO : "libmujoco.so");
    free(installed);
}

ks_status ks_mujoco_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    if (no_room)
        return ks_fail(KS_MEMORY,
                       "MuJoCo's library cannot be loaded: %s: the limit of this process's address "
                       "space (ulimit -v) leaves too little room for it",
                       failure);
    if (failure[0])
        return ks_fail(KS_MISSING,
                       "MuJoCo's library cannot be loaded: %s; 'make deps' installs it, or set "
                       "MUJOCO_DIR and build again",
                       failure);
    return KS_OK;
}
