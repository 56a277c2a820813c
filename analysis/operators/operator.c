/* Allocation and dispatch of operators; the operators themselves are in products/. */
#include "operators/operator.h"

#include <stdlib.h>

#include "core/memory.h"

ks_status ks_operator_new(const struct ks_operator *prototype, size_t size, struct ks_operator **a)
{
    ks_status status;

    KS_TRY(ks_alloc(1, sizeof **a, a));
    **a = *prototype;
    status = ks_alloc(1, size, &(*a)->self);
    if (status != KS_OK) {
        free(*a);
        *a = NULL;
    }
    return status;
}

ks_status ks_operator_prepare(const struct ks_operator *a, size_t memory)
{
    return a->prepare ? a->prepare(a->self, memory) : KS_OK;
}

ks_status ks_operator_apply(const struct ks_operator *a, const double *v, double *out)
{
    return a->apply(a->self, v, out);
}

struct shared {
    const struct ks_operator *a;
};

static ks_status shared_prepare(void *self, size_t memory)
{
    return ks_operator_prepare(((struct shared *)self)->a, memory);
}

static ks_status shared_apply(void *self, const double *v, double *out)
{
    return ks_operator_apply(((struct shared *)self)->a, v, out);
}

ks_status ks_operator_share(const struct ks_operator *a, struct ks_operator **shared)
{
    static const struct ks_operator SHARED = {
        .prepare = shared_prepare, .apply = shared_apply, .free = free};

    KS_TRY(ks_operator_new(&SHARED, sizeof(struct shared), shared));
    ((struct shared *)(*shared)->self)->a = a;
    (*shared)->n = a->n;
    return KS_OK;
}

void ks_operator_free(struct ks_operator *a)
{
    if (!a)
        return;
    if (a->free)
        a->free(a->self);
    free(a);
}

/* --- the sum of the operators of a team's ranks --- */

struct team_sum {
    struct ks_operator *a; /* this rank's part; owned */
    const struct ks_team *team;
    double *scratch;
};

static void sum_free(void *self)
{
    struct team_sum *s = self;

    ks_operator_free(s->a);
    free(s->scratch);
    free(s);
}

static ks_status sum_prepare(void *self, size_t memory)
{
    return ks_operator_prepare(((struct team_sum *)self)->a, memory);
}

static ks_status sum_share(void *self, const double *v, double *out)
{
    return ks_operator_apply(((struct team_sum *)self)->a, v, out);
}

static ks_status sum_apply(void *self, const double *v, double *out)
{
    struct team_sum *s = self;

    KS_TRY(ks_team_agree(s->team, ks_operator_apply(s->a, v, out)));
    ks_team_sum_vector(s->team, s->a->n, s->scratch, out);
    return KS_OK;
}

ks_status ks_team_operator_new(struct ks_operator *a, const struct ks_team *team,
                               struct ks_operator **sum)
{
    static const struct ks_operator SUM = {
        .prepare = sum_prepare, .apply = sum_apply, .share = sum_share, .free = sum_free};
    ks_status status = KS_OK;
    struct ks_operator *total = NULL;
    struct team_sum *s;

    *sum = NULL;
    if (ks_team_size(team) == 1) {
        *sum = a;
        return KS_OK;
    }
    KS_GO(ks_operator_new(&SUM, sizeof *s, &total));
    total->n = a->n;
    total->team = team;
    s = total->self;
    s->a = a, a = NULL;
    s->team = team;
    KS_GO(ks_alloc(ks_team_scratch(team, total->n), sizeof *s->scratch, &s->scratch));
    *sum = total, total = NULL;
done:
    ks_operator_free(a);
    ks_operator_free(total);
    return status;
}
