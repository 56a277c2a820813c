#include "operators/minibatches.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <cblas.h>
#include <omp.h>

static void lay_out(struct ks_arena *arena, void *object)
{
    struct ks_minibatches *set = object;

    for (size_t t = 0; t < set->threads; t++)
        set->list[t].out = KS_TAKE(arena, set->n, double);
}

ks_status ks_minibatches_new(struct ks_minibatches *set, size_t count)
{
    const size_t threads = (size_t)omp_get_max_threads();

    set->threads = threads < count ? threads : count;
    KS_TRY(ks_alloc(set->threads, sizeof *set->list, &set->list));
    KS_TRY(ks_alloc(set->threads, sizeof *set->v, &set->v));
    return ks_arena_make(&set->arena, lay_out, set);
}

ks_status ks_minibatches_make_one(struct ks_minibatches *set, size_t minibatch, bool decays,
                                  size_t at)
{
    const struct ks_problem *all = set->problem;
    struct ks_minibatch *s = &set->list[at];

    ks_operator_free(s->a);
    s->a = NULL;
    s->checkpoint = ks_checkpoint_minibatch(all->checkpoint, minibatch);
    s->problem = *all;
    s->problem.checkpoint = &s->checkpoint;
    s->problem.minibatches = 1;
    s->problem.other_minibatches += all->minibatches - 1;
    s->problem.omits_decay = !decays;
    return ks_problem_operator(&s->problem, set->products_f32, set->memory, &s->a);
}

/* Saves the status and message of this thread. */
static void keep_status(struct ks_minibatch *s, ks_status status)
{
    s->status = status;
    if (status != KS_OK)
        snprintf(s->message, sizeof s->message, "%s", ks_error_text());
}

static ks_status first_failure(const struct ks_minibatches *set)
{
    for (size_t t = 0; t < set->made; t++)
        if (set->list[t].status != KS_OK)
            return ks_fail(set->list[t].status, "%s", set->list[t].message);
    return KS_OK;
}

ks_status ks_minibatches_make(struct ks_minibatches *set, size_t first, size_t end)
{
    const size_t count = end - first < set->threads ? end - first : set->threads;

    set->made = count;
#pragma omp parallel for if (!ks_counting()) num_threads((int)count) schedule(static, 1)
    for (size_t t = 0; t < count; t++)
        keep_status(&set->list[t], ks_minibatches_make_one(set, first + t, false, t));
    return first_failure(set);
}

ks_status ks_minibatches_apply(struct ks_minibatches *set, const double *const *v)
{
#pragma omp parallel for num_threads((int)set->made) schedule(static, 1)
    for (size_t t = 0; t < set->made; t++)
        keep_status(&set->list[t], ks_operator_apply(set->list[t].a, v[t], set->list[t].out));
    return first_failure(set);
}

/* Vector k with minibatches [first, first + count), one per thread. */
static ks_status add_vector(struct ks_minibatches *set, const struct ks_minibatch_products *p,
                            size_t k, size_t first)
{
    const int n = (int)set->n;
    const double all = (double)ks_problem_minibatches(set->problem);
    const double square = cblas_ddot(n, p->v[k], 1, p->v[k], 1);

    for (size_t t = 0; t < set->made; t++)
        set->v[t] = p->v[k];
    KS_TRY(ks_minibatches_apply(set, set->v));
    for (size_t t = 0; t < set->made; t++) {
        const double *out = set->list[t].out;

        p->quotient[k][first + t] = all * cblas_ddot(n, p->v[k], 1, out, 1) / square;
        if (p->image)
            cblas_daxpy(n, 1, out, 1, p->image[k], 1);
    }
    return KS_OK;
}

ks_status ks_minibatches_multiply(struct ks_minibatches *set, size_t begin, size_t end,
                                  const struct ks_minibatch_products *p)
{
    for (size_t first = begin; first < end; first += set->threads) {
        KS_TRY(ks_minibatches_make(set, first, end));
        if (ks_counting()) /* the following ones replace these */
            return KS_OK;
        for (size_t k = 0; k < p->vectors; k++)
            if (p->v[k])
                KS_TRY(add_vector(set, p, k, first));
    }
    return KS_OK;
}

double ks_minibatches_mean(size_t count, const double *quotient, double *se)
{
    const double all = (double)count;
    double mean = 0, square = 0;

    for (size_t i = 0; i < count; i++)
        mean += quotient[i] / all;
    for (size_t i = 0; i < count; i++)
        square += (quotient[i] - mean) * (quotient[i] - mean);
    *se = all > 1 ? sqrt(square / (all - 1) / all) : NAN;
    return mean;
}

void ks_minibatches_clear(struct ks_minibatches *set)
{
    for (size_t t = 0; set->list && t < set->threads; t++)
        ks_operator_free(set->list[t].a);
    ks_arena_free(&set->arena);
    free(set->list);
    free(set->v);
    set->list = NULL, set->v = NULL;
}
