/* How an analysis divides its memory. All sizes follow from the shapes of the checkpoint's arrays,
 * so an analysis that does not fit is refused before they are read, with the size that is enough.
 */
#include "pipeline/pipeline.h"

#include <math.h>

#include "core/memory.h"
#include "lanczos/slq.h"
#include "net/arch.h"
#include "operators/primal.h"

/* Strings, attributes, and what else a checkpoint has beside its arrays. */
static const double SMALL = 1 << 16;

/* What an analysis needs at most at a time, in bytes beside the activations that it keeps. */
struct demand {
    double before; /* before the operator is made: in all                */
    double fixed;  /* the checkpoint and the operator                    */
    double held;   /* beside them                                        */
    double wide;   /* in all, while products in float64 are computed     */
};

static double in_all(const struct demand *d)
{
    return fmax(fmax(d->before, d->fixed + d->held), d->wide);
}

/* --- the demand: an analysis runs without its arrays (core/memory.h) --- */

/* Vectors that are allocated one by one. */
static void hold(struct ks_count *c, size_t vectors, size_t length)
{
    c->now += sizeof(double) * (double)vectors * (double)length;
    c->most = fmax(c->most, c->now);
}

/* From the operator on; p->problem and p->selection are posed. */
static ks_status run_operator(struct ks_pipeline *p, struct ks_count *c, struct demand *d)
{
    const struct ks_spectrum_options *o = p->options;
    const size_t all = p->selection->of, n = p->selection->n;

    if (o->kind->moving && n == all) /* all may be too many, and then they are a block */
        hold(c, 2, all);
    KS_TRY(ks_pipeline_make_block(p));
    KS_TRY(ks_operator_prepare(p->a, 0));
    d->fixed = c->now;
    if (p->factors) {
        hold(c, 2 * p->budget.vectors, all); /* and the file of products, in memory */
        hold(c, 2, n);                       /* a factor and its product */
    } else if (o->eigenvectors > 0) {
        KS_TRY(ks_eigenvectors_find(p));
        hold(c, 2 * o->eigenvectors, all); /* and their file */
    } else {
        KS_TRY(ks_pipeline_from_operator(p));
    }
    d->held = (c->earlier > 0 ? c->earlier : c->most) - d->fixed;
    d->wide = c->earlier > 0 ? c->most : 0;
    if (o->gradient_probe) { /* the start vector; and its product */
        d->held += sizeof(double) * (double)n;
        d->wide += 2 * sizeof(double) * (double)n;
    }
    return KS_OK;
}

static ks_status run(struct ks_pipeline *p, struct ks_count *c, struct demand *d)
{
    const struct ks_spectrum_options *o = p->options;
    const size_t all = ks_networks_parameters(&p->checkpoint->critic);
    double unused = 0; /* while objects are counted, no gradient is computed */

    KS_TRY(ks_alloc(1, sizeof *p->selection, &p->selection));
    *p->selection = (struct ks_selection){.of = all, .n = p->budget.dimension};
    p->problem.selection = p->selection;
    KS_TRY(ks_null_space_new(&p->problem, o->kind, p->selection, &p->space));
    if (p->finds_gradient) {
        hold(c, 3, all); /* with the file, in memory, and what HDF5 copies of it */
        KS_TRY(ks_gradient(&p->problem, &unused, &unused));
        c->now = 0;
    } else if (p->by_layers) {
        KS_TRY(ks_pipeline_measure_noise(p));
    } else if (!p->factors && o->eigenvectors == 0 && !p->has_gradients) {
        KS_TRY(ks_pipeline_measure_gradients(p));
    }
    d->before = c->most;
    c->most = c->now;
    return p->finds_gradient && !p->factors ? KS_OK : run_operator(p, c, d);
}

/* `read`: the bytes that are there before. */
static ks_status find_demand(const struct ks_pipeline *p, bool basis_f32, double read,
                             struct demand *d)
{
    struct ks_pipeline q = {.options = p->options,
                            .path = p->path,
                            .quiet = true,
                            .factors = p->factors,
                            .finds_gradient = p->finds_gradient,
                            .by_layers = p->by_layers,
                            .checkpoint = p->checkpoint,
                            .problem = p->problem,
                            .minibatches = p->minibatches,
                            .has_gradients = p->has_gradients,
                            .budget = {.dimension = p->budget.dimension,
                                       .vectors = p->budget.vectors,
                                       .basis_f32 = basis_f32}};
    const size_t before = ks_alloc_total();
    struct ks_count c;
    ks_status status = KS_OK;

    *d = (struct demand){.before = 0};
    if (p->by_layers) /* the directions of all blocks */
        q.problem.layer = -1;
    ks_count_start(&c);
    if (p->budget.dimension > 0)
        status = run(&q, &c, d);
    q.checkpoint = NULL; /* it is p's */
    ks_pipeline_close(&q);
    ks_count_end();
    ks_alloc_freed_since(before);
    d->before += read;
    d->fixed += read;
    d->wide += read;
    return status;
}

/* --- the limit --- */

/* The total bytes that an analysis which has already allocated `fixed` may use: --memory, but not
 * more than is free; without it half of what was free before `fixed` bytes were allocated. */
static double find_limit(const struct ks_pipeline *p, size_t fixed)
{
    const struct ks_spectrum_options *o = p->options;
    double left = (double)ks_memory_available("", 1);

    if (o->memory == 0)
        return ((double)fixed + left) / 2;
    return left > 0 ? fmin((double)o->memory, (double)fixed + left) : (double)o->memory;
}

/* The file that a refusal names: the file of factors if a single vector of it would fit, else the
 * checkpoint. */
static const char *too_large(const struct ks_pipeline *p, const struct demand *d, double limit)
{
    const size_t all = ks_networks_parameters(&p->checkpoint->critic);
    struct demand one = *d;

    if (!p->factors)
        return p->path;
    one.held -= 2 * sizeof(double) * ((double)p->budget.vectors - 1) * (double)all;
    return in_all(&one) <= limit ? p->factors : p->path;
}

static ks_status refuse(const struct ks_pipeline *p, const struct demand *d, double read,
                        double limit)
{
    const struct ks_spectrum_options *o = p->options;

    return ks_fail(
        KS_MEMORY,
        "%s: --memory: expected at least %.0fK, found %.0fK: the checkpoint takes %.0fK, "
        "and the rest is for products%s in %zu dimensions",
        too_large(p, d, limit), ceil(in_all(d) / 1024), floor(limit / 1024), ceil(read / 1024),
        o->exact                          ? " and the dense matrix"
        : p->factors || p->finds_gradient ? " and vectors"
        : p->budget.basis_f32             ? " and the Lanczos vectors in float32"
                                          : " and the Lanczos vectors",
        p->budget.dimension);
}

/* The largest of the blocks of layers. */
static ks_status find_dimension(struct ks_pipeline *p)
{
    const struct ks_problem *q = &p->problem;
    const struct ks_networks *critics = &q->checkpoint->critic;
    size_t n, largest = 0;

    KS_TRY(ks_selection_count(critics, q->critic, q->layer, q->arrays, &n));
    for (size_t i = 0; p->by_layers && i < critics->arch->n_layers; i++)
        largest = critics->arch->layer[i].parameters > largest ? critics->arch->layer[i].parameters
                                                               : largest;
    p->budget.dimension = (p->by_layers ? largest : n) * ks_primal_critics(q);
    return KS_OK;
}

static bool asks_for_f32(const struct ks_spectrum_options *o)
{
    return o->published || o->basis_f32;
}

/* The smaller demand of a Lanczos basis in float64 and one in float32: that is larger in few
 * dimensions. */
static ks_status find_least(struct ks_pipeline *p, double read, struct demand *d)
{
    struct demand rounded;

    p->budget.basis_f32 = asks_for_f32(p->options);
    KS_TRY(find_demand(p, p->budget.basis_f32, read, d));
    KS_TRY(find_demand(p, true, read, &rounded));
    if (in_all(&rounded) < in_all(d)) {
        p->budget.basis_f32 = true;
        *d = rounded;
    }
    return KS_OK;
}

ks_status ks_budget_check(const struct ks_pipeline *p, const struct ks_checkpoint *shapes,
                          double bytes)
{
    const double limit = find_limit(p, 0), image = (double)p->budget.image;
    const double arrays = bytes + (p->file ? image : 0);
    struct ks_checkpoint c = *shapes;
    struct ks_pipeline q = *p;
    const struct ks_problem *posed = &q.problem;
    double read, references;
    struct demand d;

    q.checkpoint = &c;
    ks_pipeline_fill_problem(&q, p->options->layer);
    if (find_dimension(&q) != KS_OK) /* ks_pipeline_pose refuses it */
        q.budget.dimension = ks_networks_parameters(&c.critic);
    if (p->options->exact && q.budget.dimension > KS_EXACT_LIMIT) /* likewise */
        q.budget.dimension = 0;
    read = arrays + SMALL;
    if (posed->critic >= 0 || posed->layer >= 0 || posed->arrays || posed->kind->moving ||
        p->by_layers) /* the list of coordinates */
        read += (double)ks_networks_parameters(&c.critic) * sizeof(size_t);
    KS_TRY(ks_pipeline_name(p, ks_references_bytes(&c, &c.references, &references)));
    KS_TRY(ks_pipeline_name(p, find_least(&q, read, &d)));
    d.before = fmax(d.before, arrays + fmax(references, p->file ? 0 : image));
    return in_all(&d) <= limit ? KS_OK : refuse(&q, &d, read, limit);
}

ks_status ks_budget_divide(struct ks_pipeline *p)
{
    const struct ks_spectrum_options *o = p->options;
    struct ks_budget *b = &p->budget;
    const bool basis = !o->exact && !p->factors, asked = asks_for_f32(o);
    const size_t taken = ks_alloc_total() - p->allocated_before;
    const double limit = find_limit(p, taken);
    struct demand d, rounded;

    KS_TRY(find_demand(p, asked, (double)taken, &d));
    b->squeezed = false;
    if (basis && !asked && d.fixed + d.held > limit) {
        KS_TRY(find_demand(p, true, (double)taken, &rounded));
        b->squeezed = rounded.held < d.held;
        d = b->squeezed ? rounded : d;
    }
    b->basis_f32 = basis && (asked || b->squeezed);
    b->fixed = (size_t)d.fixed;
    b->held = (size_t)d.held;
    b->kept = (size_t)fmax(limit - d.fixed - d.held, 0);
    b->wide = (size_t)fmax(limit - d.wide, 0);
    if (p->by_layers) /* both at a time */
        b->kept = b->wide = (b->kept < b->wide ? b->kept : b->wide) / 2;
    return KS_OK;
}
