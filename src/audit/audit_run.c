/* The analyses of an audit, by the functions behind kappascope-analyze. What they write is kept in
 * a folder, so that a second audit of the same checkpoint reads it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "config.h"
#include "core/memory.h"
#include "core/path.h"
#include "core/say.h"
#include "io/text.h"
#include "program/analysis.h"
#include "program/options_table.h"

/* One analysis: the options that differ from the analyzer's defaults. */
struct task {
    const char *operator_name;
    bool gradient;  /* with a probe at the gradient */
    size_t batches; /* the first so many minibatches */
    bool layers;
};

static struct task task_of(enum ks_audit_spectrum which, size_t minibatches)
{
    static const char *const operators[KS_AUDIT_SPECTRA] = {"hessian", "hessian", "ggn", "residual",
                                                            "preconditioned"};

    return (struct task){.operator_name = operators[which],
                         .gradient = which == KS_AUDIT_HESSIAN || which == KS_AUDIT_HALF,
                         .batches = which == KS_AUDIT_HALF ? minibatches / 2 : minibatches};
}

/* The analyzer's words for the task; the arrays hold them. */
struct words {
    char order[24], seed[24], batches[24], start[16], name[16];
    struct ks_options_given given;
};

static void write_words(const struct task *t, const struct ks_audit_options *o, struct words *w)
{
    snprintf(w->order, sizeof w->order, "%zu", t->layers ? o->layer_order : o->order);
    snprintf(w->seed, sizeof w->seed, "%llu", (unsigned long long)o->seed);
    snprintf(w->batches, sizeof w->batches, "%zu", t->batches);
    snprintf(w->start, sizeof w->start, "gradient");
    snprintf(w->name, sizeof w->name, "%s", t->operator_name);
    w->given = (struct ks_options_given){.csv = 1,
                                         .layers = t->layers,
                                         .operator_name = w->name,
                                         .order = w->order,
                                         .seed = w->seed,
                                         .batches = w->batches,
                                         .start = t->gradient ? w->start : NULL};
}

/* Writes the table of the layers with its columns as CSV. */
static ks_status write_layers(const struct ks_analysis *a, const char *path)
{
    struct ks_report report = {.form = KS_REPORT_CSV};
    struct ks_text text = {0};
    ks_status status = ks_text_open(path, &text);

    report.out = text.stream;
    if (status == KS_OK)
        status = ks_layers_report(&report, "critic", a->options, a->n_rows, a->rows);
    return ks_text_close(&text, status);
}

/* Runs the analysis, which writes `output`. What the analyzer would print goes nowhere. */
static ks_status analyze(const struct ks_audit *audit, const struct task *t, const char *output)
{
    const struct ks_audit_options *o = audit->options;
    const struct ks_team alone = {.size = 1, .local_size = 1};
    struct ks_options options;
    struct words words = {.order = ""};
    struct ks_report report = {.form = KS_REPORT_CSV};
    struct ks_analysis a = {.options = &options,
                            .path = audit->path,
                            .output = output,
                            .quiet = o->quiet,
                            .says_references = true,
                            .trusts_files = true,
                            .report = &report,
                            .world = &alone};
    char *printed = NULL;
    size_t size;
    ks_status status = KS_OK;

    write_words(t, o, &words);
    KS_TRY(ks_options_read(&words.given, &options));
    report.out = open_memstream(&printed, &size);
    if (!report.out)
        return ks_fail(KS_MEMORY, "out of memory");
    if (!o->quiet)
        ks_say("%s: %s%s, %zu minibatch%s", audit->path, t->operator_name,
               t->layers ? ", layer by layer" : "", t->batches, t->batches == 1 ? "" : "es");
    KS_GO((t->layers ? ks_analyze_layers : ks_analyze)(&a));
    if (t->layers)
        KS_GO(write_layers(&a, output));
done:
    ks_analysis_clear(&a);
    ks_report_clear(&report);
    fclose(report.out);
    free(printed);
    return status;
}

/* Whether a kept spectrum belongs to these bytes and this version of the program. */
static bool is_current(const struct ks_spectrum *s, const char *digest)
{
    const struct ks_attribute *of = ks_attribute_find(&s->attributes, "checkpoint_sha256");
    const struct ks_attribute *by = ks_attribute_find(&s->attributes, "analyzer_version");

    return of && of->type == KS_ATTRIBUTE_STRING && strcmp(of->string, digest) == 0 && by &&
           by->type == KS_ATTRIBUTE_STRING && strcmp(by->string, KS_VERSION) == 0;
}

/* Reads the spectrum from the folder if it is kept there, else computes it. The file's name has the
 * options. */
static ks_status get_spectrum(struct ks_audit *a, enum ks_audit_spectrum which)
{
    const struct ks_audit_options *o = a->options;
    const struct task t = task_of(which, a->facts.minibatches);
    struct ks_spectrum **s = &a->spectrum[which];
    char *path = NULL;
    ks_status status = KS_OK;

    KS_TRY(ks_print_string(&path, "%s/%s-m%zu-n%zu-s%llu.spectrum.h5", a->folder, t.operator_name,
                           o->order, t.batches, (unsigned long long)o->seed));
    if (ks_path_exists(path) && ks_spectrum_read(path, s) == KS_OK &&
        is_current(*s, a->facts.digest))
        goto done;
    ks_spectrum_free(*s);
    *s = NULL;
    KS_GO(analyze(a, &t, path));
    KS_GO(ks_spectrum_read(path, s));
done:
    free(path);
    return status;
}

/* The same for the table of the layers. A table does not say what it belongs to, so the file's name
 * has the start of the checkpoint's digest and the version, too. */
static ks_status get_layers(struct ks_audit *a)
{
    const struct ks_audit_options *o = a->options;
    const struct task t = {
        .operator_name = "hessian", .batches = a->facts.minibatches, .layers = true};
    char *path = NULL;
    ks_status status = KS_OK;

    KS_TRY(ks_print_string(&path, "%s/layers-m%zu-n%zu-s%llu-%.16s-%s.csv", a->folder,
                           o->layer_order, t.batches, (unsigned long long)o->seed, a->facts.digest,
                           KS_VERSION));
    if (!ks_path_exists(path) || ks_csv_read(path, false, &a->layers) != KS_OK) {
        KS_GO(analyze(a, &t, path));
        KS_GO(ks_csv_read(path, false, &a->layers));
    }
done:
    free(path);
    return status;
}

ks_status ks_audit_folder(const char *path, const struct ks_audit_options *o, char **folder)
{
    const char *name = o->cache ? ks_path_base(path) : path;

    return ks_print_string(folder, "%s%s%.*s.audit", o->cache ? o->cache : "", o->cache ? "/" : "",
                           (int)ks_path_stem(name, ".h5"), name);
}

/* What cannot be analyzed is left out: half of one minibatch, second moments that are not there. */
static bool is_possible(const struct ks_audit *a, enum ks_audit_spectrum which)
{
    return !(which == KS_AUDIT_HALF && a->facts.minibatches < 2) &&
           !(which == KS_AUDIT_PRECONDITIONED && a->facts.moments != KS_MOMENTS_PRESENT);
}

ks_status ks_audit_run(const char *path, const struct ks_audit_options *o, struct ks_audit *a)
{
    *a = (struct ks_audit){.path = path, .options = o};
    KS_TRY(ks_audit_facts_read(path, o->batches, &a->facts));
    KS_TRY(ks_audit_folder(path, o, &a->folder));
    KS_TRY(ks_folder_make(a->folder));
    for (enum ks_audit_spectrum i = KS_AUDIT_HESSIAN; i < KS_AUDIT_SPECTRA; i++)
        if (is_possible(a, i))
            KS_TRY(get_spectrum(a, i));
    return o->layer_order > 0 ? get_layers(a) : KS_OK;
}

void ks_audit_clear(struct ks_audit *a)
{
    for (int i = 0; i < KS_AUDIT_SPECTRA; i++)
        ks_spectrum_free(a->spectrum[i]);
    ks_csv_free(a->layers);
    free(a->folder);
    ks_audit_facts_clear(&a->facts);
    *a = (struct ks_audit){.path = NULL};
}
