/* The plan of an audit, and the time that it takes. */
#include <stdio.h>

#include "audit/plan.h"
#include "core/process.h"
#include "core/progress.h"

/* Rows of all minibatches times parameters of all critics, beyond which a default audit uses fewer
 * minibatches: three times that of 50 minibatches of 256 rows and 100,000 parameters. */
static const double MOST_WORK = 4e9;
enum { FEWEST = 4 };

size_t ks_audit_minibatches(size_t stored, size_t rows, size_t parameters)
{
    const double most = MOST_WORK / ((double)rows * (double)parameters);
    const size_t n = most < FEWEST ? FEWEST : most < (double)stored ? (size_t)most : stored;

    return n < stored ? n : stored;
}

/* --- the tasks --- */

struct size {
    const char *operator_name;
    size_t order, thorough; /* Lanczos steps */
};

/* The Hessian has the statistics that are compared, so it has the most steps. Of the other spectra
 * the ends are needed, which converge first. */
static const struct size sizes[KS_AUDIT_TASKS] = {
    [KS_AUDIT_HESSIAN] = {"hessian", 60, 90},
    [KS_AUDIT_HALF] = {"hessian", 40, 90},
    [KS_AUDIT_GGN] = {"ggn", 20, 90},
    [KS_AUDIT_RESIDUAL] = {"residual", 20, 90},
    [KS_AUDIT_PRECONDITIONED] = {"preconditioned", 20, 90},
    [KS_AUDIT_LAYERS] = {"hessian", 10, 30}};

struct ks_audit_task ks_audit_task(const struct ks_audit *a, size_t which)
{
    const struct ks_audit_options *o = a->options;
    const size_t n = a->summary.minibatches;
    const size_t asked = which == KS_AUDIT_LAYERS ? o->layer_order : o->order;

    return (struct ks_audit_task){.operator_name = sizes[which].operator_name,
                                  .order = asked != KS_AUDIT_PLANNED ? asked
                                           : o->thorough             ? sizes[which].thorough
                                                                     : sizes[which].order,
                                  .batches = which == KS_AUDIT_HALF ? n / 2 : n,
                                  .gradient = which == KS_AUDIT_HESSIAN ||
                                              (which == KS_AUDIT_HALF && o->thorough),
                                  .layers = which == KS_AUDIT_LAYERS};
}

bool ks_audit_has_task(const struct ks_audit *a, size_t which)
{
    return !(which == KS_AUDIT_HALF && a->summary.minibatches < 2) &&
           !(which == KS_AUDIT_PRECONDITIONED && a->summary.moments != KS_MOMENTS_PRESENT) &&
           !(which == KS_AUDIT_LAYERS && a->options->layer_order == 0);
}

/* --- the time --- */

/* Besides its steps, an analysis takes about as long as these products: the float64 products that
 * certify its bounds. Products with the preconditioned Hessian are in float64. Measured with
 * critics of 40,000 parameters. */
enum { CERTIFICATES = 20, BLOCK_CERTIFICATES = 10, WIDE = 2 };

/* The work of a task, in products with one minibatch. */
static double work_of(const struct ks_audit *a, size_t which)
{
    const struct ks_audit_task t = ks_audit_task(a, which);
    double products = (double)(t.order * (t.gradient ? 2 : 1) + CERTIFICATES);

    if (t.layers)
        products = (double)(a->summary.blocks * (t.order + BLOCK_CERTIFICATES));
    return products * (double)t.batches * (which == KS_AUDIT_PRECONDITIONED ? WIDE : 1);
}

static double seconds_left(const struct ks_audit_clock *c)
{
    double work = 0;

    for (size_t i = 0; i < KS_AUDIT_TASKS; i++)
        work += ks_audit_has_task(c->audit, i) && !c->done[i] ? work_of(c->audit, i) : 0;
    return work * c->pace;
}

static size_t count_tasks(const struct ks_audit *a, size_t end)
{
    size_t n = 0;

    for (size_t i = 0; i < end; i++)
        n += ks_audit_has_task(a, i);
    return n;
}

void ks_audit_begin(struct ks_audit_clock *c, size_t which)
{
    const struct ks_audit_task t = ks_audit_task(c->audit, which);
    char text[32];

    c->started = ks_seconds();
    if (c->audit->options->quiet)
        return;
    ks_print_duration(seconds_left(c), text);
    ks_say("%s: %zu of %zu, %s%s%s; about %s left", c->audit->path,
           count_tasks(c->audit, which) + 1, count_tasks(c->audit, KS_AUDIT_TASKS), t.operator_name,
           t.layers ? ", layer by layer" : "",
           which == KS_AUDIT_HALF ? " with half of the minibatches" : "", text);
}

void ks_audit_end(struct ks_audit_clock *c, size_t which)
{
    c->done[which] = true;
    c->pace = (ks_seconds() - c->started) / work_of(c->audit, which);
}
