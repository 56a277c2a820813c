/* The scale of rewards: the standard deviation of a running discounted return G. */
#ifndef KS_TRAIN_RETURNS_H
#define KS_TRAIN_RETURNS_H

#include <stdbool.h>
#include <stddef.h>

/* G <- gamma (1 - done) G + r; the mean and the sum of squared deviations of all G so far. */
struct ks_returns {
    double g, mean, squares;
    size_t count;
};

/* Adds the reward of one agent step. `done`: it ended an episode, also by a time limit. */
void ks_returns_add(struct ks_returns *returns, double gamma, double reward, bool done);
/* sqrt(Var G) + 1e-8, with the biased variance: the divisor of sampled rewards. */
double ks_returns_scale(const struct ks_returns *returns);

#endif
