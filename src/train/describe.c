/* run.json: what the run is, in which state; and the rule by which a folder is given to a run. */
#include "ks/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <hdf5.h>
#include <jansson.h>

#include "ks/blas.h"
#include "ks/file.h"
#include "ks/memory.h"
#include "ks/text.h"

static const char *const states[] = {"running", "stopped", "finished", "failed"};
/* 15 digits survive the way to text and back, so a file's settings compare equal to fresh ones. */
static const size_t DUMP = JSON_INDENT(2) | JSON_REAL_PRECISION(15);

static void hdf5_version(char text[32])
{
    unsigned major = 0, minor = 0, release = 0;

    H5get_libversion(&major, &minor, &release);
    snprintf(text, 32, "%u.%u.%u", major, minor, release);
}

ks_status ks_run_versions(char **text)
{
    char hdf5[32];

    hdf5_version(hdf5);
    return ks_print_string(text, "kappascope %s; %s, kernel %s; HDF5 %s; MuJoCo %s", KS_VERSION,
                           ks_blas_version(), ks_blas_kernel(), hdf5, ks_env_mujoco_version());
}

static json_t *describe_setting(const struct ks_settings *settings, const struct ks_key *key)
{
    char text[KS_VALUE_LENGTH], *end;
    double number;

    ks_settings_print(settings, key, text);
    number = strtod(text, &end);
    if (*end) /* a word */
        return json_string(text);
    return key->type == KS_KEY_NUMBER ? json_real(number) : json_integer((json_int_t)number);
}

static json_t *describe_settings(const struct ks_settings *settings)
{
    json_t *object = json_object();

    for (const struct ks_key *key = ks_keys; key->name; key++)
        json_object_set_new(object, key->name, describe_setting(settings, key));
    return object;
}

/* What makes two runs the same run: all that decides what is computed. */
static json_t *identity(const struct ks_run *r)
{
    json_t *settings = describe_settings(&r->options->settings);

    json_object_del(settings, "threads");
    return json_pack("{s:s, s:s, s:I, s:I, s:o, s:s, s:s}", "env", r->options->env, "architecture",
                     r->name, "seed", (json_int_t)r->options->seed, "steps",
                     (json_int_t)r->options->steps, "settings", settings, "critic", r->critic_text,
                     "actor", r->actor_text);
}

/* Fails unless the file's description of this part of the identity is the run's. */
static ks_status compare(const char *path, const char *key, const json_t *found, const json_t *want)
{
    size_t flags = JSON_ENCODE_ANY | JSON_SORT_KEYS | JSON_REAL_PRECISION(15);
    char *found_text = found ? json_dumps(found, flags) : NULL,
         *want_text = json_dumps(want, flags);
    bool same = found_text && want_text && strcmp(found_text, want_text) == 0;
    ks_status status = KS_OK;

    if (!same)
        status = ks_fail(KS_USAGE,
                         "%s: the folder holds another run: expected %s %.80s, found %.80s", path,
                         key, want_text ? want_text : "?", found_text ? found_text : "none");
    free(found_text);
    free(want_text);
    return status;
}

/* Every setting by itself, so that the message names the one that differs. */
static ks_status compare_all(const char *path, json_t *found, json_t *want)
{
    const char *key;
    json_t *value;

    json_object_foreach(want, key, value)
    {
        json_t *other = json_object_get(found, key);

        if (json_is_object(value))
            KS_TRY(compare_all(path, other, value));
        else
            KS_TRY(compare(path, key, other, value));
    }
    return KS_OK;
}

/* A run whose checkpoints are not all there any more is not finished. */
static ks_status is_finished(const struct ks_run *r, const json_t *found, bool *finished)
{
    const char *state = json_string_value(json_object_get(found, "state"));

    *finished = false;
    return state && strcmp(state, states[KS_FINISHED]) == 0 ? ks_run_find_checkpoints(r, finished)
                                                            : KS_OK;
}

static ks_status check_folder(const struct ks_run *r, const char *path, bool *finished)
{
    ks_status status = KS_OK;
    json_error_t error;
    bool there = ks_text_exists(path);
    json_t *found = there ? json_load_file(path, 0, &error) : NULL, *want = identity(r);

    *finished = false;
    if (!want)
        status = ks_fail(KS_USAGE, "%s: the run's names are no UTF-8 text", path);
    else if (there && !json_is_object(found))
        status = ks_fail(KS_FORMAT, "%s: expected the description of a run, found %s (line %d)",
                         path, found ? "something else" : error.text, error.line);
    else if (there)
        status = compare_all(path, found, want);
    if (status == KS_OK && there)
        status = is_finished(r, found, finished);
    json_decref(found);
    json_decref(want);
    return status;
}

ks_status ks_run_claim(const struct ks_run *r, bool *finished)
{
    ks_status status = KS_OK;
    char *path = NULL;

    KS_TRY(ks_folder_make(r->folder));
    KS_GO(ks_run_path(r, "run.json", &path));
    KS_GO(check_folder(r, path, finished));
done:
    free(path);
    return status;
}

static void now(char text[32])
{
    time_t seconds = time(NULL);
    struct tm utc;

    gmtime_r(&seconds, &utc);
    strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

static json_t *describe_command(const struct ks_train_options *o)
{
    json_t *command = json_array();

    for (int i = 0; i < o->argc; i++)
        json_array_append_new(command, json_string(o->argv[i]));
    return command;
}

static json_t *describe_versions(void)
{
    char hdf5[32];

    hdf5_version(hdf5);
    return json_pack("{s:s, s:s, s:s, s:s, s:s}", "kappascope", KS_VERSION, "blas",
                     ks_blas_version(), "hdf5", hdf5, "mujoco", ks_env_mujoco_version(), "jansson",
                     JANSSON_VERSION);
}

/* Adds what may change without it being another run. */
static void describe_progress(const struct ks_run *r, enum ks_run_state state, const char *reason,
                              json_t *object)
{
    const struct ks_train_options *o = r->options;
    char ended[32];

    now(ended);
    json_object_set_new(object, "settings", describe_settings(&o->settings));
    json_object_set_new(object, "command", describe_command(o));
    json_object_set_new(object, "versions", describe_versions());
    json_object_set_new(object, "blas_kernel", json_string(ks_blas_kernel()));
    json_object_set_new(object, "threads", json_integer(r->agent->config.threads));
    json_object_set_new(object, "mujoco_flags", json_string(ks_env_flags(r->player.env)));
    json_object_set_new(object, "gamma", json_real(r->gamma));
    json_object_set_new(object, "start", json_string(r->started));
    json_object_set_new(object, "end", state == KS_RUNNING ? json_null() : json_string(ended));
    json_object_set_new(object, "state", json_string(states[state]));
    json_object_set_new(object, "reason", reason ? json_string(reason) : json_null());
    json_object_set_new(object, "env_step", json_integer((json_int_t)r->env_step));
    json_object_set_new(object, "update", json_integer((json_int_t)r->agent->updates));
    json_object_set_new(object, "divergences",
                        json_integer((json_int_t)ks_env_divergences(r->player.env)));
    json_object_set_new(object, "evaluation_divergences",
                        json_integer((json_int_t)ks_env_divergences(r->evaluator.env)));
}

ks_status ks_run_describe(const struct ks_run *r, enum ks_run_state state, const char *reason)
{
    ks_status status = KS_OK;
    json_t *object = identity(r);
    char *path = NULL, *text = NULL;

    if (object) {
        describe_progress(r, state, reason, object);
        text = json_dumps(object, DUMP);
    }
    if (!text) {
        status = ks_fail(KS_MEMORY, "out of memory: describing the run");
        goto done;
    }
    KS_GO(ks_run_path(r, "run.json", &path));
    KS_GO(ks_file_write(path, text, strlen(text)));
done:
    json_decref(object);
    free(text);
    free(path);
    return status;
}

void ks_run_start_clock(struct ks_run *r)
{
    now(r->started);
}
