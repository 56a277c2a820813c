/* The encoder of MR.Q (Fujimoto et al., "Towards General-Purpose Model-Free Reinforcement
 * Learning", ICLR 2025; code facebookresearch/MRQ, 8a44a7d): networks that embed observations and
 * actions, and a model that predicts from these embeddings. Critics and actor see embeddings, but
 * only the encoder's own loss trains it.
 *
 *   z = state(s),   u = action(a),   x = pair([z; u])    x: the critics' input; z: the actor's
 *   [d; z'; r] = model(x)                                end of the episode, next z, reward's bins
 *
 * The loss of a window of H steps starts at z_0 = state(s_0) and goes on with the predicted z:
 *
 *   L = sum_i  mean_bj k_i (z'_ij - state_target(s_{i+1})_j)^2
 *            + 0.1 mean_b k_i CE(softmax(r_i), two_hot(reward_i)) + 0.1 mean_b k_i (d_i - done_i)^2
 *
 * with k_i = 0 after a terminal state, else 1, and done_i = 1 - mask_i. The last term is left out
 * as long as no terminal state has been seen. */
#ifndef KS_AGENT_ENCODER_H
#define KS_AGENT_ENCODER_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/optim.h"
#include "core/error.h"
#include "core/real.h"
#include "net/net.h"

struct KS(agent);

/* The modules of an encoder, each a network, in the order of their descriptions. */
enum ks_module { KS_STATE_MODULE, KS_ACTION_MODULE, KS_PAIR_MODULE, KS_MODEL_MODULE, KS_MODULES };

/* Minibatches of windows of `steps` transitions, [steps, batch, ...]; states has one more step.
 * Rows behind the end of an episode have kept 0, and any finite numbers. */
struct ks_windows {
    size_t steps, batch;
    float *s, *a;         /* [steps + 1, batch, observations], [steps, batch, actions] */
    float *reward, *mask; /* [steps, batch]: raw; 0 after a true terminal state, else 1 */
    float *kept;          /* [steps, batch]: k above                                    */
    bool terminates;      /* a terminal state has been seen                             */
};

struct KS(encoder) {
    struct KS(arch) *arch[KS_MODULES];
    struct KS(trained) module[KS_MODULES]; /* targets of all but the model */
    /* Passes: of a minibatch; of all steps of its windows at once (state, action); of one row. */
    struct KS(net) *batch[KS_MODULES], *all[KS_MODULES], *one;
    struct ks_adam adam;
    size_t steps; /* H */
    /* Work space of the loss. Z, X: columns of z and x. */
    real *s, *a;                      /* [H batch, observations], [H batch, actions] */
    real *target;                     /* [H, batch, Z]                               */
    real *pair_input;                 /* [H, batch, Z + columns of u]                */
    real *pair_primal, *model_primal; /* [H]: blocks of the passes                 */
    real *pair_bar;                   /* [batch, Z + columns of u]                   */
    real *state_bar;                  /* [batch, Z]: dL/dz of the step               */
    real *action_bar;                 /* [batch, actions]                            */
};

/* Parses the description of a network before critics and actor, for inputs of `in` columns: it ends
 * in "outputs". KS_FORMAT if it has layers without a gradient in training; convolutions have one
 * only if its inputs are images. The caller frees *arch, also after a failure. */
ks_status KS(module_parse)(const struct KS(agent) *agent, const char *text, const char *name,
                           size_t in, bool images, struct KS(arch) **arch);

/* Creates the encoder of an agent, of which only `config` is read, without its arrays. KS_FORMAT if
 * the descriptions do not fit each other, KS_MEMORY. The caller frees it, also after a failure. */
ks_status KS(encoder_new)(const struct KS(agent) *agent, struct KS(encoder) **encoder);
void KS(encoder_free)(struct KS(encoder) *encoder);
/* Takes the arrays of the agent's encoder from the agent's arena. */
void KS(encoder_lay_out)(struct ks_arena *arena, const struct KS(agent) *agent);
/* Sets parameters and moments to their start, targets to copies. */
ks_status KS(encoder_init)(struct KS(agent) *agent);

/* z [batch, Z] = state(s), and x [batch, X] = pair([z; action(actions)]). target: with the target
 * networks. The passes stay in the networks' primal blocks. */
void KS(encode_states)(struct KS(agent) *agent, bool target, const real *s, real *z);
void KS(encode_pairs)(struct KS(agent) *agent, bool target, const real *z, const real *actions,
                      real *x);
/* a_bar [batch, A] = dL/d actions from x_bar, after encode_pairs with the same actions. */
void KS(encode_pairs_backward)(struct KS(agent) *agent, const real *actions, const real *x_bar,
                               real *a_bar);

/* The loss above; its gradient goes to module[].g. For tests also. */
double KS(encoder_gradient)(struct KS(agent) *agent, const struct ks_windows *windows);
/* One step of all networks. KS_NUMBER if a parameter is not finite afterwards. */
ks_status KS(encoder_step)(struct KS(agent) *agent, const struct ks_windows *windows);

/* Copies n floats. */
void KS(widen)(size_t n, const float *from, real *to);

/* The bins of rewards. */
enum { KS_REWARD_BINS = 65 };
/* Bin k is at sign(x) (e^|x| - 1), x = -10 + 20 k / 64. */
double KS(reward_bin)(size_t k);
/* The weights of a reward are 1 - *share at the bin *low and *share at the next one. The reward of
 * the last bin or beyond has all weight there. */
void KS(two_hot)(double reward, size_t *low, double *share);

#endif
