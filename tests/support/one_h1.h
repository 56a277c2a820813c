/* A test fixture: HumanoidBench's tasks on small models, and on its own if HUMANOID_BENCH_DIR is
 * set.
 */
#ifndef KS_ONE_H1_H
#define KS_ONE_H1_H

#include "small_h1.h"

#include "one_env.h"

static char own_folder[4096]; /* HUMANOID_BENCH_DIR as it was, "" if it was not set */

static inline bool is_small(void)
{
    return strcmp(getenv("HUMANOID_BENCH_DIR"), own_folder) != 0;
}

/* The first keyframe, with one coordinate changed. */
static inline void pose(size_t q, double position, double *qpos)
{
    memcpy(qpos, env->model->key_qpos, (size_t)env->model->nq * sizeof *qpos);
    qpos[q] = position;
}

/* Forces the first keyframe with the pelvis at another place. */
static inline void place(double x, double y, double z)
{
    double qpos[40];

    pose(0, x, qpos);
    qpos[1] = y;
    qpos[2] = z;
    assert_ok(ks_env_force(env, &(struct ks_env_start){.qpos = qpos}, seen));
}

static inline int make_small(void **state)
{
    return small_h1_make(state) || setenv("HUMANOID_BENCH_DIR", tree, 1);
}

static inline int remove_small(void **state)
{
    return drop(state) || tree_remove(state);
}

static inline int use_own(void **state)
{
    (void)state;
    return setenv("HUMANOID_BENCH_DIR", own_folder, 1);
}

/* Runs the tests `small` on the small models, and `original` on HumanoidBench's if they are there.
 * (cmocka counts the tests, so this is a macro.) */
#define RUN_H1_TESTS(failed, small, original)                                                      \
    do {                                                                                           \
        if (getenv("HUMANOID_BENCH_DIR"))                                                          \
            snprintf(own_folder, sizeof own_folder, "%s", getenv("HUMANOID_BENCH_DIR"));           \
        (failed) = cmocka_run_group_tests_name("small models", small, make_small, remove_small);   \
        if (*own_folder)                                                                           \
            (failed) += cmocka_run_group_tests_name("HumanoidBench's models", original, use_own,   \
                                                    drop);                                         \
        else                                                                                       \
            puts("skipped: HumanoidBench's own models, as HUMANOID_BENCH_DIR is not set");         \
    } while (0)

#endif
