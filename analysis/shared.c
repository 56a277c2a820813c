/* The operator of a sum that a team shares. */
#include <stdlib.h>

#include "ks/memory.h"
#include "ks/operator.h"

struct shared {
    struct ks_operator *a; /* owned */
    const struct ks_team *team;
    double *room;
};

static void shared_free(void *self)
{
    struct shared *s = self;

    if (!s)
        return;
    ks_operator_free(s->a);
    free(s->room);
    free(s);
}

static ks_status shared_prepare(void *self, size_t memory)
{
    return ks_operator_prepare(((struct shared *)self)->a, memory);
}

static ks_status shared_part(void *self, const double *v, double *out)
{
    return ks_operator_apply(((struct shared *)self)->a, v, out);
}

static ks_status shared_apply(void *self, const double *v, double *out)
{
    struct shared *s = self;

    KS_TRY(ks_team_agree(s->team, ks_operator_apply(s->a, v, out)));
    ks_team_sum_whole(s->team, s->a->n, s->room, out);
    return KS_OK;
}

ks_status ks_operator_share(struct ks_operator *a, const struct ks_team *team,
                            struct ks_operator **shared)
{
    ks_status status = KS_OK;
    struct ks_operator *sum = NULL;
    struct shared *s = NULL;

    *shared = NULL;
    if (ks_team_size(team) == 1) {
        *shared = a;
        return KS_OK;
    }
    KS_GO(ks_alloc(1, sizeof *s, &s));
    s->a = a, a = NULL;
    s->team = team;
    KS_GO(ks_alloc(ks_team_room(team, s->a->n), sizeof *s->room, &s->room));
    KS_GO(ks_alloc(1, sizeof *sum, &sum));
    *sum = (struct ks_operator){.n = s->a->n,
                                .self = s,
                                .team = team,
                                .prepare = shared_prepare,
                                .apply = shared_apply,
                                .part = shared_part,
                                .free = shared_free};
    *shared = sum;
    return KS_OK;
done:
    ks_operator_free(a);
    shared_free(s);
    return status;
}
