/* How an analysis divides its memory. All sizes follow from the shapes of the checkpoint's arrays,
 * so an analysis that does not fit is refused before they are read, with the size that is enough.
 */
#include "pipeline/pipeline.h"

#include <math.h>
#include <stdlib.h>

#include <omp.h>

#include "core/memory.h"
#include "lanczos/slq.h"
#include "net/arch.h"
#include "operators/minibatches.h"
#include "operators/primal.h"

/* Strings, attributes, and what else a checkpoint has beside its arrays. */
static const double SMALL = 1 << 16;

/* Sizes in bytes: of vectors over all parameters of all critics, and over the coordinates of the
 * operator; and of what else an analysis allocates, as its layout functions count it. */
struct sizes {
    double full, vector;
    double read;                /* the checkpoint and the list of coordinates       */
    double reading;             /* while the checkpoint is read                     */
    double references;          /* while a file's reference results are compared    */
    struct ks_problem_bytes of; /* operators and gradient                           */
    double bounds, measuring;   /* the gradient's bounds; while they are measured   */
    double null, nulling;       /* what is known of the null space; while it is found */
    size_t directions;          /* of the null space, that are not unit vectors     */
    double threads;             /* that have an operator of a minibatch each        */
};

/* What an analysis needs at most at a time, in bytes beside the activations that it keeps. */
struct demand {
    double before; /* before the operator is made: in all                         */
    double fixed;  /* the checkpoint and the operator                             */
    double held;   /* beside them                                                 */
    double wide;   /* in all, while products in float64 are computed              */
};

static double most(double a, double b)
{
    return a > b ? a : b;
}

/* --- sizes --- */

static bool measures_bounds(const struct ks_pipeline *p)
{
    return !p->options->published && !p->by_layers && !p->factors && !p->finds_gradient &&
           p->options->eigenvectors == 0 && ks_gradient_bounds_exist(&p->problem);
}

/* The directions of the null space, of a problem without a selection. */
static ks_status count_null_space(const struct ks_pipeline *p, struct sizes *s)
{
    const size_t n = p->budget.dimension;
    struct ks_null_space *space = NULL;
    struct ks_problem q = p->problem;

    q.layer = p->by_layers ? -1 : q.layer;
    KS_TRY(ks_null_space_new(&q, p->options->kind, NULL, &space));
    ks_null_basis_bytes(space, n, &s->null, &s->nulling);
    s->null += (double)n; /* which coordinates are dead */
    s->nulling = most(s->nulling + (double)n,
                      ks_null_measure_bytes(ks_networks_parameters(&q.checkpoint->critic), n));
    s->directions = space->dimension;
    ks_null_space_free(space);
    return KS_OK;
}

/* `read`: bytes of the checkpoint's arrays, and of its file, if that stays in memory. */
static ks_status count(const struct ks_pipeline *p, double read, struct sizes *s)
{
    const struct ks_problem *q = &p->problem;
    const struct ks_networks *critics = &q->checkpoint->critic;
    const bool selected = q->critic >= 0 || q->layer >= 0 || q->arrays || q->kind->moving ||
                          p->by_layers;

    *s = (struct sizes){.vector = sizeof(double) * (double)p->budget.dimension,
                        .threads = (double)ks_primal_workers(q)};
    s->full = sizeof(double) * (double)ks_networks_parameters(critics);
    s->read = read + SMALL + (selected ? s->full : 0);
    s->reading = read + (p->file ? 0 : (double)p->budget.image);
    KS_TRY(ks_references_bytes(q->checkpoint, &q->checkpoint->references, &s->references));
    s->references += read;
    KS_TRY(ks_problem_bytes(q, selected, &s->of));
    if (measures_bounds(p) && p->bounds.rows == 0)
        KS_TRY(ks_gradient_bounds_bytes(q, &s->bounds, &s->measuring));
    return count_null_space(p, s);
}

/* --- demands --- */

static bool asks_for_f32(const struct ks_spectrum_options *o)
{
    return o->published || o->basis_f32;
}

/* Whether a Lanczos basis in float32 takes less than one in float64: not in few dimensions. */
static bool saves_memory(const struct ks_pipeline *p)
{
    const size_t n = p->budget.dimension, order = p->options->order;

    return ks_lanczos_bytes(n, order, true) < ks_lanczos_bytes(n, order, false);
}

/* The vectors of the bounds. */
static double certificates(const struct ks_pipeline *p)
{
    const struct ks_certificates c = {
        .n = p->budget.dimension, .probes = p->options->probes, .prefix = KS_STATISTICS_PREFIX};

    return ks_certificates_bytes(p->options->order, c);
}

/* Beside the operator: the Lanczos basis and what is computed with it; the dense matrix; or all
 * vectors of --apply and the file of their products, which is built in memory, and a factor and its
 * product. */
static double held_by_steps(const struct ks_pipeline *p, const struct sizes *s)
{
    const struct ks_spectrum_options *o = p->options;
    const size_t n = p->budget.dimension, steps = o->order < n ? o->order : n;
    double held = ks_lanczos_bytes(n, o->order, p->budget.basis_f32);

    if (p->factors)
        return 2 * (double)p->budget.vectors * s->full + 2 * s->vector;
    if (o->eigenvectors > 0) /* the vectors over all parameters, and the file of them */
        return held + ks_eigenvectors_bytes(p) + 2 * (double)o->eigenvectors * s->full + s->vector;
    if (o->exact)
        return s->null + ks_exact_bytes(n);
    held += s->null + ks_slq_bytes(o->probes + o->gradient_probe, o->order);
    if (!o->published)
        held += certificates(p) + ks_certificates_take_bytes(steps, s->directions);
    if (o->tolerances.n > 0)
        held += ks_samples_bytes(p, (size_t)s->threads) + s->threads * s->of.minibatch;
    return held + (o->gradient_probe ? s->vector : 0);
}

/* Beside the checkpoint, while products in float64 are computed with vectors that the steps gave.
 */
static double held_by_wide(const struct ks_pipeline *p, const struct sizes *s)
{
    const struct ks_spectrum_options *o = p->options;
    const size_t n = p->budget.dimension, minibatches = p->problem.minibatches;
    const double ritz = ks_slq_bytes(o->probes + o->gradient_probe, o->order);

    if (ks_pipeline_measures_rounding(o) && !p->factors)
        return ritz + s->of.wide.most + ks_lanczos_bytes(n, o->order, false);
    if (p->factors || (o->exact && !o->products_f32) || o->published)
        return 0;
    if (o->eigenvectors > 0)
        return s->of.wide.most + ks_eigenvectors_bytes(p) + s->vector;
    if (o->exact)
        return s->of.wide.most + 3 * s->vector + s->null + most(3 * s->vector, s->nulling);
    return s->null + ritz + certificates(p) +
           ks_certify_bytes(n, 2 * minibatches, o->gradient_probe) +
           ks_minibatches_bytes(n, minibatches) + (o->gradient_probe ? s->vector : 0) +
           s->threads * s->of.wide_minibatch;
}

static struct demand find_demand(const struct ks_pipeline *p, const struct sizes *s)
{
    const struct ks_spectrum_options *o = p->options;
    const double read = s->read + s->bounds;
    const double gradient = s->of.gradient + 2 * s->full;
    const bool stays = p->by_layers || o->exact; /* the operator, with its activations */
    struct demand d = {.before = most(most(s->reading, s->references), s->read + s->measuring),
                       .fixed = read + s->of.products.made};

    if (p->finds_gradient)
        d.before = most(d.before, read + gradient + s->full);
    if (p->finds_gradient && !p->factors)
        return (struct demand){.before = d.before};
    d.held = most(s->of.products.most - s->of.products.made, held_by_steps(p, s));
    if (!p->factors && o->eigenvectors == 0)
        d.held = most(d.held, s->nulling);
    if (o->gradient_probe)
        d.held = most(d.held, s->null + gradient);
    d.wide = read + held_by_wide(p, s) + (stays ? s->of.products.made : 0);
    if (o->eigenvectors > 0)
        d.wide = most(d.wide, read + gradient + (double)o->eigenvectors * s->vector);
    return d;
}

static double in_all(const struct demand *d)
{
    return most(most(d->before, d->fixed + d->held), d->wide);
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
static const char *too_large(const struct ks_pipeline *p, const struct sizes *s, double limit)
{
    struct ks_pipeline one = *p;
    struct demand d;

    one.budget.vectors = 1;
    d = find_demand(&one, s);
    return p->factors && in_all(&d) <= limit ? p->factors : p->path;
}

static ks_status refuse(const struct ks_pipeline *p, const struct sizes *s, double needed,
                        double limit)
{
    const struct ks_spectrum_options *o = p->options;

    return ks_fail(
        KS_MEMORY,
        "%s: --memory: expected at least %.0fK, found %.0fK: the checkpoint takes %.0fK, "
        "and the rest is for products%s in %zu dimensions",
        too_large(p, s, limit), ceil(needed / 1024), floor(limit / 1024), ceil(s->read / 1024),
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

ks_status ks_budget_check(const struct ks_pipeline *p, const struct ks_checkpoint *shapes,
                          double bytes)
{
    const double limit = find_limit(p, 0);
    struct ks_checkpoint c = *shapes;
    struct ks_pipeline q = *p;
    struct demand d;
    struct sizes s;

    q.checkpoint = &c;
    ks_pipeline_fill_problem(&q, p->options->layer);
    if (find_dimension(&q) != KS_OK) /* ks_pipeline_pose refuses it */
        q.budget.dimension = ks_networks_parameters(&c.critic);
    if (p->options->exact && q.budget.dimension > KS_EXACT_LIMIT) /* likewise */
        q.budget.dimension = 0;
    q.budget.basis_f32 = saves_memory(&q) || asks_for_f32(p->options);
    KS_TRY(ks_pipeline_name(p, count(&q, bytes + (p->file ? (double)p->budget.image : 0), &s)));
    d = find_demand(&q, &s);
    return in_all(&d) <= limit ? KS_OK : refuse(&q, &s, in_all(&d), limit);
}

ks_status ks_budget_divide(struct ks_pipeline *p)
{
    const struct ks_spectrum_options *o = p->options;
    struct ks_budget *b = &p->budget;
    const bool basis = !o->exact && !p->factors, asked = asks_for_f32(o);
    const double read = (double)(ks_alloc_total() - p->allocated_before);
    const double limit = find_limit(p, ks_alloc_total() - p->allocated_before);
    struct demand d;
    struct sizes s;

    b->basis_f32 = false;
    KS_TRY(count(p, 0, &s));
    s.read = read;
    d = find_demand(p, &s);
    b->squeezed = basis && !asked && d.fixed + d.held > limit && saves_memory(p);
    b->basis_f32 = basis && (asked || b->squeezed);
    if (b->basis_f32)
        d = find_demand(p, &s);
    b->fixed = (size_t)d.fixed;
    b->held = (size_t)d.held;
    b->kept = (size_t)most(limit - d.fixed - d.held, 0);
    b->wide = (size_t)most(limit - d.wide, 0);
    if (p->by_layers) /* both at a time */
        b->kept = b->wide = (b->kept < b->wide ? b->kept : b->wide) / 2;
    return KS_OK;
}
