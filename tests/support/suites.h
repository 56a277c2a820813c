/* Which suites of tasks are installed, one dog that all tests of a program share, and recorded
 * episodes of tasks: the files of tests/peer/trajectory.py. */
#ifndef KS_TEST_SUITES_H
#define KS_TEST_SUITES_H

#include "test.h"

#include "core/memory.h"
#include "env/domain.h"
#include "env/env.h"

/* The dog: compiling its model takes 0.5 s. */
extern struct ks_env *trot;
int make_dog(void **state);
int free_dog(void **state);

/* Whether the models of this task's suite are there; if not, says what is skipped. MyoSuite's and
 * HumanoidBench's may be missing: `make deps` installs the others. */
bool suite_is_there(const char *task);

struct trajectory {
    char task[64], mujoco[32];
    size_t seed; /* start state k is drawn with ks_rng_start(seed, k) */
    size_t episodes, steps, starts;
    size_t nq, nv, na, target, nu, observations;
    size_t width; /* numbers per row */
    double *rows; /* [episodes * (steps + 1) + 2 * starts, width] */
};

struct trajectory_row {
    struct ks_env_start state;
    const double *action, *observation; /* what led here, and what is seen here */
    double reward;
};

/* The row after `step` steps of an episode; the row of the start state that draw k gives; the row
 * of that state when forced, with other velocities. */
struct trajectory_row trajectory_row(const struct trajectory *t, size_t episode, size_t step);
struct trajectory_row trajectory_start(const struct trajectory *t, size_t k);
struct trajectory_row trajectory_forced(const struct trajectory *t, size_t k);

/* The caller frees t->rows. */
ks_status trajectory_read(const char *path, struct trajectory *t);

#endif
