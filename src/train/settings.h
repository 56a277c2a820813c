/* The settings of a training run: one table, used by --set, by [train] of a study and by run.json.
 */
#ifndef KS_TRAIN_SETTINGS_H
#define KS_TRAIN_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "core/error.h"
#include "core/keys.h"
#include "train/returns.h"

struct ks_settings {
    size_t hidden, depth, actor_hidden, actor_depth, skip, critics, atoms;
    double v_min, v_max;
    size_t batch, utd, update_every, random_steps, replay, n_step, action_repeat;
    double gamma;      /* NaN: auto */
    size_t reset_step; /* agent steps; 0: never */
    double replay_priority;
    double critic_lr, actor_lr, lr_end, encoder_lr;
    double noise, noise_end;
    size_t noise_steps;
    double target_entropy; /* NaN: auto, -actions/2 */
    double init_gain;      /* NaN: auto */
    /* What the agent reads as it is set here: tau, target_period, horizon, noise_clip,
     * gradient_norm, policy_delay, order, target_value, policy_value, temperature,
     * temperature_beta1, temperature_decay, starts, weight_decay, decay. */
    struct ks_agent_config agent;
    enum ks_products products; /* as asked for: may be AUTO */
    enum ks_reward_scale reward_scaling;
    size_t reward_normalization, raw_rewards, observation_normalization;
    size_t eval_episodes, evaluations, checkpoints, analysis_minibatches, threads;
    double nativeccd, multiccd; /* 0, 1; NaN: auto, the library's default */
};

/* All settings, ended by a name of NULL. */
extern const struct ks_key ks_keys[];

void ks_settings_defaults(struct ks_settings *settings); /* sets the defaults */
/* Sets one value from text. Fails with KS_USAGE, naming the key, what was expected and found. */
ks_status ks_settings_set(struct ks_settings *settings, const char *key, const char *value);
/* Sets one value from "KEY=VALUE". */
ks_status ks_settings_assign(struct ks_settings *settings, const char *assignment);
/* Checks constraints between two settings. Fails with KS_USAGE. */
ks_status ks_settings_check(const struct ks_settings *settings);

/* The discount for episodes of `steps` environment steps (0.99 for 1000 at action repeat 2). */
double ks_settings_gamma(const struct ks_settings *settings, size_t steps);

/* What the user asks of a training run: the options of kappascope-train. */

/* Whether a run continues from its newest resume point: never; only under the conditions under
 * which it was computed so far (run.h); or also under changed ones. */
enum ks_resume { KS_RESUME_NOT, KS_RESUME_EXACT, KS_RESUME_ANY };

struct ks_train_options {
    const char *env, *architecture, *out; /* task; name, .arch or .system file; folder */
    uint64_t seed;
    size_t steps;   /* environment steps of the complete run                       */
    size_t stop_at; /* stop early, with the milestones and rates of `steps`; 0: do not */
    struct ks_settings settings;
    enum ks_resume resume;
    double save_every; /* seconds between resume points; < 0: see ks_resume_keep */
    bool quiet;
    int argc; /* the command line, for run.json */
    char *const *argv;
};

#endif
