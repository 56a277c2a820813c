/* The scale of rewards, from a running discounted return G. */
#ifndef KS_TRAIN_RETURNS_H
#define KS_TRAIN_RETURNS_H

#include <stdbool.h>
#include <stddef.h>

/* G <- gamma (1 - done) G + r; the mean and the sum of squared deviations of all G so far. */
struct ks_returns {
    double g, mean, squares;
    size_t count;
    double largest; /* |G| */
};

/* How the divisor of sampled rewards follows from these: setting reward_scaling. */
struct ks_reward_scaling {
    const char *name;
    double prior; /* mean and variance start as those of so many G, of mean 0 and variance 1 */
    double (*divisor)(const struct ks_returns *returns, double variance);
};

/* The names of all kinds, ended by NULL, in the order of the numbers below. */
extern const char *const ks_reward_scalings[];
const struct ks_reward_scaling *ks_reward_scaling(size_t number);

/* Adds the reward of one agent step. `done`: it ended an episode, also by a time limit. */
void ks_returns_add(struct ks_returns *returns, const struct ks_reward_scaling *scaling,
                    double gamma, double reward, bool done);
double ks_returns_divisor(const struct ks_returns *returns,
                          const struct ks_reward_scaling *scaling);

#endif
