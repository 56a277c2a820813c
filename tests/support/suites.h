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

/* The task, which the caller frees; or, with a message that says what is skipped, NULL if its
 * suite's models are not there. MyoSuite's and HumanoidBench's may be missing: `make deps` installs
 * the others. The second function only tells whether they are there. */
struct ks_env *env_if_there(const char *task);
bool suite_is_there(const char *task);

/* An environment of this task, until the test ends. */
struct ks_env *new_env(const char *task);

enum { WIDEST = 376 }; /* the largest number of observations */

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

/* The caller frees t->rows; those of a record are held until the test ends. */
ks_status trajectory_read(const char *path, struct trajectory *t);
struct trajectory read_record(const char *path);

/* How far a replay is from its record: the largest |here - recorded| / max(1, |recorded|). */
struct deviation {
    double observation, reward, start;
    size_t steps, values, differing; /* steps; their values: all, and those whose bits differ */
    size_t scored;                   /* compared rewards that are not 0 */
    size_t terminal;                 /* episodes that ended in a terminal state */
    size_t solved;                   /* forced states that solve the task */
    size_t frames, equal_frames;     /* pictures of states; those of the same bytes */
    double seconds;                  /* of all steps */
};

/* The larger one of `largest` and the deviation of n numbers, which is infinite for a NaN. */
double larger_deviation(double largest, size_t n, const double *here, const double *recorded);

/* Replays the episodes of a record, each forced to its start state and without corrections: it has
 * to end where the recorded one does, in the same way. Or draws its start states, and forces the
 * same ones with other velocities. */
typedef ks_status replay(struct ks_env *env, const struct trajectory *t, struct deviation *d);
replay replay_episodes, replay_starts;

/* No deviation exceeds 1e-9. */
bool is_within_bound(const struct deviation *d);
void assert_replays(replay *part, struct ks_env *env, const struct trajectory *t);

#endif
