/* What a run is, and the rule by which a folder, or a resume point, is given to it. */
#include "train/run.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "io/file.h"
#include "io/text.h"

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

ks_status ks_run_compare_value(const char *path, const char *what, const char *key,
                               const json_t *found, const json_t *want)
{
    /* 15 digits survive the way to text and back: a file's settings compare equal to fresh ones. */
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
            KS_TRY(ks_run_compare_value(path, what, key, other, value));
    }
    return KS_OK;
}

/* Settings that the description lacks, because an older version wrote it, get their defaults. */
static void fill_defaults(json_t *settings)
{
    struct ks_settings defaults;

    ks_settings_start(&defaults);
    for (const struct ks_key *key = ks_keys; key->name; key++)
        if (!json_object_get(settings, key->name))
            json_object_set_new(settings, key->name, describe_setting(&defaults, key));
}

static bool is_setting(const char *name)
{
    for (const struct ks_key *key = ks_keys; key->name; key++)
        if (strcmp(key->name, name) == 0)
            return true;
    return false;
}

/* A setting of a newer version: what it changes is not known here. */
static ks_status refuse_unknown(const char *path, const char *what, json_t *settings)
{
    const char *name;
    json_t *value;

    json_object_foreach(settings, name, value) if (!is_setting(name)) return ks_fail(
        KS_USAGE, "%s: %s: this version of the program has no setting '%.80s'", path, what, name);
    return KS_OK;
}

ks_status ks_run_compare_identity(const struct ks_run *r, const char *path, const char *what,
                                  json_t *found)
{
    json_t *want = ks_run_identity(r), *settings = json_object_get(found, "settings");
    ks_status status = want ? KS_OK
                            : ks_fail(KS_USAGE, "%s: the run's names are no UTF-8 text", path);

    if (status == KS_OK)
        status = refuse_unknown(path, what, settings);
    if (status == KS_OK && json_is_object(settings))
        fill_defaults(settings);
    if (status == KS_OK)
        status = compare_all(path, what, found, want);
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
    bool there = ks_path_exists(path);
    json_t *found = there ? json_load_file(path, 0, &error) : NULL;

    *finished = false;
    if (!there)
        status = refuse_strangers(r);
    else if (!found)
        status = ks_fail(KS_FORMAT, "%s: expected the description of a run, found %s (line %d)",
                         path, error.text, error.line);
    else if (!json_is_object(found))
        status = ks_fail(KS_FORMAT, "%s: expected the description of a run, found another value",
                         path);
    else
        status = ks_run_compare_identity(r, path, "the folder holds another run", found);
    if (status == KS_OK && there)
        status = check_failure(r, found);
    if (status == KS_OK && there)
        status = is_finished(r, found, finished);
    json_decref(found);
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
