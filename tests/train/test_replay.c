/* Replay: transitions are stored exactly, the oldest is overwritten first, all are drawn with the
 * same probability; windows of transitions, also drawn ahead of the next one; and the scale of
 * rewards against a direct variance. */
#include "test.h"

#include "core/memory.h"
#include "train/replay.h"
#include "train/returns.h"

enum { OBSERVATIONS = 2, CAPACITY = 10, DRAWS = 1000 };

/* Transition number k is recognizable in every array. */
static void add_as(struct ks_replay *replay, size_t k, float reward, float mask, bool last)
{
    float s[OBSERVATIONS] = {(float)k, (float)k + 0.5F}, a = -(float)k;
    float next_s[OBSERVATIONS] = {(float)k + 1, (float)k + 1.5F};

    assert_ok(
        ks_replay_add(replay, &(struct ks_transition){s, &a, next_s, reward, mask, .last = last}));
}

static void add(struct ks_replay *replay, size_t k)
{
    add_as(replay, k, 100 + (float)k, k % 2 == 0, false);
}

struct drawn {
    float s[DRAWS * OBSERVATIONS], a[DRAWS], next_s[DRAWS * OBSERVATIONS], mask[DRAWS];
    double reward[DRAWS];
};

static void draw(const struct ks_replay *replay, struct ks_rng *rng, size_t n, struct drawn *d)
{
    ks_replay_draw(replay, rng, &(struct ks_window){.n = n, .gamma = 0.5},
                   &(struct ks_rows){.n = DRAWS,
                                     .s = d->s,
                                     .a = d->a,
                                     .next_s = d->next_s,
                                     .mask = d->mask,
                                     .reward = d->reward});
}

/* The numbers of the drawn transitions are in low .. high and uniformly distributed: chi squared
 * with high - low degrees of freedom, below its 99.99% quantile for 9. */
static void check_drawn(const struct drawn *d, size_t low, size_t high)
{
    double count[64] = {0}, expected = (double)DRAWS / (double)(high - low + 1), chi2 = 0;

    for (size_t i = 0; i < DRAWS; i++) {
        size_t k = (size_t)-d->a[i];

        assert_in_range(k, low, high);
        assert_true(d->s[2 * i] == (float)k && d->s[2 * i + 1] == (float)k + 0.5F);
        assert_true(d->next_s[2 * i] == (float)k + 1 && d->next_s[2 * i + 1] == (float)k + 1.5F);
        assert_true(d->reward[i] == 100 + (double)k && d->mask[i] == (k % 2 == 0));
        count[k]++;
    }
    for (size_t k = low; k <= high; k++)
        chi2 += (count[k] - expected) * (count[k] - expected) / expected;
    assert_true(chi2 < 33.7);
}

TEST(test_draws)
{
    struct ks_rng rng = ks_rng_start(8, 0);
    KS_OWNED_BY(ks_replay_free) struct ks_replay *replay = NULL;
    struct drawn d;

    assert_ok(ks_replay_new(CAPACITY, OBSERVATIONS, 1, &replay));
    for (size_t k = 0; k < 4; k++)
        add(replay, k);
    draw(replay, &rng, 1, &d);
    check_drawn(&d, 0, 3); /* not full: only transitions that exist */
    assert_int_equal(rng.drawn, DRAWS);
    for (size_t k = 4; k < 23; k++)
        add(replay, k);
    draw(replay, &rng, 1, &d);
    check_drawn(&d, 13, 22); /* full: the last ten */
}

/* Transitions 0 .. 11 with reward k + 1 in episodes 0..2, 3, 4..8 (a terminal state at its
 * end), 9..; gamma 1/2: what a window of at most n from number t on gives, and where it ends. */
enum { MADE = 12 };
static const struct {
    size_t n;
    struct {
        double reward;
        float mask, next;
    } from[MADE];
} windows[] = {
    {3,
     {{1 + 1 + 0.75, 0.25F, 3},
      {2 + 1.5, 0.5F, 3}, /* the time limit */
      {3, 1, 3},
      {4, 1, 4},
      {5 + 3 + 1.75, 0.25F, 7},
      {6 + 3.5 + 2, 0.25F, 8},
      {7 + 4 + 2.25, 0, 9},
      {8 + 4.5, 0, 9}, /* the terminal state */
      {9, 0, 9},
      {10 + 5.5 + 3, 0.25F, 12},
      {11 + 6, 0.5F, 12}, /* the newest */
      {12, 1, 12}}},
    {100,
     {{1 + 1 + 0.75, 0.25F, 3},
      {2 + 1.5, 0.5F, 3},
      {3, 1, 3},
      {4, 1, 4},
      {5 + 3 + 1.75 + 1 + 0.5625, 0, 9},
      {6 + 3.5 + 2 + 1.125, 0, 9},
      {7 + 4 + 2.25, 0, 9},
      {8 + 4.5, 0, 9},
      {9, 0, 9},
      {10 + 5.5 + 3, 0.25F, 12},
      {11 + 6, 0.5F, 12},
      {12, 1, 12}}},
};

static void check_windows(const struct ks_replay *replay, size_t oldest)
{
    struct ks_rng rng = ks_rng_start(8, 3);

    for (size_t w = 0; w < 2; w++) {
        size_t seen[MADE] = {0};
        struct drawn d;

        draw(replay, &rng, windows[w].n, &d);
        for (size_t i = 0; i < DRAWS; i++) {
            size_t t = (size_t)-d.a[i];

            assert_in_range(t, oldest, MADE - 1);
            seen[t]++;
            assert_true(d.s[2 * i] == (float)t);
            assert_true(d.reward[i] == windows[w].from[t].reward);
            assert_true(d.mask[i] == windows[w].from[t].mask);
            assert_true(d.next_s[2 * i] == windows[w].from[t].next);
        }
        for (size_t t = oldest; t < MADE; t++)
            assert_true(seen[t] > 0);
    }
}

/* Replay not full; just full; overwritten, with windows across the end of the ring and with the
 * oldest transition next to the newest; and copied into another ring. */
TEST(test_windows)
{
    static const size_t capacity[] = {20, MADE, 8};
    KS_OWNED_BY(ks_replay_free) struct ks_replay *copy = NULL;
    struct ks_replay *replay;

    assert_ok(ks_replay_new(8, OBSERVATIONS, 1, &copy));
    ks_replay_clear(copy, MADE - 8);
    for (size_t c = 0; c < 3; c++) {
        assert_ok(ks_replay_new(capacity[c], OBSERVATIONS, 1, &replay));
        for (size_t k = 0; k < MADE; k++)
            add_as(replay, k, (float)k + 1, k != 8, k == 2 || k == 3 || k == 8);
        check_windows(replay, capacity[c] < MADE ? MADE - capacity[c] : 0);
        for (size_t k = MADE - 8; k < MADE && c == 2; k++) {
            size_t one = 1;

            assert_ok(ks_replay_put(copy, ks_replay_rows(replay, k % 8, &one)));
        }
        ks_replay_free(replay);
    }
    check_windows(copy, MADE - 8);
}

/* Rows drawn ahead of transition k are those drawn after it is added, unless one of them spans
 * transition k; only then nothing is drawn. */
static bool check_ahead(struct ks_replay *replay, size_t k, size_t n)
{
    enum { FEW = 3 };
    struct ks_window window = {.n = n, .gamma = 0.5};
    struct ks_rng rng = ks_rng_start(k, n), again = rng;
    float a[2][FEW], s[2][FEW * OBSERVATIONS], next_s[2][FEW * OBSERVATIONS], mask[2][FEW];
    double reward[2][FEW];
    struct ks_rows rows[2];
    bool drawn, spanned = false;

    for (size_t i = 0; i < 2; i++)
        rows[i] = (struct ks_rows){FEW, s[i], a[i], next_s[i], mask[i], reward[i]};
    drawn = ks_replay_draw_ahead(replay, &rng, &window, &rows[0]);
    add(replay, k);
    ks_replay_draw(replay, &again, &window, &rows[1]);
    for (size_t i = 0; i < FEW; i++)
        spanned = spanned || next_s[1][OBSERVATIONS * i] == (float)k + 1;
    assert_int_equal(drawn, !spanned);
    assert_true(!drawn || rng.drawn == again.drawn);
    for (size_t i = 0; i < FEW && drawn; i++) {
        assert_true(a[0][i] == a[1][i] && mask[0][i] == mask[1][i]);
        assert_true(reward[0][i] == reward[1][i]);
        for (size_t j = OBSERVATIONS * i; j < OBSERVATIONS * (i + 1); j++)
            assert_true(s[0][j] == s[1][j] && next_s[0][j] == next_s[1][j]);
    }
    return drawn;
}

/* While the ring fills, and once it is full. */
TEST(test_ahead)
{
    for (size_t n = 1; n <= CAPACITY + 1; n++) {
        KS_OWNED_BY(ks_replay_free) struct ks_replay *replay = NULL;
        size_t drawn = 0, times = 40;

        assert_ok(ks_replay_new(CAPACITY, OBSERVATIONS, 1, &replay));
        add(replay, 0);
        for (size_t k = 1; k <= times; k++)
            drawn += check_ahead(replay, k, n);
        assert_true(drawn < times);
        if (n <= CAPACITY / 2)
            assert_true(drawn > 0);
        else if (n >= CAPACITY)
            assert_int_equal(drawn, 0);
    }
}

TEST(test_capacity_of_one)
{
    struct ks_rng rng = ks_rng_start(8, 1);
    KS_OWNED_BY(ks_replay_free) struct ks_replay *replay = NULL;
    struct drawn d;

    assert_ok(ks_replay_new(1, OBSERVATIONS, 1, &replay));
    add(replay, 1);
    add(replay, 2);
    draw(replay, &rng, 1, &d);
    check_drawn(&d, 2, 2);
    draw(replay, &rng, 3, &d);
    check_drawn(&d, 2, 2);
}

/* Blocks are allocated when they are needed; a failure to allocate one is reported. */
TEST(test_out_of_memory)
{
    const float row[] = {1, 2, 3, 4, 5, 6, 7, 8};
    KS_OWNED_BY(ks_replay_free) struct ks_replay *replay = NULL;

    for (size_t n = 1; n <= 2; n++) {
        ks_alloc_fail_at(n);
        assert_int_equal(ks_replay_new(CAPACITY, OBSERVATIONS, 1, &replay), KS_MEMORY);
    }
    assert_ok(ks_replay_new(CAPACITY, OBSERVATIONS, 1, &replay));
    ks_alloc_fail_at(1);
    assert_int_equal(ks_replay_put(replay, row), KS_MEMORY);
    ks_alloc_fail_at(0);
    assert_int_equal(replay->count, 0);
    assert_ok(ks_replay_put(replay, row));
    assert_int_equal(replay->count, 1);
}

/* More transitions than a block holds are copied out in contiguous pieces and put into another
 * replay: the same slots hold the same. */
TEST(test_copy)
{
    enum { WIDE = 400000, MANY = 23, WIDE_CAPACITY = 7 }; /* 6 of them in a block */
    struct ks_replay *replay, *copy;
    float *s;

    s = hold(calloc(WIDE, sizeof *s));
    assert_ok(ks_replay_new(WIDE_CAPACITY, WIDE, 3, &replay));
    assert_true(replay->n_blocks > 1);
    for (size_t k = 0; k < MANY; k++) {
        s[0] = s[WIDE - 1] = (float)k;
        assert_ok(ks_replay_add(replay,
                                &(struct ks_transition){s, s, s, (float)k, 1, .last = k % 3 == 0}));
    }
    assert_ok(ks_replay_new(WIDE_CAPACITY, WIDE, 3, &copy));
    ks_replay_clear(copy, MANY - WIDE_CAPACITY);
    for (size_t k = MANY - WIDE_CAPACITY; k < MANY;) {
        size_t n = MANY - k;
        const float *rows = ks_replay_rows(replay, k % WIDE_CAPACITY, &n);

        assert_true(n >= 1 && n <= MANY - k);
        for (size_t i = 0; i < n; i++)
            assert_ok(ks_replay_put(copy, rows + i * replay->width));
        k += n;
    }
    assert_int_equal(copy->count, replay->count);
    assert_int_equal(copy->next, replay->next);
    for (size_t slot = 0; slot < WIDE_CAPACITY; slot++) {
        struct ks_transition a = ks_replay_get(replay, slot), b = ks_replay_get(copy, slot);

        assert_memory_equal(a.s, b.s, replay->width * sizeof *a.s);
        assert_true(b.reward == a.next_s[WIDE - 1] && b.mask == 1);
        assert_int_equal(b.last, (size_t)b.reward % 3 == 0);
    }
    ks_replay_free(replay);
    ks_replay_free(copy);
}

/* Episodes of 50 steps, far from zero, where a sum of squares would cancel. */
TEST(test_returns)
{
    enum { N = 500 };
    struct ks_rng rng = ks_rng_start(8, 2);
    struct ks_returns returns = {.g = 0};
    double g[N], last = 0, mean = 0, variance = 0;

    for (size_t i = 0; i < N; i++) {
        double reward = 1e5 + ks_rng_normal(&rng);
        bool done = i % 50 == 49;

        ks_returns_add(&returns, KS_SCALE_STD, 0.9, reward, done);
        last = g[i] = (done ? 0 : 0.9 * last) + reward;
        mean += g[i] / N;
    }
    for (size_t i = 0; i < N; i++)
        variance += (g[i] - mean) * (g[i] - mean) / N;
    assert_close(ks_returns_divisor(&returns, KS_SCALE_STD, 0), sqrt(variance) + 1e-8,
                 1e-10 * sqrt(variance));
}

/* Without returns, or with constant ones, the scale is 1e-8, not 0. */
TEST(test_no_deviation)
{
    struct ks_returns returns = {.g = 0};

    assert_close(ks_returns_divisor(&returns, KS_SCALE_STD, 0), 1e-8, 0);
    for (size_t i = 0; i < 10; i++)
        ks_returns_add(&returns, KS_SCALE_STD, 0.9, 0, false);
    assert_close(ks_returns_divisor(&returns, KS_SCALE_STD, 0), 1e-8, 0);
}
