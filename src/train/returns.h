/* The scale of rewards: the deviation of a running discounted return. */
#ifndef KS_TRAIN_RETURNS_H
#define KS_TRAIN_RETURNS_H

#include <stdbool.h>
#include <stddef.h>

/* G <- gamma (1 - done) G + r, and mean and sum of squared deviations of all G so far. */
struct ks_returns {
    double g, mean, squares;
    size_t count;
};

/* One agent step's reward; `done` at the end of an episode, a time limit included. */
void ks_returns_add(struct ks_returns *returns, double gamma, double reward, bool done);
/* sqrt(Var G) + 1e-8, the biased variance: what sampled rewards are divided by. */
double ks_returns_scale(const struct ks_returns *returns);

#endif
