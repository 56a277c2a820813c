/* kappascope-analyze: from a checkpoint to the spectrum of its loss's curvature. The algorithm is
 * in pipeline/pipeline.c. */
#include <stdio.h>
#include <string.h>

#include <jansson.h>
#include <omp.h>

#include "core/blas.h"
#include "core/program.h"
#include "io/h5.h"
#include "io/scout.h"
#include "pipeline/listing.h"
#include "pipeline/options.h"
#include "pipeline/pipeline.h"

static struct ks_analyze_options options;
static int worst; /* the worst exit status of a checkpoint */

static const struct ks_program program = {
    .name = "kappascope-analyze",
    .synopsis = "[OPTION...] CHECKPOINT...",
    .description = "measures the curvature of a critic's loss",
    .details = "DESCRIPTION\n"
               "  Writes CHECKPOINT.spectrum.h5 for each CHECKPOINT.h5 and prints its\n"
               "  statistics. With --name the file is CHECKPOINT.NAME.spectrum.h5, so that\n"
               "  a checkpoint can have several analyses side by side. With --apply,\n"
               "  --gradient or --eigenvectors it writes vectors of one checkpoint instead.\n"
               "\n"
               "EXAMPLES\n"
               "  kappascope analyze step_000050000.h5\n"
               "  kappascope analyze --order 150 --probes 3 --json -o spectra run/step_*[0-9].h5\n"
               "  kappascope analyze --apply v.h5 --output hv.h5 step_000050000.h5\n",
    .libraries = {{"HDF5", ks_h5_version}, {"jansson", jansson_version_str}},
    .keys = ks_analyze_keys,
    .values = &options,
};

/* Before anything is computed: the files can be written and replace no input. */
static ks_status check_outputs(const struct ks_analyze_options *o, const char *checkpoint,
                               const char *spectrum)
{
    const char *const outputs[] = {spectrum, o->output, o->gradient};

    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        if (!outputs[i])
            continue;
        KS_TRY(ks_output_check(outputs[i], checkpoint));
        if (outputs[i] != spectrum) /* of factors, if there are any */
            KS_TRY(ks_output_check(outputs[i], o->apply));
    }
    return KS_OK;
}

static ks_status compute(struct ks_pipeline *p, const struct ks_analyze_options *o)
{
    KS_TRY(ks_pipeline_open(p));
    if (o->apply || o->gradient)
        return ks_pipeline_apply(p, o->gradient, o->output);
    if (o->spectrum.eigenvectors > 0)
        return ks_pipeline_eigenvectors(p, o->output);
    return o->layers ? ks_pipeline_layers(p) : ks_pipeline_spectrum(p);
}

/* Analyzes one checkpoint: writes the file `spectrum`, or vectors, and prints. */
static ks_status analyze(struct ks_pipeline *p, const struct ks_analyze_options *o,
                         const char *spectrum, struct ks_listing *listing)
{
    KS_TRY(check_outputs(o, p->path, spectrum));
    KS_TRY(compute(p, o));
    if (o->apply || o->gradient)
        return KS_OK;
    if (o->spectrum.eigenvectors > 0) {
        KS_TRY(ks_eigenvectors_list(listing, p));
        return ks_eigenvectors_complete(p);
    }
    if (o->layers)
        return ks_layers_list(listing, p);
    KS_TRY(ks_spectrum_write(spectrum, p->spectrum));
    return ks_listing_add(listing, p->path, p->spectrum);
}

/* Analyzes all checkpoints. One that fails gets a line on standard error, and the others go on. */
static void analyze_all(const struct ks_analyze_options *o, const struct ks_arguments *arguments,
                        char *const *outputs, struct ks_listing *listing)
{
    for (size_t i = 0; i < arguments->n_rest; i++) {
        struct ks_pipeline p = {.options = &o->spectrum,
                                .path = arguments->rest[i],
                                .quiet = arguments->quiet,
                                .factors = o->apply,
                                .finds_gradient = o->gradient,
                                .by_layers = o->layers};
        ks_status status = analyze(&p, o, outputs ? outputs[i] : NULL, listing);

        ks_pipeline_close(&p);
        if (status != KS_OK)
            ks_say("%s: %s", program.name, ks_error_text());
        if (ks_exit_status(status) > worst)
            worst = ks_exit_status(status);
    }
}

static ks_status check_arguments(const struct ks_analyze_options *o,
                                 const struct ks_arguments *arguments)
{
    if (arguments->n_rest == 0)
        return ks_fail(KS_USAGE, "expected a checkpoint, found none (see --help)");
    if (arguments->n_rest > 1 && (o->output || o->gradient))
        return ks_fail(KS_USAGE,
                       "expected one checkpoint with --apply, --gradient and --eigenvectors, found "
                       "%zu (see --help)",
                       arguments->n_rest);
    if (o->output && o->gradient && ks_output_same(o->output, o->gradient))
        return ks_fail(KS_USAGE, "--output and --gradient: expected two files, both are %s",
                       o->output);
    return KS_OK;
}

static struct ks_listing new_listing(const struct ks_analyze_options *o,
                                     const struct ks_arguments *arguments)
{
    struct ks_listing listing = {.out = stdout};

    listing.form = o->json ? KS_LISTING_JSON : o->csv ? KS_LISTING_CSV : KS_LISTING_TABLE;
    for (size_t i = 0; i < arguments->n_rest; i++) {
        char name[4096]; /* as it is printed */
        size_t width = strlen(ks_escape(arguments->rest[i], sizeof name, name));

        listing.width = width > listing.width ? width : listing.width;
    }
    return listing;
}

/* Before any checkpoint is read; *outputs: the names of the spectra, if any are written. */
static ks_status prepare(const struct ks_arguments *arguments, struct ks_analyze_options *o,
                         char ***outputs)
{
    o->given = arguments->given;
    KS_TRY(ks_options_finish(o));
    KS_TRY(check_arguments(o, arguments));
    ks_scout_limit_memory(o->spectrum.memory);
    if (!o->apply && !o->gradient && !o->layers && o->spectrum.eigenvectors == 0)
        KS_TRY(ks_outputs_new(arguments->n_rest, arguments->rest, o->folder, o->name, outputs));
    return ks_blas_reserve((size_t)omp_get_max_threads());
}

static ks_status run(const struct ks_arguments *arguments)
{
    ks_status status = KS_OK;
    struct ks_listing listing;
    char **outputs = NULL;

    KS_GO(prepare(arguments, &options, &outputs));
    listing = new_listing(&options, arguments);
    if (!arguments->quiet && ks_products_warning(options.spectrum.products))
        ks_say("note: %s", ks_products_warning(options.spectrum.products));
    analyze_all(&options, arguments, outputs, &listing);
    if (!options.apply && !options.gradient)
        status = ks_listing_end(&listing);
done:
    ks_outputs_free(arguments->n_rest, outputs);
    return status;
}

int main(int argc, char **argv)
{
    int code;

    options = ks_options_start();
    code = ks_program_run(&program, argc, argv, run);
    return code > worst ? code : worst;
}
