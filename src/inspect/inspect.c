/* Finds out which kind of file it is, and prints spectra and studies. */
#include "inspect/inspect.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/line.h"
#include "core/memory.h"
#include "core/process.h"
#include "io/attribute.h"
#include "io/checkpoint.h"
#include "io/file.h"
#include "io/h5.h"
#include "io/spectrum.h"
#include "statistics/statistics.h"
#include "study/graph.h"
#include "study/status.h"
#include "study/study_file.h"

ks_status ks_inspect_expect_memory(const char *path, const char *what, double bytes)
{
    const double most = (double)ks_memory_available("", 1) / 2;

    if (most > 0 && bytes > most)
        return ks_fail(KS_MEMORY,
                       "%s: %s take %.0fK, expected at most half of the free memory, %.0fK", path,
                       what, ceil(bytes / 1024), floor(most / 1024));
    return KS_OK;
}

ks_status ks_inspect_read(struct ks_h5 *h5, struct ks_checkpoint **checkpoint)
{
    double bytes;

    KS_TRY(ks_checkpoint_bytes(h5, &bytes));
    KS_TRY(ks_inspect_expect_memory(h5->path, "its arrays", bytes));
    return ks_checkpoint_read_loss(h5, checkpoint);
}

/* --- spectra --- */

/* Attributes that are printed elsewhere, or say no more than the first line. */
static const char *const left_out[] = {"claim", "claim_first_sentence", "format", "version"};
enum { LEFT_OUT = sizeof left_out / sizeof *left_out };

static void print_settings(const struct ks_spectrum *s, FILE *out)
{
    ks_title_print(out, "What was computed");
    for (size_t i = 0; i < s->attributes.n; i++)
        if (ks_word_index(s->attributes.list[i].name, LEFT_OUT, left_out) == LEFT_OUT)
            ks_attribute_print(out, &s->attributes.list[i]);
    for (size_t p = 0; p < s->probes && s->steps; p++)
        ks_line_print(out, p ? "" : "probes' steps", "%lld, from %s", (long long)s->steps[p],
                      s->gradient && p + 1 == s->probes ? "the gradient" : "a random vector");
}

static void print_statistics(const struct ks_spectrum *s, FILE *out)
{
    char text[KS_STATISTIC_TEXT];

    ks_title_print(out,
                   "Statistics (intervals in brackets hold with 99%; /summary has all of them)");
    for (const enum ks_statistic_id *id = ks_catalogue_for_readers; *id < KS_STATISTICS; id++) {
        if (!ks_statistic_present(s, *id))
            continue;
        ks_statistic_text(s, *id, text);
        fprintf(out, "  %-21s %-22s %s\n", ks_catalogue[*id].name, text, ks_catalogue[*id].words);
    }
}

/* The vectors behind the bounds: y'Ay/y'y and |A y|/|y| in float64, and their error in the run. */
static void print_certificates(const struct ks_spectrum *s, FILE *out)
{
    static const char *const vectors[] = {"largest", "smallest", "flat"};
    char name[KS_ATTRIBUTE_NAME];

    ks_title_print(out, "Certificates");
    if (s->certificate.n == 0) {
        ks_paragraph_print(out, "None: bounds and intervals are uncertified.");
        return;
    }
    fprintf(out, "  %-9s %12s %12s %12s %15s\n", "vector", "y'Ay/y'y", "|Ay|/|y|", "residual",
            "product error");
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        static const char *const numbers[] = {"quotient", "size", "residual", "product_error"};

        snprintf(name, sizeof name, "%s_quotient", vectors[i]);
        if (!ks_attribute_find(&s->certificate, name))
            continue;
        fprintf(out, "  %-9s", vectors[i]);
        for (size_t k = 0; k < 4; k++) {
            snprintf(name, sizeof name, "%s_%s", vectors[i], numbers[k]);
            fprintf(out, " %*.4g", k < 3 ? 12 : 15, ks_attribute_number(&s->certificate, name));
        }
        fputc('\n', out);
    }
}

static ks_status inspect_spectrum(struct ks_h5 *h5, FILE *out)
{
    const char *claim;
    struct ks_spectrum *s;

    KS_TRY(ks_spectrum_read_open(h5, &s));
    ks_line_print(out, "spectrum", "%s", h5->path);
    print_settings(s, out);
    print_statistics(s, out);
    print_certificates(s, out);
    claim = ks_attribute_text(&s->attributes, "claim");
    if (claim) {
        ks_title_print(out, "Claim");
        ks_paragraph_print(out, claim);
    }
    ks_spectrum_free(s);
    return KS_OK;
}

/* --- studies: what they ask for, and the progress of their runs --- */

static void print_study(const struct ks_study *s, const char *path, FILE *out)
{
    ks_line_print(out, "study", "%s", path);
    ks_line_print(out, "task", "%s", s->env);
    ks_line_print(out, "steps", "%zu environment steps per run%s", s->end,
                  s->stop ? ", stopped early" : "");
    ks_line_print(out, "seeds", "%zu", s->n_seeds);
    ks_line_print(out, "checkpoints", "%zu per run", s->n_checkpoints);
    for (size_t i = 0; i < s->n_architectures; i++)
        ks_line_print(out, i ? "" : "architectures", "%s", s->architecture[i].name);
    for (size_t i = 0; i < s->n_analyses; i++)
        ks_line_print(out, i ? "" : "analyses", "%s", s->analysis[i].name);
}

/* The lines of `kappascope study --status`, on standard output. */
static ks_status print_progress(const struct ks_study *s, const char *dir, FILE *out)
{
    const struct ks_graph_programs programs = {"kappascope-train", "kappascope-analyze", false, 0};
    struct ks_study_view view = {.dir = dir, .held = true};
    struct ks_graph *graph = NULL;
    ks_status status;

    ks_title_print(out, "Progress");
    fflush(out);
    KS_TRY(ks_graph_new(s, &programs, &graph));
    view.graph = graph;
    status = ks_study_print_status(&view);
    ks_graph_free(graph);
    return status;
}

/* The study's file and its folder. The folder is the one that holds study.study; for a file with
 * another name it is checkpoints/NAME, and *dir is NULL if that does not exist. */
static ks_status find_paths(const char *path, char **file, char **dir)
{
    struct stat info;
    const char *base = ks_path_base(path);

    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        KS_TRY(ks_copy_string(path, dir));
        return ks_print_string(file, "%s/study.study", path);
    }
    KS_TRY(ks_copy_string(path, file));
    if (strcmp(base, "study.study") == 0)
        return ks_print_string(dir, "%.*s.", (int)(base - path), path);
    KS_TRY(ks_print_string(dir, "checkpoints/%.*s", (int)ks_path_stem(base, ".study"), base));
    if (!ks_path_exists(*dir)) {
        free(*dir);
        *dir = NULL;
    }
    return KS_OK;
}

static ks_status inspect_study(const char *path, FILE *out)
{
    char *file = NULL, *dir = NULL;
    struct ks_study *study = NULL;
    ks_status status = KS_OK;

    KS_GO(find_paths(path, &file, &dir));
    if (!ks_path_exists(file)) {
        status = ks_fail(KS_IO, "%s: expected a study's folder, found no study.study in it", path);
        goto done;
    }
    KS_GO(ks_study_read(file, KS_STUDY_SHOW, &study));
    print_study(study, path, out);
    if (dir)
        KS_GO(print_progress(study, dir, out));
    else
        ks_line_print(out, "folder", "none in checkpoints/: it has not run here");
done:
    ks_study_free(study);
    free(file);
    free(dir);
    return status;
}

/* --- the kind of file --- */

static const struct kind {
    const char *format; /* the root attribute of an HDF5 file */
    ks_status (*inspect)(struct ks_h5 *h5, FILE *out);
} kinds[] = {{"kappascope-checkpoint", ks_inspect_checkpoint},
             {"kappascope-spectrum", inspect_spectrum},
             {"kappascope-vector", ks_inspect_vectors}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static ks_status inspect_format(struct ks_h5 *h5, const char *format, FILE *out)
{
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(format, kinds[i].format) == 0) {
            KS_TRY(ks_h5_check_format(h5, format));
            return kinds[i].inspect(h5, out);
        }
    return ks_fail(KS_FORMAT,
                   "%s: /: attribute format: expected kappascope-checkpoint, "
                   "kappascope-spectrum or kappascope-vector, found '%s'",
                   h5->path, format);
}

static ks_status inspect_h5(const char *path, FILE *out)
{
    struct ks_h5 *h5 = NULL;
    char *format = NULL;
    ks_status status = KS_OK;

    KS_TRY(ks_h5_open(path, NULL, &h5));
    KS_GO(ks_h5_read_string(h5, "/", "format", &format));
    KS_GO(inspect_format(h5, format, out));
done:
    free(format);
    ks_h5_close(h5);
    return status;
}

static ks_status inspect_file(const char *path, FILE *out)
{
    bool is_h5 = ks_path_ends(path, ".h5");

    if (ks_path_ends(path, ".study"))
        return inspect_study(path, out);
    if (!is_h5)
        KS_TRY(ks_h5_recognize(path, &is_h5));
    if (is_h5)
        return inspect_h5(path, out);
    return ks_fail(KS_FORMAT,
                   "%s: expected a checkpoint, spectrum or vector file (HDF5), an .arch "
                   "file, a .study file or a study's folder; found none of them",
                   path);
}

ks_status ks_inspect(const char *path, size_t inputs, FILE *out)
{
    struct stat info;

    if (stat(path, &info) != 0)
        return ks_fail(KS_IO, "%s: %s", path, strerror(errno));
    if (inputs > 0 && !ks_path_ends(path, ".arch"))
        return ks_fail(KS_USAGE, "--inputs: expected an architecture file (.arch), found %s", path);
    if (S_ISDIR(info.st_mode))
        return inspect_study(path, out);
    if (!S_ISREG(info.st_mode))
        return ks_fail(KS_IO, "%s: expected a regular file or a study's folder", path);
    if (ks_path_ends(path, ".arch"))
        return ks_inspect_architecture(path, inputs, out);
    return inspect_file(path, out);
}
