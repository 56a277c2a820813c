/* Checkpoints and architecture files: layers, losses, minibatches, dead units. */
#include "inspect/inspect.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/h5.h"
#include "net/arch.h"
#include "operators/null_space.h"
#include "operators/operator.h"

enum { NORMS = 4 };        /* most critics whose norms are printed; of more, the range     */
enum { DEAD_CRITICS = 8 }; /* columns of the table of dead units */
enum { SHAPE = 48 };       /* the longest text of a shape                                  */

/* A line for the loss; if the critic has several heads, a line for the loss of each. */
static void print_loss(FILE *out, const struct KS(loss) *l)
{
    char text[128];
    int used = snprintf(text, sizeof text, "%s, %zu output%s", l->kind->name, l->outputs,
                        l->outputs == 1 ? "" : "s");

    for (size_t h = 0; h < l->n_heads; h++)
        print_loss(out, &l->head[h]);
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

/* "[512, 101]", or "[512]" for a vector. */
static const char *shape_text(const struct ks_array *a, char text[SHAPE])
{
    if (a->rows > 0)
        snprintf(text, SHAPE, "[%zu, %zu]", a->rows, a->columns);
    else
        snprintf(text, SHAPE, "[%zu]", a->columns);
    return text;
}

/* The numbers of an array of one critic, at `offset` of the extended vector (arch.h). */
static const double *numbers_of(const struct ks_networks *c, size_t critic, size_t offset)
{
    const size_t n = c->arch->parameters;

    return offset < n ? c->w + critic * n + offset
                      : c->frozen + critic * c->arch->frozen + (offset - n);
}

static void print_norms(FILE *out, const struct ks_networks *c, size_t offset, size_t n)
{
    double low = INFINITY, high = 0;

    for (size_t e = 0; e < c->ensemble; e++) {
        const double *x = numbers_of(c, e, offset);
        double one = 0;

        for (size_t i = 0; i < n; i++)
            one += x[i] * x[i];
        one = sqrt(one);
        low = fmin(low, one);
        high = fmax(high, one);
        if (c->ensemble <= NORMS)
            fprintf(out, " %10.4g", one);
    }
    if (c->ensemble > NORMS)
        fprintf(out, " %10.4g to %.4g", low, high);
}

/* Each direction is counted in the array of its first parameter. */
static size_t count_null_in(const struct ks_null_space *space, size_t offset, size_t n)
{
    size_t count = 0;

    for (size_t i = 0; i < space->n_families; i++)
        if (space->family[i].offset >= offset && space->family[i].offset < offset + n)
            count += space->family[i].count;
    return count;
}

static void print_heading(FILE *out, const struct ks_networks *c, const struct ks_null_space *space)
{
    fprintf(out, "  %-16s %-9s %-14s %10s", "layer", "array", "shape", "parameters");
    if (space)
        fprintf(out, " %6s", "null");
    for (size_t e = 0; c->w && e < c->ensemble && c->ensemble <= NORMS; e++)
        fprintf(out, "   critic %zu", e);
    if (c->w && c->ensemble > NORMS)
        fprintf(out, " %10s", "critics");
    fputc('\n', out);
}

/* A row per parameter array: its layer, shape and number of parameters; with `space` how many known
 * null directions of a critic start in it, and its Euclidean norm in each critic. `networks`: as in
 * a checkpoint; its `w` may be NULL, and then `space` is, too. */
static void print_arrays(FILE *out, const struct ks_networks *c, const struct ks_null_space *space)
{
    const struct KS(arch) *arch = c->arch;

    print_heading(out, c, space);
    for (size_t i = 0; i < arch->n_layers; i++) {
        const struct KS(layer) *l = &arch->layer[i];
        size_t offset = l->offset;
        char name[32], shape[SHAPE];

        if (l->n_params == 0 && !l->kind->uncounted)
            fprintf(out, "  %02zu %s\n", l->number, l->kind->name);
        for (size_t k = 0; k < l->n_params; k++) {
            size_t n = KS(array_size)(&l->param[k]);

            snprintf(name, sizeof name, "%02zu %s%s", l->number, l->kind->name,
                     l->frozen > 0 ? " frozen" : "");
            fprintf(out, "  %-16s %-9s %-14s %10zu", k ? "" : name, l->param[k].name,
                    shape_text(&l->param[k], shape), n);
            if (space)
                fprintf(out, " %6zu", count_null_in(space, offset, n));
            if (c->w)
                print_norms(out, c, offset, n);
            fputc('\n', out);
            offset += n;
        }
    }
}

/* --- checkpoints --- */

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

static ks_status print_layers(const struct ks_checkpoint *c, FILE *out)
{
    const struct ks_problem problem = {
        .checkpoint = c, .minibatches = c->minibatches, .scale = 1, .critic = -1, .layer = -1};
    struct ks_selection *selection = NULL;
    struct ks_null_space *space = NULL; /* the loss is constant in it for every theta */
    ks_status status = KS_OK;

    KS_GO(ks_selection_new(&problem, false, &selection));
    KS_GO(ks_null_space_new(&problem, ks_operator_kinds, selection, &space));
    ks_title_print(out,
                   "Layers (null: known null directions of a critic; critic 0, ...: its norm)");
    print_arrays(out, &c->critic, space);
    ks_line_print(out, "null directions",
                  "%zu over all critics: the loss is constant along them, whatever the parameters",
                  space->critics * count_null_in(space, 0, SIZE_MAX));
done:
    ks_null_space_free(space);
    ks_selection_free(selection);
    return status;
}

static ks_status print_dead_units(const struct ks_checkpoint *c, FILE *out)
{
    const size_t critics = c->critic.ensemble < DEAD_CRITICS ? c->critic.ensemble : DEAD_CRITICS;
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
        const struct KS(layer) *l = units.layer[i].layer;

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
    print_loss(out, &c->critic.arch->loss);
    if (c->adam_v)
        ks_line_print(out, "optimizer", "Adam, %lld steps, beta1 %g, beta2 %g, eps %g",
                      (long long)c->adam_step, c->adam.beta1, c->adam.beta2, c->adam.eps);
    else
        ks_line_print(out, "optimizer", "no second moments, so no preconditioned Hessian");
    if (c->critic.arch->states > 0)
        ks_line_print(out, "running statistics", "%s", c->critic.state ? "present" : "absent");
}

ks_status ks_inspect_checkpoint(struct ks_h5 *h5, FILE *out)
{
    struct ks_checkpoint *c = NULL;
    ks_status status = KS_OK;

    KS_GO(ks_inspect_read(h5, &c));
    print_critic(c, h5->path, out);
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

/* --- architecture files --- */

/* Without a width the description is checked for inputs of one column, which some layers refuse. */
static ks_status parse_architecture(const char *path, size_t inputs, struct ks_networks *networks)
{
    ks_status status = KS(arch_parse)(networks->text, path, inputs > 0 ? inputs : 1,
                                      &networks->arch);
    char said[1024];

    if (status == KS_OK || inputs > 0)
        return status;
    snprintf(said, sizeof said, "%s", ks_error_text());
    return ks_fail(status, "%s (checked for one input column: --inputs D gives their number)",
                   said);
}

/* The layers that have a number. */
static size_t count_layers(const struct KS(arch) *arch)
{
    size_t n = 0;

    for (size_t i = 0; i < arch->n_layers; i++)
        n += !arch->layer[i].kind->uncounted;
    return n;
}

ks_status ks_inspect_architecture(const char *path, size_t inputs, FILE *out)
{
    struct ks_networks networks = {.ensemble = 1};
    ks_status status = KS_OK;
    const struct KS(arch) *arch;

    KS_GO(KS(arch_read)(path, &networks.text));
    KS_GO(parse_architecture(path, inputs, &networks));
    arch = networks.arch;
    ks_line_print(out, "architecture", "%s", path);
    ks_line_print(out, "layers", "%zu", count_layers(arch));
    if (arch->loss.kind)
        print_loss(out, &arch->loss);
    else if (arch->policy.actions > 0)
        ks_line_print(out, "policy", "%s, %zu actions",
                      arch->policy.shift   ? "shift"
                      : arch->policy.fixed ? "tanh"
                                           : "tanh-gaussian",
                      arch->policy.actions);
    if (inputs == 0) {
        ks_line_print(out, "parameters", "not known without the input's width: --inputs D");
        goto done;
    }
    ks_line_print(out, "inputs", "%zu", inputs);
    ks_line_print(out, "parameters", "%zu", arch->parameters);
    ks_title_print(out, "Layers");
    print_arrays(out, &networks, NULL);
done:
    ks_networks_clear(&networks);
    return status;
}
