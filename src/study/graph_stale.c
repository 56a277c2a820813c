/* Finds outdated spectra, which do not belong to the existing checkpoints or to the options of
 * their analysis, and removes them or prints the commands that do. */
#include "study/graph.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/process.h"
#include "io/file.h"
#include "io/spectrum.h"

/* SHA-256 of one checkpoint, and of the checkpoint from which each of its spectra was computed, as
 * the spectrum says. Empty if the file does not exist. */
struct digests {
    char checkpoint[KS_SHA256_TEXT];
    char spectrum[KS_STUDY_ANALYSES][KS_SHA256_TEXT];
    const char *wanted; /* the checkpoint's path, if any spectrum exists; else NULL */
};

static void say_stale(const char *message, bool quiet)
{
    if (!quiet)
        ks_say("%s: this spectrum has to be computed again", message);
}

/* A spectrum that cannot be read, or belongs to another checkpoint or other options, is stale. */
static ks_status read_spectrum(const struct ks_study *s, const char *dir, struct ks_graph_job *job,
                               struct digests *digests, bool quiet)
{
    const struct ks_study_spectrum id = {job->run % s->n_architectures,
                                         job->run / s->n_architectures, job->analysis, job->step};
    KS_OWNED_BY(ks_spectrum_free) struct ks_spectrum *spectrum = NULL;
    const struct ks_attribute *sha;
    char path[KS_PATH];
    ks_status status;

    if (job->stale || !ks_graph_has(dir, job->target[0]))
        return KS_OK;
    KS_TRY(ks_path_print(path, "%s/%s", dir, job->target[0]));
    status = ks_study_read_spectrum(s, &id, path, &spectrum);
    if (status == KS_FORMAT || status == KS_IO) {
        job->stale = true;
        say_stale(ks_error_text(), quiet);
        return KS_OK;
    }
    KS_TRY(status);
    sha = ks_attribute_find(&spectrum->attributes, "checkpoint_sha256");
    snprintf(digests->spectrum[job->analysis], KS_SHA256_TEXT, "%s",
             sha && sha->type == KS_ATTRIBUTE_STRING ? sha->string : "none");
    digests->wanted = job->needs;
    return KS_OK;
}

static ks_status read_checkpoint(const char *dir, struct digests *digests)
{
    char path[KS_PATH];

    if (!digests->wanted || !ks_graph_has(dir, digests->wanted))
        return KS_OK;
    KS_TRY(ks_path_print(path, "%s/%s", dir, digests->wanted));
    return ks_sha256_file(path, digests->checkpoint);
}

/* Hashes all checkpoints that have a spectrum, in parallel. digests [n_runs, n_checkpoints]. */
static ks_status read_checkpoints(const struct ks_graph *graph, const char *dir,
                                  struct digests *digests)
{
    const size_t checkpoints = graph->study->n_checkpoints;
    ks_status status = KS_OK;
    char message[1024] = "";

#pragma omp parallel for schedule(dynamic)
    for (size_t i = 0; i < graph->n_runs * checkpoints; i++) {
        ks_status mine = read_checkpoint(dir, &digests[i]);

        if (mine != KS_OK) {
#pragma omp critical(ks_graph_check)
            {
                status = mine;
                snprintf(message, sizeof message, "%s", ks_error_text());
            }
        }
    }
    return status == KS_OK ? KS_OK : ks_fail(status, "%s", message);
}

/* A spectrum of another checkpoint is stale. */
static void compare(const char *dir, struct ks_graph_job *job, const struct digests *digests,
                    bool quiet)
{
    const char *spectrum = digests->spectrum[job->analysis];
    char message[1024];

    if (!*spectrum || !*digests->checkpoint || strcmp(spectrum, digests->checkpoint) == 0)
        return;
    job->stale = true;
    snprintf(message, sizeof message,
             "%s/%s: checkpoint_sha256: expected %.12s... (its checkpoint), found %.12s...", dir,
             job->target[0], digests->checkpoint, spectrum);
    say_stale(message, quiet);
}

static struct digests *digests_of(const struct ks_graph *graph, size_t i, struct digests *digests)
{
    return &digests[graph->job[i].run * graph->study->n_checkpoints + graph->job[i].checkpoint];
}

ks_status ks_graph_check_spectra(struct ks_graph *graph, const char *dir, bool quiet)
{
    const struct ks_study *s = graph->study;
    KS_OWNED struct digests *digests = NULL;

    KS_TRY(ks_alloc(graph->n_runs * s->n_checkpoints, sizeof *digests, &digests));
    for (size_t i = graph->n_runs; i < graph->n_jobs; i++)
        KS_TRY(read_spectrum(s, dir, &graph->job[i], digests_of(graph, i, digests), quiet));
    KS_TRY(read_checkpoints(graph, dir, digests));
    for (size_t i = graph->n_runs; i < graph->n_jobs; i++)
        compare(dir, &graph->job[i], digests_of(graph, i, digests), quiet);
    return KS_OK;
}

/* Removes a file, if it exists; with `out`, prints the command that does instead. `path` is
 * relative to the study's folder `dir`. */
static ks_status drop(const char *dir, const char *path, FILE *out)
{
    char full[KS_PATH];

    if (!ks_graph_has(dir, path))
        return KS_OK;
    if (out) {
        fprintf(out, "rm -f -- ");
        ks_shell_word(out, path);
        putc('\n', out);
        return KS_OK;
    }
    KS_TRY(ks_path_print(full, "%s/%s", dir, path));
    return unlink(full) == 0 || errno == ENOENT ? KS_OK : ks_file_fail(errno, full, "removed");
}

/* Removes spectra without a job if the options of their analysis have changed: a later study, with
 * `stop` raised or the scope of the analysis widened, would otherwise take them for current. */
static ks_status drop_unasked(const struct ks_graph *graph, size_t run, const char *dir, FILE *out)
{
    const struct ks_study *s = graph->study;

    for (size_t i = 0; i < s->n_scheduled; i++)
        for (size_t k = 0; k < s->n_analyses; k++) {
            KS_OWNED char *path = NULL;

            if (!graph->changed[k] ||
                (i < s->n_checkpoints && ks_study_asks(s, k, run % s->n_architectures, i)))
                continue;
            KS_TRY(ks_study_output(&s->analysis[k], graph->job[run].folder, s->checkpoint[i],
                                   KS_STUDY_SPECTRUM, &path));
            KS_TRY(drop(dir, path, out));
        }
    return KS_OK;
}

/* A run that starts from the beginning must not resume. */
static ks_status drop_resume_points(const struct ks_graph_job *training, const char *dir, FILE *out)
{
    for (size_t i = 0; training->restart && !training->elsewhere && i < KS_GRAPH_POINTS; i++) {
        char path[KS_PATH];

        KS_TRY(ks_path_print(path, "%s/resume/point.%zu", training->folder, i));
        KS_TRY(drop(dir, path, out));
    }
    return KS_OK;
}

ks_status ks_graph_drop_stale(struct ks_graph *graph, const char *dir, FILE *out)
{
    KS_TRY(ks_graph_look(graph, dir));
    for (size_t n = 0; n < graph->n_runs; n++)
        KS_TRY(drop_resume_points(&graph->job[n], dir, out));
    for (size_t n = 0; n < graph->n_runs; n++)
        KS_TRY(drop_unasked(graph, n, dir, out));
    for (size_t i = graph->n_runs; i < graph->n_jobs; i++)
        if (graph->job[i].stale) {
            KS_TRY(drop(dir, graph->job[i].target[0], out));
            graph->job[i].stale = out != NULL;
        }
    if (!out)
        memset(graph->changed, 0, sizeof graph->changed);
    return KS_OK;
}

void ks_graph_set_changed(struct ks_graph *graph, size_t analysis)
{
    graph->changed[analysis] = true;
    for (size_t i = graph->n_runs; i < graph->n_jobs; i++)
        if (graph->job[i].analysis == analysis)
            graph->job[i].stale = true;
}
