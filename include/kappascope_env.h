/* Tasks for KappaScope's training, written in C: `kappascope train --env NAME.so` loads a shared
 * object that defines the four functions below. It needs nothing but this header:
 *
 *   cc -std=c11 -O2 -shared -fPIC -Iinclude -o point.so configs/tasks/point.c
 *
 * compiles the example. All that an episode remembers is in a block of memory that
 * the program allocates, one per environment, and saves and restores as bytes when a run is stopped
 * and resumed. So the block must hold no pointers, and the functions must keep nothing elsewhere
 * (no variables that change, no files, no clock): then a resumed run continues with the same bits.
 * Functions are called for several environments, and may be called from several threads. */
#ifndef KAPPASCOPE_ENV_H
#define KAPPASCOPE_ENV_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. A shared object with another version is refused. */
#define KAPPASCOPE_ENV_VERSION 1

struct kappascope_env_description {
    uint32_t version;    /* KAPPASCOPE_ENV_VERSION                                               */
    size_t observations; /* length of an observation, 1 to 1000000                               */
    size_t actions;      /* length of an action, 1 to 10000; all its entries are in [-1, 1]      */
    size_t steps;        /* environment steps of an episode, at most: 1 to 1000000000            */
    size_t state;        /* bytes of the block of memory, 1 to 1 GiB (2^30)                      */
};

/* How an episode goes on after a step. After a terminal state no rewards come, so its value is 0.
 * A truncated episode only stops: targets still bootstrap from the value of its last state. */
enum kappascope_env_end {
    KAPPASCOPE_ENV_GOES_ON = 0,
    KAPPASCOPE_ENV_TRUNCATED = 1,
    KAPPASCOPE_ENV_TERMINATED = 2
};

/* Describes the task: always the same, in memory that belongs to the shared object. */
const struct kappascope_env_description *kappascope_env_describe(void);

/* Starts an episode. `state` [description.state bytes, aligned for every type] holds zeros
 * when the function is called. All that is random in the episode must be derived from `seed`. */
void kappascope_env_reset(void *state, uint64_t seed);

/* Makes one environment step with `action` [actions] and sets *reward. Returns an enum
 * kappascope_env_end; another number stops the training with an error. After a step, a reward or
 * an observation that is not finite in float32 truncates the episode and counts as a divergence;
 * after a reset, another start is drawn, at most 100 in all. */
int kappascope_env_step(void *state, const double *action, double *reward);

/* Writes all of `observation` [observations] of the state. */
void kappascope_env_observe(const void *state, double *observation);

#ifdef __cplusplus
}
#endif

#endif
