/* The agent: soft actor-critic with an ensemble of critics, all its networks and optimizers, and
 * one gradient update of them.
 *
 * Everything is allocated once, in ks_agent_new. Noise comes from the streams of stream.h by the
 * number of the update, so `updates`, the optimizers' steps and the arrays below are its whole
 * state. */
#ifndef KS_AGENT_AGENT_H
#define KS_AGENT_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/optim.h"
#include "core/error.h"
#include "core/real.h"
#include "core/rng.h"
#include "io/checkpoint.h"
#include "net/arch.h"
#include "net/net.h"

struct ks_agent_config {
    const char *critic, *actor; /* descriptions; not kept                              */
    const char *name;           /* the critic's, in messages; NULL: "critic"; not kept */
    size_t observations, actions, ensemble, batch;
    double gamma, tau;
    struct ks_schedule critic_rate, actor_rate; /* the temperature's rate is the actor's */
    size_t policy_delay; /* actor and temperature step at updates 0, delay, ... */
    double temperature, target_entropy;
    double weight_decay;
    enum ks_decay decay;
    uint64_t seed;
    int threads; /* rows and critics are shared out among them; results do not depend on it */
};

/* A minibatch, `batch` rows: transitions, or windows of k of them (replay.h). */
struct ks_batch {
    const float *s, *a, *next_s; /* [batch, observations], [batch, actions], as s        */
    const double *reward;        /* [batch]: as the loss sees it, normalized             */
    const float *mask;           /* [batch]: 0 after a true terminal state, else 1; gamma^(k-1)
                                  * times that of a window                               */
};

/* What the last step of one critic found. */
struct ks_critic_step {
    double loss, q; /* sums over the rows        */
    bool finite;    /* its parameters, afterwards */
};

/* What an update found. The actor's figures are of its last step. */
struct ks_update {
    double critic_loss, q_mean, clipped_fraction;
    double actor_loss, temperature_loss, entropy;
    bool actor_stepped;
};

/* Actions that the actor draws for a minibatch. All owned. */
struct ks_draw {
    real *noise;  /* [batch, actions] */
    real *log_pi; /* [batch]          */
};

struct ks_agent {
    struct ks_agent_config config;
    struct ks_arch *critic_arch, *actor_arch;
    /* Rows in training mode: 2 batch where the critic is joint, else batch; out rows: batch. */
    struct ks_net *critic_train, *critic_eval, *actor_train, *actor_eval, *actor_one;
    struct ks_net
        *critic_both; /* training mode, 2 batch rows, and outputs of all of them: measured */
    struct ks_trained *critic, actor; /* critic: [ensemble]; blocks for the largest of its nets */
    struct ks_critic_step *step;      /* [ensemble]                                          */
    struct ks_adam critic_adam, actor_adam;
    real *next_primal, *next_state; /* the actor's, of the pass at s'; statistics while moved */
    struct ks_draw next, policy;    /* at s' in evaluation, at s in training mode */
    double log_temperature, temperature_m, temperature_v; /* its step is the actor's      */
    int64_t updates; /* done so far                                          */
    /* Work space. D = observations + actions, K = outputs of a critic. */
    real *input;          /* [2 or 3 batch, D]: (s,a), (s',a'), where joint (s,a) again */
    real *s, *next_s;     /* [batch, observations]                                */
    real *policy_input;   /* [batch, D]: (s, a ~ pi)                              */
    real *x_bar;          /* [ensemble, batch, D]: of policy_input                */
    real *action_bar;     /* [batch, D]: their sum                                */
    real *target;         /* [batch, targets]                                     */
    real *row;            /* [threads, 2 K] or an observation: scratch            */
    real *values;         /* [ensemble, batch, K]: distributions in the actor's loss */
    double *q;            /* [ensemble, batch]                                    */
    const real **outputs; /* [ensemble]                                           */
};

/* Fresh networks: initialized from config->seed, projected, targets copied. Fails with KS_FORMAT on
 * a description that cannot be trained, KS_MEMORY. The caller frees. */
ks_status KS(agent_new)(const struct ks_agent_config *config, struct ks_agent **agent);
void KS(agent_free)(struct ks_agent *agent);

double KS(agent_temperature)(const struct ks_agent *agent);

/* The action [actions] at one observation, the actor in evaluation mode: sampled with the noise
 * [actions], or tanh(mean) where noise is NULL. */
void KS(agent_act)(struct ks_agent *agent, const float *observation, const double *noise,
                   float *action);

/* One gradient update. Fails with KS_NUMBER, naming the quantity, if a loss or a parameter is not
 * finite. The same in two parts: the first reads no rewards and no mask, so that they may be known
 * later. */
ks_status KS(agent_update)(struct ks_agent *agent, const struct ks_batch *batch,
                           struct ks_update *update);
void KS(agent_begin)(struct ks_agent *agent, const struct ks_batch *batch);
ks_status KS(agent_finish)(struct ks_agent *agent, const struct ks_batch *batch,
                           struct ks_update *update);

/* A frozen minibatch for the analyzer: input [R, D] of `batch` as an update would see it now, with
 * the noise of `rng`. It reads no rewards. */
void KS(agent_freeze)(struct ks_agent *agent, const struct ks_batch *batch, struct ks_rng *rng,
                      double *input);
/* The targets [batch, targets] of the minibatch that agent_freeze was given last, from the rewards
 * of `batch`; may be called for several scales of the rewards, with nothing else of the agent in
 * between. */
void KS(agent_freeze_target)(struct ks_agent *agent, const struct ks_batch *batch, double *target);
/* For what is measured after an update: puts the minibatch of the last update, `batch`, back into
 * the work space, s and input [2 batch, D] = [(s, a); (s', a')] with a' of the actor as it is now
 * and the noise of that update; makes the actor's pass in training mode on s, whose activations are
 * then in actor.primal, and sets actor_g [P of the actor] to the gradient of the actor's loss at
 * that update, also where the policy delay left the step out. Rewards are not read. Nothing changes
 * that a later update or row depends on. At least one update has been made. */
void KS(agent_review)(struct ks_agent *agent, const struct ks_batch *batch, real *actor_g);

/* R: rows of a frozen minibatch's input; D = observations + actions: its columns. */
size_t KS(agent_rows)(const struct ks_agent *agent);
size_t KS(agent_width)(const struct ks_agent *agent);

/* Fails with KS_NUMBER where a parameter, a statistic or one of Adam's moments is not finite. A
 * gradient that is too large to be squared makes a second moment infinite: its parameter then stays
 * as it is, for ever, and nothing else shows it. */
ks_status KS(agent_check)(const struct ks_agent *agent);

/* Copies networks and moments into a checkpoint that is empty, but for its batch and its
 * attributes. ks_checkpoint_free frees what was copied, also after a failure. */
ks_status KS(agent_export)(const struct ks_agent *agent, struct ks_checkpoint *checkpoint);

/* The pieces of an update, for tests: loss and gradient in step->loss, critic->g and actor.g; no
 * step is taken. The critic's input and target, or s and the policy's noise, are those in the work
 * space. */
void KS(critic_gradient)(struct ks_agent *agent, size_t e);
/* Returns the actor's loss; *entropy is the mean of -log pi. */
double KS(actor_gradient)(struct ks_agent *agent, double *entropy);

#endif
