/* kappascope-plot: tables, plots and an HTML report from a study's folder. */
#include "core/program.h"
#include "io/h5.h"
#include "report/study_report.h"
#include "results/aggregate.h"

static struct command {
    size_t resamples;
} command;

static const struct ks_key keys[] = {
    {"resamples", KS_ROW_COUNT(0, 10000000), KS_DIGITS(KS_BOOTSTRAP_RESAMPLES),
     KS_KEY_AT(struct command, resamples), 0, "B",
     "bootstrap resamples per interval, 0 for no intervals (claims on "
     "correlations need them)"},
    KS_KEYS_END};

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
    .keys = keys,
    .values = &command,
};

static ks_status plot(const struct ks_arguments *arguments)
{
    if (arguments->n_rest != 1)
        return ks_fail(KS_USAGE, "expected the folder of one study, found %zu arguments",
                       arguments->n_rest);
    return ks_study_plot(arguments->rest[0], NULL, command.resamples, arguments->quiet);
}

int main(int argc, char **argv)
{
    return ks_program_run(&program, argc, argv, plot);
}
