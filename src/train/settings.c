#include "train/settings.h"

#include <math.h>
#include <string.h>

static const char *const decays[] = {"none", "norms", "heads", "norms+heads", "all", NULL};
static const char *const orders[] = {"critics-first", "actor-first", NULL};
static const char *const values[] = {"min", "mean", NULL};
static const char *const starts[] = {"orthogonal", "he-normal", "lecun-normal", "xavier-uniform",
                                     NULL};
#define KEY(type, is_automatic, source, name, member, text, words)                                 \
    {                                                                                              \
#name, type, text, KS_KEY_AT(struct ks_settings, member), .help = words, .from = source,   \
                                                                  .automatic = is_automatic        \
    }
#define COUNT(from, name, low, high, text, help)                                                   \
    KEY(KS_ROW_COUNT(low, high), false, from, name, name, text, help)
#define NUMBER(from, name, low, high, text, help)                                                  \
    KEY(KS_ROW_NUMBER(low, high), false, from, name, name, text, help)
#define NUMBER_OR_AUTO(from, name, low, high, help)                                                \
    KEY(KS_ROW_NUMBER(low, high), true, from, name, name, "auto", help)
#define FLAG(from, name, text, help)   KEY(KS_ROW_FLAG(), false, from, name, name, text, help)
#define FLAG_OR_AUTO(from, name, help) KEY(KS_ROW_FLAG(), true, from, name, name, "auto", help)
#define CHOICE(from, name, member, words, text, help)                                              \
    KEY(KS_ROW_CHOICE(words), false, from, name, member, text, help)
#define AGENT_COUNT(from, name, low, high, text, help)                                             \
    KEY(KS_ROW_COUNT(low, high), false, from, name, agent.name, text, help)
#define AGENT_NUMBER(from, name, low, high, text, help)                                            \
    KEY(KS_ROW_NUMBER(low, high), false, from, name, agent.name, text, help)

/* Where a default is written: in the XQC paper (Palenicek et al., ICLR 2026), most of them in its
 * Table 1; or only in the code that its authors published (danielpalenicek/xqc, 9a6832b); or
 * neither: choices of this program, and settings of other systems, which are off. */
#define PAPER "paper"
#define CODE  "code"
#define OURS  NULL

const struct ks_key ks_keys[] = {
    COUNT(PAPER, hidden, 1, 16384, "512",
          "width of a critic's hidden layers (named architectures)"),
    COUNT(PAPER, depth, 1, 64, "4", "number of a critic's hidden layers (named architectures)"),
    COUNT(PAPER, actor_hidden, 1, 16384, "256", "width of the actor's hidden layers"),
    COUNT(PAPER, actor_depth, 1, 64, "4", "number of the actor's hidden layers"),
    FLAG(PAPER, skip, "0", "residual blocks after the first (critics: named architectures)"),
    COUNT(PAPER, critics, 1, 64, "2", "size of the ensemble"),
    COUNT(PAPER, atoms, 2, 4096, "101", "atoms of a ce critic (named architectures)"),
    NUMBER(PAPER, v_min, -1e6, 1e6, "-5", "value of the first atom (named architectures)"),
    NUMBER(PAPER, v_max, -1e6, 1e6, "5", "value of the last atom (named architectures)"),
    COUNT(PAPER, batch, 2, 65536, "256", "transitions of a minibatch"),
    COUNT(PAPER, utd, 1, 1024, "2", "updates per agent step"),
    COUNT(OURS, update_every, 1, 1000, "1",
          "agent steps per round of `utd` updates, for systems that see images"),
    COUNT(CODE, random_steps, 1, 1e9, "5000", "agent steps before the first update"),
    COUNT(CODE, replay, 1, 1e9, "1000000", "capacity of replay, in agent steps"),
    COUNT(CODE, n_step, 1, 100, "1",
          "agent steps whose rewards a target sums before it bootstraps"),
    COUNT(OURS, reset_step, 0, 1e9, "0",
          "agent step before whose updates networks and optimizers start anew; 0: never"),
    AGENT_COUNT(OURS, horizon, 1, 100, "5",
                "agent steps over which an encoder's loss unrolls its model"),
    NUMBER(OURS, replay_priority, 0, 1, "0",
           "exponent of the priorities of replay, for systems with an encoder; 0: equal ones"),
    COUNT(PAPER, action_repeat, 1, 1000, "2", "environment steps of an agent step; Gymnasium: 1"),
    NUMBER_OR_AUTO(PAPER, gamma, 0, 1, "discount; auto: by the episode's length"),
    AGENT_NUMBER(PAPER, tau, 0, 1, "0.005",
                 "weight of new parameters in the target networks' average"),
    AGENT_COUNT(PAPER, target_period, 0, 1e9, "0",
                "updates between copies of the networks to their targets; 0: averages with tau"),
    NUMBER(PAPER, critic_lr, 0, 1, "0.0003", "learning rate of the critics at the start"),
    NUMBER(PAPER, actor_lr, 0, 1, "0.0003", "learning rate of actor and temperature at the start"),
    NUMBER(CODE, lr_end, 0, 1, "0.00003",
           "learning rate of the critics at the end, to which it falls linearly"),
    NUMBER(OURS, encoder_lr, 0, 1, "0.0001",
           "learning rate of an encoder or an image, which is constant"),
    NUMBER(OURS, noise, 0, 10, "1",
           "standard deviation of the noise on actions at the start, for systems that see images"),
    NUMBER(OURS, noise_end, 0, 10, "0.1", "the same at the end, to which it falls linearly"),
    COUNT(OURS, noise_steps, 1, 1e9, "500000", "agent steps in which it falls"),
    AGENT_NUMBER(OURS, noise_clip, 0, 10, "0.3", "bound on this noise in an update"),
    AGENT_NUMBER(
        OURS, gradient_norm, 0, 1e12, "0",
        "bound on the norm of the gradient of all critics together, without a trunk; 0: none"),
    AGENT_COUNT(PAPER, policy_delay, 1, 1000, "3",
                "updates of the critics per update of the actor"),
    CHOICE(CODE, update_order, agent.order, orders, "critics-first",
           "what an update steps first: critics-first, actor-first"),
    AGENT_NUMBER(PAPER, temperature, 1e-12, 1e6, "0.01", "entropy temperature at the start"),
    NUMBER_OR_AUTO(PAPER, target_entropy, -1e6, 1e6, "target entropy; auto: -actions/2"),
    AGENT_NUMBER(CODE, temperature_beta1, 0, 0.999999, "0.9", "Adam's beta1 of the temperature"),
    AGENT_NUMBER(OURS, temperature_decay, 0, 1, "0",
                 "decoupled weight decay of the temperature's logarithm"),
    CHOICE(CODE, target_value, agent.target_value, values, "min",
           "of the critics, in their targets: min, mean"),
    CHOICE(CODE, policy_value, agent.policy_value, values, "min",
           "of the critics, in the actor's loss: min, mean"),
    CHOICE(CODE, init, agent.starts.kernels, starts, "orthogonal",
           "kernels at the start: orthogonal, he-normal, lecun-normal, xavier-uniform"),
    CHOICE(OURS, init_blocks, agent.starts.blocks, starts, "orthogonal",
           "the same of kernels inside residual blocks"),
    NUMBER_OR_AUTO(CODE, init_gain, 1e-6, 1e6,
                   "gain of orthogonal and uniform kernels, but not of an image's; auto: sqrt(2)"),
    AGENT_NUMBER(PAPER, weight_decay, 0, 1, "0", "decoupled weight decay"),
    CHOICE(PAPER, decay, agent.decay, decays, "none",
           "parameters that decay: none, norms (batch normalization's), heads, norms+heads, all"),
    FLAG(PAPER, reward_normalization, "1", "divide rewards by the scale of the discounted return"),
    CHOICE(PAPER, reward_scaling, reward_scaling, ks_reward_scalings, "std",
           "that scale: std, its standard deviation; bounded, as in SimBa-V2; range, as in BRC; "
           "magnitude, the mean of |reward|, as in MR.Q"),
    FLAG(OURS, observation_normalization, "0",
         "observations in units of their running mean and standard deviation"),
    FLAG(OURS, raw_rewards, "0", "compute the checkpoints' targets from raw rewards"),
    COUNT(CODE, eval_episodes, 1, 10000, "10", "episodes of an evaluation"),
    COUNT(OURS, evaluations, 0, 10000, "20", "evaluations after the one at the start"),
    COUNT(PAPER, checkpoints, 1, 10000, "20", "evenly spaced checkpoints"),
    COUNT(CODE, analysis_minibatches, 1, 100000, "50", "minibatches in a checkpoint"),
    COUNT(OURS, threads, 1, 1024, "2",
          "threads: at most one per critic; from 2 on, one more for the environment, not with "
          "frames"),
    CHOICE(OURS, products, products, ks_products_names, "blas",
           "float32 products by OpenBLAS (blas) or of bfloat16 parts (split3), as accurate; auto: "
           "split3 with AMX"),
    FLAG_OR_AUTO(OURS, nativeccd, "MuJoCo's native convex collider; auto: its default"),
    FLAG_OR_AUTO(OURS, multiccd, "MuJoCo's multi-contact collider; auto: its default"),
    KS_KEYS_END,
};

ks_status ks_settings_set(struct ks_settings *settings, const char *name, const char *value)
{
    const struct ks_key *key = ks_key_find(ks_keys, name);

    return key ? ks_key_set(key, "", value, settings)
               : ks_fail(KS_USAGE, "unknown setting '%s' (--list names them)", name);
}

ks_status ks_settings_assign(struct ks_settings *settings, const char *assignment)
{
    const char *equals = strchr(assignment, '=');
    char name[64];

    if (!equals || equals == assignment || (size_t)(equals - assignment) >= sizeof name)
        return ks_fail(KS_USAGE, "expected KEY=VALUE, found '%s'", assignment);
    memcpy(name, assignment, (size_t)(equals - assignment));
    name[equals - assignment] = '\0';
    return ks_settings_set(settings, name, equals + 1);
}

void ks_settings_defaults(struct ks_settings *settings)
{
    *settings = (struct ks_settings){0};
    ks_keys_defaults(ks_keys, settings);
}

ks_status ks_settings_check(const struct ks_settings *s)
{
    if (!(s->v_min < s->v_max))
        return ks_fail(KS_USAGE, "v_min: expected less than v_max, found %g and %g", s->v_min,
                       s->v_max);
    if (s->lr_end > fmin(s->critic_lr, s->actor_lr))
        return ks_fail(KS_USAGE,
                       "lr_end: expected at most critic_lr and actor_lr, found %g and %g, %g",
                       s->lr_end, s->critic_lr, s->actor_lr);
    if (s->agent.weight_decay > 0 && s->agent.decay == KS_DECAY_NONE)
        return ks_fail(KS_USAGE, "weight_decay: %g has no effect with decay=none",
                       s->agent.weight_decay);
    if (s->agent.target_period == 0 && s->reward_scaling == KS_SCALE_MAGNITUDE)
        return ks_fail(KS_USAGE,
                       "reward_scaling: magnitude needs a target_period above 0, found 0");
    if (s->gamma == 1 && s->reward_scaling == KS_SCALE_RANGE)
        return ks_fail(KS_USAGE, "reward_scaling: range needs a gamma below 1, found 1");
    return KS_OK;
}

/* The heuristic of TD-MPC2 (Hansen, Su & Wang, ICLR 2024): clip((t/5 - 1)/(t/5), 0.95, 0.995) for
 * episodes of t agent steps. */
double ks_settings_gamma(const struct ks_settings *s, size_t steps)
{
    double fifth = (double)steps / (double)s->action_repeat / 5;

    return isnan(s->gamma) ? fmin(fmax((fifth - 1) / fifth, 0.95), 0.995) : s->gamma;
}
