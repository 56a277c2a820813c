#include "ks/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ks/memory.h"
#include "ks/path.h"
#include "ks/schedule.h"
#include "ks/shell.h"
#include "ks/study_keys.h"

static ks_status close_command(FILE *stream)
{
    bool failed = ferror(stream) != 0;

    return fclose(stream) != 0 || failed ? ks_fail(KS_MEMORY, "out of memory") : KS_OK;
}

static ks_status set_train_command(const struct ks_study *s, const char *train, size_t a,
                                   size_t seed, struct ks_job *job)
{
    size_t size;
    FILE *out = open_memstream(&job->command, &size);

    if (!out)
        return ks_fail(KS_MEMORY, "out of memory");
    ks_shell_word(out, train);
    ks_shell_option(out, "env", s->env);
    ks_shell_option(out, "arch", s->architecture[a].argument);
    fprintf(out, " --seed=%zu --steps=%zu", s->seed[seed], s->steps);
    if (s->stop > 0)
        fprintf(out, " --stop-at=%zu", s->stop);
    for (size_t i = 0; i < s->n_train; i++) {
        fprintf(out, " --set ");
        fprintf(out, "%s=", s->train[i].key);
        ks_shell_word(out, s->train[i].value);
    }
    ks_shell_option(out, "out", job->folder);
    fprintf(out, " --resume --quiet");
    return close_command(out);
}

static ks_status set_analyze_command(const struct ks_study *s, const char *analyze, size_t memory,
                                     struct ks_job *job)
{
    bool limited = memory == 0;
    size_t size;
    FILE *out = open_memstream(&job->command, &size);

    if (!out)
        return ks_fail(KS_MEMORY, "out of memory");
    ks_shell_word(out, analyze);
    for (size_t i = 0; i < s->n_analyze; i++) {
        limited = limited || strcmp(s->analyze[i].key, "memory") == 0;
        if (!ks_study_is_flag(s->analyze[i].key))
            ks_shell_option(out, s->analyze[i].key, s->analyze[i].value);
        else if (ks_study_is_yes(s->analyze[i].value))
            fprintf(out, " --%s", s->analyze[i].key);
    }
    if (!limited)
        fprintf(out, " --memory=%zu", memory);
    fprintf(out, " --quiet ");
    ks_shell_word(out, job->needs);
    return close_command(out);
}

static ks_status set_training(const struct ks_study *s, const char *train, size_t a, size_t seed,
                              struct ks_job *job)
{
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
    return set_train_command(s, train, a, seed, job);
}

/* The analysis of one checkpoint of the run that `training` writes. */
static ks_status set_analysis(const struct ks_study *s, const char *analyze, size_t memory,
                              const struct ks_job *training, size_t checkpoint, struct ks_job *job)
{
    const char *needs = training->target[checkpoint];
    int stem = (int)ks_path_stem(needs, ".h5");

    KS_TRY(ks_copy_string(training->folder, &job->folder));
    KS_TRY(ks_copy_string(needs, &job->needs));
    job->step = s->checkpoint[checkpoint];
    KS_TRY(ks_print_string(&job->label, "analyze %.*s", stem - (int)strlen("runs/"),
                           needs + strlen("runs/")));
    KS_TRY(ks_print_string(&job->log, "%.*s.analyze.log", stem, needs));
    KS_TRY(ks_alloc(1, sizeof *job->target, &job->target));
    KS_TRY(ks_print_string(&job->target[0], "%.*s.spectrum.h5", stem, needs));
    job->n_targets = 1;
    return set_analyze_command(s, analyze, memory, job);
}

ks_status ks_graph_new(const struct ks_study *s, const char *train, const char *analyze,
                       size_t memory, struct ks_graph **out)
{
    size_t runs = s->n_architectures * s->n_seeds, n = 0;
    struct ks_graph *graph = NULL;
    ks_status status = KS_OK;

    *out = NULL;
    KS_GO(ks_alloc(1, sizeof *graph, &graph));
    KS_GO(ks_alloc(runs * (1 + s->n_checkpoints), sizeof *graph->job, &graph->job));
    graph->n_jobs = runs * (1 + s->n_checkpoints);
    graph->n_runs = runs;
    graph->study = s;
    /* Trainings first: they take longest, and short jobs at the end leave no core idle. */
    for (size_t seed = 0; seed < s->n_seeds; seed++)
        for (size_t a = 0; a < s->n_architectures; a++, n++) {
            graph->job[n].run = n;
            KS_GO(set_training(s, train, a, seed, &graph->job[n]));
        }
    for (size_t run = 0; run < runs; run++)
        for (size_t i = 0; i < s->n_checkpoints; i++, n++) {
            graph->job[n].run = run;
            KS_GO(set_analysis(s, analyze, memory, &graph->job[run], i, &graph->job[n]));
        }
    *out = graph, graph = NULL;
done:
    ks_graph_free(graph);
    return status;
}

static void clear_job(struct ks_job *job)
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
