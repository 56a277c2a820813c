#include "inspect/inspect.h"

#include <math.h>

#include "inspect/dead_units.h"
#include "inspect/layers.h"
#include "inspect/lines.h"
#include "inspect/read.h"
#include "operators/null_space.h"
#include "operators/operator_kinds.h"
#include "operators/selection.h"

enum { CRITICS = 8 }; /* columns of the table of dead units */

static void print_range(FILE *out, const char *name, size_t n, const double *x)
{
    double low = INFINITY, high = -INFINITY;

    for (size_t i = 0; i < n; i++) {
        low = fmin(low, x[i]);
        high = fmax(high, x[i]);
    }
    ks_line_print(out, name, "from %.6g to %.6g", low, high);
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

static void print_reference(FILE *out, const char *name, const struct ks_reference *reference,
                            size_t minibatches)
{
    if (reference->value)
        ks_line_print(out, name, "present, for %zu of %zu minibatches", reference->minibatches,
                      minibatches);
    else
        ks_line_print(out, name, "absent");
}

/* Which results of the program that made the file it holds. Nothing is compared with them here. */
static void print_references(const struct ks_checkpoint *c, FILE *out)
{
    const struct ks_references *p = &c->references;

    ks_title_print(
        out, "Reference results (of the program that made the file; `analyze` compares them)");
    print_reference(out, "/batch/output", &p->output, c->minibatches);
    print_reference(out, "/batch/loss", &p->loss, c->minibatches);
    print_reference(out, "/batch/gradient_norm", &p->gradient_norm, c->minibatches);
    if (!ks_references_exist(p))
        ks_paragraph_print(out, "Nothing in this file shows that it describes the critic that was "
                                "meant: a wrong layout or a wrong eps would not be noticed.");
}

static void print_optimizer(const struct ks_checkpoint *c, FILE *out)
{
    if (c->adam_v)
        ks_line_print(out, "optimizer", "Adam, %lld steps, beta1 %g, beta2 %g, eps %g",
                      (long long)c->adam_step, c->adam.beta1, c->adam.beta2, c->adam.eps);
    else
        ks_line_print(out, "optimizer", "no second moments, so no preconditioned Hessian");
}

/* *space: the directions in which the loss is constant for every theta. The caller frees both, also
 * after a failure. */
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
    ks_title_print(out,
                   "Layers (null: known null directions of a critic; critic 0, ...: its norm)");
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

    status = ks_dead_units_count(c, &units);
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
    ks_loss_print(out, &c->critic.arch->loss);
    print_optimizer(c, out);
    if (c->critic.arch->states > 0)
        ks_line_print(out, "running statistics", "%s", c->critic.state ? "present" : "absent");
}

ks_status ks_inspect_checkpoint(const char *path, FILE *out)
{
    struct ks_checkpoint *c = NULL;
    ks_status status = KS_OK;

    KS_GO(ks_inspect_read(path, &c));
    print_critic(c, path, out);
    print_batch(c, out);
    print_references(c, out);
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
