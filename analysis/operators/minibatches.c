#include "operators/minibatches.h"

#include <stdio.h>
#include <stdlib.h>

#include <omp.h>

#include "core/memory.h"

ks_status ks_minibatches_new(struct ks_minibatches *set, size_t count)
{
    const size_t threads = (size_t)omp_get_max_threads();

    set->threads = threads < count ? threads : count;
    KS_TRY(ks_alloc(set->threads, sizeof *set->list, &set->list));
    for (size_t t = 0; t < set->threads; t++)
        KS_TRY(ks_alloc(set->n, sizeof(double), &set->list[t].out));
    return KS_OK;
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
    return ks_problem_operator(&s->problem, set->products_f32, NULL, set->memory, &s->a);
}

/* Saves the status and message of this thread. */
static void keep_status(struct ks_minibatch *s, ks_status status)
{
    s->status = status;
    if (status != KS_OK)
        snprintf(s->message, sizeof s->message, "%s", ks_error_text());
}

static ks_status first_failure(const struct ks_minibatches *set, size_t count)
{
    for (size_t t = 0; t < count; t++)
        if (set->list[t].status != KS_OK)
            return ks_fail(set->list[t].status, "%s", set->list[t].message);
    return KS_OK;
}

ks_status ks_minibatches_make(struct ks_minibatches *set, size_t first, size_t count)
{
#pragma omp parallel for num_threads((int)count) schedule(static, 1)
    for (size_t t = 0; t < count; t++)
        keep_status(&set->list[t], ks_minibatches_make_one(set, first + t, false, t));
    return first_failure(set, count);
}

ks_status ks_minibatches_apply(struct ks_minibatches *set, size_t count, const double *const *v)
{
#pragma omp parallel for num_threads((int)count) schedule(static, 1)
    for (size_t t = 0; t < count; t++)
        keep_status(&set->list[t], ks_operator_apply(set->list[t].a, v[t], set->list[t].out));
    return first_failure(set, count);
}

void ks_minibatches_clear(struct ks_minibatches *set)
{
    for (size_t t = 0; set->list && t < set->threads; t++) {
        ks_operator_free(set->list[t].a);
        free(set->list[t].out);
    }
    free(set->list);
    set->list = NULL;
}
