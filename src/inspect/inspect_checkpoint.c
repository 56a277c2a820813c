#include "inspect/inspect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "inspect/dead_units.h"
#include "inspect/layers.h"
#include "inspect/lines.h"
#include "io/h5.h"
#include "operators/null_space.h"
#include "operators/operator_kinds.h"
#include "operators/selection.h"

enum { MINIBATCHES = 4, CRITICS = 8 }; /* for dead units; columns of their table */

/* The arrays that the file claims must fit in memory before any is allocated. */
static ks_status read_file(const char *path, struct ks_checkpoint **c)
{
    double bytes, left = (double)ks_memory_available("", 1);

    KS_TRY(ks_checkpoint_measure(path, &bytes));
    if (left > 0 && bytes > left / 2)
        return ks_fail(KS_MEMORY, "%s: its arrays take %.0fK, which do not fit in memory", path,
                       ceil(bytes / 1024));
    return ks_checkpoint_read_loss(path, c);
}

static void print_range(FILE *out, const char *name, size_t n, const double *x)
{
    double low = INFINITY, high = -INFINITY;

    for (size_t i = 0; i < n; i++) {
        low = fmin(low, x[i]);
        high = fmax(high, x[i]);
    }
    ks_line_print(out, name, "from %.6g to %.6g", low, high);
}

/* A line for the loss, or for that of each head. */
static void print_loss(const struct ks_loss *l, FILE *out)
{
    char text[128];
    int used = snprintf(text, sizeof text, "%s, %zu output%s", l->kind->name, l->outputs,
                        l->outputs == 1 ? "" : "s");

    for (size_t h = 0; h < l->n_heads; h++)
        print_loss(&l->head[h], out);
    if (l->n_heads > 0)
        return;
    if (strcmp(l->kind->name, "ce") == 0)
        used += snprintf(text + used, sizeof text - (size_t)used, ", atoms from %g to %g", l->min,
                         l->max);
    else if (strcmp(l->kind->name, "huber") == 0 || strcmp(l->kind->name, "quantile") == 0)
        used += snprintf(text + used, sizeof text - (size_t)used, ", threshold %g", l->delta);
    if (l->weight != 1)
        snprintf(text + used, sizeof text - (size_t)used, ", weight %g", l->weight);
    ks_line_print(out, "loss", "%s", text);
}

static void print_batch(const struct ks_checkpoint *c, FILE *out)
{
    const size_t targets = c->minibatches * ks_checkpoint_target_size(c);

    ks_title_print(out, "Minibatches");
    ks_line_print(out, "number", "%zu", c->minibatches);
    ks_line_print(out, "rows", "%zu, of which %zu enter the loss", c->rows, c->loss_rows);
    print_range(out, "inputs", c->minibatches * c->rows * c->critic.arch->in, c->input);
    print_range(out, c->targets_differ ? "targets of each critic" : "targets", targets, c->target);
    if (c->weight)
        print_range(out, "weights of rows", c->minibatches * c->loss_rows, c->weight);
    if (c->target_raw)
        print_range(out, "from raw rewards", targets, c->target_raw);
}

/* Which of the exporting framework's own results the file has. */
static ks_status print_proofs(const char *path, FILE *out)
{
    static const char *const proofs[] = {"/batch/output", "/batch/loss", "/batch/gradient_norm"};
    struct ks_h5 *h5 = NULL;
    ks_status status = KS_OK;
    size_t present = 0;

    KS_TRY(ks_h5_open(path, "kappascope-checkpoint", &h5));
    ks_title_print(out, "Proofs (results of the program that trained the critic)");
    for (size_t i = 0; i < sizeof proofs / sizeof *proofs; i++) {
        bool found;

        KS_GO(ks_h5_has(h5, proofs[i], &found));
        ks_line_print(out, proofs[i], "%s", found ? "present" : "absent");
        present += found;
    }
    if (present == 0)
        ks_paragraph_print(out, "Nothing in this file shows that it describes the critic that was "
                                "meant: a wrong layout or a wrong eps would not be noticed.");
done:
    ks_h5_close(h5);
    return status;
}

static void print_optimizer(const struct ks_checkpoint *c, FILE *out)
{
    if (c->adam_v)
        ks_line_print(out, "optimizer", "Adam, %lld steps, beta1 %g, beta2 %g, eps %g",
                      (long long)c->adam_step, c->adam.beta1, c->adam.beta2, c->adam.eps);
    else
        ks_line_print(out, "optimizer", "no second moments: no preconditioned Hessian");
}

/* *space: the directions in which the loss is constant for every theta. The selection is the
 * caller's. */
static ks_status find_null_space(const struct ks_checkpoint *c, struct ks_selection **selection,
                                 struct ks_null_space **space)
{
    const struct ks_problem problem = {
        .checkpoint = c, .minibatches = c->minibatches, .scale = 1, .critic = -1, .layer = -1};

    KS_TRY(ks_selection_new(&problem, false, selection));
    return ks_null_space_new(&problem, ks_operator_kinds, *selection, space);
}

static size_t count_null(const struct ks_null_space *space)
{
    size_t sum = 0;

    for (size_t i = 0; i < space->n_families; i++)
        sum += space->family[i].count;
    return space->critics * sum;
}

static ks_status print_layers(const struct ks_checkpoint *c, FILE *out)
{
    struct ks_selection *selection = NULL;
    struct ks_null_space *space = NULL;
    ks_status status = KS_OK;

    KS_GO(find_null_space(c, &selection, &space));
    ks_title_print(out, "Layers (null: known null directions; then the norm in each critic)");
    ks_layers_print(out, &c->critic, space);
    ks_line_print(out, "null directions",
                  "%zu over all critics: the loss is constant along them, whatever the parameters",
                  count_null(space));
done:
    ks_null_space_free(space);
    ks_selection_free(selection);
    return status;
}

static ks_status print_dead_units(const struct ks_checkpoint *c, FILE *out)
{
    const size_t critics = c->critic.ensemble < CRITICS ? c->critic.ensemble : CRITICS;
    struct ks_dead_units units;
    ks_status status;

    status = ks_dead_units_count(c, c->minibatches < MINIBATCHES ? c->minibatches : MINIBATCHES,
                                 &units);
    if (status == KS_OK && units.n > 0) {
        ks_title_print(out, "Dead units (zero in all rows of the minibatches that were tried)");
        ks_line_print(out, "minibatches tried", "%zu of %zu", units.minibatches, c->minibatches);
        fprintf(out, "  %-16s %8s", "layer", "units");
        for (size_t e = 0; e < critics; e++)
            fprintf(out, "  critic %zu", e);
        fprintf(out, "%s\n", critics < c->critic.ensemble ? " ..." : "");
    }
    for (size_t i = 0; status == KS_OK && i < units.n; i++) {
        const struct ks_layer *l = units.layer[i].layer;

        fprintf(out, "  %02zu %-13s %8zu", l->number, l->kind->name, l->out);
        for (size_t e = 0; e < critics; e++)
            fprintf(out, " %9zu", units.layer[i].dead[e]);
        fputc('\n', out);
    }
    ks_dead_units_clear(&units);
    return status;
}

static void print_critic(const struct ks_checkpoint *c, const char *path, FILE *out)
{
    ks_line_print(out, "checkpoint", "%s", path);
    ks_line_print(out, "critics", "%zu, of %zu parameters each", c->critic.ensemble,
                  c->critic.arch->parameters);
    ks_line_print(out, "inputs", "%zu columns", c->critic.arch->in);
    print_loss(&c->critic.arch->loss, out);
    print_optimizer(c, out);
    if (c->critic.arch->states > 0)
        ks_line_print(out, "running statistics", "%s", c->critic.state ? "present" : "absent");
}

ks_status ks_inspect_checkpoint(const char *path, FILE *out)
{
    struct ks_checkpoint *c = NULL;
    ks_status status = KS_OK;

    KS_GO(read_file(path, &c));
    print_critic(c, path, out);
    print_batch(c, out);
    KS_GO(print_proofs(path, out));
    KS_GO(print_layers(c, out));
    KS_GO(print_dead_units(c, out));
    if (c->attributes.n > 0)
        ks_title_print(out, "Attributes");
    for (size_t i = 0; i < c->attributes.n; i++)
        ks_attribute_print(out, &c->attributes.list[i]);
done:
    ks_checkpoint_free(c);
    return status;
}
