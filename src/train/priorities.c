#include "train/priorities.h"

#include <math.h>
#include <stdlib.h>

#include "core/memory.h"

static const float SMALLEST = 1; /* deviations below this count as this */

ks_status ks_priorities_new(const struct ks_replay *replay, size_t horizon, double exponent,
                            struct ks_priorities **priorities)
{
    ks_status status = KS_OK;
    struct ks_priorities *p = NULL;

    *priorities = NULL;
    KS_GO(ks_alloc(1, sizeof *p, &p));
    p->replay = replay;
    p->horizon = horizon;
    p->exponent = exponent;
    p->largest = SMALLEST;
    for (p->leaves = 1; p->leaves < replay->capacity;)
        p->leaves *= 2;
    KS_GO(ks_alloc(replay->capacity, sizeof *p->priority, &p->priority));
    KS_GO(ks_alloc(2 * p->leaves, sizeof *p->tree, &p->tree));
    *priorities = p;
    return KS_OK;
done:
    ks_priorities_free(p);
    return status;
}

void ks_priorities_free(struct ks_priorities *p)
{
    if (!p)
        return;
    free(p->priority);
    free(p->tree);
    free(p);
}

/* The slot of the k-th transition before the newest one. */
static size_t before_newest(const struct ks_replay *r, size_t k)
{
    return (r->next + r->capacity - 1 - k % r->capacity) % r->capacity;
}

/* Whether a window can be taken from this slot, which is in use. */
static bool is_open(const struct ks_priorities *p, size_t slot)
{
    const struct ks_replay *r = p->replay;

    for (size_t k = 0; k < p->horizon; k++, slot = (slot + 1) % r->capacity) {
        const struct ks_transition t = ks_replay_get(r, slot);

        if (t.last)
            return t.mask == 0;
        if (slot == before_newest(r, 0))
            return false;
    }
    return true;
}

static double weight(const struct ks_priorities *p, size_t slot)
{
    return slot < p->replay->count && is_open(p, slot) ? (double)p->priority[slot] : 0;
}

static void set_leaf(struct ks_priorities *p, size_t slot)
{
    p->tree[p->leaves + slot] = weight(p, slot);
    for (size_t i = (p->leaves + slot) / 2; i > 0; i /= 2)
        p->tree[i] = p->tree[2 * i] + p->tree[2 * i + 1];
}

static void build(struct ks_priorities *p)
{
    for (size_t i = 0; i < p->leaves; i++)
        p->tree[p->leaves + i] = weight(p, i);
    for (size_t i = p->leaves; --i > 0;)
        p->tree[i] = p->tree[2 * i] + p->tree[2 * i + 1];
    p->built = true;
}

/* The windows of the transitions just before the new one may have become complete. */
void ks_priorities_add(struct ks_priorities *p)
{
    const struct ks_replay *r;
    size_t newest;

    if (!p)
        return;
    r = p->replay;
    newest = before_newest(r, 0);
    p->priority[newest] = p->largest;
    p->terminates = p->terminates || ks_replay_get(r, newest).mask == 0;
    for (size_t k = 0; k <= p->horizon && k < r->count && p->built; k++)
        set_leaf(p, before_newest(r, k));
}

/* The leaf at which the sum of the weights up to it exceeds x. A rounded x does not lead to a leaf
 * without weight. */
static size_t find(const struct ks_priorities *p, double x)
{
    size_t i = 1;

    while (i < p->leaves) {
        i *= 2;
        if (x >= p->tree[i] && p->tree[i + 1] > 0)
            x -= p->tree[i++];
    }
    return i - p->leaves;
}

void ks_priorities_draw(struct ks_priorities *p, struct ks_rng *rng, size_t n, size_t *slots)
{
    if (!p->built)
        build(p);
    for (size_t i = 0; i < n; i++)
        slots[i] = p->tree[1] > 0 ? find(p, ks_rng_uniform(rng, 0, p->tree[1]))
                                  : ks_rng_index(rng, p->replay->count);
}

void ks_priorities_set(struct ks_priorities *p, size_t n, const size_t *slots,
                       const float *deviation)
{
    for (size_t i = 0; i < n; i++) {
        const float d = fmaxf(deviation[i], SMALLEST);

        p->priority[slots[i]] = (float)pow((double)d, p->exponent);
        p->largest = fmaxf(p->largest, p->priority[slots[i]]);
        if (p->built)
            set_leaf(p, slots[i]);
    }
}
