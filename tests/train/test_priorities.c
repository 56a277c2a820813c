/* Prioritized replay: which slots can be drawn, with which probabilities, and the windows taken
 * there. */
#include "test.h"

#include "train/replay.h"

enum { CAPACITY = 37, HORIZON = 5, MADE = 400, BATCH = 16 };
static const double EXPONENT = 0.4;

/* Transition number k is recognizable in its arrays. */
static struct ks_transition number(size_t k, float s[3])
{
    s[0] = (float)k, s[1] = -(float)k, s[2] = (float)k + 1;
    return (struct ks_transition){s, s + 1, s + 2, 100 + (float)k, 1, .last = false};
}

/* Which transitions the published code of MR.Q draws, by number: a flag is set when the window of a
 * transition has passed, and the flags of an episode's last ones are set or cleared at its end. */
struct flags {
    bool open[MADE];
    size_t length; /* of the episode so far */
};

static void flag(struct flags *f, size_t k, bool last, bool terminal)
{
    f->open[k] = false;
    f->length++;
    if (f->length > HORIZON)
        f->open[k - HORIZON] = true;
    if (!last)
        return;
    for (size_t j = 0; j < f->length && j < HORIZON; j++)
        f->open[k - j] = terminal;
    f->length = 0;
}

/* The first slot up to which the weights sum to more than x. */
static size_t search(const double *weight, double x)
{
    double sum = 0;
    size_t last = 0;

    for (size_t slot = 0; slot < CAPACITY; slot++) {
        sum += weight[slot];
        if (weight[slot] > 0 && sum > x)
            return slot;
        last = weight[slot] > 0 ? slot : last;
    }
    return last;
}

/* Draws a minibatch and compares it with a linear search; sets new priorities of it. */
static void check_draw(struct ks_priorities *p, const struct flags *f, size_t made, double *weight,
                       float *largest)
{
    double open[CAPACITY] = {0}, total = 0;
    struct ks_rng rng = ks_rng_start(made, 3), again = rng;
    float deviation[BATCH];
    size_t slots[BATCH];

    for (size_t k = made > CAPACITY ? made - CAPACITY : 0; k < made; k++)
        open[k % CAPACITY] = f->open[k] ? weight[k % CAPACITY] : 0;
    for (size_t slot = 0; slot < CAPACITY; slot++)
        total += open[slot];
    ks_priorities_draw(p, &rng, BATCH, slots);
    assert_int_equal(rng.drawn, BATCH);
    if (total == 0)
        return;
    for (size_t i = 0; i < BATCH; i++) {
        assert_int_equal(slots[i], search(open, ks_rng_uniform(&again, 0, total)));
        assert_true(open[slots[i]] > 0);
        deviation[i] = (float)(made % 50) / 4 * (float)i;
    }
    ks_priorities_set(p, BATCH, slots, deviation);
    for (size_t i = 0; i < BATCH; i++) {
        const float d = deviation[i] > 1 ? deviation[i] : 1;

        weight[slots[i]] = (double)(float)pow((double)d, EXPONENT);
        *largest = fmaxf(*largest, (float)weight[slots[i]]);
    }
}

/* Episodes of random lengths that end in either way, through several rounds of the ring. Half of
 * the time the tree is built anew. */
TEST(test_draws)
{
    struct ks_rng rng = ks_rng_start(8, 8);
    KS_OWNED_BY(ks_priorities_free) struct ks_priorities *p = NULL;
    KS_OWNED_BY(ks_replay_free) struct ks_replay *replay = NULL;
    struct flags f = {.length = 0};
    double weight[CAPACITY] = {0};
    size_t ends = 0, terminal_ends = 0;
    float largest = 1;

    assert_ok(ks_replay_new(CAPACITY, 1, 1, &replay));
    assert_ok(ks_priorities_new(replay, HORIZON, EXPONENT, &p));
    for (size_t k = 0; k < MADE; k++) {
        float s[3];
        struct ks_transition t = number(k, s);
        const bool terminal = ks_rng_index(&rng, 2) == 0;

        t.last = ks_rng_index(&rng, k < MADE / 2 ? 4 : 15) == 0;
        t.mask = t.last && terminal ? 0 : 1;
        assert_ok(ks_replay_add(replay, &t));
        ks_priorities_add(p);
        flag(&f, k, t.last, terminal);
        weight[k % CAPACITY] = (double)largest;
        ends += t.last, terminal_ends += t.last && terminal;
        assert_int_equal(p->terminates, terminal_ends > 0);
        check_draw(p, &f, k + 1, weight, &largest);
        assert_true(p->largest == largest);
        p->built = p->built && k % 2 == 0;
    }
    assert_true(terminal_ends > 10 && ends > terminal_ends + 10 && largest > 2);
}

/* Windows of 4 steps in episodes of 6 transitions that end by a time limit, and of 3 that end in a
 * terminal state. The newest transition is number 19. */
TEST(test_unrolled)
{
    enum { N = 2, STEPS = 4 };
    static const struct {
        size_t start, length; /* of the window: steps up to the end of the episode */
    } cases[] = {{0, 4}, {3, 3}, {6, 3}, {8, 1}, {17, 1}, {18, 2}, {19, 1}};
    float s[(STEPS + 1) * N], a[STEPS * N], reward[STEPS * N], mask[STEPS * N], kept[STEPS * N];
    const struct ks_windows w = {STEPS, N, s, a, reward, mask, kept, false};
    struct ks_replay *replay;

    assert_ok(ks_replay_new(CAPACITY, 1, 1, &replay));
    for (size_t k = 0; k < 20; k++) {
        float x[3];
        struct ks_transition t = number(k, x);

        t.last = k % 9 == 5 || k % 9 == 8;
        t.mask = k % 9 != 8;
        assert_ok(ks_replay_add(replay, &t));
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ks_replay_unroll(replay, cases[i].start, &w, 1);
        assert_true(s[1] == (float)cases[i].start);
        for (size_t k = 0; k < STEPS; k++) {
            const size_t at = k * N + 1, last = cases[i].start + cases[i].length - 1;
            const size_t t = cases[i].start + k < last ? cases[i].start + k : last;

            assert_true(s[at + N] == (float)t + 1 && a[at] == -(float)t);
            assert_true(reward[at] == 100 + (float)t && mask[at] == (t % 9 != 8));
            assert_true(kept[at] == (k < cases[i].length));
        }
    }
    assert_close(ks_replay_mean_reward(replay), 109.5, 1e-12);
    ks_replay_free(replay);
}

/* With drops_last, the reward of a terminal transition does not count. */
TEST(test_last_reward)
{
    float s[3], to_s, to_a, to_next, mask;
    const struct ks_rows rows = {1, &to_s, &to_a, &to_next, &mask, &(double){0}};
    KS_OWNED_BY(ks_replay_free) struct ks_replay *replay = NULL;

    assert_ok(ks_replay_new(CAPACITY, 1, 1, &replay));
    for (size_t k = 0; k < 6; k++) {
        struct ks_transition t = number(k, s);

        t.last = k == 2;
        t.mask = k != 2;
        assert_ok(ks_replay_add(replay, &t));
    }
    ks_replay_take(replay, &(struct ks_window){3, 0.5, true}, 0, &rows, 0);
    assert_true(rows.reward[0] == 100 + 101 * 0.5 && mask == 0 && to_next == 3);
    ks_replay_take(replay, &(struct ks_window){3, 0.5, false}, 0, &rows, 0);
    assert_true(rows.reward[0] == 100 + 101 * 0.5 + 102 * 0.25);
    ks_replay_take(replay, &(struct ks_window){3, 0.5, true}, 2, &rows, 0);
    assert_true(rows.reward[0] == 0 && mask == 0);
    ks_replay_take(replay, &(struct ks_window){3, 0.5, true}, 3, &rows, 0);
    assert_true(rows.reward[0] == 103 + 104 * 0.5 + 105 * 0.25 && mask == 0.25F && to_next == 6);
}
