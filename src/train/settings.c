#include "train/settings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/number.h"

static const char *const decays[] = {"none", "norms", "heads", "norms+heads", "all", NULL};
static const char *const orders[] = {"critics-first", "actor-first", NULL};
static const char *const values[] = {"min", "mean", NULL};
static const char *const starts[] = {"orthogonal", "he-normal", "lecun-normal", "xavier-uniform",
                                     NULL};
static const char *const yes[] = {"1", "yes", "true", "on", NULL};
static const char *const no[] = {"0", "no", "false", "off", NULL};

#define KEY(type, automatic, from, name, member, low, high, text, words, help)                     \
    {                                                                                              \
#name, KS_KEY_##type, automatic, low, high, text, words,                                   \
            offsetof(struct ks_settings, member), from, help                                       \
    }
#define COUNT(from, name, low, high, text, help)                                                   \
    KEY(COUNT, false, from, name, name, low, high, text, NULL, help)
#define NUMBER(from, name, low, high, text, help)                                                  \
    KEY(NUMBER, false, from, name, name, low, high, text, NULL, help)
#define NUMBER_OR_AUTO(from, name, low, high, help)                                                \
    KEY(NUMBER, true, from, name, name, low, high, "auto", NULL, help)
#define FLAG(from, name, text, help)   KEY(FLAG, false, from, name, name, 0, 1, text, NULL, help)
#define FLAG_OR_AUTO(from, name, help) KEY(FLAG, true, from, name, name, 0, 1, "auto", NULL, help)
#define CHOICE(from, name, member, words, text, help)                                              \
    KEY(CHOICE, false, from, name, member, 0, 0, text, words, help)
#define AGENT_COUNT(from, name, low, high, text, help)                                             \
    KEY(COUNT, false, from, name, agent.name, low, high, text, NULL, help)
#define AGENT_NUMBER(from, name, low, high, text, help)                                            \
    KEY(NUMBER, false, from, name, agent.name, low, high, text, NULL, help)

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
    NUMBER(OURS, encoder_lr, 0, 1, "0.0001", "learning rate of an encoder, which is constant"),
    AGENT_NUMBER(OURS, gradient_norm, 0, 1e12, "0",
                 "bound on the norm of the gradient of all critics together; 0: none"),
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
                   "gain of orthogonal and uniform kernels; auto: sqrt(2)"),
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
          "threads: at most one per critic; from 2 on, one more for the environment"),
    CHOICE(OURS, products, products, ks_products_names, "blas",
           "float32 products by OpenBLAS (blas) or of bfloat16 parts (split3), as accurate; auto: "
           "split3 with AMX"),
    FLAG_OR_AUTO(OURS, nativeccd, "MuJoCo's native convex collider; auto: its default"),
    FLAG_OR_AUTO(OURS, multiccd, "MuJoCo's multi-contact collider; auto: its default"),
    {NULL, KS_KEY_COUNT, false, 0, 0, NULL, NULL, 0, NULL, NULL},
};

/* The address of a value: a double, an enumeration, which GCC stores as an unsigned int if it has
 * no negative values, or a size_t. */
static void *at(const struct ks_settings *settings, const struct ks_key *key)
{
    return (char *)settings + key->offset;
}

/* Numbers and keys that may be "auto" are stored as double. */
static bool is_number(const struct ks_key *key)
{
    return key->automatic || key->type == KS_KEY_NUMBER;
}

static bool is_among(const char *const *words, const char *value)
{
    for (size_t i = 0; words[i]; i++)
        if (strcmp(words[i], value) == 0)
            return true;
    return false;
}

static bool read_value(const struct ks_key *key, const char *value, double *out)
{
    uint64_t count;

    if (key->automatic && strcmp(value, "auto") == 0) {
        *out = NAN;
        return true;
    }
    if (key->type == KS_KEY_FLAG) {
        *out = is_among(yes, value);
        return is_among(yes, value) || is_among(no, value);
    }
    if (key->type == KS_KEY_CHOICE) {
        for (size_t i = 0; key->choices[i]; i++)
            if (strcmp(key->choices[i], value) == 0) {
                *out = (double)i;
                return true;
            }
        return false;
    }
    if (key->type == KS_KEY_NUMBER)
        return ks_parse_number(value, key->low, key->high, out);
    if (!ks_parse_integer(value, (uint64_t)key->low, (uint64_t)key->high, &count))
        return false;
    *out = (double)count;
    return true;
}

/* "none, norms, ...", truncated to `room` characters. */
static void list_choices(const struct ks_key *key, size_t room, char *text)
{
    size_t used = 0;

    for (size_t i = 0; key->choices[i] && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%s", i > 0 ? ", " : "",
                                 key->choices[i]);
}

static ks_status refuse(const struct ks_key *key, const char *value)
{
    const char *or_auto = key->automatic ? " or auto" : "";
    char choices[128];

    if (key->type == KS_KEY_FLAG)
        return ks_fail(KS_USAGE, "%s: expected 0 or 1%s, found '%s'", key->name, or_auto, value);
    if (key->type == KS_KEY_CHOICE) {
        list_choices(key, sizeof choices, choices);
        return ks_fail(KS_USAGE, "%s: expected one of %s, found '%s'", key->name, choices, value);
    }
    return ks_fail(KS_USAGE, "%s: expected %s from %.10g to %.10g%s, found '%s'", key->name,
                   key->type == KS_KEY_COUNT ? "an integer" : "a number", key->low, key->high,
                   or_auto, value);
}

const struct ks_key *ks_settings_key(const char *name)
{
    for (const struct ks_key *key = ks_keys; key->name; key++)
        if (strcmp(key->name, name) == 0)
            return key;
    return NULL;
}

ks_status ks_settings_set(struct ks_settings *settings, const char *name, const char *value)
{
    const struct ks_key *key = ks_settings_key(name);
    double number;

    if (!key)
        return ks_fail(KS_USAGE, "unknown setting '%s' (--list names them)", name);
    if (!read_value(key, value, &number))
        return refuse(key, value);
    if (is_number(key))
        *(double *)at(settings, key) = number;
    else if (key->type == KS_KEY_CHOICE)
        *(unsigned *)at(settings, key) = (unsigned)number;
    else
        *(size_t *)at(settings, key) = (size_t)number;
    return KS_OK;
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
    for (const struct ks_key *key = ks_keys; key->name; key++)
        ks_settings_set(settings, key->name,
                        key->default_text); /* cannot fail: test_settings sets all defaults */
}

void ks_settings_print(const struct ks_settings *settings, const struct ks_key *key,
                       char text[KS_VALUE_LENGTH])
{
    if (key->type == KS_KEY_CHOICE)
        snprintf(text, KS_VALUE_LENGTH, "%s", key->choices[*(unsigned *)at(settings, key)]);
    else if (!is_number(key))
        snprintf(text, KS_VALUE_LENGTH, "%zu", *(size_t *)at(settings, key));
    else if (isnan(*(double *)at(settings, key)))
        snprintf(text, KS_VALUE_LENGTH, "auto");
    else
        for (int digits = 15; digits <= 17; digits++) { /* the fewest that restore the value */
            snprintf(text, KS_VALUE_LENGTH, "%.*g", digits, *(double *)at(settings, key));
            if (strtod(text, NULL) == *(double *)at(settings, key))
                break;
        }
}

bool ks_settings_number(const struct ks_settings *settings, const struct ks_key *key,
                        double *number)
{
    if (key->type == KS_KEY_CHOICE)
        return false;
    *number = is_number(key) ? *(double *)at(settings, key) : (double)*(size_t *)at(settings, key);
    return !isnan(*number);
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
