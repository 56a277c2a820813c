#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <omp.h>

#include "core/blas.h"
#include "core/memory.h"
#include "library/library.h"
#include "operators/primal.h"

void kappascope_problem_defaults(struct kappascope_problem *problem)
{
    if (problem)
        *problem = (struct kappascope_problem){
            .kind = ks_operator_kinds[0].name, .scale = 1, .critic = -1, .layer = -1};
}

const char *kappascope_operator_kind(size_t i)
{
    for (const struct ks_operator_kind *k = ks_operator_kinds; k->name; k++)
        if (i-- == 0)
            return k->name;
    return NULL;
}

/* --- of a checkpoint --- */

static ks_status check_block(const char *name, int number, size_t most)
{
    if (number >= -1 && (number < 0 || (size_t)number <= most))
        return KS_OK;
    return ks_fail(KS_USAGE, "%s: expected 0 to %zu, or -1 for all, found %d", name, most, number);
}

static ks_status check_problem(const struct kappascope_problem *p, const struct ks_checkpoint *c)
{
    const struct KS(arch) *arch = c->critic.arch;

    if (p->precision < KAPPASCOPE_DEFAULT || p->precision > KAPPASCOPE_F64)
        return ks_fail(KS_USAGE, "precision: expected a kappascope_precision, found %d",
                       (int)p->precision);
    KS_TRY(ks_library_range("minibatches", p->minibatches, 0, c->minibatches));
    if (!(p->weight_decay >= 0 && p->weight_decay <= DBL_MAX))
        return ks_fail(KS_USAGE, "weight_decay: expected a number from 0, found %g",
                       p->weight_decay);
    if (!isfinite(p->scale) || p->scale == 0)
        return ks_fail(KS_USAGE, "scale: expected a number other than 0, found %g", p->scale);
    KS_TRY(check_block("critic", p->critic, c->critic.ensemble - 1));
    KS_TRY(check_block("layer", p->layer, arch->layer[arch->n_layers - 1].number));
    if (p->raw_rewards && !c->target_raw)
        return ks_fail(KS_FORMAT, "raw_rewards: the checkpoint has no /batch/target_raw");
    return KS_OK;
}

static struct kappascope_operator *start(struct kappascope_operator *a)
{
    a->options = ks_spectrum_options_defaults();
    a->p = (struct ks_pipeline){
        .options = &a->options, .path = "(memory)", .quiet = true, .in_library = true};
    return a;
}

static ks_status pose(const struct kappascope_problem *from, struct kappascope_operator *a)
{
    const struct ks_checkpoint *c = a->checkpoint->c;
    struct ks_spectrum_options *o = &a->options;
    struct ks_pipeline *p = &a->p;

    o->kind = ks_operator_kind_find(from->kind);
    if (!o->kind)
        return ks_fail(KS_USAGE, "kind: there is no operator '%s'", from->kind);
    KS_TRY(check_problem(from, c));
    a->data = *c;
    if (from->raw_rewards)
        a->data.target = c->target_raw;
    o->products_f32 = from->precision == KAPPASCOPE_DEFAULT ? !o->kind->wide
                                                            : from->precision == KAPPASCOPE_F32;
    o->batchnorm = from->evaluation ? KS_BATCHNORM_EVAL : KS_BATCHNORM_TRAIN;
    o->weight_decay = from->weight_decay;
    o->scale = from->scale;
    o->critic = from->critic;
    o->layer = from->layer;
    o->batches = from->minibatches;
    o->rewards = from->raw_rewards ? KS_REWARDS_RAW : KS_REWARDS_NORMALIZED;
    p->checkpoint = &a->data;
    p->path = a->checkpoint->path;
    p->raw = from->raw_rewards;
    memcpy(p->digest, a->checkpoint->digest, sizeof p->digest);
    p->minibatches = from->minibatches > 0 ? from->minibatches : c->minibatches;
    p->problem.minibatches = p->minibatches;
    return ks_pipeline_pose(p, o->layer);
}

/* Before anything large is allocated: the memory for activations. */
static ks_status find_memory(size_t asked, struct kappascope_operator *a)
{
    struct ks_operator *counted = NULL;
    struct ks_count least;
    ks_status status;

    ks_count_start(&least);
    status = ks_problem_operator(&a->p.problem, a->options.products_f32, 0, &counted);
    ks_count_end();
    ks_operator_free(counted);
    KS_TRY(status);
    KS_TRY(ks_library_fits("the operator", least.most));
    a->p.budget.kept = asked > 0
                           ? asked
                           : (size_t)(fmax((double)ks_memory_available("", 1) - least.most, 0) / 2);
    return KS_OK;
}

enum kappascope_status kappascope_operator_new(const struct kappascope_checkpoint *checkpoint,
                                               const struct kappascope_problem *problem,
                                               struct kappascope_operator **a)
{
    KS_POINTS;
    KS_OWNED_BY(kappascope_operator_free) struct kappascope_operator *made = NULL;

    KS_GIVEN(a);
    *a = NULL;
    KS_GIVEN(checkpoint);
    KS_GIVEN(problem);
    KS_GIVEN(problem->kind);
    KS_PUBLIC(ks_alloc(1, sizeof *made, &made));
    start(made)->checkpoint = checkpoint;
    KS_PUBLIC(pose(problem, made));
    KS_PUBLIC(find_memory(problem->memory, made));
    KS_PUBLIC(ks_blas_reserve((size_t)omp_get_max_threads()));
    KS_PUBLIC(ks_problem_operator(&made->p.problem, made->options.products_f32, made->p.budget.kept,
                                  &made->p.a));
    made->p.budget.wide = made->p.budget.kept -
                          (problem->memory > 0 ? ks_operator_kept(made->p.a) : 0);
    *a = made, made = NULL;
    return KAPPASCOPE_OK;
}

/* --- of the caller's products --- */

struct callback {
    kappascope_product product;
    void *context;
    size_t n;
};

static ks_status callback_apply(void *self, const double *v, double *out)
{
    const struct callback *c = self;
    int code = c->product(c->context, v, out);

    if (code != 0)
        return ks_fail(KS_RUN, "the operator's product returned %d", code);
    return ks_library_finite("the operator's product", c->n, out);
}

static ks_status make_callback(size_t n, kappascope_product product, void *context,
                               struct ks_operator **a)
{
    static const struct ks_operator CALLBACK = {.apply = callback_apply, .free = free};

    KS_TRY(ks_blas_reserve((size_t)omp_get_max_threads()));
    KS_TRY(ks_operator_new(&CALLBACK, sizeof(struct callback), a));
    (*a)->n = n;
    *(struct callback *)(*a)->self = (struct callback){
        .product = product, .context = context, .n = n};
    return KS_OK;
}

/* `exact` is for products in float32; NULL: there is none. */
static ks_status from_products(size_t n, kappascope_product product, kappascope_product exact,
                               bool in_f32, void *context, struct kappascope_operator **a)
{
    KS_OWNED_BY(kappascope_operator_free) struct kappascope_operator *made = NULL;

    KS_TRY(ks_library_range("n", n, 1, INT_MAX));
    KS_TRY(ks_alloc(1, sizeof *made, &made));
    KS_TRY(make_callback(n, product, context, &start(made)->p.a));
    if (exact)
        KS_TRY(make_callback(n, exact, context, &made->exact));
    made->p.wide = made->exact;
    made->options.products_f32 = in_f32;
    made->p.budget.dimension = n;
    *a = made, made = NULL;
    return KS_OK;
}

enum kappascope_status kappascope_operator_from_product(size_t n, kappascope_product product,
                                                        void *context,
                                                        struct kappascope_operator **a)
{

    KS_GIVEN(a);
    *a = NULL;
    KS_GIVEN(product);
    return (enum kappascope_status)from_products(n, product, NULL, false, context, a);
}

enum kappascope_status kappascope_operator_from_products(size_t n, kappascope_product product,
                                                         kappascope_product exact, void *context,
                                                         struct kappascope_operator **a)
{
    KS_GIVEN(a);
    *a = NULL;
    KS_GIVEN(product);
    return (enum kappascope_status)from_products(n, product, exact, true, context, a);
}

/* --- of both --- */

size_t kappascope_operator_dimension(const struct kappascope_operator *a)
{
    return a ? a->p.a->n : 0;
}

enum kappascope_status kappascope_operator_coordinates(const struct kappascope_operator *a,
                                                       size_t *index)
{
    const struct ks_selection *selection;

    KS_GIVEN(a);
    KS_GIVEN(index);
    selection = a->p.selection;
    for (size_t i = 0; i < a->p.a->n; i++)
        index[i] = selection && selection->index ? selection->index[i] : i;
    return KAPPASCOPE_OK;
}

enum kappascope_status kappascope_operator_apply(struct kappascope_operator *a, const double *x,
                                                 double *y)
{
    KS_POINTS;
    KS_GIVEN(a);
    KS_GIVEN(x);
    KS_GIVEN(y);
    KS_PUBLIC(ks_library_finite("x", a->p.a->n, x));
    KS_PUBLIC(ks_operator_apply(a->p.a, x, y));
    return (enum kappascope_status)ks_library_finite("A x", a->p.a->n, y);
}

void kappascope_operator_free(struct kappascope_operator *a)
{
    if (!a)
        return;
    ks_pipeline_close(&a->p);
    ks_operator_free(a->exact);
    free(a);
}
