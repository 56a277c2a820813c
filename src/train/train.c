/* One run of XQC (Palenicek et al., ICLR 2026) or of another architecture of the study: agent
 * steps, and at the milestones evaluations, rows of progress.csv and checkpoints. train() is the
 * algorithm, with ks_learner_step of step.c. */
#include "train/train.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "config.h"
#include "core/blas.h"
#include "core/memory.h"
#include "core/process.h"
#include "core/progress.h"
#include "io/file.h"
#include "io/h5.h"
#include "train/resume_point.h"

ks_status ks_run_new(const struct ks_train_options *options, struct ks_run **run)
{
    const struct ks_render *frames;
    struct ks_env *env;
    KS_OWNED_BY(ks_run_free) struct ks_run *r = NULL;

    *run = NULL;
    KS_TRY(ks_alloc(1, sizeof *r, &r));
    r->lock = -1;
    KS_TRY(ks_player_init(options, "", &r->learner.player));
    env = r->learner.player.env;
    frames = r->learner.player.render;
    KS_TRY(ks_plan_init(options, env, &r->plan));
    KS_TRY(ks_plan_check(&r->plan));
    KS_TRY(ks_evaluation_init(&r->plan, &r->evaluation));
    KS_TRY(ks_learner_init(&r->plan, &r->learner));
    KS_TRY(ks_conditions_init(&r->learner.agent->config, ks_env_flags(env),
                              frames ? ks_render_opengl(frames) : NULL, &r->conditions));
    KS_TRY(ks_alloc(ks_env_state_size(env), sizeof *r->env_state, &r->env_state));
    *run = r, r = NULL;
    return KS_OK;
}

void ks_run_free(struct ks_run *r)
{
    if (!r)
        return;
    ks_learner_free(&r->learner);
    ks_evaluation_free(&r->evaluation);
    ks_conditions_free(&r->conditions);
    ks_metrics_free(r->metrics);
    ks_plan_free(&r->plan);
    free(r->env_state);
    if (r->lock >= 0)
        close(r->lock);
    free(r);
}

/* --- run.json --- */

/* FAILED_PERMANENTLY: the failure is deterministic, so the run cannot be resumed. */
enum ks_run_state { KS_RUNNING, KS_STOPPED, KS_FINISHED, KS_FAILED, KS_FAILED_PERMANENTLY };
static const char *const run_states[] = {"running", "stopped", "finished", "failed", "failed"};
static const size_t DUMP = JSON_INDENT(2) | JSON_REAL_PRECISION(15);

/* The current time, UTC, ISO 8601. */
static void run_time(char text[32])
{
    time_t seconds = time(NULL);
    struct tm utc;

    gmtime_r(&seconds, &utc);
    strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

static json_t *describe_command(const struct ks_train_options *o)
{
    json_t *command = json_array();

    for (int i = 0; i < o->argc; i++)
        json_array_append_new(command, json_string(o->argv[i]));
    return command;
}

static json_t *describe_versions(void)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s}", "kappascope", KS_BUILD, "blas", ks_blas_version(),
                     "hdf5", ks_h5_version(), "mujoco", ks_env_mujoco_version(), "jansson",
                     JANSSON_VERSION);
}

/* How the run is computed, which is all that may differ between two starts of one run; and where it
 * is now. NULL if memory runs out. */
static json_t *describe_course(const struct ks_run *r, enum ks_run_state state, const char *reason)
{
    const struct ks_learner *l = &r->learner;
    json_t *text = reason ? json_string(reason) : NULL;
    char now[32];

    run_time(now);
    return json_pack(
        "{s:o, s:o, s:s, s:s, s:s, s:i, s:s, s:f, s:s, s:s?, s:O, s:s?, s:s, s:o, s:b, s:I, "
        "s:I, s:I, s:I, s:s*}",
        "command", describe_command(r->plan.options), "versions", describe_versions(),
        "blas_kernel", ks_blas_kernel(), "products", ks_products_names[l->agent->config.products],
        "processor", ks_processor_name(), "threads", l->agent->config.threads, "mujoco_flags",
        ks_env_flags(l->player.env), "gamma", r->plan.gamma, "start", r->started, "resumed",
        *r->resumed ? r->resumed : NULL, "changes", r->conditions.changes, "end",
        state == KS_RUNNING ? NULL : now, "state", run_states[state], "reason",
        text ? text : json_null(), "resumable",
        state != KS_FINISHED && state != KS_FAILED_PERMANENTLY, "env_step", (json_int_t)l->env_step,
        "update", (json_int_t)l->agent->updates, "divergences",
        (json_int_t)ks_env_divergences(l->player.env), "evaluation_divergences",
        (json_int_t)ks_env_divergences(r->evaluation.player.env), "opengl",
        l->player.render ? ks_render_opengl(l->player.render) : NULL);
}

/* Writes the file. `reason`: why the run stopped or failed; NULL: it did not. */
static ks_status run_write_json(const struct ks_run *r, enum ks_run_state state, const char *reason)
{
    json_auto_t *object = ks_fingerprint(&r->plan), *course = describe_course(r, state, reason);
    KS_OWNED char *path = NULL, *text = NULL;

    json_object_set_new(json_object_get(object, "settings"), "threads",
                        json_integer((json_int_t)r->plan.options->settings.threads));
    if (json_object_update(object, course) == 0)
        text = json_dumps(object, DUMP);
    if (!text)
        return ks_fail(KS_MEMORY, "out of memory: describing the run");
    KS_TRY(ks_plan_path(&r->plan, "run.json", &path));
    return ks_file_write(path, text, strlen(text));
}

/* Every run writes run.json before its first checkpoint, so without run.json a checkpoint was
 * written by something else. */
static ks_status refuse_unknown_checkpoints(const char *folder)
{
    ks_status status = KS_OK;
    DIR *list = opendir(folder);
    struct dirent *entry;

    if (!list)
        return ks_file_fail(errno, folder, "opened");
    while (status == KS_OK && (entry = readdir(list)))
        if (fnmatch("step_*.h5", entry->d_name, 0) == 0)
            status = ks_fail(KS_USAGE,
                             "%s: contains %s but no run.json, so its run is unknown: choose "
                             "another folder",
                             folder, entry->d_name);
    closedir(list);
    return status;
}

static ks_status read_json(const char *path, json_t **object)
{
    json_error_t error;

    *object = json_load_file(path, 0, &error);
    if (!*object)
        return ks_fail(KS_FORMAT, "%s: expected the description of a run, found %s (line %d)", path,
                       error.text, error.line);
    return json_is_object(*object)
               ? KS_OK
               : ks_fail(KS_FORMAT,
                         "%s: expected the description of a run, found a value that is not an "
                         "object",
                         path);
}

/* A run that has lost a checkpoint no longer counts as finished. A permanent failure would occur
 * again: only a start from the beginning helps, and the user has to ask for that. */
static ks_status check_run(const struct ks_plan *p, const char *path, bool *finished)
{
    const char *state, *reason;
    json_auto_t *found = NULL;

    KS_TRY(read_json(path, &found));
    KS_TRY(ks_fingerprint_compare(p, path, "the folder holds another run", found));
    state = json_string_value(json_object_get(found, "state"));
    reason = json_string_value(json_object_get(found, "reason"));
    if (state && strcmp(state, run_states[KS_FINISHED]) == 0)
        return ks_checkpoint_files_exist(p, finished);
    if (state && strcmp(state, run_states[KS_FAILED]) == 0 && p->options->resume &&
        !json_is_true(json_object_get(found, "resumable")))
        return ks_fail(KS_RUN, "%s: this run has failed: %s; without --resume it starts over",
                       p->folder, reason ? reason : "no reason is known");
    return KS_OK;
}

/* Makes the run's folder, locks it against other processes that train (run->lock), and reads its
 * run.json. Fails with KS_IO; KS_FORMAT; KS_USAGE if the folder holds a different run (a run that
 * differs only in `threads` or --stop-at is the same); with --resume also KS_RUN if this run has
 * failed permanently.
 * *finished: the folder holds this run, finished, with all its checkpoints. */
static ks_status lock_folder(struct ks_run *r, bool *finished)
{
    const struct ks_plan *p = &r->plan;
    KS_OWNED char *path = NULL;

    *finished = false;
    KS_TRY(ks_folder_make("%s", p->folder));
    KS_TRY(ks_folder_lock(p->folder, "kappascope-train", &r->lock));
    KS_TRY(ks_plan_path(p, "run.json", &path));
    return ks_path_exists(path) ? check_run(p, path, finished)
                                : refuse_unknown_checkpoints(p->folder);
}

static bool is_due(const struct ks_milestones *m, size_t env_step, size_t *number)
{
    for (*number = 0; *number < m->n; ++*number)
        if (m->env_step[*number] == env_step)
            return true;
    return false;
}

static ks_status write_row(struct ks_run *r, bool evaluates)
{
    struct ks_learner *l = &r->learner;
    struct ks_batch batch, *last = NULL;

    if (l->agent->updates > 0) {
        KS_TRY(ks_learner_last_batch(l, &batch));
        last = &batch;
    }
    r->metrics->divergences = ks_env_divergences(l->player.env);
    r->metrics->evaluation_divergences = ks_env_divergences(r->evaluation.player.env);
    r->metrics->has_goal = ks_env_has_goal(l->player.env);
    r->metrics->success = evaluates ? r->evaluation.success : NAN;
    return ks_metrics_row(r->metrics, l->agent, last, l->env_step,
                          evaluates ? r->evaluation.return_mean : NAN);
}

/* Does what is due at this step. The evaluation comes first: a checkpoint of the same step contains
 * its return. */
static ks_status record(struct ks_run *r)
{
    size_t evaluation, checkpoint, env_step = r->learner.env_step;
    bool evaluates = is_due(&r->plan.evaluations, env_step, &evaluation);
    bool saves = is_due(&r->plan.checkpoints, env_step, &checkpoint);

    if (evaluates)
        KS_TRY(ks_evaluate(&r->evaluation, &r->learner, evaluation));
    if (evaluates || saves) {
        KS_TRY(write_row(r, evaluates));
        KS_TRY(run_write_json(r, KS_RUNNING, NULL));
    }
    if (saves)
        KS_TRY(ks_save_checkpoint(r));
    r->recorded = true;
    return KS_OK;
}

/* A signal after the last step's record is ignored: the run is complete. */
static ks_status train(struct ks_run *r, struct ks_resume_points *points,
                       struct ks_progress_bar *progress)
{
    struct ks_learner *l = &r->learner;
    char note[64] = "";

    if (!r->recorded) /* at the start, or still pending when the resume point was written */
        KS_TRY(record(r));
    while (l->env_step < r->plan.end) {
        KS_TRY(ks_stop_check(l->env_step));
        KS_TRY(ks_resume_keep(points, r));
        if (l->agent_steps == r->plan.options->settings.random_steps)
            ks_progress_restart(progress, l->env_step); /* steps with updates take far longer */
        KS_TRY(ks_learner_step(l, r->metrics));
        r->recorded = false;
        KS_TRY(record(r));
        snprintf(note, sizeof note, "return %.1f", r->evaluation.return_mean);
        ks_progress_update(progress, l->env_step, note);
    }
    return r->plan.stops_early ? ks_resume_write(points, r) : KS_OK;
}

/* Writes the state and the reason into run.json and, if a signal ended the run, a resume point.
 * Returns `status`, whose message stays even if one of these fails. NaN is deterministic: retrying
 * would fail again, so that failure is permanent. */
static ks_status end_after_failure(struct ks_run *r, struct ks_resume_points *points,
                                   ks_status status)
{
    bool stopped = ks_stop_obeyed();
    enum ks_run_state state = stopped               ? KS_STOPPED
                              : status == KS_NUMBER ? KS_FAILED_PERMANENTLY
                                                    : KS_FAILED;
    char reason[1024];

    if (stopped)
        snprintf(reason, sizeof reason, "%s", ks_error_text());
    else
        snprintf(reason, sizeof reason, "environment step %zu, update %lld: %s",
                 r->learner.env_step, (long long)r->learner.agent->updates, ks_error_text());
    if (stopped && ks_resume_write(points, r) != KS_OK)
        snprintf(reason + strlen(reason), sizeof reason - strlen(reason),
                 ", but no resume point could be written: %.400s", ks_error_text());
    if (run_write_json(r, state, reason) == KS_OK && state == KS_FAILED_PERMANENTLY)
        ks_resume_clear(points); /* useless now; if it fails, they do no harm */
    return ks_fail(status, "%s", reason);
}

static ks_status train_and_describe(struct ks_run *r, struct ks_resume_points *points, bool resumed)
{
    const struct ks_plan *plan = &r->plan;
    struct ks_progress_bar progress;
    ks_status status = KS_OK;

    ks_progress_start(&progress, plan->name, plan->end, plan->options->quiet);
    ks_progress_restart(&progress, r->learner.env_step);
    if (!plan->options->quiet && ks_products_warning(r->learner.agent->config.products))
        ks_say("note: %s", ks_products_warning(r->learner.agent->config.products));
    if (!resumed)
        status = ks_checkpoint_files_check(plan, r->learner.env_step, r->recorded);
    if (status == KS_OK)
        status = train(r, points, &progress);
    ks_progress_end(&progress);
    if (status != KS_OK)
        return end_after_failure(r, points, status);
    KS_TRY(run_write_json(r, plan->stops_early ? KS_STOPPED : KS_FINISHED, NULL));
    return plan->stops_early ? KS_OK : ks_resume_clear(points);
}

/* Removes the resume points first: they would not match the files of the new start. */
static ks_status start_over(struct ks_run *r, struct ks_resume_points *points)
{
    const struct ks_plan *plan = &r->plan;
    KS_OWNED char *path = NULL;

    if (!plan->options->quiet && ks_resume_exists(points))
        ks_say("%s: starting over: the resume points in %s/resume are removed", plan->name,
               plan->folder);
    KS_TRY(ks_resume_clear(points));
    KS_TRY(ks_plan_path(plan, "progress.csv", &path));
    KS_TRY(ks_metrics_new(path, 0, r->learner.agent, &r->metrics));
    return ks_learner_start_episode(&r->learner);
}

/* Opens progress.csv before run.json says "running": every later failure is written to run.json. A
 * resumed run that lacks a checkpoint fails before that: run.json and the checkpoints stay as they
 * are, while progress.csv and the replay log have already lost what came after the resume point. */
static ks_status start(struct ks_run *r, struct ks_resume_points *points, bool *resumed)
{
    const struct ks_plan *plan = &r->plan;

    *resumed = false;
    KS_TRY(ks_folder_sweep(plan->folder));
    if (plan->options->resume)
        KS_TRY(ks_resume_restore(points, r, resumed));
    if (*resumed)
        KS_TRY(ks_checkpoint_files_check(plan, r->learner.env_step, r->recorded));
    else
        KS_TRY(start_over(r, points));
    run_time(*resumed ? r->resumed : r->started);
    ks_stop_listen();
    if (!plan->options->quiet)
        ks_announce(r, points, *resumed);
    return run_write_json(r, KS_RUNNING, NULL);
}

ks_status ks_run_train(struct ks_run *r)
{
    KS_OWNED_BY(ks_resume_free) struct ks_resume_points *points = NULL;
    bool finished, resumed;

    KS_TRY(ks_resume_new(r, &points));
    KS_TRY(lock_folder(r, &finished));
    if (finished) {
        if (!r->plan.options->quiet)
            ks_say("%s: this run is finished: nothing to do", r->plan.folder);
        return ks_resume_clear(points);
    }
    KS_TRY(ks_check_memory(r));
    KS_TRY(start(r, points, &resumed));
    return train_and_describe(r, points, resumed);
}

ks_status ks_train(const struct ks_train_options *options)
{
    const struct ks_settings *s = &options->settings;
    KS_OWNED_BY(ks_run_free) struct ks_run *r = NULL;

    KS_TRY(ks_settings_check(s));
    KS_TRY(ks_blas_reserve(s->threads < s->critics ? s->threads : s->critics));
    KS_TRY(ks_run_new(options, &r));
    return ks_run_train(r);
}
