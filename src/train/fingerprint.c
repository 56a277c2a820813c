/* A resume point's key: what the run is, and the conditions under which it was computed. Conditions
 * may change how numbers are rounded, though not what they are: --resume=exact refuses a point of
 * other conditions, --resume=any goes on and notes what has changed. */
#include "train/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "core/blas.h"
#include "core/memory.h"
#include "core/processor.h"

static const size_t DUMP = JSON_INDENT(2) | JSON_REAL_PRECISION(15);

/* The processor's name is noted, but exact resuming does not depend on it: on processors of several
 * names OpenBLAS chooses the same kernel. */
static const char PROCESSOR[] = "processor";

static json_t *describe_conditions(const struct ks_run *r)
{
    return json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:s}", "threads", r->agent->config.threads,
                     "kappascope", KS_VERSION, "blas", ks_blas_version(), "blas_kernel",
                     ks_blas_kernel(), "mujoco", ks_env_mujoco_version(), "mujoco_flags",
                     ks_env_flags(r->player.env), PROCESSOR, ks_processor_name());
}

ks_status ks_run_fingerprint(const struct ks_run *r, char **key)
{
    json_t *object = ks_run_identity(r), *conditions = describe_conditions(r);
    char *text = NULL;
    ks_status status;

    if (object && conditions && json_object_update(object, conditions) == 0 &&
        json_object_set_new(object, "changes", ks_run_changes(r)) == 0)
        text = json_dumps(object, DUMP);
    status = text ? ks_copy_string(text, key)
                  : ks_fail(KS_USAGE, "%s: the run's names are no UTF-8 text", r->options->out);
    json_decref(object);
    json_decref(conditions);
    free(text);
    return status;
}

static const char other_point[] = "--resume needs what the run was started with";

ks_status ks_run_compare_fingerprint(const struct ks_run *r, const char *path, const char *key)
{
    json_t *found = json_loads(key, 0, NULL);
    ks_status status = found ? ks_run_compare_identity(r, path, other_point, found)
                             : ks_fail(KS_FORMAT, "%s: its key is no JSON", path);

    json_decref(found);
    return status;
}

/* Fails on the first condition that differs, and names the option that would accept it. */
static ks_status compare_all(const char *path, const json_t *found, json_t *want)
{
    const char *name;
    char text[1024];
    json_t *value;

    json_object_foreach(want, name, value)
    {
        ks_status status;

        if (strcmp(name, PROCESSOR) == 0)
            continue;
        status = ks_run_compare_value(path, other_point, name, json_object_get(found, name), value);
        if (status == KS_OK)
            continue;
        snprintf(text, sizeof text, "%s", ks_error_text());
        return ks_fail(status, "%s; --resume=any accepts that and notes it in run.json", text);
    }
    return KS_OK;
}

ks_status ks_run_compare_conditions(const struct ks_run *r, const char *path, const char *key)
{
    json_t *found = json_loads(key, 0, NULL), *want = describe_conditions(r);
    ks_status status = KS_OK;

    if (!want)
        status = ks_fail(KS_MEMORY, "out of memory: describing the conditions of a run");
    else if (r->options->resume != KS_RESUME_ANY)
        status = compare_all(path, found, want);
    json_decref(found);
    json_decref(want);
    return status;
}

/* Appends to `changes` in which conditions the run differs from those that were found. What an
 * older point does not name is not known to differ. */
static bool add_changes(const struct ks_run *r, const json_t *found, json_t *changes)
{
    json_t *want = describe_conditions(r), *value;
    bool done = want != NULL;
    const char *name;

    json_object_foreach(want, name, value)
    {
        json_t *before = json_object_get(found, name);

        if (before && !json_equal(before, value))
            done = json_array_append_new(changes, json_pack("{s:I, s:s, s:O, s:O}", "env_step",
                                                            (json_int_t)r->env_step, "what", name,
                                                            "from", before, "to", value)) == 0 &&
                   done;
    }
    json_decref(want);
    return done;
}

ks_status ks_run_note_changes(struct ks_run *r, const char *key)
{
    json_t *found = json_loads(key, 0, NULL), *earlier = json_object_get(found, "changes");
    json_t *changes = json_is_array(earlier) ? json_incref(earlier) : json_array();
    bool done = changes != NULL;

    if (done && r->options->resume == KS_RESUME_ANY)
        done = add_changes(r, found, changes);
    json_decref(found);
    json_decref(r->changes);
    r->changes = changes;
    return done ? KS_OK : ks_fail(KS_MEMORY, "out of memory: noting what has changed");
}

json_t *ks_run_changes(const struct ks_run *r)
{
    return r->changes ? json_incref(r->changes) : json_array();
}

size_t ks_run_count_changes(const struct ks_run *r)
{
    return json_array_size(r->changes);
}
