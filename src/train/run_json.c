#include "train/run_json.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "config.h"
#include "core/blas.h"
#include "io/file.h"
#include "io/h5.h"
#include "train/fingerprint.h"

const char *const ks_run_states[] = {"running", "stopped", "finished", "failed", "failed"};
static const size_t DUMP = JSON_INDENT(2) | JSON_REAL_PRECISION(15);

void ks_run_time(char text[32])
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
    return json_pack("{s:s, s:s, s:s, s:s, s:s}", "kappascope", KS_VERSION, "blas",
                     ks_blas_version(), "hdf5", ks_h5_version(), "mujoco", ks_env_mujoco_version(),
                     "jansson", JANSSON_VERSION);
}

/* How the run is computed: all that may differ between two starts of the same run. */
static void describe_conditions(const struct ks_run *r, json_t *object)
{
    const struct ks_train_options *o = r->plan.options;

    json_object_set_new(json_object_get(object, "settings"), "threads",
                        json_integer((json_int_t)o->settings.threads));
    json_object_set_new(object, "command", describe_command(o));
    json_object_set_new(object, "versions", describe_versions());
    json_object_set_new(object, "blas_kernel", json_string(ks_blas_kernel()));
    json_object_set_new(object, "processor", json_string(ks_processor_name()));
    json_object_set_new(object, "threads", json_integer(r->learner.agent->config.threads));
    json_object_set_new(object, "mujoco_flags", json_string(ks_env_flags(r->learner.player.env)));
    json_object_set_new(object, "gamma", json_real(r->plan.gamma));
    json_object_set_new(object, "start", json_string(r->started));
    json_object_set_new(object, "resumed", *r->resumed ? json_string(r->resumed) : json_null());
    json_object_set(object, "changes", r->conditions.changes);
}

static void describe_state(const struct ks_run *r, enum ks_run_state state, const char *reason,
                           json_t *object)
{
    const struct ks_learner *l = &r->learner;
    char now[32];

    ks_run_time(now);
    json_object_set_new(object, "end", state == KS_RUNNING ? json_null() : json_string(now));
    json_object_set_new(object, "state", json_string(ks_run_states[state]));
    json_object_set_new(object, "reason", reason ? json_string(reason) : json_null());
    json_object_set_new(object, "resumable",
                        json_boolean(state != KS_FINISHED && state != KS_FAILED_PERMANENTLY));
    json_object_set_new(object, "env_step", json_integer((json_int_t)l->env_step));
    json_object_set_new(object, "update", json_integer((json_int_t)l->agent->updates));
    json_object_set_new(object, "divergences",
                        json_integer((json_int_t)ks_env_divergences(l->player.env)));
    json_object_set_new(object, "evaluation_divergences",
                        json_integer((json_int_t)ks_env_divergences(r->evaluation.player.env)));
}

ks_status ks_run_write_json(const struct ks_run *r, enum ks_run_state state, const char *reason)
{
    ks_status status = KS_OK;
    json_t *object = ks_fingerprint(&r->plan);
    char *path = NULL, *text = NULL;

    if (object) {
        describe_conditions(r, object);
        describe_state(r, state, reason, object);
        text = json_dumps(object, DUMP);
    }
    if (!text) {
        status = ks_fail(KS_MEMORY, "out of memory: describing the run");
        goto done;
    }
    KS_GO(ks_plan_path(&r->plan, "run.json", &path));
    KS_GO(ks_file_write(path, text, strlen(text)));
done:
    json_decref(object);
    free(text);
    free(path);
    return status;
}
