/* Analyses by the options of kappascope-analyze. */
#include <string.h>

#include <omp.h>

#include "core/blas.h"
#include "lanczos/slq.h"
#include "library/library.h"
#include "pipeline/options.h"

/* Options of an operator: the others say which operator it is, or how its products are computed. */
static const char *const of_operator[] = {
    "order",      "probes", "tolerance",       "seed",        "start",
    "complement", "exact",  "no-certificates", "count-above", "learning-rate"};

static bool is_of_operator(const char *name)
{
    for (size_t i = 0; i < sizeof of_operator / sizeof *of_operator; i++)
        if (strcmp(of_operator[i], name) == 0)
            return true;
    return false;
}

static ks_status set_option(const struct kappascope_option *option, bool of_checkpoint,
                            struct ks_analyze_options *o)
{
    const struct ks_key *key = option->name ? ks_key_find(ks_analyze_keys, option->name) : NULL;

    if (!key)
        return ks_fail(KS_USAGE, "there is no option '%s'", option->name ? option->name : "");
    if (key->role == KS_OPTION_OUTPUT)
        return ks_fail(KS_USAGE,
                       "%s: expected an option that decides how a spectrum is computed, found one "
                       "of the program's output",
                       key->name);
    if (!of_checkpoint && !is_of_operator(key->name))
        return ks_fail(KS_USAGE, "%s: expected with a checkpoint's file, found an operator",
                       key->name);
    if (!option->value)
        return ks_fail(KS_USAGE, "%s: the value is NULL", key->name);
    o->given |= KS_KEY_BIT(ks_analyze_keys, key);
    return ks_key_set(key, "", option->value, o);
}

static ks_status read_request(const struct kappascope_request *request, bool of_checkpoint,
                              struct ks_analyze_options *o)
{
    *o = ks_options_start();
    if (request->options > 0 && !request->option)
        return ks_fail(KS_USAGE, "option is NULL");
    for (size_t i = 0; i < request->options; i++)
        KS_TRY(set_option(&request->option[i], of_checkpoint, o));
    return ks_options_finish(o);
}

enum kappascope_status kappascope_analyze(const char *path,
                                          const struct kappascope_request *request,
                                          struct kappascope_spectrum **spectrum)
{
    KS_POINTS;
    struct ks_analyze_options o;
    struct ks_pipeline p = {.options = &o.spectrum, .path = path, .quiet = true};
    ks_status status;

    KS_GIVEN(spectrum);
    *spectrum = NULL;
    KS_GIVEN(path);
    KS_GIVEN(request);
    KS_PUBLIC(read_request(request, true, &o));
    KS_PUBLIC(ks_blas_reserve((size_t)omp_get_max_threads()));
    p.watch = request->watch;
    p.watcher = request->watcher;
    ks_library_lock();
    status = ks_pipeline_open(&p);
    ks_library_unlock();
    if (status == KS_OK)
        status = ks_pipeline_spectrum(&p);
    status = ks_library_spectrum(status, p.spectrum, spectrum);
    p.spectrum = NULL; /* now owned by *spectrum, or freed */
    ks_pipeline_close(&p);
    return (enum kappascope_status)status;
}

/* The operator keeps what is its own. */
static void take_options(const struct ks_spectrum_options *from, struct ks_spectrum_options *to)
{
    to->order = from->order;
    to->probes = from->probes;
    to->tolerances = from->tolerances;
    to->seed = from->seed;
    to->gradient_probe = from->gradient_probe;
    to->complement = from->complement;
    to->exact = from->exact;
    to->certificates = from->certificates;
    to->count_above = from->count_above;
    to->learning_rate = from->learning_rate;
    to->basis_f32 = false;
}

enum kappascope_status kappascope_operator_analyze(struct kappascope_operator *a,
                                                   const struct kappascope_request *request,
                                                   struct kappascope_spectrum **spectrum)
{
    KS_POINTS;
    struct ks_analyze_options o;
    struct ks_spectrum_options before;
    ks_status status;

    KS_GIVEN(spectrum);
    *spectrum = NULL;
    KS_GIVEN(a);
    KS_GIVEN(request);
    before = a->options;
    KS_PUBLIC(read_request(request, false, &o));
    if (o.spectrum.gradient_probe && !a->checkpoint)
        return (enum kappascope_status)ks_fail(
            KS_USAGE, "start: only the loss of a checkpoint has a gradient, not a caller's "
                      "operator");
    if (o.spectrum.exact)
        KS_PUBLIC(ks_library_range("n", a->p.budget.dimension, 1, KS_EXACT_LIMIT));
    take_options(&o.spectrum, &a->options);
    a->p.watch = request->watch;
    a->p.watcher = request->watcher;
    status = ks_library_run(a, spectrum);
    a->p.watch = NULL;
    a->options = before; /* for kappascope_slq and kappascope_exact, which have fewer */
    return (enum kappascope_status)status;
}
