/* The analyses of an audit, by the functions behind kappascope-analyze. What they write is kept in
 * a folder, so that a second audit of the same checkpoint reads it. */
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "config.h"
#include "core/memory.h"
#include "core/path.h"
#include "core/say.h"
#include "io/text.h"
#include "operators/operator_kinds.h"
#include "pipeline/outputs.h"

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

/* Runs the analysis, whose results the caller frees with ks_pipeline_close, also after a failure.
 */
static ks_status analyze(const struct ks_audit *audit, const struct task *t,
                         struct ks_spectrum_options *options, struct ks_pipeline *p)
{
    const struct ks_audit_options *o = audit->options;

    *options = ks_spectrum_options_defaults();
    options->kind = ks_operator_kind_find(t->operator_name);
    options->products_f32 = !options->kind->wide;
    options->order = t->layers ? o->layer_order : o->order;
    options->seed = o->seed;
    options->batches = t->batches;
    options->gradient_probe = t->gradient;
    *p = (struct ks_pipeline){.options = options,
                              .path = audit->path,
                              .quiet = o->quiet,
                              .says_references = true,
                              .trusts_files = true};
    if (!o->quiet)
        ks_say("%s: %s%s, %zu minibatch%s", audit->path, t->operator_name,
               t->layers ? ", layer by layer" : "", t->batches, t->batches == 1 ? "" : "es");
    KS_TRY(ks_pipeline_open(p));
    return t->layers ? ks_pipeline_layers(p) : ks_pipeline_spectrum(p);
}

/* Computes a spectrum and keeps it in the file `path`. */
static ks_status compute(struct ks_audit *a, const struct task *t, const char *path,
                         struct ks_spectrum **spectrum)
{
    struct ks_spectrum_options options;
    struct ks_pipeline p = {.options = NULL};
    ks_status status = KS_OK;

    KS_GO(ks_output_check(path, a->path));
    KS_GO(analyze(a, t, &options, &p));
    KS_GO(ks_spectrum_write(path, p.spectrum));
    *spectrum = p.spectrum, p.spectrum = NULL;
done:
    ks_pipeline_close(&p);
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
    status = compute(a, &t, path, s);
done:
    free(path);
    return status;
}

static ks_status get_layers(struct ks_audit *a)
{
    const struct task t = {
        .operator_name = "hessian", .batches = a->facts.minibatches, .layers = true};
    struct ks_spectrum_options options;
    struct ks_pipeline p = {.options = NULL};
    ks_status status = analyze(a, &t, &options, &p);

    if (status == KS_OK) {
        a->n_layers = p.n_rows;
        a->layers = p.rows, p.rows = NULL;
    }
    ks_pipeline_close(&p);
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
    free(a->layers);
    free(a->folder);
    ks_audit_facts_clear(&a->facts);
    *a = (struct ks_audit){.path = NULL};
}
