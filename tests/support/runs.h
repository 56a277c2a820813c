/* Runs of tiny agents in the scratch folder, stepped by the test itself, in the precision of the
 * test. */
#ifndef KS_TEST_RUNS_H
#define KS_TEST_RUNS_H

#include "scratch.h"

#include "train/run.h"
#include "train/train.h"

/* Assigns settings, "NAME=VALUE NAME=VALUE ...". */
static inline void assign_settings(struct ks_settings *s, const char *text)
{
    char *copy = hold(strdup(text));

    for (char *one = strtok(copy, " "); one; one = strtok(NULL, " "))
        assert_ok(ks_settings_assign(s, one));
}

/* The options of a run with seed 5 and these settings, the others being the defaults; until the
 * test ends. */
static inline struct ks_train_options *plan_run(const char *env, const char *architecture,
                                                const char *settings)
{
    struct ks_train_options *o = hold(malloc(sizeof *o));

    *o = (struct ks_train_options){.env = env,
                                   .architecture = architecture,
                                   .out = scratch_folder,
                                   .seed = 5,
                                   .steps = 4000,
                                   .quiet = true};
    ks_settings_defaults(&o->settings);
    assign_settings(&o->settings, settings);
    return o;
}

static inline void free_run(void *run)
{
    ks_run_free(run);
}

/* Opens the run's progress.csv and starts its first episode. It lives until the test ends. */
static inline struct ks_run *begin_run(struct ks_run *run)
{
    assert_ok(ks_metrics_new(scratch("progress.csv"), 0, run->learner.agent, &run->metrics));
    assert_ok(ks_learner_start_episode(&run->learner));
    return hold_object(run, free_run);
}

#endif
