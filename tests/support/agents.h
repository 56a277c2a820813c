/* Small agents and minibatches; agents that are updated; their metrics. */
#ifndef KS_TEST_AGENTS_H
#define KS_TEST_AGENTS_H

#include "test.h"

#include "agent/agent.h"
#include "agent/agent_metrics.h"
#include "agent/stream.h"
#include "core/memory.h"
#include "core/rng.h"
#include "train/architecture.h"

enum { OBSERVATIONS = 5, ACTIONS = 3, BATCH = 6, WIDTH = OBSERVATIONS + ACTIONS, SEED = 7 };

/* In addition to the twelve, an architecture with every kind of layer. */
static const char EVERY_KIND[] = "every kind";

/* bn+wn+ce with `skip`: three blocks, two of them residual. */
static const char SKIPS[] = "skips";

/* A critic of quantiles, whose loss has 11 of them. */
static const char QUANTILES[] = "quantiles";

/* Networks that read their running statistics in training mode, too. */
static const char RENORM[] = "renorm";

/* Descriptions of a small network: one of the twelve, or one named above. Both are held until the
 * test ends. */
void describe_small(const char *name, char **critic, char **actor);

/* Settings for a small agent of these descriptions, and of those of a name, which are owned until
 * the next call. */
struct ks_agent_config small_config(const char *critic, const char *actor);
struct ks_agent_config named_config(const char *name);

/* A new agent, until 15 others have been made: nobody else frees it. */
struct KS(agent) *agent_of(const struct ks_agent_config *config);
struct KS(agent) *make_agent_of(const char *name, int threads);
struct KS(agent) *make_agent(const char *name);

/* A minibatch of random transitions, until the next call. */
struct ks_batch draw_transitions(uint64_t seed);

/* Moves parameters away from their initial values, for which biases are 0 and norms the identity.
 * */
void shake(size_t n, uint64_t seed, double *w);
void shake_all(struct KS(agent) *a);

struct network {
    const struct KS(arch) *arch;
    const double *w, *state; /* parameters; running statistics, NULL: zeros */
    bool evaluation;         /* the mode of batch normalization */
};

/* The outputs [rows, out] of a network for the inputs x; held until the test ends. */
double *forward(const struct network *network, size_t rows, const double *x);

/* Parameters and running statistics before an update. */
struct before {
    double *critic[2], *target[2], *critic_state[2], *actor, *actor_state;
};

double *copy(size_t n, const double *from);
struct before remember(const struct KS(agent) *a);

/* An update with random transitions, which are `last`; its results. */
extern struct ks_batch last;
struct ks_update update_with(struct KS(agent) *a, uint64_t seed);
struct ks_update update(struct KS(agent) *a);

/* The outputs of its actor in evaluation mode; held until the test ends. */
double *actor_outputs(const struct KS(agent) *a, size_t rows, const double *s);

enum { MOST_METRICS = 512 };

struct metrics {
    struct ks_metric list[MOST_METRICS];
    size_t n;
};

struct metrics metrics_of(struct KS(agent) *a);
double value(const struct metrics *m, const char *name);

#endif
