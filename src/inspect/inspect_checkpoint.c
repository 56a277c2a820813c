/* Checkpoints and architecture files: layers, losses, minibatches, dead units. */
#include "inspect/inspect.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "io/h5.h"
#include "net/arch.h"
#include "operators/null_space.h"
#include "operators/operator.h"

enum { NORMS = 4 };        /* most critics whose norms are printed; of more, the range     */
enum { DEAD_CRITICS = 8 }; /* columns of the table of dead units */
enum { SHAPE = 48 };       /* the longest text of a shape                                  */

/* A line for the loss; if the critic has several heads, a line for the loss of each. */
static void add_loss(const struct KS(loss) *l, struct ks_document *d)
{
    char text[128];
    int used = snprintf(text, sizeof text, "%s, %zu output%s", l->kind->name, l->outputs,
                        l->outputs == 1 ? "" : "s");

    for (size_t h = 0; h < l->n_heads; h++)
        add_loss(&l->head[h], d);
    if (l->n_heads > 0)
        return;
    if (strcmp(l->kind->name, "ce") == 0)
        used += snprintf(text + used, sizeof text - (size_t)used, ", atoms from %g to %g", l->min,
                         l->max);
    else if (strcmp(l->kind->name, "huber") == 0 || strcmp(l->kind->name, "quantile") == 0)
        used += snprintf(text + used, sizeof text - (size_t)used, ", threshold %g", l->delta);
    if (l->weight != 1)
        snprintf(text + used, sizeof text - (size_t)used, ", weight %g", l->weight);
    ks_document_line(d, "loss", "%s", text);
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

static void add_norms(const struct ks_networks *c, size_t offset, size_t n, struct ks_document *d)
{
    double low = INFINITY, high = 0;
    char text[32];

    for (size_t e = 0; e < c->ensemble; e++) {
        const double *x = numbers_of(c, e, offset);
        double one = 0;

        for (size_t i = 0; i < n; i++)
            one += x[i] * x[i];
        one = sqrt(one);
        low = fmin(low, one);
        high = fmax(high, one);
        if (c->ensemble <= NORMS)
            ks_document_cell(d, ks_cell_digits(4, one));
    }
    snprintf(text, sizeof text, "%.4g to %.4g", low, high);
    if (c->ensemble > NORMS)
        ks_document_cell(d, ks_cell_printed(text, low));
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

/* Headings of the columns "critic 0", "critic 1", ... */
static void add_critics(size_t n, struct ks_document *d)
{
    char text[32];

    for (size_t e = 0; e < n; e++) {
        snprintf(text, sizeof text, "critic %zu", e);
        ks_document_cell(d, ks_cell_heading(text));
    }
}

static void add_headings(const struct ks_networks *c, bool null, struct ks_document *d)
{
    ks_document_columns(d, "", "layer<, array<, shape<, parameters");
    if (null)
        ks_document_cell(d, ks_cell_heading("null"));
    if (c->w && c->ensemble <= NORMS)
        add_critics(c->ensemble, d);
    else if (c->w)
        ks_document_cell(d, ks_cell_heading("critics"));
}

/* A row per parameter array: its layer, shape and number of parameters; with `space` how many known
 * null directions of a critic start in it, and its Euclidean norm in each critic. `networks`: as in
 * a checkpoint; its `w` may be NULL, and then `space` is, too. */
static void add_arrays(const struct ks_networks *c, const struct ks_null_space *space,
                       struct ks_document *d)
{
    const struct KS(arch) *arch = c->arch;

    add_headings(c, space != NULL, d);
    for (size_t i = 0; i < arch->n_layers; i++) {
        const struct KS(layer) *l = &arch->layer[i];
        size_t offset = l->offset;
        char name[32], shape[SHAPE];

        snprintf(name, sizeof name, "%02zu %s%s", l->number, l->kind->name,
                 l->frozen > 0 ? " frozen" : "");
        if (l->n_params == 0 && !l->kind->uncounted)
            ks_document_cells(d, ks_cell_name(name));
        for (size_t k = 0; k < l->n_params; k++) {
            size_t n = KS(array_size)(&l->param[k]);

            ks_document_cells(d, ks_cell_name(k ? "" : name), ks_cell_text(l->param[k].name),
                              ks_cell_text(shape_text(&l->param[k], shape)), ks_cell_count(n));
            if (space)
                ks_document_cell(d, ks_cell_count(count_null_in(space, offset, n)));
            if (c->w)
                add_norms(c, offset, n, d);
            offset += n;
        }
    }
}

/* --- checkpoints --- */

static void add_range(const char *name, size_t n, const double *x, struct ks_document *d)
{
    double low = INFINITY, high = -INFINITY;

    for (size_t i = 0; i < n; i++) {
        low = fmin(low, x[i]);
        high = fmax(high, x[i]);
    }
    ks_document_line(d, name, "from %.6g to %.6g", low, high);
}

static void add_batch(const struct ks_checkpoint *c, struct ks_document *d)
{
    const size_t targets = c->minibatches * ks_checkpoint_target_size(c);

    ks_document_add(d, KS_BLOCK_SECTION, "Minibatches");
    ks_document_line(d, "number", "%zu", c->minibatches);
    ks_document_line(d, "rows", "%zu, of which %zu enter the loss", c->rows, c->loss_rows);
    add_range("inputs", c->minibatches * c->rows * c->critic.arch->in, c->input, d);
    add_range(c->targets_differ ? "targets of each critic" : "targets", targets, c->target, d);
    if (c->weight)
        add_range("weights of rows", c->minibatches * c->loss_rows, c->weight, d);
    if (c->target_raw)
        add_range("from raw rewards", targets, c->target_raw, d);
}

static void add_reference(const char *name, const struct ks_reference *reference,
                          size_t minibatches, struct ks_document *d)
{
    if (reference->value)
        ks_document_line(d, name, "present, for %zu of %zu minibatches", reference->minibatches,
                         minibatches);
    else
        ks_document_line(d, name, "absent");
}

/* Which results of the program that made the file it holds. Nothing is compared with them here. */
static void add_references(const struct ks_checkpoint *c, struct ks_document *d)
{
    const struct ks_references *p = &c->references;

    ks_document_add(
        d, KS_BLOCK_SECTION,
        "Reference results (of the program that made the file; `analyze` compares them)");
    add_reference("/batch/output", &p->output, c->minibatches, d);
    add_reference("/batch/loss", &p->loss, c->minibatches, d);
    add_reference("/batch/gradient_norm", &p->gradient_norm, c->minibatches, d);
    if (!ks_references_exist(p))
        ks_document_add(d, KS_BLOCK_TEXT,
                        "Nothing in this file shows that it describes the critic that was "
                        "meant: a wrong layout or a wrong eps would not be noticed.");
}

static ks_status add_layers(const struct ks_checkpoint *c, struct ks_document *d)
{
    const struct ks_problem problem = {
        .checkpoint = c, .minibatches = c->minibatches, .scale = 1, .critic = -1, .layer = -1};
    KS_OWNED_BY(ks_selection_free) struct ks_selection *selection = NULL;
    /* The loss is constant in it for every theta. */
    KS_OWNED_BY(ks_null_space_free) struct ks_null_space *space = NULL;

    KS_TRY(ks_selection_new(&problem, false, &selection));
    KS_TRY(ks_null_space_new(&problem, ks_operator_kinds, selection, &space));
    ks_document_add(d, KS_BLOCK_SECTION,
                    "Layers (null: known null directions of a critic; critic 0, ...: its norm)");
    add_arrays(&c->critic, space, d);
    ks_document_line(
        d, "null directions",
        "%zu over all critics: the loss is constant along them, whatever the parameters",
        space->critics * count_null_in(space, 0, SIZE_MAX));
    return KS_OK;
}

static ks_status add_dead_units(const struct ks_checkpoint *c, struct ks_document *d)
{
    const size_t critics = c->critic.ensemble < DEAD_CRITICS ? c->critic.ensemble : DEAD_CRITICS;
    KS_CLEARED_BY(ks_dead_units_clear) struct ks_dead_units units = {.n = 0};

    KS_TRY(ks_dead_units_count(c, &units));
    if (units.n > 0) {
        ks_document_add(d, KS_BLOCK_SECTION,
                        "Dead units (zero in all rows of the minibatches that were tried)");
        ks_document_line(d, "minibatches tried", "%zu of %zu", units.minibatches, c->minibatches);
        ks_document_columns(d, "", "layer<, units");
        add_critics(critics, d);
        if (critics < c->critic.ensemble)
            ks_document_cell(d, ks_cell_text("..."));
    }
    for (size_t i = 0; i < units.n; i++) {
        const struct KS(layer) *l = units.layer[i].layer;
        char name[32];

        snprintf(name, sizeof name, "%02zu %s", l->number, l->kind->name);
        ks_document_cells(d, ks_cell_name(name), ks_cell_count(l->out));
        for (size_t e = 0; e < critics; e++)
            ks_document_cell(d, ks_cell_count(units.layer[i].dead[e]));
    }
    return KS_OK;
}

static void add_critic(const struct ks_checkpoint *c, const char *path, struct ks_document *d)
{
    ks_document_line(d, "checkpoint", "%s", path);
    ks_document_line(d, "critics", "%zu, of %zu parameters each", c->critic.ensemble,
                     c->critic.arch->parameters);
    ks_document_line(d, "inputs", "%zu columns", c->critic.arch->in);
    add_loss(&c->critic.arch->loss, d);
    if (c->adam_v)
        ks_document_line(d, "optimizer", "Adam, %lld steps, beta1 %g, beta2 %g, eps %g",
                         (long long)c->adam_step, c->adam.beta1, c->adam.beta2, c->adam.eps);
    else
        ks_document_line(d, "optimizer", "no second moments, so no preconditioned Hessian");
    if (c->critic.arch->states > 0)
        ks_document_line(d, "running statistics", "%s", c->critic.state ? "present" : "absent");
}

ks_status ks_inspect_checkpoint(struct ks_h5 *h5, struct ks_document *d)
{
    KS_OWNED_BY(ks_checkpoint_free) struct ks_checkpoint *c = NULL;

    KS_TRY(ks_inspect_read(h5, &c));
    add_critic(c, h5->path, d);
    add_batch(c, d);
    add_references(c, d);
    KS_TRY(add_layers(c, d));
    KS_TRY(add_dead_units(c, d));
    if (c->attributes.n > 0)
        ks_document_add(d, KS_BLOCK_SECTION, "Attributes");
    for (size_t i = 0; i < c->attributes.n; i++)
        ks_inspect_attribute(&c->attributes.list[i], d);
    return KS_OK;
}

/* --- architecture files --- */

/* Without a width the description is checked for inputs of one column, which some layers refuse. */
static ks_status parse_architecture(const char *path, size_t inputs, struct ks_networks *networks)
{
    ks_status status = KS(arch_parse)(networks->text, path, inputs > 0 ? inputs : 1,
                                      &networks->arch);

    if (status == KS_OK || inputs > 0)
        return status;
    return ks_fail(status, "%s (checked for one input column: --inputs D gives their number)",
                   ks_error_text());
}

/* The layers that have a number. */
static size_t count_layers(const struct KS(arch) *arch)
{
    size_t n = 0;

    for (size_t i = 0; i < arch->n_layers; i++)
        n += !arch->layer[i].kind->uncounted;
    return n;
}

ks_status ks_inspect_architecture(const char *path, size_t inputs, struct ks_document *d)
{
    KS_CLEARED_BY(ks_networks_clear) struct ks_networks networks = {.ensemble = 1};
    const struct KS(arch) *arch;

    KS_TRY(KS(arch_read)(path, &networks.text));
    KS_TRY(parse_architecture(path, inputs, &networks));
    arch = networks.arch;
    ks_document_line(d, "architecture", "%s", path);
    ks_document_line(d, "layers", "%zu", count_layers(arch));
    if (arch->loss.kind)
        add_loss(&arch->loss, d);
    else if (arch->policy.actions > 0)
        ks_document_line(d, "policy", "%s, %zu actions",
                         arch->policy.shift   ? "shift"
                         : arch->policy.fixed ? "tanh"
                                              : "tanh-gaussian",
                         arch->policy.actions);
    if (inputs == 0) {
        ks_document_line(d, "parameters", "not known without the input's width: --inputs D");
        return KS_OK;
    }
    ks_document_line(d, "inputs", "%zu", inputs);
    ks_document_line(d, "parameters", "%zu", arch->parameters);
    ks_document_add(d, KS_BLOCK_SECTION, "Layers");
    add_arrays(&networks, NULL, d);
    return KS_OK;
}
