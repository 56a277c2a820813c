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

/* --- attributes --- */

static bool continues_character(char byte) /* in UTF-8 */
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

/* A longer string is cut, visibly, and between two characters. */
static void add_string(const struct ks_attribute *a, struct ks_document *d)
{
    const size_t name = strlen(a->name) > 20 ? strlen(a->name) : 20;
    const size_t room = KS_DOCUMENT_WIDTH - name - strlen("   ");
    char escaped[8192];
    size_t length = strlen(ks_escape(a->string, sizeof escaped, escaped));

    if (length <= room) {
        ks_document_line(d, a->name, "%s", escaped);
        return;
    }
    for (length = room - strlen("..."); length > 0 && continues_character(escaped[length]);
         length--)
        ;
    ks_document_line(d, a->name, "%.*s...", (int)length, escaped);
}

void ks_inspect_attribute(const struct ks_attribute *a, struct ks_document *d)
{
    if (a->type == KS_ATTRIBUTE_STRING)
        add_string(a, d);
    else if (a->type == KS_ATTRIBUTE_INTEGER)
        ks_document_line(d, a->name, "%lld", (long long)a->integer);
    else if (a->type == KS_ATTRIBUTE_NUMBER)
        ks_document_line(d, a->name, "%.6g", a->number);
    else if (a->n > 0)
        ks_document_line(d, a->name, "%zu numbers, the first %.6g, the last %.6g", a->n, a->list[0],
                         a->list[a->n - 1]);
    else
        ks_document_line(d, a->name, "no numbers");
}

/* --- spectra --- */

/* Attributes that are printed elsewhere, or say no more than the first line. */
static const char *const left_out[] = {"claim", "claim_first_sentence", "format", "version"};
enum { LEFT_OUT = sizeof left_out / sizeof *left_out };

static void add_settings(const struct ks_spectrum *s, struct ks_document *d)
{
    ks_document_add(d, KS_BLOCK_SECTION, "What was computed");
    for (size_t i = 0; i < s->attributes.n; i++)
        if (ks_word_index(s->attributes.list[i].name, LEFT_OUT, left_out) == LEFT_OUT)
            ks_inspect_attribute(&s->attributes.list[i], d);
    for (size_t p = 0; p < s->probes && s->steps; p++) {
        const char *start = ks_spectrum_start(s, p);

        ks_document_line(d, p ? "" : "probes' steps", "%lld, from %s", (long long)s->steps[p],
                         strcmp(start, "random") == 0     ? "a random vector"
                         : strcmp(start, "gradient") == 0 ? "the gradient"
                                                          : "a random vector in the complement");
    }
}

/* The vectors behind the bounds: y'Ay/y'y and |A y|/|y| in float64, and their error in the run. */
static void add_certificates(const struct ks_spectrum *s, struct ks_document *d)
{
    static const char *const vectors[] = {"largest", "smallest", "flat"};
    static const char *const numbers[] = {"quotient", "size", "residual", "product_error"};
    char name[KS_ATTRIBUTE_NAME];

    ks_document_add(d, KS_BLOCK_SECTION, "Certificates");
    if (s->certificate.n == 0) {
        ks_document_add(d, KS_BLOCK_TEXT, "None: bounds and intervals are uncertified.");
        return;
    }
    ks_document_columns(d, "", "vector<, y'Ay/y'y, |Ay|/|y|, residual, product error");
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        snprintf(name, sizeof name, "%s_quotient", vectors[i]);
        if (!ks_attribute_find(&s->certificate, name))
            continue;
        ks_document_cells(d, ks_cell_name(vectors[i]));
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
            snprintf(name, sizeof name, "%s_%s", vectors[i], numbers[k]);
            ks_document_cell(d, ks_cell_digits(4, ks_attribute_number(&s->certificate, name)));
        }
    }
}

static ks_status inspect_spectrum(struct ks_h5 *h5, struct ks_document *d)
{
    const char *claim;
    KS_OWNED_BY(ks_spectrum_free) struct ks_spectrum *s = NULL;

    KS_TRY(ks_spectrum_read_open(h5, &s));
    ks_document_line(d, "spectrum", "%s", h5->path);
    add_settings(s, d);
    ks_document_add(d, KS_BLOCK_SECTION,
                    "Statistics (intervals in brackets hold with 99%%; /summary has all of them)");
    ks_statistics_describe(s, d);
    add_certificates(s, d);
    claim = ks_attribute_text(&s->attributes, "claim");
    if (claim) {
        ks_document_add(d, KS_BLOCK_SECTION, "Claim");
        ks_document_add(d, KS_BLOCK_TEXT, "%s", claim);
    }
    return KS_OK;
}

/* --- studies: what they ask for, and the progress of their runs --- */

static void add_study(const struct ks_study *s, const char *path, struct ks_document *d)
{
    ks_document_line(d, "study", "%s", path);
    ks_document_line(d, "task", "%s", s->env);
    ks_document_line(d, "steps", "%zu environment steps per run%s", s->end,
                     s->stop ? ", stopped early" : "");
    ks_document_line(d, "seeds", "%zu", s->n_seeds);
    ks_document_line(d, "checkpoints", "%zu per run", s->n_checkpoints);
    for (size_t i = 0; i < s->n_architectures; i++)
        ks_document_line(d, i ? "" : "architectures", "%s", s->architecture[i].name);
    for (size_t i = 0; i < s->n_analyses; i++)
        ks_document_line(d, i ? "" : "analyses", "%s", s->analysis[i].name);
}

/* Prints the document so far, then the lines of `kappascope study --status`, on standard output. */
static ks_status print_progress(const struct ks_study *s, const char *dir, struct ks_document *d)
{
    const struct ks_graph_programs programs = {"kappascope-train", "kappascope-analyze", false, 0};
    struct ks_study_view view = {.dir = dir, .held = true};
    KS_OWNED_BY(ks_graph_free) struct ks_graph *graph = NULL;

    ks_document_add(d, KS_BLOCK_SECTION, "Progress");
    KS_TRY(ks_document_print(d, KS_DOCUMENT_WIDTH, stdout));
    fflush(stdout);
    KS_TRY(ks_graph_new(s, &programs, &graph));
    view.graph = graph;
    return ks_study_print_status(&view);
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

static ks_status inspect_study(const char *path, struct ks_document *d)
{
    KS_OWNED char *file = NULL, *dir = NULL;
    KS_OWNED_BY(ks_study_free) struct ks_study *study = NULL;

    KS_TRY(find_paths(path, &file, &dir));
    if (!ks_path_exists(file))
        return ks_fail(KS_IO, "%s: expected a study's folder, found no study.study in it", path);
    KS_TRY(ks_study_read(file, KS_STUDY_SHOW, &study));
    add_study(study, path, d);
    if (dir)
        KS_TRY(print_progress(study, dir, d));
    else
        ks_document_line(d, "folder", "none in checkpoints/: it has not run here");
    return KS_OK;
}

/* --- the kind of file --- */

static const struct kind {
    const char *format; /* the root attribute of an HDF5 file */
    ks_status (*inspect)(struct ks_h5 *h5, struct ks_document *d);
} kinds[] = {{"kappascope-checkpoint", ks_inspect_checkpoint},
             {"kappascope-spectrum", inspect_spectrum},
             {"kappascope-vector", ks_inspect_vectors}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static ks_status inspect_format(struct ks_h5 *h5, const char *format, struct ks_document *d)
{
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(format, kinds[i].format) == 0) {
            KS_TRY(ks_h5_check_format(h5, format));
            return kinds[i].inspect(h5, d);
        }
    return ks_fail(KS_FORMAT,
                   "%s: /: attribute format: expected kappascope-checkpoint, "
                   "kappascope-spectrum or kappascope-vector, found '%s'",
                   h5->path, format);
}

static ks_status inspect_h5(const char *path, struct ks_document *d)
{
    KS_OWNED_BY(ks_h5_close) struct ks_h5 *h5 = NULL;
    KS_OWNED char *format = NULL;

    KS_TRY(ks_h5_open(path, NULL, &h5));
    KS_TRY(ks_h5_read_string(h5, "/", "format", &format));
    return inspect_format(h5, format, d);
}

static ks_status inspect_any(const char *path, struct ks_document *d)
{
    bool is_h5 = ks_path_ends(path, ".h5");

    if (ks_path_ends(path, ".study"))
        return inspect_study(path, d);
    if (!is_h5)
        KS_TRY(ks_h5_recognize(path, &is_h5));
    if (is_h5)
        return inspect_h5(path, d);
    return ks_fail(KS_FORMAT,
                   "%s: expected a checkpoint, spectrum or vector file (HDF5), an .arch "
                   "file, a .study file or a study's folder; found none of them",
                   path);
}

static ks_status inspect(const char *path, size_t inputs, struct ks_document *d)
{
    struct stat info;

    if (stat(path, &info) != 0)
        return ks_fail(KS_IO, "%s: %s", path, strerror(errno));
    if (inputs > 0 && !ks_path_ends(path, ".arch"))
        return ks_fail(KS_USAGE, "--inputs: expected an architecture file (.arch), found %s", path);
    if (S_ISDIR(info.st_mode))
        return inspect_study(path, d);
    if (!S_ISREG(info.st_mode))
        return ks_fail(KS_IO, "%s: expected a regular file or a study's folder", path);
    if (ks_path_ends(path, ".arch"))
        return ks_inspect_architecture(path, inputs, d);
    return inspect_any(path, d);
}

ks_status ks_inspect(const char *path, size_t inputs, FILE *out)
{
    KS_CLEARED_BY(ks_document_clear) struct ks_document d = {.n = 0};
    ks_status status = inspect(path, inputs, &d);

    if (status == KS_OK)
        status = ks_document_print(&d, KS_DOCUMENT_WIDTH, out);
    return status;
}
