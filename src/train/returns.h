/* The scale of rewards, from discounted returns. */
#ifndef KS_TRAIN_RETURNS_H
#define KS_TRAIN_RETURNS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "train/replay.h"

/* G <- gamma (1 - done) G + r; the mean and the sum of squared deviations of all G so far. */
struct ks_returns {
    double g, mean, squares;
    size_t count;
    double largest;              /* |G|                                                         */
    double largest_return_to_go; /* largest |return-to-go| in finished episodes */
    double magnitude; /* mean |reward| in replay at the last ks_returns_refresh; 0: none yet */
};

/* The settings of reward_scaling: kinds of the divisor of sampled rewards. */
enum ks_reward_scale { KS_SCALE_STD, KS_SCALE_BOUNDED, KS_SCALE_RANGE, KS_SCALE_MAGNITUDE };
extern const char *const ks_reward_scalings[]; /* their names, ended by NULL */

/* Adds the reward of one agent step. `done`: it ended an episode, also by a time limit. */
void ks_returns_add(struct ks_returns *returns, enum ks_reward_scale scale, double gamma,
                    double reward, bool done);
/* Looks at the episode that ended with the newest transition of replay: at the returns from each of
 * its steps that replay still holds. After a time limit (`truncated`) they go on with the episode's
 * mean reward. gamma < 1. */
void ks_returns_end_episode(struct ks_returns *returns, const struct ks_replay *replay,
                            double gamma, bool truncated);
/* Sets `magnitude` to the mean |reward| in replay. */
void ks_returns_refresh(struct ks_returns *returns, const struct ks_replay *replay);
/* The divisor of sampled rewards:
 *
 *   std        sqrt(Var G) + 1e-8
 *   bounded    max(sqrt(Var G + 1e-8), max |G| / 5)
 *   range      (max |return-to-go| - bonus / 2) / 10
 *   magnitude  mean |reward|
 *
 * `bonus`: the return of an entropy bonus that stays at its target, T H* / (1 - gamma). */
double ks_returns_divisor(const struct ks_returns *returns, enum ks_reward_scale scale,
                          double bonus);

/* Observations in units of their running mean and standard deviation, for systems that train on
 * normalized ones (SimBa and SimBa-V2: Lee et al., ICLR 2025 and ICML 2025). */

/* Mean and biased variance of each observation. At the start, `count` = 1e-4 observations of
 * mean 0 and variance 1 count as seen. */
struct ks_normalizer {
    size_t n;
    double count, *mean, *var; /* [n]; owned                           */
    float *row;                /* [n]: for ks_normalizer_see; owned */
};

/* KS_MEMORY. The caller frees. */
ks_status ks_normalizer_new(size_t n, struct ks_normalizer **normalizer);
void ks_normalizer_free(struct ks_normalizer *normalizer);
KS_OWNER(ks_normalizer_free, struct ks_normalizer *)

/* Adds one observation [n]. */
void ks_normalizer_add(struct ks_normalizer *normalizer, const float *observation);
/* Replaces rows [rows, n] by (x - mean) / sqrt(var + 1e-8). NULL: they stay as they are. */
void ks_normalizer_apply(const struct ks_normalizer *normalizer, size_t rows, float *x);
/* One observation as the networks see it: normalized, valid until the next call; or with NULL the
 * observation itself. */
const float *ks_normalizer_see(const struct ks_normalizer *normalizer, const float *observation);

#endif
