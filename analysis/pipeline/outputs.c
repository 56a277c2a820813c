#include "pipeline/pipeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/memory.h"
#include "io/file.h"

static const char SUFFIX[] = ".h5", OUTPUT_SUFFIX[] = ".spectrum.h5";

static ks_status name_output(const char *checkpoint, const char *folder, const char *name,
                             char **output)
{
    const char *base = folder ? ks_path_base(checkpoint) : checkpoint;

    return ks_print_string(output, "%s%s%.*s%s%s%s", folder ? folder : "", folder ? "/" : "",
                           (int)ks_path_stem(base, SUFFIX), base, name ? "." : "", name ? name : "",
                           OUTPUT_SUFFIX);
}

/* stat() of the folder that holds the file; false if that fails. */
static bool stat_folder(const char *path, struct stat *info)
{
    KS_OWNED char *folder = NULL;
    size_t length = (size_t)(ks_path_base(path) - path);

    if (length == 0)
        return stat(".", info) == 0;
    return ks_print_string(&folder, "%.*s", (int)length, path) == KS_OK && stat(folder, info) == 0;
}

bool ks_output_same(const char *a, const char *b)
{
    struct stat x, y;

    if (strcmp(ks_path_base(a), ks_path_base(b)) != 0)
        return false;
    return strcmp(a, b) == 0 || (stat_folder(a, &x) && stat_folder(b, &y) && x.st_dev == y.st_dev &&
                                 x.st_ino == y.st_ino);
}

static ks_status refuse_doubles(size_t n, const char *const *checkpoints, char *const *outputs)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            if (ks_output_same(outputs[i], outputs[j]))
                return ks_fail(KS_USAGE, "%s and %s: the spectra of both would be %s",
                               checkpoints[j], checkpoints[i], outputs[i]);
    return KS_OK;
}

/* Whether the output would replace the input, under any path or link. */
static bool replaces(const char *output, const char *input)
{
    struct stat out, in;

    return ks_output_same(output, input) || (stat(output, &out) == 0 && stat(input, &in) == 0 &&
                                             out.st_dev == in.st_dev && out.st_ino == in.st_ino);
}

static ks_status refuse_inputs(size_t n, const char *const *checkpoints, char *const *outputs)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            if (replaces(outputs[i], checkpoints[j]))
                return ks_fail(KS_USAGE,
                               "%s: the spectrum of %s would replace this input (--out DIR writes "
                               "spectra to another folder)",
                               checkpoints[j], checkpoints[i]);
    return KS_OK;
}

static ks_status make_folder(const char *folder)
{
    struct stat info;

    if (mkdir(folder, 0777) == 0)
        return KS_OK;
    if (errno != EEXIST)
        return ks_fail(ks_file_status(errno), "--out %s: cannot be created: %s", folder,
                       strerror(errno));
    if (stat(folder, &info) != 0)
        return ks_fail(ks_file_status(errno), "--out %s: %s", folder, strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return ks_fail(KS_IO, "--out %s: exists and is not a directory", folder);
    return KS_OK;
}

ks_status ks_outputs_new(size_t n, const char *const *checkpoints, const char *folder,
                         const char *name, char ***outputs)
{
    ks_status status = KS_OK;
    char **names = NULL;

    *outputs = NULL;
    KS_GO(ks_alloc(n, sizeof *names, &names));
    for (size_t i = 0; i < n; i++)
        KS_GO(name_output(checkpoints[i], folder, name, &names[i]));
    if (folder && n > 0)
        KS_GO(make_folder(folder));
    KS_GO(refuse_doubles(n, checkpoints, names));
    KS_GO(refuse_inputs(n, checkpoints, names));
    if (folder && n > 0)
        KS_GO(ks_output_check(names[0], NULL));
    *outputs = names, names = NULL;
done:
    ks_outputs_free(n, names);
    return status;
}

void ks_outputs_free(size_t n, char **outputs)
{
    for (size_t i = 0; outputs && i < n; i++)
        free(outputs[i]);
    free(outputs);
}

ks_status ks_output_check(const char *output, const char *input)
{
    KS_CLEARED_BY(ks_file_close) struct ks_file file = {.descriptor = -1};

    if (input && replaces(output, input))
        return ks_fail(KS_USAGE, "%s: expected another file for the output, found the input %s",
                       output, input);
    KS_TRY(ks_file_create(output, &file));
    ks_folder_sweep(file.folder); /* a failure does no harm: leftovers only take space */
    return KS_OK;
}
