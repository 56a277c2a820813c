#include "train/conditions.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "config.h"
#include "core/blas.h"
#include "env/env.h"
#include "train/fingerprint.h"

/* Only recorded: OpenBLAS selects the same kernel on processors of several names. */
static const char PROCESSOR[] = "processor";

ks_status ks_conditions_init(int threads, const char *mujoco_flags, struct ks_conditions *c)
{
    c->changes = json_array();
    c->now = json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:s}", "threads", threads, "kappascope",
                       KS_VERSION, "blas", ks_blas_version(), "blas_kernel", ks_blas_kernel(),
                       "mujoco", ks_env_mujoco_version(), "mujoco_flags", mujoco_flags, PROCESSOR,
                       ks_processor_name());
    return c->now && c->changes
               ? KS_OK
               : ks_fail(KS_MEMORY, "out of memory: describing the conditions of a run");
}

void ks_conditions_free(struct ks_conditions *c)
{
    json_decref(c->now);
    json_decref(c->changes);
}

ks_status ks_conditions_compare(const struct ks_conditions *c, const char *path,
                                const json_t *found)
{
    const char *name;
    char text[1024];
    json_t *value;

    json_object_foreach(c->now, name, value)
    {
        ks_status status;

        if (strcmp(name, PROCESSOR) == 0)
            continue;
        status = ks_fingerprint_compare_value(path, "--resume needs what the run was started with",
                                              name, json_object_get(found, name), value);
        if (status == KS_OK)
            continue;
        snprintf(text, sizeof text, "%s", ks_error_text());
        return ks_fail(status, "%s; --resume=any accepts that and notes it in run.json", text);
    }
    return KS_OK;
}

ks_status ks_conditions_inherit(struct ks_conditions *c, const json_t *found)
{
    json_t *earlier = json_object_get(found, "changes");

    json_decref(c->changes);
    c->changes = json_is_array(earlier) ? json_incref(earlier) : json_array();
    return c->changes ? KS_OK : ks_fail(KS_MEMORY, "out of memory: reading changed conditions");
}

/* A condition that an older resume point does not contain is not known to have changed. */
ks_status ks_conditions_record(struct ks_conditions *c, const json_t *found, size_t env_step)
{
    const char *name;
    json_t *value;

    json_object_foreach(c->now, name, value)
    {
        json_t *before = json_object_get(found, name), *change;

        if (!before || json_equal(before, value))
            continue;
        change = json_pack("{s:I, s:s, s:O, s:O}", "env_step", (json_int_t)env_step, "what", name,
                           "from", before, "to", value);
        if (json_array_append_new(c->changes, change) != 0)
            return ks_fail(KS_MEMORY, "out of memory: recording changed conditions");
    }
    return KS_OK;
}

size_t ks_conditions_count_changes(const struct ks_conditions *c)
{
    return json_array_size(c->changes);
}
