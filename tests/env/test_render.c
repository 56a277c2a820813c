/* Frames: the same state has the same bytes, another one has others. tests/peer/dm_control.sh
 * compares them with dm_control's. */
#include "suites.h"

enum { SIDE = 84, FRAME = 3 * SIDE * SIDE };

RELEASES(free_render, ks_render_free)

/* A renderer, until the test ends; NULL if there is no OpenGL, which is said. */
static struct ks_render *new_render(struct ks_env *env, size_t height, size_t width)
{
    struct ks_render *render;
    ks_status status = ks_render_new(env, height, width, &render);

    if (status == KS_MISSING) {
        assert_non_null(strstr(ks_error_text(), "'make deps-pixels' installs Mesa's"));
        print_message("skipped: %s\n", ks_error_text());
        return NULL;
    }
    assert_ok(status);
    return hold_object(render, free_render);
}

/* Different colours in a frame, up to `most`. */
static size_t count_colours(const uint8_t *frame, size_t most)
{
    uint8_t colour[16][3];
    size_t n = 0;

    for (size_t i = 0; i < FRAME && n < most; i += 3) {
        size_t k = 0;

        while (k < n && memcmp(colour[k], frame + i, 3) != 0)
            k++;
        if (k == n)
            memcpy(colour[n++], frame + i, 3);
    }
    return n;
}

TEST(test_frames)
{
    static uint8_t frame[3][FRAME];
    const double action[6] = {1, -1, 1, -1, 1, -1};
    struct ks_env *env = new_env("walker-run-pixels"), *other = new_env("walker-run-pixels");
    struct ks_render *render[2] = {new_render(env, SIDE, SIDE), new_render(other, SIDE, SIDE)};
    double observation[WIDEST], reward;
    enum ks_env_end end;

    if (!render[0])
        return;
    for (size_t i = 0; i < 2; i++) {
        assert_ok(ks_env_force(i == 0 ? env : other, NULL, observation));
        assert_ok(ks_render_frame(render[i], frame[i]));
    }
    assert_memory_equal(frame[0], frame[1], FRAME);
    assert_int_equal(count_colours(frame[0], 16), 16);
    assert_ok(ks_env_step(env, action, observation, &reward, &end));
    assert_ok(ks_render_frame(render[0], frame[2]));
    assert_memory_not_equal(frame[0], frame[2], FRAME);
    assert_ok(ks_render_frame(render[1], frame[2])); /* which is where it was */
    assert_memory_equal(frame[0], frame[2], FRAME);
    assert_ok(ks_env_step(other, action, observation, &reward, &end));
    assert_ok(ks_render_frame(render[0], frame[1]));
    assert_ok(ks_render_frame(render[1], frame[2]));
    assert_memory_equal(frame[1], frame[2], FRAME);
}

/* Drawing changes no bit of the simulation. */
TEST(test_simulation)
{
    static uint8_t frame[FRAME];
    const double action[12] = {0.5, -0.5, 0.2};
    double seen[2][WIDEST], reward[2];
    enum ks_env_end end;

    for (size_t drawn = 0; drawn < 2; drawn++) {
        struct ks_env *env = new_env(drawn ? "quadruped-run-pixels" : "quadruped-run");
        struct ks_render *render = drawn ? new_render(env, SIDE, SIDE) : NULL;
        struct ks_rng rng = ks_rng_start(3, 1);

        if (drawn && !render)
            return;
        assert_ok(ks_env_reset(env, &rng, seen[drawn]));
        for (size_t i = 0; i < 5; i++) {
            if (drawn)
                assert_ok(ks_render_frame(render, frame));
            assert_ok(ks_env_step(env, action, seen[drawn], &reward[drawn], &end));
        }
    }
    assert_memory_equal(seen[0], seen[1], 78 * sizeof *seen[0]);
    assert_true(reward[0] == reward[1]);
}

/* dm_control's floors, which have half the width that a task's speed needs. */
TEST(test_floors)
{
    static const struct {
        const char *task;
        double size[3];
    } floors[] = {{"dog-stand", {15, 15, 0.1}},
                  {"dog-trot", {45, 45, 0.1}},
                  {"quadruped-walk", {10, 10, 0.5}},
                  {"quadruped-run", {100, 100, 0.5}}};

    for (size_t i = 0; i < sizeof floors / sizeof *floors; i++) {
        const mjModel *m = new_env(floors[i].task)->model;
        const int floor = ks_mj.name2id(m, mjOBJ_GEOM, "floor");

        assert_true(floor >= 0);
        for (int k = 0; k < 3; k++)
            assert_close(m->geom_size[3 * floor + k], floors[i].size[k], 0);
    }
}
