/* What a run is, and the rule by which a folder, or a resume point, is given to it. */
#include "ks/run.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "ks/blas.h"
#include "ks/file.h"
#include "ks/memory.h"
#include "ks/text.h"

/* 15 digits survive the way to text and back, so a file's settings compare equal to fresh ones. */
static const size_t DUMP = JSON_INDENT(2) | JSON_REAL_PRECISION(15);

static json_t *describe_setting(const struct ks_settings *settings, const struct ks_key *key)
{
    char text[KS_VALUE_LENGTH];
    double number;

    if (ks_settings_number(settings, key, &number))
        return key->type == KS_KEY_NUMBER ? json_real(number) : json_integer((json_int_t)number);
    ks_settings_print(settings, key, text);
    return json_string(text);
}

static json_t *describe_settings(const struct ks_settings *settings)
{
    json_t *object = json_object();

    for (const struct ks_key *key = ks_keys; key->name; key++)
        json_object_set_new(object, key->name, describe_setting(settings, key));
    return object;
}

/* What makes two runs the same run: all that decides what is computed. */
json_t *ks_run_identity(const struct ks_run *r)
{
    json_t *settings = describe_settings(&r->options->settings);

    json_object_del(settings, "threads");
    return json_pack("{s:s, s:s, s:I, s:I, s:o, s:s, s:s}", "env", r->options->env, "architecture",
                     r->name, "seed", (json_int_t)r->options->seed, "steps",
                     (json_int_t)r->options->steps, "settings", settings, "critic", r->critic_text,
                     "actor", r->actor_text);
}

static const char other_run[] = "the folder holds another run",
                  other_point[] = "--resume needs what the run was started with";

/* Fails unless the file's description of this part is the run's; `what` says what it means. */
static ks_status compare(const char *path, const char *what, const char *key, const json_t *found,
                         const json_t *want)
{
    size_t flags = JSON_ENCODE_ANY | JSON_SORT_KEYS | JSON_REAL_PRECISION(15);
    char *found_text = found ? json_dumps(found, flags) : NULL,
         *want_text = json_dumps(want, flags);
    bool same = found_text && want_text && strcmp(found_text, want_text) == 0;
    ks_status status = KS_OK;

    if (!same)
        status = ks_fail(KS_USAGE, "%s: %s: expected %s %.80s, found %.80s", path, what, key,
                         want_text ? want_text : "?", found_text ? found_text : "none");
    free(found_text);
    free(want_text);
    return status;
}

/* Every setting by itself, so that the message names the one that differs. */
static ks_status compare_all(const char *path, const char *what, json_t *found, json_t *want)
{
    const char *key;
    json_t *value;

    json_object_foreach(want, key, value)
    {
        json_t *other = json_object_get(found, key);

        if (json_is_object(value))
            KS_TRY(compare_all(path, what, other, value));
        else
            KS_TRY(compare(path, what, key, other, value));
    }
    return KS_OK;
}

/* The identity, and what may round differently. */
static json_t *describe_key(const struct ks_run *r)
{
    json_t *object = ks_run_identity(r);

    if (!object)
        return NULL;
    json_object_set_new(object, "threads", json_integer(r->agent->config.threads));
    json_object_set_new(object, "kappascope", json_string(KS_VERSION));
    json_object_set_new(object, "blas", json_string(ks_blas_version()));
    json_object_set_new(object, "blas_kernel", json_string(ks_blas_kernel()));
    json_object_set_new(object, "mujoco", json_string(ks_env_mujoco_version()));
    json_object_set_new(object, "mujoco_flags", json_string(ks_env_flags(r->player.env)));
    return object;
}

ks_status ks_run_key(const struct ks_run *r, char **key)
{
    json_t *object = describe_key(r);
    char *text = object ? json_dumps(object, DUMP) : NULL;
    ks_status status = text ? ks_copy_string(text, key)
                            : ks_fail(KS_USAGE, "%s: the run's names are no UTF-8 text",
                                      r->options->out);

    json_decref(object);
    free(text);
    return status;
}

ks_status ks_run_compare_key(const struct ks_run *r, const char *path, const char *key)
{
    json_t *found = json_loads(key, 0, NULL), *want = describe_key(r);
    ks_status status = found && want ? compare_all(path, other_point, found, want)
                                     : ks_fail(KS_FORMAT, "%s: its key is no JSON", path);

    json_decref(found);
    json_decref(want);
    return status;
}

/* What failed for good would fail again: only a new start is of use, and the user has to want it.
 */
static ks_status check_failure(const struct ks_run *r, const json_t *found)
{
    const char *state = json_string_value(json_object_get(found, "state"));
    const char *reason = json_string_value(json_object_get(found, "reason"));

    if (!r->options->resume || !state || strcmp(state, ks_run_states[KS_FAILED]) != 0 ||
        json_is_true(json_object_get(found, "resumable")))
        return KS_OK;
    return ks_fail(KS_RUN, "%s: this run has failed: %s; without --resume it starts over",
                   r->folder, reason ? reason : "no reason is known");
}

/* A run whose checkpoints are not all there any more is not finished. */
static ks_status is_finished(const struct ks_run *r, const json_t *found, bool *finished)
{
    const char *state = json_string_value(json_object_get(found, "state"));

    *finished = false;
    return state && strcmp(state, ks_run_states[KS_FINISHED]) == 0
               ? ks_run_find_checkpoints(r, finished)
               : KS_OK;
}

/* Every run writes run.json before its first checkpoint: those without it are somebody else's. */
static ks_status refuse_strangers(const struct ks_run *r)
{
    ks_status status = KS_OK;
    DIR *list = opendir(r->folder);
    struct dirent *entry;

    if (!list)
        return ks_file_fail(errno, r->folder, "opened");
    while (status == KS_OK && (entry = readdir(list)))
        if (fnmatch("step_*.h5", entry->d_name, 0) == 0)
            status = ks_fail(KS_USAGE,
                             "%s: holds %s and no run.json that says of which run: choose another "
                             "folder",
                             r->folder, entry->d_name);
    closedir(list);
    return status;
}

static ks_status check_folder(const struct ks_run *r, const char *path, bool *finished)
{
    ks_status status = KS_OK;
    json_error_t error;
    bool there = ks_text_exists(path);
    json_t *found = there ? json_load_file(path, 0, &error) : NULL, *want = ks_run_identity(r);

    *finished = false;
    if (!want)
        status = ks_fail(KS_USAGE, "%s: the run's names are no UTF-8 text", path);
    else if (!there)
        status = refuse_strangers(r);
    else if (!found)
        status = ks_fail(KS_FORMAT, "%s: expected the description of a run, found %s (line %d)",
                         path, error.text, error.line);
    else if (!json_is_object(found))
        status = ks_fail(KS_FORMAT, "%s: expected the description of a run, found another value",
                         path);
    else
        status = compare_all(path, other_run, found, want);
    if (status == KS_OK && there)
        status = check_failure(r, found);
    if (status == KS_OK && there)
        status = is_finished(r, found, finished);
    json_decref(found);
    json_decref(want);
    return status;
}

ks_status ks_run_claim(struct ks_run *r, bool *finished)
{
    ks_status status = KS_OK;
    char *path = NULL;

    KS_TRY(ks_folder_make(r->folder));
    KS_TRY(ks_folder_lock(r->folder, "kappascope-train", &r->lock));
    KS_GO(ks_run_path(r, "run.json", &path));
    KS_GO(check_folder(r, path, finished));
done:
    free(path);
    return status;
}
