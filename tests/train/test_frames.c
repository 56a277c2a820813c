/* Replay of single frames: which windows are drawn, their states, rewards and shifts, against rows
 * kept in order. */
#include "test.h"

#include "core/memory.h"
#include "env/env.h"
#include "train/replay.h"

enum { ACTIONS = 2, CAPACITY = 25, MOST = 200, STEPS = 3, MARGIN = 5, DRAWS = 2000 };
static const double GAMMA = 0.5;
RELEASES(free_replay, ks_replay_free)

/* All rows of the run. Pixel i of frame k is pixel_of(k, i). */
static struct row {
    bool only_frame, last;
    float reward, mask;
} row[MOST];

static uint8_t pixel_of(size_t frame, size_t i)
{
    return (uint8_t)(frame * 7 + i * 31 + i / 84 * 11);
}

static struct ks_replay *new_replay(void)
{
    struct ks_replay *r;

    assert_ok(ks_replay_new(CAPACITY, 0, ACTIONS, &r));
    return hold_object(r, free_replay);
}

/* Adds row number k, of episodes of 1, 3, 4 and 8 transitions, of which that of 4 ends in a
 * terminal state. */
static void add(struct ks_replay *r, size_t k)
{
    static const size_t length[] = {8, 4, 1, 3};
    static uint8_t frame[KS_FRAME];
    const float a[ACTIONS] = {(float)k, -(float)k};
    size_t episode = 0, step = k;

    for (; step > length[episode % 4]; episode++)
        step -= length[episode % 4] + 1;
    row[k].only_frame = step == length[episode % 4];
    row[k].last = step + 1 == length[episode % 4];
    row[k].reward = row[k].only_frame ? 0 : (float)k + 1;
    row[k].mask = row[k].last && length[episode % 4] == 4 ? 0 : 1;
    for (size_t i = 0; i < KS_FRAME; i++)
        frame[i] = pixel_of(k, i);
    assert_ok(ks_replay_add(r, &(struct ks_transition){.a = a,
                                                       .frame = frame,
                                                       .reward = row[k].reward,
                                                       .mask = row[k].mask,
                                                       .last = row[k].last,
                                                       .only_frame = row[k].only_frame}));
}

/* Whether STEPS transitions of an episode follow from row k on, with a frame after them, of n rows.
 */
static bool is_open(size_t k, size_t n)
{
    for (size_t i = 0; i < STEPS; i++)
        if (k + i >= n || row[k + i].only_frame)
            return false;
    return k + STEPS < n;
}

/* The frames of the state in row k: those of its episode. */
static void frames_of(size_t k, size_t frame[KS_FRAMES])
{
    frame[2] = k;
    frame[1] = k > 0 && !row[k - 1].only_frame ? k - 1 : k;
    frame[0] = frame[1] > 0 && frame[1] < k && !row[frame[1] - 1].only_frame ? frame[1] - 1
                                                                             : frame[1];
}

/* Pixel (y, x) of the padded frame is that of the frame at these places, clipped to it. */
static void check_state(const struct ks_replay *r, size_t k, const uint8_t shift[2])
{
    static float s[KS_FRAMES * KS_FRAME];
    size_t frame[KS_FRAMES], at = 0;

    frames_of(k, frame);
    ks_replay_see(r, k % CAPACITY, shift[0], shift[1], s);
    for (size_t f = 0; f < KS_FRAMES; f++)
        for (int c = 0; c < 3; c++)
            for (int y = 0; y < 84; y++)
                for (int x = 0; x < 84; x++, at++) {
                    const int py = (int)fmin(fmax(y + shift[1] - 4, 0), 83);
                    const int px = (int)fmin(fmax(x + shift[0] - 4, 0), 83);
                    const size_t i = (size_t)((c * 84 + py) * 84 + px);

                    if (s[at] != (float)pixel_of(frame[f], i) / 255 - 0.5F)
                        fail_msg("row %zu, frame %zu: pixel %d %d of %d", k, f, y, x, c);
                }
}

static void check_window(const struct ks_replay *r, size_t k)
{
    float a[ACTIONS], mask;
    double reward, expected = 0;
    const struct ks_rows rows = {.n = 1, .a = a, .mask = &mask, .reward = &reward};
    const struct ks_window window = {STEPS, GAMMA, .drops_last = false};

    assert_int_equal(ks_replay_take(r, &window, k % CAPACITY, &rows, 0),
                     (k + STEPS - 1) % CAPACITY);
    for (size_t i = 0; i < STEPS; i++)
        expected += pow(GAMMA, (double)i) * (double)row[k + i].reward;
    assert_true(a[0] == (float)k && a[1] == -(float)k);
    assert_close(reward, expected, 1e-12);
    assert_close((double)mask, GAMMA * GAMMA * (double)row[k + STEPS - 1].mask, 0);
}

/* Draws: exactly the open windows, equally often, and all shifts. */
static void check_draws(const struct ks_replay *r, size_t n)
{
    static size_t slot[DRAWS];
    static uint8_t shift[DRAWS][KS_SHIFTS];
    const size_t first = n > CAPACITY ? n - CAPACITY : 0;
    const size_t oldest = n + MARGIN > CAPACITY ? n + MARGIN - CAPACITY : 0;
    size_t count[MOST] = {0}, shifts[KS_SHIFTS][9] = {{0}}, open = 0;
    struct ks_rng rng = ks_rng_start(3, n);

    assert_ok(
        ks_replay_draw_frames(r, &rng, STEPS, MARGIN, DRAWS, &(struct ks_drawn){slot, shift}));
    for (size_t i = 0; i < DRAWS; i++) {
        const size_t k = first + (slot[i] + CAPACITY - first % CAPACITY) % CAPACITY;

        assert_true(k >= oldest && is_open(k, n));
        count[k]++;
        for (size_t j = 0; j < KS_SHIFTS; j++) {
            assert_in_range(shift[i][j], 0, 8);
            shifts[j][shift[i][j]]++;
        }
        if (i < 20) {
            check_window(r, k);
            check_state(r, k, shift[i]);
            check_state(r, k + STEPS, shift[i] + 2);
        }
    }
    for (size_t k = oldest; k < n; k++)
        open += is_open(k, n);
    for (size_t k = oldest; k < n; k++)
        assert_true(!is_open(k, n) || fabs((double)count[k] - (double)DRAWS / (double)open) <
                                          5 * sqrt((double)DRAWS / (double)open));
    for (size_t j = 0; j < KS_SHIFTS; j++)
        for (size_t k = 0; k < 9; k++)
            assert_true(fabs((double)shifts[j][k] - DRAWS / 9.0) < 5 * sqrt(DRAWS / 9.0));
}

TEST(test_draws)
{
    struct ks_replay *r = new_replay();

    for (size_t k = 0; k < 90; k++) {
        add(r, k);
        assert_int_equal(r->added, k + 1);
        if (k == 3 || k == 12 || k == 24 || k == 25 || k == 60 || k == 89)
            check_draws(r, k + 1);
    }
}

/* Too few rows, and none of an episode of so many transitions. */
TEST(test_nothing_to_draw)
{
    struct ks_replay *r = new_replay();
    size_t slot[1];
    uint8_t shift[1][KS_SHIFTS];
    const struct ks_drawn drawn = {slot, shift};
    struct ks_rng rng = ks_rng_start(3, 1);

    assert_fails(ks_replay_draw_frames(r, &rng, 1, MARGIN, 1, &drawn), KS_RUN,
                 "of its 0 rows starts 1 agent");
    for (size_t k = 0; k < 60; k++)
        add(r, k);
    assert_ok(ks_replay_draw_frames(r, &rng, 8, MARGIN, 1, &drawn));
    assert_fails(ks_replay_draw_frames(r, &rng, 9, MARGIN, 1, &drawn), KS_RUN,
                 "hardly any of its 25 rows starts 9 agent steps of an episode");
}

/* Rows that were written and read back, as a replay log does, give the same replay. */
TEST(test_copy)
{
    struct ks_replay *r = new_replay(), *copy = new_replay();

    for (size_t k = 0; k < 60; k++)
        add(r, k);
    ks_replay_clear(copy, 60 - CAPACITY);
    for (size_t k = 60 - CAPACITY; k < 60; k++) {
        size_t n = 1;

        assert_ok(ks_replay_put(copy, ks_replay_rows(r, k % CAPACITY, &n)));
    }
    assert_int_equal(copy->added, 60);
    check_draws(copy, 60);
    assert_close(ks_replay_mean_reward(copy), ks_replay_mean_reward(r), 0);
}
