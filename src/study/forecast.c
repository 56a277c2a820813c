/* What --dry-run says: the remaining work, the time and the disk space for it. */
#include <math.h>
#include <stdlib.h>

#include "core/progress.h"
#include "study/calibrate.h"
#include "study/disk.h"
#include "study/estimate.h"
#include "study/status.h"

static const double GIGABYTE = 1e9, MEGABYTE = 1e6;

/* Whether one of this architecture's runs has work left whose time is not known. */
static bool is_unknown(const struct ks_estimate *e, size_t a)
{
    const struct ks_graph *graph = e->graph;

    for (size_t n = a; n < graph->n_runs; n += graph->study->n_architectures)
        if (isnan(ks_estimate_training(e, n) + ks_estimate_spectra(e, n)))
            return true;
    return false;
}

/* Measures the architectures whose time is not known; *measured is their number. */
static ks_status measure(struct ks_estimate *e, size_t *measured)
{
    const struct ks_study *s = e->graph->study;

    *measured = 0;
    for (size_t a = 0; a < s->n_architectures; a++)
        if (is_unknown(e, a)) {
            KS_TRY(ks_calibrate(s, a, &e->own[a]));
            ++*measured;
        }
    return KS_OK;
}

/* Counts the work, and names the trainings that start again. */
static ks_status print_work(const struct ks_study_view *view, const bool *done, FILE *out)
{
    const struct ks_graph *graph = view->graph;
    size_t trainings = 0, spectra = 0;

    for (size_t i = 0; i < graph->n_jobs; i++)
        if (!done[i])
            ++*(graph->job[i].trains ? &trainings : &spectra);
    fprintf(out, "# to do: %zu of %zu trainings, %zu of %zu spectra\n", trainings, graph->n_runs,
            spectra, graph->n_jobs - graph->n_runs);
    for (size_t n = 0; n < graph->n_runs; n++) {
        char *why;

        KS_TRY(ks_graph_restart(graph, n, view->dir, &why));
        if (why)
            fprintf(out, "# %s\n", why);
        free(why);
    }
    return KS_OK;
}

static void print_time(const struct ks_study_view *view, const struct ks_estimate *e,
                       size_t measured, FILE *out)
{
    struct ks_time_left left = ks_estimate_all(e, view->jobs);
    char training[32], spectra[32], least[32], all[32];

    if (left.training + left.spectra == 0)
        return;
    ks_print_duration(left.training, training);
    ks_print_duration(left.spectra, spectra);
    ks_print_duration(left.least_spectra, least);
    ks_print_duration(left.all, all);
    fprintf(out, "# time, one job after the other: about %s for trainings, %s%s%s for spectra\n",
            training, left.least_spectra < left.spectra ? least : "",
            left.least_spectra < left.spectra ? " to " : "", spectra);
    if (left.least_spectra < left.spectra)
        fprintf(out,
                "#   less where tolerances are reached at once, more where only limits end the "
                "search\n");
    if (view->jobs > 1)
        fprintf(out, "#   with %zu jobs at a time on as many processors: %s %s\n", view->jobs,
                left.least_spectra < left.spectra ? "at most" : "about", all);
    fprintf(out, "#   an estimate, from ");
    if (e->n_runs + e->n_spectra > 0)
        fprintf(out, "what is done in this folder (trainings: %zu, spectra: %zu)%s", e->n_runs,
                e->n_spectra, measured > 0 ? " and " : "\n");
    if (measured > 0)
        fprintf(out,
                "steps and products measured now for %zu architecture%s, in one thread;\n"
                "#   certificates, reading and writing come on top\n",
                measured, measured == 1 ? "" : "s");
}

static void print_bytes(double bytes, const char *what, FILE *out)
{
    bool large = bytes >= GIGABYTE;

    fprintf(out, "%.*f %s %s", large ? 1 : 0, bytes / (large ? GIGABYTE : MEGABYTE),
            large ? "GB" : "MB", what);
}

static void print_disk(const struct ks_disk *disk, FILE *out)
{
    fprintf(out, "# disk: at most ");
    print_bytes(disk->checkpoints, "for all checkpoints, ", out);
    if (disk->basis > 0)
        print_bytes(disk->basis, "for Lanczos vectors (keep-basis), ", out);
    print_bytes(disk->resume, "for each unfinished run to resume; spectra and plots are small\n",
                out);
}

ks_status ks_study_print_forecast(const struct ks_study_view *view, size_t observations,
                                  size_t actions, FILE *out)
{
    struct ks_estimate estimate;
    struct ks_disk disk;
    size_t measured = 0;
    ks_status status;

    status = ks_estimate_read(view->graph, view->dir, &estimate);
    if (status == KS_OK)
        status = ks_study_disk(view->graph->study, observations, actions, &disk);
    if (status == KS_OK)
        status = measure(&estimate, &measured);
    if (status == KS_OK)
        status = print_work(view, estimate.done, out);
    if (status == KS_OK) {
        print_time(view, &estimate, measured, out);
        print_disk(&disk, out);
    }
    ks_estimate_clear(&estimate);
    return status;
}
