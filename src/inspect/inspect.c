/* Finds out which kind of file it is, and calls the function for that kind. */
#include "inspect/inspect.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/path.h"
#include "io/h5.h"
#include "io/scout.h"

static const struct kind {
    const char *format; /* the root attribute of an HDF5 file */
    ks_status (*inspect)(const char *path, FILE *out);
} kinds[] = {{"kappascope-checkpoint", ks_inspect_checkpoint},
             {"kappascope-spectrum", ks_inspect_spectrum},
             {"kappascope-vector", ks_inspect_vectors}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static ks_status inspect_h5(const char *path, FILE *out)
{
    const struct kind *found = NULL;
    struct ks_h5 *h5 = NULL;
    char *format = NULL;
    ks_status status;

    KS_TRY(ks_scout(path, 0));
    KS_TRY(ks_h5_open(path, NULL, &h5));
    status = ks_h5_read_string(h5, "/", "format", &format);
    ks_h5_close(h5);
    KS_TRY(status);
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(format, kinds[i].format) == 0)
            found = &kinds[i];
    if (!found)
        status = ks_fail(KS_FORMAT,
                         "%s: /: attribute format: expected kappascope-checkpoint, "
                         "kappascope-spectrum or kappascope-vector, found '%s'",
                         path, format);
    free(format);
    return found ? found->inspect(path, out) : status;
}

/* The first bytes of the file; fewer if it is shorter. */
static ks_status read_start(const char *path, char start[16], size_t *length)
{
    FILE *file = fopen(path, "rb");

    if (!file)
        return ks_fail(KS_IO, "%s: %s", path, strerror(errno));
    *length = fread(start, 1, 16, file);
    fclose(file);
    return KS_OK;
}

static ks_status inspect_file(const char *path, FILE *out)
{
    static const char H5[] = "\x89HDF\r\n\x1a\n";
    char start[16];
    size_t length = 0;

    if (ks_path_ends(path, ".study"))
        return ks_inspect_study(path, out);
    KS_TRY(read_start(path, start, &length));
    if (ks_path_ends(path, ".h5") || (length >= 8 && memcmp(start, H5, 8) == 0))
        return inspect_h5(path, out);
    return ks_fail(KS_FORMAT,
                   "%s: expected a checkpoint, spectrum or vector file (HDF5), an .arch "
                   "file, a .study file or a study's folder; found none of them",
                   path);
}

ks_status ks_inspect(const char *path, size_t inputs, FILE *out)
{
    struct stat info;

    if (stat(path, &info) != 0)
        return ks_fail(KS_IO, "%s: %s", path, strerror(errno));
    if (inputs > 0 && !ks_path_ends(path, ".arch"))
        return ks_fail(KS_USAGE, "--inputs: expected an architecture file (.arch), found %s", path);
    if (S_ISDIR(info.st_mode))
        return ks_inspect_study(path, out);
    if (!S_ISREG(info.st_mode))
        return ks_fail(KS_IO, "%s: expected a regular file or a study's folder", path);
    if (ks_path_ends(path, ".arch"))
        return ks_inspect_architecture(path, inputs, out);
    return inspect_file(path, out);
}
