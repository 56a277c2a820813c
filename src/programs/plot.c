/* kappascope-plot: tables, plots and an HTML report from a study's folder. */
#include "core/number.h"
#include "core/program.h"
#include "io/h5.h"
#include "report/report.h"
#include "results/aggregate.h"

static char *resamples;

static const struct poptOption options[] = {
    {"resamples", '\0', POPT_ARG_STRING, &resamples, 0,
     "bootstrap resamples per interval (default: 50000); 0: no intervals", "B"},
    POPT_TABLEEND};

static const struct ks_program program = {
    .libraries = {{"HDF5", ks_h5_version}},
    .name = "kappascope-plot",
    .synopsis = "[OPTION...] DIR",
    .description = "tables (CSV), plots (PNG, PDF, SVG) and a report (HTML) from a study's folder",
    .details = "DIR is the folder of kappascope study, complete or not: unfinished runs are left "
               "out, with\n"
               "a warning that names them. Writes DIR/tables, DIR/figures and DIR/report.html, "
               "lists\n"
               "the plots and prints the summary table.\n"
               "\nEXAMPLE\n  kappascope plot checkpoints/quick\n",
    .options = options,
};

static ks_status plot(const struct ks_arguments *arguments)
{
    uint64_t number = KS_BOOTSTRAP_RESAMPLES;

    if (arguments->n_rest != 1)
        return ks_fail(KS_USAGE, "expected the folder of one study, found %zu arguments",
                       arguments->n_rest);
    KS_TRY(ks_option_integer("resamples", resamples, 0, 10000000, &number));
    return ks_study_plot(arguments->rest[0], NULL, (size_t)number, arguments->quiet);
}

int main(int argc, char **argv)
{
    return ks_program_run(&program, argc, argv, plot);
}
