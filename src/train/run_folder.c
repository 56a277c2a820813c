#include "train/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "io/file.h"
#include "io/text.h"
#include "train/checkpoint_files.h"
#include "train/fingerprint.h"
#include "train/run_json.h"

/* A permanent failure would occur again: only a start from the beginning helps, and the user has to
 * ask for that. */
static ks_status check_failure(const struct ks_plan *p, const json_t *found)
{
    const char *state = json_string_value(json_object_get(found, "state"));
    const char *reason = json_string_value(json_object_get(found, "reason"));

    if (!p->options->resume || !state || strcmp(state, ks_run_states[KS_FAILED]) != 0 ||
        json_is_true(json_object_get(found, "resumable")))
        return KS_OK;
    return ks_fail(KS_RUN, "%s: this run has failed: %s; without --resume it starts over",
                   p->folder, reason ? reason : "no reason is known");
}

/* A run that has lost a checkpoint no longer counts as finished. */
static ks_status is_finished(const struct ks_plan *p, const json_t *found, bool *finished)
{
    const char *state = json_string_value(json_object_get(found, "state"));

    *finished = false;
    return state && strcmp(state, ks_run_states[KS_FINISHED]) == 0
               ? ks_checkpoint_files_find(p, finished)
               : KS_OK;
}

/* Every run writes run.json before its first checkpoint, so without run.json a checkpoint was
 * written by something else. */
static ks_status refuse_unknown_checkpoints(const char *folder)
{
    ks_status status = KS_OK;
    DIR *list = opendir(folder);
    struct dirent *entry;

    if (!list)
        return ks_file_fail(errno, folder, "opened");
    while (status == KS_OK && (entry = readdir(list)))
        if (fnmatch("step_*.h5", entry->d_name, 0) == 0)
            status = ks_fail(KS_USAGE,
                             "%s: contains %s but no run.json, so its run is unknown: choose "
                             "another folder",
                             folder, entry->d_name);
    closedir(list);
    return status;
}

static ks_status read_json(const char *path, json_t **object)
{
    json_error_t error;

    *object = json_load_file(path, 0, &error);
    if (!*object)
        return ks_fail(KS_FORMAT, "%s: expected the description of a run, found %s (line %d)", path,
                       error.text, error.line);
    return json_is_object(*object)
               ? KS_OK
               : ks_fail(KS_FORMAT,
                         "%s: expected the description of a run, found a value that is not an "
                         "object",
                         path);
}

static ks_status check_run(const struct ks_plan *p, const char *path, bool *finished)
{
    ks_status status = KS_OK;
    json_t *found = NULL;

    KS_GO(read_json(path, &found));
    KS_GO(ks_fingerprint_compare(p, path, "the folder holds another run", found));
    KS_GO(check_failure(p, found));
    KS_GO(is_finished(p, found, finished));
done:
    json_decref(found);
    return status;
}

ks_status ks_run_claim_folder(struct ks_run *r, bool *finished)
{
    const struct ks_plan *p = &r->plan;
    ks_status status;
    char *path;

    *finished = false;
    KS_TRY(ks_folder_make(p->folder));
    KS_TRY(ks_folder_lock(p->folder, "kappascope-train", &r->lock));
    KS_TRY(ks_plan_path(p, "run.json", &path));
    status = ks_path_exists(path) ? check_run(p, path, finished)
                                  : refuse_unknown_checkpoints(p->folder);
    free(path);
    return status;
}
