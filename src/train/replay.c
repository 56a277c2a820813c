#include "train/replay.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "env/env.h"

enum { BLOCK_BYTES = 1 << 24 };

ks_status ks_replay_new(size_t capacity, size_t observations, size_t actions,
                        struct ks_replay **replay)
{
    _Static_assert(KS_FRAME % sizeof(float) == 0, "a frame must fill whole floats");
    const bool frames = observations == 0;
    const size_t width = (frames ? KS_FRAME / sizeof(float) : 2 * observations) + actions + 3;
    const size_t rows = BLOCK_BYTES / (width * sizeof(float)) + 1;
    KS_OWNED_BY(ks_replay_free) struct ks_replay *r = NULL;

    assert(capacity > 0);
    *replay = NULL;
    KS_TRY(ks_alloc(1, sizeof *r, &r));
    r->capacity = capacity;
    r->observations = frames ? KS_FRAMES * KS_FRAME : observations;
    r->actions = actions;
    r->frames = frames;
    r->width = width;
    r->block_rows = rows < capacity ? rows : capacity;
    r->n_blocks = (capacity + r->block_rows - 1) / r->block_rows;
    KS_TRY(ks_alloc(r->n_blocks, sizeof *r->block, &r->block));
    *replay = r, r = NULL;
    return KS_OK;
}

void ks_replay_free(struct ks_replay *r)
{
    if (!r)
        return;
    for (size_t i = 0; r->block && i < r->n_blocks; i++)
        free(r->block[i]);
    free(r->block);
    free(r);
}

static float *row_at(const struct ks_replay *r, size_t slot)
{
    return r->block[slot / r->block_rows] + slot % r->block_rows * r->width;
}

/* Takes the slot for the next transition. */
static ks_status next_row(struct ks_replay *r, float **row)
{
    float **block = &r->block[r->next / r->block_rows];

    if (!*block)
        KS_TRY(ks_alloc(r->block_rows * r->width, sizeof **block, block));
    *row = row_at(r, r->next);
    r->next = (r->next + 1) % r->capacity;
    r->count += r->count < r->capacity;
    r->added++;
    return KS_OK;
}

/* What a row says of its place in the episode. */
enum { GOES_ON, LAST, ONLY_FRAME };

ks_status ks_replay_add(struct ks_replay *r, const struct ks_transition *t)
{
    const size_t seen = r->observations * sizeof(float), acted = r->actions * sizeof(float);
    float *row, *rest;

    KS_TRY(next_row(r, &row));
    rest = row + r->width - 3;
    if (r->frames)
        memcpy(row, t->frame, KS_FRAME);
    else
        memcpy(row, t->s, seen);
    row += r->frames ? KS_FRAME / sizeof(float) : r->observations;
    if (t->only_frame)
        memset(row, 0, acted);
    else
        memcpy(row, t->a, acted);
    if (!r->frames)
        memcpy(row + r->actions, t->next_s, seen);
    rest[0] = t->reward;
    rest[1] = t->mask;
    rest[2] = t->only_frame ? ONLY_FRAME : t->last ? LAST : GOES_ON;
    return KS_OK;
}

struct ks_transition ks_replay_get(const struct ks_replay *r, size_t slot)
{
    const float *row = row_at(r, slot), *rest = row + r->width - 3;
    struct ks_transition t = {.reward = rest[0],
                              .mask = rest[1],
                              .last = rest[2] != GOES_ON,
                              .only_frame = rest[2] == ONLY_FRAME};

    if (r->frames) {
        t.frame = (const uint8_t *)row;
        t.a = row + KS_FRAME / sizeof(float);
    } else {
        t.s = row;
        t.a = row + r->observations;
        t.next_s = t.a + r->actions;
    }
    return t;
}

size_t ks_replay_before_newest(const struct ks_replay *r, size_t k)
{
    return (r->next + r->capacity - 1 - k % r->capacity) % r->capacity;
}

static double reward_of(const struct ks_transition *t, const struct ks_window *window)
{
    return window->drops_last && t->mask == 0 ? 0 : (double)t->reward;
}

size_t ks_replay_take(const struct ks_replay *r, const struct ks_window *window, size_t slot,
                      const struct ks_rows *rows, size_t i)
{
    size_t observations = r->observations, newest = ks_replay_before_newest(r, 0);
    struct ks_transition t = ks_replay_get(r, slot);
    double reward = reward_of(&t, window), discount = 1;

    if (!r->frames)
        memcpy(rows->s + i * observations, t.s, observations * sizeof *t.s);
    memcpy(rows->a + i * r->actions, t.a, r->actions * sizeof *t.a);
    for (size_t k = 1; k < window->n && !t.last && slot != newest; k++) {
        slot = (slot + 1) % r->capacity;
        t = ks_replay_get(r, slot);
        discount *= window->gamma;
        reward += discount * reward_of(&t, window);
    }
    if (!r->frames)
        memcpy(rows->next_s + i * observations, t.next_s, observations * sizeof *t.s);
    rows->reward[i] = reward;
    rows->mask[i] = (float)discount * t.mask;
    return slot;
}

void ks_replay_unroll(const struct ks_replay *r, size_t slot, const struct ks_windows *w, size_t i)
{
    const size_t obs = r->observations, newest = ks_replay_before_newest(r, 0);
    struct ks_transition t = ks_replay_get(r, slot);
    bool ended = false;

    assert(!r->frames);
    memcpy(w->s + i * obs, t.s, obs * sizeof *t.s);
    for (size_t k = 0; k < w->steps; k++) {
        const size_t at = k * w->batch + i;

        memcpy(w->a + at * r->actions, t.a, r->actions * sizeof *t.a);
        memcpy(w->s + (at + w->batch) * obs, t.next_s, obs * sizeof *t.s);
        w->reward[at] = t.reward;
        w->mask[at] = t.mask;
        w->kept[at] = !ended;
        ended = ended || t.last || slot == newest;
        if (!ended) {
            slot = (slot + 1) % r->capacity;
            t = ks_replay_get(r, slot);
        }
    }
}

double ks_replay_mean_reward(const struct ks_replay *r)
{
    double sum = 0;
    size_t n = 0;

    for (size_t slot = 0; slot < r->count; slot++) {
        const struct ks_transition t = ks_replay_get(r, slot);

        sum += fabs((double)t.reward);
        n += !t.only_frame;
    }
    return sum / (double)n;
}

/* --- frames --- */

/* The number of rows that are older than that in a slot. */
static size_t older(const struct ks_replay *r, size_t slot)
{
    return (slot + r->count + r->capacity - r->next) % r->capacity;
}

static size_t before(const struct ks_replay *r, size_t slot)
{
    return (slot + r->capacity - 1) % r->capacity;
}

/* Whether a window of `steps` transitions of one episode starts at a slot, with its last state in
 * the row behind it. */
static bool is_whole(const struct ks_replay *r, size_t slot, size_t steps)
{
    for (size_t k = 0; k < steps; k++, slot = (slot + 1) % r->capacity) {
        const struct ks_transition t = ks_replay_get(r, slot);

        if (t.only_frame || (t.last && k + 1 < steps) || slot == ks_replay_before_newest(r, 0))
            return false;
    }
    return true;
}

ks_status ks_replay_draw_frames(const struct ks_replay *r, struct ks_rng *rng, size_t steps,
                                size_t margin, size_t n, const struct ks_drawn *drawn)
{
    const size_t room = r->capacity - r->count, most = 1000;
    const size_t first = room < margin ? margin - room : 0;

    for (size_t i = 0; i < n; i++) {
        size_t *slot = &drawn->slot[i], tries = 0;

        do {
            if (r->count <= first || tries++ == most)
                return ks_fail(KS_RUN,
                               "replay: hardly any of its %zu rows starts %zu agent steps of an "
                               "episode",
                               r->count, steps);
            *slot = ks_rng_index(rng, r->count);
        } while (older(r, *slot) < first || !is_whole(r, *slot, steps));
        for (size_t k = 0; k < KS_SHIFTS; k++)
            drawn->shift[i][k] = (uint8_t)ks_rng_index(rng, 2 * KS_SHIFT + 1);
    }
    return KS_OK;
}

/* The place in a line of `KS_FRAME_SIDE` pixels that is seen at place i after a shift. */
static size_t shifted(size_t i, size_t shift)
{
    const size_t at = i + shift;

    return at < KS_SHIFT                       ? 0
           : at - KS_SHIFT < KS_FRAME_SIDE - 1 ? at - KS_SHIFT
                                               : KS_FRAME_SIDE - 1;
}

static void see_frame(const uint8_t *frame, size_t x, size_t y, float *s)
{
    const size_t side = KS_FRAME_SIDE, channels = KS_FRAME / (side * side);

    for (size_t c = 0; c < channels; c++)
        for (size_t i = 0; i < side; i++) {
            const uint8_t *line = frame + (c * side + shifted(i, y)) * side;

            for (size_t j = 0; j < side; j++)
                *s++ = ks_pixel(line[shifted(j, x)]);
        }
}

void ks_replay_see(const struct ks_replay *r, size_t slot, size_t x, size_t y, float *s)
{
    assert(r->frames);
    for (size_t k = KS_FRAMES; k-- > 0;) {
        const size_t last = before(r, slot);

        see_frame(ks_replay_get(r, slot).frame, x, y, s + k * KS_FRAME);
        if (older(r, slot) > 0 && !ks_replay_get(r, last).only_frame)
            slot = last;
    }
}

void ks_replay_draw(const struct ks_replay *r, struct ks_rng *rng, const struct ks_window *window,
                    const struct ks_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++)
        ks_replay_take(r, window, ks_rng_index(rng, r->count), rows, i);
}

bool ks_replay_draw_ahead(const struct ks_replay *r, struct ks_rng *rng,
                          const struct ks_window *window, const struct ks_rows *rows)
{
    size_t count = r->count < r->capacity ? r->count + 1 : r->capacity;
    struct ks_rng look = *rng;

    for (size_t i = 0; i < rows->n; i++)
        if ((r->next + r->capacity - ks_rng_index(&look, count)) % r->capacity < window->n)
            return false;
    for (size_t i = 0; i < rows->n; i++)
        ks_replay_take(r, window, ks_rng_index(rng, count), rows, i);
    return true;
}

const float *ks_replay_rows(const struct ks_replay *r, size_t slot, size_t *n)
{
    size_t block_end = (slot / r->block_rows + 1) * r->block_rows;
    size_t end = block_end < r->capacity ? block_end : r->capacity;

    *n = *n < end - slot ? *n : end - slot;
    return row_at(r, slot);
}

void ks_replay_clear(struct ks_replay *r, size_t k)
{
    r->count = 0;
    r->next = k % r->capacity;
    r->added = k;
}

ks_status ks_replay_put(struct ks_replay *r, const float *from)
{
    float *row;

    KS_TRY(next_row(r, &row));
    memcpy(row, from, r->width * sizeof *row);
    return KS_OK;
}

static const float SMALLEST = 1; /* deviations below this count as this */

ks_status ks_priorities_new(const struct ks_replay *replay, size_t horizon, double exponent,
                            struct ks_priorities **priorities)
{
    KS_OWNED_BY(ks_priorities_free) struct ks_priorities *p = NULL;

    *priorities = NULL;
    KS_TRY(ks_alloc(1, sizeof *p, &p));
    p->replay = replay;
    p->horizon = horizon;
    p->exponent = exponent;
    p->largest = SMALLEST;
    for (p->leaves = 1; p->leaves < replay->capacity;)
        p->leaves *= 2;
    KS_TRY(ks_alloc(replay->capacity, sizeof *p->priority, &p->priority));
    KS_TRY(ks_alloc(2 * p->leaves, sizeof *p->tree, &p->tree));
    *priorities = p, p = NULL;
    return KS_OK;
}

void ks_priorities_free(struct ks_priorities *p)
{
    if (!p)
        return;
    free(p->priority);
    free(p->tree);
    free(p);
}

/* Whether a window can be taken from this slot, which is in use. */
static bool is_open(const struct ks_priorities *p, size_t slot)
{
    const struct ks_replay *r = p->replay;

    for (size_t k = 0; k < p->horizon; k++, slot = (slot + 1) % r->capacity) {
        const struct ks_transition t = ks_replay_get(r, slot);

        if (t.last)
            return t.mask == 0;
        if (slot == ks_replay_before_newest(r, 0))
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
    newest = ks_replay_before_newest(r, 0);
    p->priority[newest] = p->largest;
    p->terminates = p->terminates || ks_replay_get(r, newest).mask == 0;
    for (size_t k = 0; k <= p->horizon && k < r->count && p->built; k++)
        set_leaf(p, ks_replay_before_newest(r, k));
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
