#define KS_MUJOCO_PLAIN
#include "mujoco.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#define DEFINE(name) __typeof__(name) *ks_##name;
KS_MUJOCO_NAMES(DEFINE)

static const char *lacking; /* what the library does not have; NULL: nothing */
static char failure[512];   /* why it cannot be loaded; "": it is */

/* The address of a name of the library, into the pointer at `to`, of whatever type. */
static void find(void *library, const char *name, void *to)
{
    void *address = dlsym(library, name);

    if (!address)
        lacking = name;
    memcpy(to, &address, sizeof address);
}

static void load(void)
{
    /* The name is empty where the build found no library; dlopen would take it for ourselves. */
    void *library = dlopen(*KS_LIBMUJOCO ? KS_LIBMUJOCO : "libmujoco.so", RTLD_NOW | RTLD_LOCAL);

#define FIND(name) find(library, #name, &ks_##name);
    if (library) {
        KS_MUJOCO_NAMES(FIND)
    }
    if (!library)
        strncpy(failure, dlerror(), sizeof failure - 1);
    else if (lacking)
        strncpy(failure, lacking, sizeof failure - 1);
}

ks_status ks_mujoco_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    if (failure[0])
        return ks_fail(KS_MISSING,
                       "MuJoCo's library cannot be loaded: %s; 'make deps' installs it, or set "
                       "MUJOCO_DIR and build again",
                       failure);
    return KS_OK;
}
