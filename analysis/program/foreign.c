#include "program/foreign.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *const importable[] = {".safetensors", ".npz", ".msgpack", NULL};
static const char *const pickled[] = {".pt", ".pth", ".pkl", ".ckpt", NULL};

static bool ends_in(const char *path, const char *const *endings)
{
    const size_t length = strlen(path);

    for (; *endings; endings++)
        if (length > strlen(*endings) && strcmp(path + length - strlen(*endings), *endings) == 0)
            return true;
    return false;
}

/* Whether it can be opened and does not start as HDF5 files do. */
static bool exists_otherwise(const char *path)
{
    static const char SIGNATURE[] = "\x89HDF";
    FILE *file = fopen(path, "rb");
    char start[sizeof SIGNATURE - 1] = "";
    bool other;

    if (!file)
        return false;
    other = fread(start, 1, sizeof start, file) < sizeof start ||
            memcmp(start, SIGNATURE, sizeof start) != 0;
    fclose(file);
    return other;
}

ks_status ks_foreign_check(const char *path)
{
    if (ends_in(path, importable) && exists_otherwise(path))
        return ks_fail(KS_FORMAT,
                       "%s: expected a checkpoint, found weights of another program: make a "
                       "checkpoint of them by 'kappascope import' (see kappascope import --help)",
                       path);
    if (ends_in(path, pickled) && exists_otherwise(path))
        return ks_fail(KS_FORMAT,
                       "%s: expected a checkpoint, found a Python pickle, which only Python can "
                       "read: save its arrays as .safetensors or .npz, and make a checkpoint of "
                       "them by 'kappascope import' (see kappascope import --help)",
                       path);
    return KS_OK;
}
