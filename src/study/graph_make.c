/* Writes a study's graph as a makefile. */
#include "study/graph.h"

#include <stdio.h>

#include "core/memory.h"
#include "io/file.h"

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

/* $(over) lists the run.json of the runs that are over: finished or, in a study with `stop`,
 * stopped there. run.json has one key per line. */
static void print_over(FILE *out, const struct ks_study *s)
{
    if (s->stop > 0)
        fprintf(out, "\n# Runs stop at step %zu of %zu; unfinished ones go on.", s->end, s->steps);
    fprintf(out, "\nover := $(shell awk 'FNR == 1 {state = \"\"} /^  \"state\":/ {state = $$2} "
                 "/^  \"env_step\":/ && (state ~ /finished/");
    if (s->stop > 0)
        fprintf(out, " || state ~ /stopped/ && $$2 + 0 >= %zu", s->end);
    fprintf(out,
            ") {print FILENAME}' runs/%s/*/seed*/run.json 2>/dev/null)\n"
            ".PHONY: again\n"
            "again:\n",
            s->env);
}

/* $(need-N) lists the checkpoints that the training of run N has to make: all, but of a run that is
 * over those that lack a spectrum and do not exist. */
static void print_need(FILE *out, const struct ks_graph *graph, size_t n)
{
    const struct ks_graph_job *training = &graph->job[n];

    fprintf(out, "\nneed-%zu := $(if $(filter %s/run.json,$(over)),$(sort", n, training->folder);
    for (size_t i = graph->n_runs; i < graph->n_jobs; i++)
        if (graph->job[i].run == n)
            fprintf(out, " $(if $(wildcard %s %s),,%s)", graph->job[i].target[0],
                    graph->job[i].needs, graph->job[i].needs);
    fprintf(out, "),");
    for (size_t k = 0; k < training->n_targets; k++)
        fprintf(out, " %s", training->target[k]);
    fprintf(out, ")\n");
}

/* A training's targets are only what it has to make: since GNU make 4.4 a missing file of a group
 * (&:) runs its recipe whatever the goal is. Make ignores a rule without targets. A spectrum
 * depends on its checkpoint only if that exists: of a run that is over, checkpoints with all their
 * spectra may have been removed. The program replaces the shell (exec), so that it receives make's
 * signals. The lines around its output in the log tell how long it took; those that make prints say
 * which jobs have started and which are done. */
static void print_rule(FILE *out, const struct ks_graph *graph, const struct ks_graph_job *job)
{
    if (job->elsewhere) {
        fprintf(out, "\nneed-%zu :=\n", job->run);
        return;
    }
    if (job->trains) {
        print_need(out, graph, job->run);
        fprintf(out, "$(need-%zu) &: $(if $(filter %s/run.json,$(over)),,again)\n\t@mkdir -p %s\n",
                job->run, job->folder, job->folder);
    } else
        fprintf(out, "\n%s: $(wildcard %s)\n", job->target[0], job->needs);
    fprintf(out,
            "\t@date -u '+" KS_GRAPH_STARTED "%s' >%s\n\t@echo '" KS_GRAPH_START
            "%s" KS_GRAPH_PROCESS "'$$$$; exec ",
            TIME, job->log, job->label);
    print_recipe(out, job->command);
    fprintf(out, " >>%s 2>&1\n\t@date -u '+" KS_GRAPH_ENDED "%s' >>%s\n\t@echo '%s'\n", job->log,
            TIME, job->log, job->label);
}

/* One make per run, so that its spectra follow its training: one for all would start every training
 * before the first spectrum. They share the job slots of `all`. */
static void print_runs(FILE *out, const struct ks_graph *graph)
{
    fprintf(out, "\nruns :=");
    for (size_t n = 0; n < graph->n_runs; n++)
        fprintf(out, " run-%zu", n);
    fprintf(out, "\n.PHONY: all $(runs) $(runs:run-%%=train-%%) $(runs:run-%%=analyze-%%)\n"
                 "all: $(runs)\n"
                 "$(runs): run-%%:\n"
                 "\t+@exec $(MAKE) -s --no-print-directory -f study.mk train-$*\n"
                 "\t+@exec $(MAKE) -s --no-print-directory -f study.mk analyze-$*\n");
    for (size_t n = 0; n < graph->n_runs; n++) {
        fprintf(out, "train-%zu: $(need-%zu)\nanalyze-%zu:", n, n, n);
        for (size_t i = graph->n_runs; i < graph->n_jobs; i++)
            if (graph->job[i].run == n)
                fprintf(out, " %s", graph->job[i].target[0]);
        putc('\n', out);
    }
}

ks_status ks_graph_write(const struct ks_graph *graph, const char *dir)
{
    struct ks_text text;

    KS_TRY(ks_text_open(&text, "%s/study.mk", dir));
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
            ".DEFAULT_GOAL := all\n"
            ".DELETE_ON_ERROR:\n"
            ".PRECIOUS:");
    for (size_t n = 0; n < graph->n_runs; n++)
        for (size_t k = 0; k < graph->job[n].n_targets; k++)
            fprintf(text.stream, " \\\n    %s", graph->job[n].target[k]);
    putc('\n', text.stream);
    print_over(text.stream, graph->study);
    for (size_t i = 0; i < graph->n_jobs; i++)
        print_rule(text.stream, graph, &graph->job[i]);
    print_runs(text.stream, graph);
    return ks_text_close(&text, KS_OK);
}
