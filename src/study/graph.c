#include "study/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/milestones.h"
#include "core/path.h"
#include "study/shell.h"
#include "study/study_keys.h"

/* Ends printing to job->command. The command becomes a line of a makefile, so it is checked. */
static ks_status close_command(FILE *stream, const struct ks_graph_job *job)
{
    bool failed = ferror(stream) != 0;

    if (fclose(stream) != 0 || failed)
        return ks_fail(KS_MEMORY, "out of memory");
    return ks_shell_check(job->label, job->command);
}

struct plan {
    const struct ks_study *study;
    const struct ks_graph_programs *programs;
};

static void print_setting(FILE *out, const struct ks_setting *setting)
{
    fprintf(out, " --set %s=", setting->key);
    ks_shell_word(out, setting->value);
}

static bool is_own(const struct ks_study_architecture *a, const char *key)
{
    for (size_t i = 0; i < a->n_own; i++)
        if (strcmp(a->own[i].key, key) == 0)
            return true;
    return false;
}

static ks_status set_train_command(const struct plan *plan, size_t a, size_t seed,
                                   struct ks_graph_job *job)
{
    const struct ks_study *s = plan->study;
    size_t size;
    FILE *out = open_memstream(&job->command, &size);

    if (!out)
        return ks_fail(KS_MEMORY, "out of memory");
    ks_shell_word(out, plan->programs->train);
    ks_shell_option(out, "env", s->env_argument);
    ks_shell_option(out, "arch", s->architecture[a].argument);
    fprintf(out, " --seed=%zu --steps=%zu", s->seed[seed], s->steps);
    if (s->stop > 0)
        fprintf(out, " --stop-at=%zu", s->stop);
    for (size_t i = 0; i < s->n_train; i++)
        if (!is_own(&s->architecture[a], s->train[i].key))
            print_setting(out, &s->train[i]);
    for (size_t i = 0; i < s->architecture[a].n_own; i++)
        print_setting(out, &s->architecture[a].own[i]);
    ks_shell_option(out, "out", job->folder);
    fprintf(out, " --resume%s --quiet", plan->programs->resume_any ? "=any" : "");
    return close_command(out, job);
}

/* Prints the options of the analysis. Sets *limited if --memory is among them. */
static void print_analysis(FILE *out, const struct ks_study_analysis *analysis, bool *limited)
{
    if (strcmp(analysis->name, KS_STUDY_STANDARD) != 0)
        ks_shell_option(out, "name", analysis->name);
    for (size_t i = 0; i < analysis->n; i++) {
        const struct ks_setting *setting = &analysis->setting[i];

        *limited = *limited || strcmp(setting->key, "memory") == 0;
        if (!ks_study_is_flag(setting->key))
            ks_shell_option(out, setting->key, setting->value);
        else if (ks_study_is_yes(setting->value))
            fprintf(out, " --%s", setting->key);
    }
}

static ks_status set_analyze_command(const struct plan *plan, struct ks_graph_job *job)
{
    bool limited = plan->programs->memory == 0;
    size_t size;
    FILE *out = open_memstream(&job->command, &size);

    if (!out)
        return ks_fail(KS_MEMORY, "out of memory");
    ks_shell_word(out, plan->programs->analyze);
    print_analysis(out, &plan->study->analysis[job->analysis], &limited);
    if (!limited)
        fprintf(out, " --memory=%zu", plan->programs->memory);
    fprintf(out, " --quiet ");
    ks_shell_word(out, job->needs);
    return close_command(out, job);
}

static ks_status set_training(const struct plan *plan, size_t a, size_t seed,
                              struct ks_graph_job *job)
{
    const struct ks_study *s = plan->study;

    job->trains = true;
    KS_TRY(ks_study_run_folder(s, a, seed, &job->folder));
    KS_TRY(ks_print_string(&job->label, "train %s", job->folder + strlen("runs/")));
    KS_TRY(ks_print_string(&job->log, "%s/train.log", job->folder));
    KS_TRY(ks_alloc(s->n_checkpoints, sizeof *job->target, &job->target));
    for (size_t i = 0; i < s->n_checkpoints; i++) {
        char name[32];

        ks_checkpoint_name(s->checkpoint[i], name);
        KS_TRY(ks_print_string(&job->target[i], "%s/%s", job->folder, name));
        job->n_targets++;
    }
    return set_train_command(plan, a, seed, job);
}

/* An analysis of one checkpoint that `training` writes. */
static ks_status set_analysis(const struct plan *plan, const struct ks_graph_job *training,
                              size_t checkpoint, struct ks_graph_job *job)
{
    const struct ks_study_analysis *analysis = &plan->study->analysis[job->analysis];

    job->checkpoint = checkpoint;
    job->step = plan->study->checkpoint[checkpoint];
    KS_TRY(ks_copy_string(training->folder, &job->folder));
    KS_TRY(ks_copy_string(training->target[checkpoint], &job->needs));
    KS_TRY(ks_study_output(analysis, job->folder, job->step, ".analyze.log", &job->log));
    KS_TRY(ks_print_string(&job->label, "analyze %.*s",
                           (int)ks_path_stem(job->log, ".analyze.log") - (int)strlen("runs/"),
                           job->log + strlen("runs/")));
    KS_TRY(ks_alloc(1, sizeof *job->target, &job->target));
    KS_TRY(ks_study_output(analysis, job->folder, job->step, KS_STUDY_SPECTRUM, &job->target[0]));
    job->n_targets = 1;
    return set_analyze_command(plan, job);
}

/* The analyses of one run that the study asks for, from *job on, which moves behind them. */
static ks_status set_analyses(const struct plan *plan, const struct ks_graph *graph,
                              size_t architecture, size_t run, struct ks_graph_job **job)
{
    const struct ks_study *s = plan->study;

    for (size_t i = 0; i < s->n_checkpoints; i++)
        for (size_t k = 0; k < s->n_analyses; k++) {
            if (!ks_study_asks(s, k, architecture, i))
                continue;
            (*job)->run = run;
            (*job)->analysis = k;
            KS_TRY(set_analysis(plan, &graph->job[run], i, *job));
            (*job)++;
        }
    return KS_OK;
}

static ks_status set_jobs(const struct plan *plan, struct ks_graph *graph)
{
    const struct ks_study *s = plan->study;
    struct ks_graph_job *job = graph->job;

    for (size_t seed = 0; seed < s->n_seeds; seed++)
        for (size_t a = 0; a < s->n_architectures; a++, job++) {
            job->run = (size_t)(job - graph->job);
            KS_TRY(set_training(plan, a, seed, job));
        }
    for (size_t seed = 0; seed < s->n_seeds; seed++)
        for (size_t a = 0; a < s->n_architectures; a++)
            KS_TRY(set_analyses(plan, graph, a, seed * s->n_architectures + a, &job));
    return KS_OK;
}

size_t ks_study_spectra(const struct ks_study *s, size_t architecture)
{
    size_t n = 0;

    for (size_t k = 0; k < s->n_analyses; k++)
        if (ks_study_asks_architecture(s, k, architecture))
            n += ks_study_asked_checkpoints(s, k);
    return n;
}

size_t ks_graph_jobs(const struct ks_study *s)
{
    size_t n = 0; /* of one seed */

    for (size_t a = 0; a < s->n_architectures; a++)
        n += 1 + ks_study_spectra(s, a);
    return n * s->n_seeds;
}

ks_status ks_graph_new(const struct ks_study *s, const struct ks_graph_programs *programs,
                       struct ks_graph **out)
{
    const struct plan plan = {s, programs};
    struct ks_graph *graph = NULL;
    ks_status status = KS_OK;

    *out = NULL;
    KS_GO(ks_alloc(1, sizeof *graph, &graph));
    graph->study = s;
    graph->n_runs = s->n_architectures * s->n_seeds;
    KS_GO(ks_alloc(ks_graph_jobs(s), sizeof *graph->job, &graph->job));
    graph->n_jobs = ks_graph_jobs(s);
    KS_GO(set_jobs(&plan, graph));
    *out = graph, graph = NULL;
done:
    ks_graph_free(graph);
    return status;
}

static void clear_job(struct ks_graph_job *job)
{
    for (size_t i = 0; i < job->n_targets; i++)
        free(job->target[i]);
    free(job->target);
    free(job->label);
    free(job->folder);
    free(job->command);
    free(job->log);
    free(job->needs);
}

void ks_graph_free(struct ks_graph *graph)
{
    if (!graph)
        return;
    for (size_t i = 0; i < graph->n_jobs; i++)
        clear_job(&graph->job[i]);
    free(graph->job);
    free(graph);
}
