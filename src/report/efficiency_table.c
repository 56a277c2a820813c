/* efficiency.csv: what an update costs, and the last return.
 *
 * The arithmetic is that of the matrix products in one forward and one backward pass of all
 * critics, and of the actor, over a minibatch: for a kernel with k numbers and R rows, 2 k R
 * operations each for the output, for the gradient of the kernel and, except in the first layer,
 * for the gradient of its input. R is `batch`, or for critics with batch normalization 2 `batch`,
 * as these see this and the next transition in one batch. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "core/memory.h"
#include "env/env.h"
#include "net/arch.h"
#include "report/plot_tables.h"
#include "results/progress.h"
#include "train/architecture.h"

/* Of one network, the arithmetic for one row; or of all critics, for a minibatch. NaN: unknown. */
struct cost {
    double parameters, flops;
    bool joint;
};
struct costs {
    struct cost critics, actor;
};

static struct cost cost_of(const struct KS(arch) *arch)
{
    double sum = 0;
    bool first = true;

    for (size_t i = 0; i < arch->n_layers; i++)
        for (size_t k = 0; k < KS_LAYER_ARRAYS; k++) {
            const struct ks_array *a = &arch->layer[i].param[k];

            if (a->rows == 0)
                continue;
            sum += (first ? 4 : 6) * (double)KS(array_size)(a);
            first = false;
        }
    return (struct cost){(double)arch->parameters, sum, arch->joint};
}

/* The cost of the network that run.json describes under this name. */
static ks_status read_network(const json_t *json, const char *name, const char *path, size_t width,
                              struct cost *cost)
{
    const char *text = json_string_value(json_object_get(json, name));
    struct KS(arch) *arch;

    if (!text)
        return KS_OK;
    KS_TRY(KS(arch_parse)(text, path, width, &arch));
    *cost = cost_of(arch);
    KS(arch_free)(arch);
    return KS_OK;
}

/* The costs of a run's networks, by the descriptions in its run.json and the task's widths. */
static ks_status read_costs(const struct ks_results *r, const struct ks_result *run,
                            struct costs *costs)
{
    const struct ks_study_architecture *of = &r->study->architecture[run->architecture];
    const double critics = (double)of->settings.critics, batch = (double)of->settings.batch;
    struct ks_env_about about;
    struct ks_widths widths;
    char *folder = NULL, *path = NULL;
    json_t *json = NULL;
    ks_status status = KS_OK;

    *costs = (struct costs){{NAN, NAN, false}, {NAN, NAN, false}};
    if (!ks_env_about_task(r->study->env, &about))
        return KS_OK;
    status = ks_architecture_widths(of->argument, about.observations, about.actions, &widths);
    if (status == KS_IO)
        return KS_OK; /* a system's file is not where the study had it: the cost is unknown */
    KS_TRY(status);
    KS_GO(ks_study_run_folder(r->study, run->architecture, run->seed, &folder));
    KS_GO(ks_print_string(&path, "%s/%s/run.json", r->dir, folder));
    json = json_load_file(path, 0, NULL);
    KS_GO(read_network(json, "critic", path, widths.critic, &costs->critics));
    KS_GO(read_network(json, "actor", path, widths.actor, &costs->actor));
    costs->critics.parameters *= critics;
    costs->critics.flops *= critics * batch * (costs->critics.joint ? 2 : 1);
    costs->actor.flops *= batch;
done:
    json_decref(json);
    free(folder);
    free(path);
    return status;
}

/* Updates per second of the time in updates, over the run up to the last step of the study:
 * the updates between two rows took so many seconds as their rate says, and these times add up. */
static ks_status read_speed(const struct ks_results *r, const struct ks_result *run, double *speed)
{
    static const char *const columns[] = {"update", "updates_per_second"};
    struct ks_run_log progress = {0};
    double updates = 0, seconds = 0, before = 0;

    KS_TRY(ks_run_log_read(r, run, 2, columns, &progress));
    for (size_t j = 0; j < progress.steps; j++) {
        double update = progress.value[j], rate = progress.value[progress.steps + j];

        if (update > before && rate > 0) {
            updates += update - before;
            seconds += (update - before) / rate;
        }
        before = update;
    }
    *speed = seconds > 0 ? updates / seconds : NAN;
    ks_run_log_free(&progress);
    return KS_OK;
}

static ks_status write_architecture(const struct ks_tables *t, size_t row, FILE *out)
{
    const struct ks_result *run[KS_STUDY_SEEDS];
    size_t n = ks_results_runs(t->r, t->table->row[row].architecture, run);
    struct ks_series speed = {0};
    struct costs costs;
    ks_status status = KS_OK;

    KS_GO(read_costs(t->r, run[0], &costs));
    KS_GO(ks_series_new(n, 1, &speed));
    for (size_t i = 0; i < n; i++)
        KS_GO(read_speed(t->r, run[i], &speed.value[i]));
    KS_GO(ks_series_aggregate(&speed, t->resamples));
    ks_table_look(t, row, out);
    ks_table_number(out, costs.critics.parameters);
    ks_table_number(out, costs.critics.flops);
    ks_table_number(out, costs.actor.parameters);
    ks_table_number(out, costs.actor.flops);
    ks_table_estimate(out, &speed.curve[0]);
    ks_table_estimate(out, &t->table->row[row].value[KS_RETURN]);
    putc('\n', out);
done:
    ks_series_free(&speed);
    return status;
}

ks_status ks_efficiency_write(const struct ks_tables *t, FILE *out)
{
    for (size_t i = 0; i < t->table->n_rows; i++)
        KS_TRY(write_architecture(t, i, out));
    return KS_OK;
}
