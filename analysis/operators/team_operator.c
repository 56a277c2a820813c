/* The sum of the operators of a team's ranks. */
#include <stdlib.h>

#include "core/memory.h"
#include "operators/operator.h"

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

static ks_status sum_part(void *self, const double *v, double *out)
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
        .prepare = sum_prepare, .apply = sum_apply, .part = sum_part, .free = sum_free};
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
