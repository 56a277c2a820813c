#include "train/checkpoint_files.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/path.h"
#include "io/file.h"
#include "io/text.h"

ks_status ks_checkpoint_files_find(const struct ks_plan *p, bool *all)
{
    char *path;

    *all = true;
    for (size_t i = 0; i < p->checkpoints.n && *all; i++) {
        KS_TRY(ks_plan_checkpoint_path(p, p->checkpoints.env_step[i], &path));
        *all = ks_path_exists(path);
        free(path);
    }
    return KS_OK;
}

/* Whether the checkpoint has been analyzed: its file may have been removed. */
static ks_status has_spectrum(const char *checkpoint, bool *found)
{
    char *path;

    KS_TRY(ks_print_string(&path, "%.*s.spectrum.h5", (int)ks_path_stem(checkpoint, ".h5"),
                           checkpoint));
    *found = ks_path_exists(path);
    free(path);
    return KS_OK;
}

static ks_status check(const char *path, bool written)
{
    bool analyzed = false;

    if (written && !ks_path_exists(path))
        KS_TRY(has_spectrum(path, &analyzed));
    if (written && !ks_path_exists(path) && !analyzed)
        return ks_fail(KS_FORMAT, "%s: missing; without --resume the run starts over", path);
    if (!written && unlink(path) != 0 && errno != ENOENT)
        return ks_file_fail(errno, path, "removed");
    return KS_OK;
}

ks_status ks_checkpoint_files_check(const struct ks_plan *p, size_t env_step, bool recorded)
{
    ks_status status = KS_OK;
    char *path;

    for (size_t i = 0; i < p->checkpoints.n && status == KS_OK; i++) {
        size_t step = p->checkpoints.env_step[i];

        KS_TRY(ks_plan_checkpoint_path(p, step, &path));
        status = check(path, step < env_step || (step == env_step && recorded));
        free(path);
    }
    return status;
}
