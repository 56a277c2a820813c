/* kappascope-analyze: from a checkpoint to the spectrum of its loss's curvature. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <omp.h>

#include "core/blas.h"
#include "core/memory.h"
#include "core/program.h"
#include "core/say.h"
#include "io/h5.h"
#include "lanczos/density.h"
#include "program/analysis.h"
#include "program/apply.h"
#include "program/options_table.h"
#include "program/outputs.h"
#include "program/provenance.h"
#include "program/report.h"
#include "program/stability.h"

static ks_status finish(const struct ks_options *o, struct ks_analysis *analysis,
                        struct ks_report *report)
{
    const struct ks_statistics_terms terms = ks_analysis_terms(o, analysis);

    KS_TRY(ks_statistics(analysis->spectrum, &terms));
    KS_TRY(ks_stability_add(o, &analysis->subject, analysis->spectrum));
    KS_TRY(ks_density(analysis->spectrum));
    KS_TRY(ks_provenance_probes(terms.certificates, analysis->spectrum));
    KS_TRY(ks_provenance_spectrum(o, &analysis->subject, &terms, analysis->spectrum));
    ks_analysis_say_error(o, analysis);
    KS_TRY(ks_spectrum_write(analysis->output, analysis->spectrum));
    return ks_report_add(report, analysis->path, analysis->spectrum);
}

static ks_status analyze(const struct ks_options *o, struct ks_analysis *analysis,
                         struct ks_report *report)
{
    size_t start = ks_alloc_total();
    const struct ks_team *world = analysis->world;

    KS_TRY(ks_team_agree(world, ks_analysis_leads(analysis)
                                    ? ks_output_check(analysis->output, analysis->path)
                                    : KS_OK));
    KS_TRY(ks_analysis_read(o, analysis));
    KS_TRY(ks_team_agree(world, ks_analysis_pose(o, analysis)));
    KS_TRY(ks_analysis_prepare(o, start, analysis));
    KS_TRY(ks_analysis_name_basis(o, analysis));
    KS_TRY(ks_analysis_run(o, analysis));
    return ks_team_agree(world, ks_analysis_leads(analysis) ? finish(o, analysis, report) : KS_OK);
}

/* --- --layers: one block after the other --- */

/* Poses the problem of one layer's block; what the block before it has is freed. */
static ks_status pose_layer(const struct ks_options *o, size_t row, struct ks_analysis *analysis)
{
    struct ks_options one = *o;

    ks_analysis_clear_block(analysis);
    one.layer = (int)analysis->rows[row].number;
    return ks_analysis_pose(&one, analysis);
}

/* The layers, the products of all of them, and the dimension of the largest, which decides what
 * memory is left. */
static ks_status plan_layers(const struct ks_options *o, struct ks_analysis *analysis,
                             size_t *products, size_t *largest)
{
    size_t probes = (o->probes + analysis->groups - 1) / analysis->groups;

    KS_TRY(ks_analysis_pose(o, analysis)); /* of all layers: it says which critics there are */
    KS_TRY(ks_layers_new(&analysis->subject.problem, o->kind->moving, &analysis->n_rows,
                         &analysis->rows));
    *products = *largest = 0;
    for (size_t i = 0; i < analysis->n_rows; i++) {
        size_t n = analysis->rows[i].dimension;

        KS_TRY(pose_layer(o, i, analysis));
        *largest = n > *largest ? n : *largest;
        *products += probes * (n < o->order ? n : o->order) + ks_null_products(analysis->space);
    }
    return KS_OK;
}

static ks_status analyze_layer(const struct ks_options *o, size_t row, struct ks_analysis *analysis)
{
    struct ks_statistics_terms terms;

    KS_TRY(ks_team_agree(analysis->world, pose_layer(o, row, analysis)));
    KS_TRY(ks_team_agree(analysis->world, ks_analysis_block(o, analysis)));
    analysis->watch.before = analysis->done + ks_null_products(analysis->space);
    KS_TRY(ks_analysis_run(o, analysis));
    analysis->done = analysis->watch.before;
    for (size_t i = 0; i < analysis->spectrum->probes; i += analysis->groups)
        analysis->done += (size_t)analysis->spectrum->steps[i];
    terms = ks_analysis_terms(o, analysis);
    KS_TRY(ks_team_agree(analysis->world, ks_statistics(analysis->spectrum, &terms)));
    ks_analysis_say_error(o, analysis);
    ks_layers_take(&analysis->rows[row], analysis->spectrum);
    return KS_OK;
}

/* The operator is made once; every layer's products are those of the whole, restricted. */
static ks_status analyze_layers(const struct ks_options *o, struct ks_analysis *analysis,
                                struct ks_report *report)
{
    size_t start = ks_alloc_total(), products = 0, largest = 0;
    const struct ks_team *world = analysis->world;

    KS_TRY(ks_analysis_read(o, analysis));
    KS_TRY(ks_team_agree(world, plan_layers(o, analysis, &products, &largest)));
    analysis->subject.dimension = largest;
    KS_TRY(ks_analysis_prepare(o, start, analysis));
    analysis->watch.products = products;
    for (size_t i = 0; i < analysis->n_rows; i++)
        KS_TRY(analyze_layer(o, i, analysis));
    ks_layers_share(analysis->n_rows, analysis->rows);
    return ks_team_agree(
        world, ks_analysis_leads(analysis)
                   ? ks_layers_report(report, analysis->path, o, analysis->n_rows, analysis->rows)
                   : KS_OK);
}

static ks_status check_vectors(const struct ks_options *o, const struct ks_analysis *analysis)
{
    const char *const outputs[] = {o->output, o->gradient};

    for (size_t i = 0; i < 2; i++)
        if (outputs[i]) {
            KS_TRY(ks_output_check(outputs[i], analysis->path));
            KS_TRY(ks_output_check(outputs[i], o->apply));
        }
    return KS_OK;
}

/* --apply and --gradient: vectors in place of a spectrum. */
static ks_status write_vectors(const struct ks_options *o, struct ks_analysis *analysis)
{
    size_t start = ks_alloc_total();

    KS_TRY(ks_team_agree(analysis->world,
                         ks_analysis_leads(analysis) ? check_vectors(o, analysis) : KS_OK));
    KS_TRY(ks_analysis_read(o, analysis));
    KS_TRY(ks_team_agree(analysis->world, ks_analysis_pose(o, analysis)));
    if (o->gradient)
        KS_TRY(ks_gradient_file(o, &analysis->subject, analysis->world, &analysis->team, start));
    if (!o->apply)
        return KS_OK;
    KS_TRY(ks_apply_count(o, &analysis->team, &analysis->subject));
    KS_TRY(ks_analysis_prepare(o, start, analysis));
    return ks_apply_file(o, &analysis->subject, analysis->a, analysis->selection, &analysis->watch);
}

static bool starts_with(const char *message, const char *file)
{
    char name[1024]; /* as it stands in messages */
    size_t length = strlen(ks_escape(file, sizeof name, name));

    return strncmp(message, name, length) == 0 && message[length] == ':';
}

/* A message starts with the file that it is about; where none of these does, with the checkpoint:
 * most parts of the analysis do not know its name. */
static ks_status name_culprit(const struct ks_options *o, const char *path, ks_status status)
{
    const char *const files[] = {path, o->apply, o->output, o->gradient};
    char text[1024];

    snprintf(text, sizeof text, "%s", ks_error_text());
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (files[i] && starts_with(text, files[i]))
            return status;
    return ks_fail(status, "%s: %s", path, text);
}

static const struct ks_library libraries[] = {
    {"HDF5", ks_h5_version}, {"jansson", jansson_version_str}, {NULL, NULL}};

static const struct ks_program description = {
    .name = "kappascope-analyze",
    .synopsis = "[OPTION...] CHECKPOINT...",
    .description = "measures the curvature of a critic's loss",
    .details = "DESCRIPTION\n"
               "  Writes CHECKPOINT.spectrum.h5 for each CHECKPOINT.h5 and prints a summary. With "
               "--name NAME it\n"
               "  writes CHECKPOINT.NAME.spectrum.h5, so that spectra of several analyses can lie "
               "side by side. With\n"
               "  --apply or --gradient it writes vectors of one checkpoint instead.\n\n"
               "EXAMPLES\n"
               "  kappascope analyze step_000050000.h5\n"
               "  kappascope analyze --order 150 --probes 3 --json -o spectra run/step_*[0-9].h5\n"
               "  kappascope analyze --apply v.h5 --output hv.h5 step_000050000.h5\n",
    .libraries = libraries,
};

/* Analyzes all checkpoints; one that fails has its line and the others go on. Returns the worst
 * exit status. */
static int analyze_all(const struct ks_options *o, const struct ks_team *world,
                       const struct ks_arguments *arguments, char *const *outputs,
                       struct ks_report *report)
{
    const bool vectors = o->apply || o->gradient;
    int worst = 0;

    for (size_t i = 0; i < arguments->n_rest; i++) {
        struct ks_analysis analysis = {.path = arguments->rest[i],
                                       .quiet = arguments->quiet || ks_team_rank(world) > 0,
                                       .output = outputs ? outputs[i] : NULL,
                                       .world = world};
        ks_status status = vectors     ? write_vectors(o, &analysis)
                           : o->layers ? analyze_layers(o, &analysis, report)
                                       : analyze(o, &analysis, report);

        ks_analysis_clear(&analysis);
        if (status == KS_OK)
            continue;
        status = name_culprit(o, arguments->rest[i], status);
        if (ks_analysis_leads(&analysis))
            ks_say("%s: %s", description.name, ks_error_text());
        if (ks_exit_status(status) > worst)
            worst = ks_exit_status(status);
    }
    return worst;
}

static ks_status check_arguments(const struct ks_options *o, const struct ks_arguments *arguments)
{
    if (arguments->n_rest == 0)
        return ks_fail(KS_USAGE, "expected a checkpoint, found 0 (see --help)");
    if (arguments->n_rest > 1 && (o->apply || o->gradient))
        return ks_fail(
            KS_USAGE, "expected one checkpoint with --apply and --gradient, found %zu (see --help)",
            arguments->n_rest);
    if (o->output && o->gradient && ks_output_same(o->output, o->gradient))
        return ks_fail(KS_USAGE, "--output and --gradient: expected two files, found one, %s",
                       o->output);
    return KS_OK;
}

static struct ks_report new_report(const struct ks_options *o, const struct ks_arguments *arguments)
{
    struct ks_report report = {.out = stdout};

    report.form = o->json ? KS_REPORT_JSON : o->csv ? KS_REPORT_CSV : KS_REPORT_TABLE;
    for (size_t i = 0; i < arguments->n_rest; i++) {
        char name[4096]; /* as the table has it */
        int width = (int)strlen(ks_escape(arguments->rest[i], sizeof name, name));

        report.width = width > report.width ? width : report.width;
    }
    return report;
}

/* Does what was asked for, on all processes; *worst: the exit status of the worst checkpoint. */
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
    if (writes && !o.layers)
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
    bool speaks;

    ks_options_table(&given, table);
    program.options = table;
    ks_program_begin(argv); /* may start the program anew: before MPI */
    KS_GO(ks_team_start(&world));
    if (world.rank > 0 &&
        !freopen("/dev/null", "w", stdout)) /* --help and --version are said once */
        status = ks_fail(KS_IO, "/dev/null cannot be opened");
    KS_GO(ks_team_agree(&world, status));
    KS_GO(ks_program_start(&program, argc, argv, &arguments));
    if (!arguments.done)
        status = run(&given, &arguments, &world, &worst);
done:
    speaks = world.rank == 0; /* a launcher ends all processes with the first that fails */
    end = ks_program_end(&program, &arguments, speaks ? status : KS_OK);
    ks_options_clear(&given);
    ks_team_end(&world);
    return !speaks ? 0 : end > worst ? end : worst;
}
