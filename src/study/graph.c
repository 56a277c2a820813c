#include "ks/graph.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ks/file.h"
#include "ks/memory.h"
#include "ks/path.h"
#include "ks/schedule.h"
#include "ks/study_keys.h"
#include "ks/text.h"

/* A word for the shell: in single quotes unless it is plain. */
static void print_word(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "+-_./=:,";

    if (*word && word[strspn(word, plain)] == '\0') {
        fputs(word, out);
        return;
    }
    putc('\'', out);
    for (; *word; word++)
        if (*word == '\'')
            fputs("'\\''", out);
        else
            putc(*word, out);
    putc('\'', out);
}

/* " --KEY=VALUE" */
static void print_option(FILE *out, const char *key, const char *value)
{
    fprintf(out, " --%s=", key);
    print_word(out, value);
}

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
    print_word(out, train);
    print_option(out, "env", s->env);
    print_option(out, "arch", s->architecture[a].argument);
    fprintf(out, " --seed=%zu --steps=%zu", s->seed[seed], s->steps);
    for (size_t i = 0; i < s->n_train; i++) {
        fprintf(out, " --set ");
        fprintf(out, "%s=", s->train[i].key);
        print_word(out, s->train[i].value);
    }
    print_option(out, "out", job->folder);
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
    print_word(out, analyze);
    for (size_t i = 0; i < s->n_analyze; i++) {
        limited = limited || strcmp(s->analyze[i].key, "memory") == 0;
        if (!ks_study_is_flag(s->analyze[i].key))
            print_option(out, s->analyze[i].key, s->analyze[i].value);
        else if (ks_study_is_yes(s->analyze[i].value))
            fprintf(out, " --%s", s->analyze[i].key);
    }
    if (!limited)
        fprintf(out, " --memory=%zu", memory);
    fprintf(out, " --quiet ");
    print_word(out, job->needs);
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

size_t ks_graph_targets(const struct ks_graph *graph, size_t i, const char *dir)
{
    const struct ks_job *job = &graph->job[i];
    size_t n = 0;

    for (size_t k = 0; k < job->n_targets && (job->trains || !graph->stale); k++) {
        char *path = NULL;

        if (ks_print_string(&path, "%s/%s", dir, job->target[k]) == KS_OK)
            n += ks_text_exists(path);
        free(path);
    }
    return n;
}

/* A run that is not finished keeps that folder, even where all its checkpoints are there. */
static const char RESUME[] = "resume";

static bool has_resume_point(const struct ks_job *training, const char *dir)
{
    char *path = NULL;
    bool there = ks_print_string(&path, "%s/%s/%s", dir, training->folder, RESUME) == KS_OK &&
                 ks_text_exists(path);

    free(path);
    return there;
}

bool ks_graph_is_done(const struct ks_graph *graph, size_t i, const char *dir)
{
    size_t run = graph->job[i].run;
    const struct ks_job *job = &graph->job[i], *training = &graph->job[run];

    return ks_graph_targets(graph, i, dir) == job->n_targets &&
           ks_graph_targets(graph, run, dir) == training->n_targets &&
           !has_resume_point(training, dir);
}

/* What is done with a file that an analysis has left: `path` in the study's folder. */
struct action {
    ks_status (*take)(const char *dir, const char *path, FILE *out);
    FILE *out;
};

static ks_status remove_file(const char *dir, const char *path, FILE *out)
{
    char *whole = NULL;
    ks_status status = KS_OK;

    (void)out;
    KS_TRY(ks_print_string(&whole, "%s/%s", dir, path));
    if (unlink(whole) != 0 && errno != ENOENT)
        status = ks_file_fail(errno, whole, "removed");
    free(whole);
    return status;
}

static ks_status print_removal(const char *dir, const char *path, FILE *out)
{
    (void)dir;
    fprintf(out, "rm -f -- ");
    print_word(out, path);
    putc('\n', out);
    return KS_OK;
}

/* The files of --keep-basis are named as the analyzer names them: a probe, a process' part of one.
 */
static ks_status take_steps(const struct ks_job *job, const char *dir, struct action action)
{
    const char *base = ks_path_base(job->needs);
    char *folder = NULL, *pattern = NULL, *path = NULL;
    struct dirent *entry;
    DIR *list = NULL;
    ks_status status = KS_OK;

    KS_GO(ks_print_string(&folder, "%s/%s", dir, job->folder));
    KS_GO(ks_print_string(&pattern, "%.*s.probe*.basis", (int)ks_path_stem(base, ".h5"), base));
    list = opendir(folder);
    if (!list && errno != ENOENT)
        status = ks_file_fail(errno, folder, "opened");
    while (list && status == KS_OK && (entry = readdir(list)))
        if (fnmatch(pattern, entry->d_name, 0) == 0) {
            KS_GO(ks_print_string(&path, "%s/%s", job->folder, entry->d_name));
            status = action.take(dir, path, action.out);
            free(path);
            path = NULL;
        }
done:
    if (list)
        closedir(list);
    free(folder);
    free(pattern);
    return status;
}

static ks_status take_stale(const struct ks_graph *graph, const char *dir, struct action action)
{
    for (size_t i = graph->n_runs; i < graph->n_jobs; i++) {
        if (graph->stale)
            KS_TRY(action.take(dir, graph->job[i].target[0], action.out));
        if (graph->stale_steps)
            KS_TRY(take_steps(&graph->job[i], dir, action));
    }
    return KS_OK;
}

/* What was asked goes into the folder last, as what is there has to be of that. */
static ks_status print_start(const struct ks_graph *graph, const char *dir, const char *study,
                             FILE *out)
{
    fprintf(out, "mkdir -p -- ");
    print_word(out, dir);
    fprintf(out, " && cd -- ");
    print_word(out, dir);
    fprintf(out, " || exit\n");
    KS_TRY(take_stale(graph, dir, (struct action){print_removal, out}));
    if (study) {
        fprintf(out, "cp ");
        print_word(out, study);
        fprintf(out, " study.study\n");
    }
    fprintf(out, "export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1\n");
    return KS_OK;
}

ks_status ks_graph_print(const struct ks_graph *graph, const char *dir, const char *study,
                         const char *plot, FILE *out)
{
    KS_TRY(print_start(graph, dir, study, out));
    for (size_t i = 0; i < graph->n_jobs; i++) {
        const struct ks_job *job = &graph->job[i];

        if (ks_graph_is_done(graph, i, dir))
            continue;
        if (job->trains)
            fprintf(out, "mkdir -p %s\n", job->folder);
        fprintf(out, "%s >%s 2>&1\n", job->command, job->log);
    }
    print_word(out, plot);
    fprintf(out, " .\n");
    return KS_OK;
}

ks_status ks_graph_remove_stale(struct ks_graph *graph, const char *dir)
{
    KS_TRY(take_stale(graph, dir, (struct action){remove_file, NULL}));
    graph->stale = graph->stale_steps = false;
    return KS_OK;
}

/* A recipe's line: make's own dollar is doubled. */
static void print_recipe(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '$')
            putc('$', out);
        putc(*text, out);
    }
}

/* The program takes the shell's place (exec), so that make's signal reaches it. */
static void print_rule(FILE *out, const struct ks_job *job)
{
    putc('\n', out);
    for (size_t i = 0; i < job->n_targets; i++)
        fprintf(out, "%s%s", i ? " " : "", job->target[i]);
    if (job->trains) /* that folder is newer than the checkpoints */
        fprintf(out, " &: $(wildcard %s/%s)\n", job->folder, RESUME);
    else
        fprintf(out, ": %s\n", job->needs);
    if (job->trains)
        fprintf(out, "\t@mkdir -p %s\n", job->folder);
    fprintf(out, "\t@exec ");
    print_recipe(out, job->command);
    fprintf(out, " >%s 2>&1\n\t@echo '%s'\n", job->log, job->label);
}

/* Those of the trainings, and with `all` those of the analyses, too. */
static void print_targets(FILE *out, const struct ks_graph *graph, bool all)
{
    for (size_t i = 0; i < graph->n_jobs; i++)
        for (size_t k = 0; k < graph->job[i].n_targets && (all || graph->job[i].trains); k++)
            fprintf(out, " \\\n    %s", graph->job[i].target[k]);
    putc('\n', out);
}

ks_status ks_graph_write(const struct ks_graph *graph, const char *dir)
{
    struct ks_text text = {0};
    char *path = NULL;
    ks_status status;

    KS_TRY(ks_print_string(&path, "%s/study.mk", dir));
    status = ks_text_open(path, &text);
    free(path);
    if (status != KS_OK)
        return ks_text_close(&text, status);
    fprintf(
        text.stream,
        "# Written by kappascope-study. In this folder `make -f study.mk -j4` does what is left.\n"
        "ifeq ($(filter grouped-target,$(.FEATURES)),)\n"
        "$(error GNU make 4.3 or later is needed)\n"
        "endif\n"
        "# One thread a job: make runs one job a core.\n"
        "export OMP_NUM_THREADS := 1\n"
        "export OPENBLAS_NUM_THREADS := 1\n"
        "\n"
        "# Files appear whole or not at all, so the checkpoints of a run that was stopped are "
        "kept.\n"
        ".PHONY: all\n"
        ".DELETE_ON_ERROR:\n"
        ".PRECIOUS:");
    print_targets(text.stream, graph, false);
    fprintf(text.stream, "\nall:");
    print_targets(text.stream, graph, true);
    for (size_t i = 0; i < graph->n_jobs; i++)
        print_rule(text.stream, &graph->job[i]);
    return ks_text_close(&text, KS_OK);
}
