/* kappascope-analyze: from a checkpoint to the spectrum of its loss's curvature. The algorithm is
 * in program/analysis_run.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <omp.h>

#include "core/blas.h"
#include "core/program.h"
#include "core/say.h"
#include "io/h5.h"
#include "program/analysis.h"
#include "program/options_table.h"
#include "program/outputs.h"
#include "program/report.h"

static const struct ks_library libraries[] = {
    {"HDF5", ks_h5_version}, {"jansson", jansson_version_str}, {NULL, NULL}};

static const struct ks_program description = {
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
    .libraries = libraries,
};

/* Analyzes all checkpoints. One that fails gets a line on standard error, and the others go on.
 * Returns the worst exit status. */
static int analyze_all(const struct ks_options *o, const struct ks_team *world,
                       const struct ks_arguments *arguments, char *const *outputs,
                       struct ks_report *report)
{
    ks_status (*const analyze)(struct ks_analysis *) = o->apply || o->gradient ? ks_analyze_vectors
                                                       : o->eigenvectors > 0
                                                           ? ks_analyze_eigenvectors
                                                       : o->layers ? ks_analyze_layers
                                                                   : ks_analyze;
    const bool leads = ks_team_rank(world) == 0;
    int worst = 0;

    for (size_t i = 0; i < arguments->n_rest; i++) {
        struct ks_analysis analysis = {.options = o,
                                       .path = arguments->rest[i],
                                       .output = outputs ? outputs[i] : NULL,
                                       .quiet = arguments->quiet || !leads,
                                       .report = report,
                                       .world = world};
        ks_status status = analyze(&analysis);

        ks_analysis_clear(&analysis);
        if (status != KS_OK && leads)
            ks_say("%s: %s", description.name, ks_error_text());
        if (ks_exit_status(status) > worst)
            worst = ks_exit_status(status);
    }
    return worst;
}

static ks_status check_arguments(const struct ks_options *o, const struct ks_arguments *arguments)
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

static struct ks_report new_report(const struct ks_options *o, const struct ks_arguments *arguments)
{
    struct ks_report report = {.out = stdout};

    report.form = o->json ? KS_REPORT_JSON : o->csv ? KS_REPORT_CSV : KS_REPORT_TABLE;
    for (size_t i = 0; i < arguments->n_rest; i++) {
        char name[4096]; /* as it is printed */
        int width = (int)strlen(ks_escape(arguments->rest[i], sizeof name, name));

        report.width = width > report.width ? width : report.width;
    }
    return report;
}

/* Reads the options and analyzes, on all ranks; *worst: the exit status of the worst checkpoint. */
static ks_status run(const struct ks_options_given *given, const struct ks_arguments *arguments,
                     const struct ks_team *world, int *worst)
{
    ks_status status = KS_OK;
    struct ks_options o;
    struct ks_report report;
    char **outputs = NULL;
    bool writes;

    KS_GO(ks_options_read(given, &o));
    KS_GO(ks_team_agree(world, check_arguments(&o, arguments)));
    report = new_report(&o, arguments);
    writes = !o.apply && !o.gradient && world->rank == 0;
    if (writes && !o.layers && o.eigenvectors == 0)
        status = ks_outputs_new(arguments->n_rest, arguments->rest, o.folder, o.name, &outputs);
    KS_GO(ks_team_agree(world, status));
    KS_GO(ks_team_agree(world, ks_blas_reserve((size_t)omp_get_max_threads())));
    *worst = analyze_all(&o, world, arguments, outputs, &report);
    KS_GO(ks_team_agree(world, writes ? ks_report_end(&report) : KS_OK));
done:
    ks_outputs_free(arguments->n_rest, outputs);
    return status;
}

int main(int argc, char **argv)
{
    ks_status status = KS_OK;
    struct ks_options_given given = {.json = 0};
    struct poptOption table[KS_OPTIONS_TABLE];
    struct ks_program program = description;
    struct ks_arguments arguments = {0};
    struct ks_team world = {0};
    int worst = 0, end;
    bool leads;

    ks_options_table(&given, table);
    program.options = table;
    ks_program_begin(argv); /* before MPI starts, since it may execute the program again */
    KS_GO(ks_team_start(&world));
    if (world.rank > 0 &&
        !freopen("/dev/null", "w", stdout)) /* only rank 0 prints --help and --version */
        status = ks_fail(KS_IO, "/dev/null cannot be opened");
    KS_GO(ks_team_agree(&world, status));
    KS_GO(ks_program_start(&program, argc, argv, &arguments));
    if (!arguments.done)
        status = run(&given, &arguments, &world, &worst);
done:
    /* The exit status is rank 0's: a launcher kills all ranks when one returns a failure. */
    leads = world.rank == 0;
    end = ks_program_end(&program, &arguments, leads ? status : KS_OK);
    ks_options_clear(&given);
    ks_team_end(&world);
    return !leads ? 0 : end > worst ? end : worst;
}
