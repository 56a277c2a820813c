/* The agent: its critics and its actor, their optimizers, and one gradient update of them. It is
 * soft actor-critic (update.c); or, if it has an encoder, MR.Q (mrq.c); or, if it sees images,
 * DrQ-v2 (pixels.c). The actors of these two are deterministic.
 *
 * It is one object in several files, whose functions all work in the agent's arrays: the actor's
 * passes and loss (actor.c); the encoder (encoder.c), what sees images (pixels.c) and the
 * optimistic actor (optimist.c), which only some agents have.
 *
 * All memory is allocated in ks_agent_new. The noise of an update is determined by the seed and the
 * update's number (stream.h), so the state of the agent consists of `updates`, the optimizers'
 * steps and the arrays below. */
#ifndef KS_AGENT_AGENT_H
#define KS_AGENT_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/encoder.h"
#include "agent/optim.h"
#include "agent/optimist.h"
#include "agent/pixels.h"
#include "agent/target.h"
#include "core/error.h"
#include "core/real.h"
#include "core/rng.h"
#include "io/checkpoint.h"
#include "net/arch.h"
#include "net/net.h"

/* Which networks an update steps first (update.c). */
enum ks_order { KS_CRITICS_FIRST, KS_ACTOR_FIRST };

struct ks_agent_config {
    const char *critic, *actor; /* descriptions; not kept                              */
    const char *optimist;       /* an optimistic actor's, or NULL; not kept            */
    const char *const *encoder; /* [KS_MODULES]: an encoder's, or NULL; not kept       */
    const char *const *pixels;  /* [KS_PIXELS_PARTS]: of image and trunk, or NULL; not kept    */
    const char *name;           /* the critic's, in messages; NULL: "critic"; not kept */
    size_t observations, actions, ensemble, batch;
    double gamma, tau;
    size_t target_period; /* 0: targets are Polyak averages; else copies (agent_refresh) */
    size_t horizon;       /* steps of the windows in the encoder's loss                    */
    struct ks_rate critic_rate, actor_rate; /* learning rates; the temperature has the actor's */
    struct ks_rate encoder_rate;
    double gradient_norm; /* bound on the norm of the gradient of all critics; 0: none */
    size_t policy_delay;  /* actor and temperature are updated at updates 0, delay, ... */
    double noise_clip;    /* bound on the noise of actions in an update from pixels    */
    enum ks_order order;
    enum ks_value target_value, policy_value; /* in the critics' targets; in the actor's loss */
    double temperature, target_entropy;
    double beta1, temperature_beta1;        /* of Adam: of the networks; of the temperature */
    double weight_decay, temperature_decay; /* decoupled: of the networks; of log T        */
    enum ks_decay decay;
    struct ks_starts starts;
    enum ks_products products; /* how layers multiply; not AUTO */
    uint64_t seed;
    int threads; /* rows and critics are divided among them; results do not depend on them */
};

/* A minibatch of `batch` rows: transitions, or windows of k transitions (replay.h). */
struct ks_batch {
    const float *s, *a, *next_s; /* [batch, observations], [batch, actions], as s        */
    const double *reward;        /* [batch]: as the loss uses it, normalized             */
    const float *mask;           /* [batch]: 0 after a true terminal state, else 1; for a
                                  * window, times gamma^(k-1)                            */
};

/* Results of the last gradient step of one critic. */
struct ks_critic_step {
    double loss, q; /* sums over the rows                       */
    bool finite;    /* its parameters are finite after the step */
};

/* Results of an update. The second line is set only if the actor stepped. */
struct ks_update {
    double critic_loss, q_mean, clipped_fraction;
    double actor_loss, temperature_loss, entropy;
    bool actor_stepped;
};

/* What is random in the actions that the actor samples for a minibatch. */
struct KS(draw) {
    real *noise;  /* [batch, actions] */
    real *log_pi; /* [batch]          */
};

/* Work space of ks_agent_act, for one row. */
struct KS(acting) {
    real *s, *primal;     /* [observations]; the pass of actor_one            */
    real *noise, *action; /* [actions]                                        */
    real log_pi;          /* computed with the action; not used               */
};

struct KS(agent) {
    struct ks_agent_config config;
    struct ks_arena arena; /* all arrays below, of the encoder and of the optimistic actor */
    const struct KS(agent_kind) *kind; /* actor.h */
    struct KS(arch) *critic_arch, *actor_arch;
    /* The passes. In training mode a critic with batchnorm ("joint") has 2 batch input rows,
     * [(s, a); (s', a')], others have batch; outputs are wanted of the first batch rows. */
    struct KS(net) *critic_train, *critic_eval, *actor_train, *actor_eval;
    struct KS(net) *actor_one;   /* evaluation mode, one row: acting                           */
    struct KS(net) *critic_both; /* training mode, outputs of all 2 batch rows: measuring      */
    struct KS(trained) *critic, actor;  /* critic: [ensemble]                                   */
    struct ks_critic_step *critic_step; /* [ensemble]                                         */
    struct ks_adam critic_adam, actor_adam, temperature_adam; /* the last has actor_adam's step */
    double log_temperature, temperature_m, temperature_v;     /* stepped together with the actor */
    int64_t updates;                                          /* made so far                     */
    struct KS(optimist) *optimist; /* NULL: the actor itself explores; owned */
    struct KS(encoder) *encoder;   /* NULL: it has none; owned */
    struct KS(pixels) *pixels;     /* NULL: it sees no images; owned                              */
    double noise; /* with images: the standard deviation of the actor's noise, set by the caller */
    double value_scale; /* factor of the target critics' values (agent_refresh)        */
    real *deviation;    /* [batch]: max_e |Q_e - target| at the last update; NULL: not computed */
    /* Work space. D, S: columns of a critic's and of the actor's input: observations + actions and
     * observations; with an encoder or images, the columns of what takes the place of (s, a) and
     * s. K = outputs of a critic. */
    struct KS(acting) acting;
    struct KS(draw) next, policy; /* the actor at s' (evaluation mode) and at s (training mode) */
    real *next_primal;            /* the actor's pass at s'                                     */
    real *next_state;     /* the actor's running statistics, while the pass at s moves them */
    real *input;          /* [2 or 3 batch, D]: (s, a), (s', a'); if joint, (s, a) again   */
    real *target_input;   /* the target critics' input: that of row `batch` on; with images
                           * [2 batch, D] of its own                                       */
    real *s, *next_s;     /* [batch, S]; next_s follows s                                  */
    real *policy_input;   /* [batch, D]: (s, a ~ pi)                                       */
    real *x_bar;          /* [ensemble, batch, D]: dL/d policy_input through each critic;
                           * with images also [ensemble, R, D]: dL/d input                 */
    real *action_bar;     /* [batch, D]: its sum over the critics                          */
    real *target;         /* [batch, targets]                                              */
    real *row;            /* [threads, 2 K]: for ks_critic_target                          */
    real *values;         /* [ensemble, batch, K]: distributions in the actor's loss       */
    double *q;            /* [ensemble, batch]: Q(s, a ~ pi)                               */
    const real **outputs; /* [ensemble]: of the target critics                             */
};

/* Fails with KS_FORMAT, naming the network, if it has layers that are only for analysis: training
 * would not update them, or has no gradient through them. images: convolutions are allowed. */
ks_status KS(network_check)(const struct KS(arch) *arch, const char *name, bool images);

/* Networks initialized from config->seed and projected, targets copied from the critics. Fails with
 * KS_FORMAT if a description cannot be trained, KS_MEMORY. The caller frees. */
ks_status KS(agent_new)(const struct ks_agent_config *config, struct KS(agent) **agent);
void KS(agent_free)(struct KS(agent) *agent);

/* Sets networks, optimizers and temperature to their start. The random numbers of later updates do
 * not start again. */
ks_status KS(agent_reset)(struct KS(agent) *agent);

/* The entropy temperature T; 0 with a deterministic actor. */
double KS(agent_temperature)(const struct KS(agent) *agent);
/* R, D: rows and columns of a frozen minibatch's input. */
size_t KS(agent_rows)(const struct KS(agent) *agent);
size_t KS(agent_width)(const struct KS(agent) *agent);
/* E P: the number of parameters of all critics together. */
size_t KS(agent_critic_parameters)(const struct KS(agent) *agent);

/* The action [actions] for one observation, the actor in evaluation mode: sampled with the noise
 * [actions], by the optimistic actor if there is one; or tanh(mean) of the actor if noise is NULL.
 */
void KS(agent_act)(struct KS(agent) *agent, const float *observation, const double *noise,
                   float *action);

/* With a target_period: sets the targets to copies of the networks. To be called before every
 * update whose number is a multiple of the period. From then on the target critics' values count
 * `value_scale` times: rewards are in other units than when these networks were trained. */
void KS(agent_refresh)(struct KS(agent) *agent, double value_scale);

/* One gradient update. Fails with KS_NUMBER, naming the quantity, if a loss or a parameter is not
 * finite. */
ks_status KS(agent_update)(struct KS(agent) *agent, const struct ks_batch *batch,
                           struct ks_update *update);
/* agent_update in two calls, so that rewards and mask may become known later: only agent_finish
 * reads them. Each fills some fields of `update`. */
ks_status KS(agent_begin)(struct KS(agent) *agent, const struct ks_batch *batch,
                          struct ks_update *update);
ks_status KS(agent_finish)(struct KS(agent) *agent, const struct ks_batch *batch,
                           struct ks_update *update);

/* A frozen minibatch for the analyzer: the critics' input [R, D] as an update on `batch` would use
 * it now, with the noise of `rng`. Rewards are not read. */
void KS(agent_fill_checkpoint_batch)(struct KS(agent) *agent, const struct ks_batch *batch,
                                     struct ks_rng *rng, double *input);
/* The targets [batch, targets] of the minibatch last given to agent_fill_checkpoint_batch, with the
 * rewards of `batch`. May be called repeatedly with differently scaled rewards, but no other
 * function of the agent may be called in between. */
void KS(agent_fill_checkpoint_target)(struct KS(agent) *agent, const struct ks_batch *batch,
                                      double *target);

/* Restores the last update for metrics; `batch` is its minibatch, whose rewards are not read.
 * At least one update has been made. Afterwards:
 *   s, input       hold that minibatch; input [2 batch, D] = [(s, a); (s', a')], with a' of the
 *                  actor as it is now and the noise of that update, which from images has the
 *                  standard deviation of the newest agent step
 *   actor.primal   holds the actor's pass in training mode on s
 *   actor_g        [P of the actor] is the gradient of the actor's loss at that update, even if the
 *                  policy delay skipped its step
 * Nothing is changed that a later update or metric depends on. */
void KS(agent_recompute_last)(struct KS(agent) *agent, const struct ks_batch *batch, real *actor_g);

/* Fails with KS_NUMBER if a parameter, a running statistic or one of Adam's moments is not finite.
 * If the square of a gradient overflows, its second moment becomes infinite and its parameter never
 * moves again, which nothing else would show. */
ks_status KS(agent_check)(const struct KS(agent) *agent);

/* Copies networks and moments into a checkpoint that has none yet. ks_checkpoint_free frees the
 * copies, also after a failure (KS_MEMORY, KS_FORMAT). */
ks_status KS(agent_export)(const struct KS(agent) *agent, struct ks_checkpoint *checkpoint);

/* A step of an update, for tests; no optimizer step is made. Loss and gradient of critic e, on the
 * input and target in the work space, go to critic_step[e].loss and critic[e].g. */
void KS(critic_gradient)(struct KS(agent) *agent, size_t e);
#endif
