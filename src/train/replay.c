#include "ks/replay.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "ks/memory.h"

ks_status ks_replay_new(size_t capacity, size_t observations, size_t actions,
                        struct ks_replay **replay)
{
    ks_status status = KS_OK;
    struct ks_replay *r = NULL;

    assert(capacity > 0);
    *replay = NULL;
    KS_GO(ks_alloc(1, sizeof *r, &r));
    r->capacity = capacity;
    r->observations = observations;
    r->actions = actions;
    KS_GO(ks_alloc(capacity, observations * sizeof *r->s, &r->s));
    KS_GO(ks_alloc(capacity, actions * sizeof *r->a, &r->a));
    KS_GO(ks_alloc(capacity, observations * sizeof *r->next_s, &r->next_s));
    KS_GO(ks_alloc(capacity, sizeof *r->reward, &r->reward));
    KS_GO(ks_alloc(capacity, sizeof *r->mask, &r->mask));
    *replay = r;
    return KS_OK;
done:
    ks_replay_free(r);
    return status;
}

void ks_replay_free(struct ks_replay *r)
{
    if (!r)
        return;
    free(r->s);
    free(r->a);
    free(r->next_s);
    free(r->reward);
    free(r->mask);
    free(r);
}

static void copy_row(size_t n, const float *from, size_t from_row, float *to, size_t to_row)
{
    memcpy(to + to_row * n, from + from_row * n, n * sizeof *to);
}

void ks_replay_add(struct ks_replay *r, const float *s, const float *a, double reward, float mask,
                   const float *next_s)
{
    copy_row(r->observations, s, 0, r->s, r->next);
    copy_row(r->actions, a, 0, r->a, r->next);
    copy_row(r->observations, next_s, 0, r->next_s, r->next);
    r->reward[r->next] = (float)reward;
    r->mask[r->next] = mask;
    r->next = (r->next + 1) % r->capacity;
    r->count += r->count < r->capacity;
}

void ks_replay_draw(const struct ks_replay *r, struct ks_rng *rng, const struct ks_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        size_t k = ks_rng_index(rng, r->count);

        copy_row(r->observations, r->s, k, rows->s, i);
        copy_row(r->actions, r->a, k, rows->a, i);
        copy_row(r->observations, r->next_s, k, rows->next_s, i);
        rows->reward[i] = (double)r->reward[k];
        rows->mask[i] = r->mask[k];
    }
}
