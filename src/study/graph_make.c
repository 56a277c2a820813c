/* Writes a study's graph as a makefile. */
#include "study/graph.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/memory.h"
#include "io/text.h"

static const char TIME[] = "%Y-%m-%dT%H:%M:%SZ";

/* Prints text into a recipe: a dollar sign is doubled for make. */
static void print_recipe(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '$')
            putc('$', out);
        putc(*text, out);
    }
}

/* For a study with `stop`. $(over) lists the run.json of the runs that are over; they keep their
 * resume points, so the folder of resume points does not show it. run.json has one key per line. */
static void print_over(FILE *out, const struct ks_study *s)
{
    fprintf(out,
            "\n# Runs stop at step %zu of %zu; unfinished ones go on.\n"
            "over := $(shell awk 'FNR == 1 {state = \"\"} /^  \"state\":/ {state = $$2} "
            "/^  \"env_step\":/ && (state ~ /finished/ || state ~ /stopped/ && $$2 + 0 >= %zu) "
            "{print FILENAME}' runs/%s/*/seed*/run.json 2>/dev/null)\n"
            ".PHONY: again\n"
            "again:\n",
            s->end, s->steps, s->end, s->env);
}

/* Make runs a training if its folder of resume points is newer than its checkpoints; in a study
 * with `stop`, if its run is not over. */
static void print_condition(FILE *out, const struct ks_study *s,
                            const struct ks_graph_job *training)
{
    if (s->stop > 0)
        fprintf(out, " &: $(if $(filter %s/run.json,$(over)),,again)\n", training->folder);
    else
        fprintf(out, " &: $(wildcard %s/%s)\n", training->folder, KS_GRAPH_RESUME);
}

/* The program replaces the shell (exec), so that it receives make's signals. The lines around its
 * output tell how long it took. */
static void print_rule(FILE *out, const struct ks_study *s, const struct ks_graph_job *job)
{
    putc('\n', out);
    for (size_t i = 0; i < job->n_targets; i++)
        fprintf(out, "%s%s", i ? " " : "", job->target[i]);
    if (job->trains)
        print_condition(out, s, job);
    else
        fprintf(out, ": %s\n", job->needs);
    if (job->trains)
        fprintf(out, "\t@mkdir -p %s\n", job->folder);
    fprintf(out, "\t@date -u '+" KS_GRAPH_STARTED "%s' >%s\n\t@exec ", TIME, job->log);
    print_recipe(out, job->command);
    fprintf(out, " >>%s 2>&1\n\t@date -u '+" KS_GRAPH_ENDED "%s' >>%s\n\t@echo '%s'\n", job->log,
            TIME, job->log, job->label);
}

/* Prints the targets of the trainings, and with `all` those of the analyses, too. */
static void print_targets(FILE *out, const struct ks_graph *graph, bool all)
{
    for (size_t i = 0; i < graph->n_jobs; i++)
        for (size_t k = 0; k < graph->job[i].n_targets && (all || graph->job[i].trains); k++)
            fprintf(out, " \\\n    %s", graph->job[i].target[k]);
    putc('\n', out);
}

/* One target for all files of a job's kind and run, for the tasks of a cluster. */
static void print_runs(FILE *out, const struct ks_graph *graph)
{
    fprintf(out, "\n# The files of one run.\n");
    for (size_t n = 0; n < graph->n_runs; n++) {
        fprintf(out, ".PHONY: train-%zu analyze-%zu\ntrain-%zu:", n, n, n);
        for (size_t k = 0; k < graph->job[n].n_targets; k++)
            fprintf(out, " %s", graph->job[n].target[k]);
        fprintf(out, "\nanalyze-%zu:", n);
        for (size_t i = graph->n_runs; i < graph->n_jobs; i++)
            if (graph->job[i].run == n)
                fprintf(out, " %s", graph->job[i].target[0]);
        putc('\n', out);
    }
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
    fprintf(text.stream,
            "# Written by kappascope-study. `make -f study.mk -j4` in this folder runs the "
            "remaining jobs.\n"
            "ifeq ($(filter grouped-target,$(.FEATURES)),)\n"
            "$(error GNU make 4.3 or later is needed)\n"
            "endif\n"
            "# One thread per job: make runs one job per core.\n"
            "export OMP_NUM_THREADS := 1\n"
            "export OPENBLAS_NUM_THREADS := 1\n"
            "\n"
            "# Files appear complete or not at all, so the checkpoints of a stopped run are kept.\n"
            ".PHONY: all\n"
            ".DELETE_ON_ERROR:\n"
            ".PRECIOUS:");
    print_targets(text.stream, graph, false);
    fprintf(text.stream, "\nall:");
    print_targets(text.stream, graph, true);
    if (graph->study->stop > 0)
        print_over(text.stream, graph->study);
    for (size_t i = 0; i < graph->n_jobs; i++)
        print_rule(text.stream, graph->study, &graph->job[i]);
    print_runs(text.stream, graph);
    return ks_text_close(&text, KS_OK);
}
