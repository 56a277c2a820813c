/* What the user asks of a training run: the options of kappascope-train. */
#ifndef KS_TRAIN_OPTIONS_H
#define KS_TRAIN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "train/settings.h"

/* Whether a run continues from its newest resume point: never; only under the conditions under
 * which it was computed so far (conditions.h); or also under changed ones. */
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
