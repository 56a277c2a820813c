/* kappascope-inspect: prints what is in a file, for a person. */
#include "inspect/inspect.h"
#include "core/number.h"
#include "core/program.h"
#include "io/h5.h"

static char *inputs, *against;
static int json;

static const struct poptOption options[] = {
    {"inputs", '\0', POPT_ARG_STRING, &inputs, 0,
     "columns of the input: for an architecture file, shapes and parameters are printed too", "D"},
    {"against", '\0', POPT_ARG_STRING, &against, 0,
     "of two files of eigenvectors: the overlap of the leading eigenspaces", "FILE"},
    {"json", '\0', POPT_ARG_NONE, &json, 0, "print the overlaps of --against as JSON", NULL},
    POPT_TABLEEND};

static const struct ks_program program = {
    .libraries = {{"HDF5", ks_h5_version}},
    .name = "kappascope-inspect",
    .synopsis = "[OPTION...] FILE",
    .description = "prints what is in a file",
    .details =
        "FILE is one of these:\n"
        "  a checkpoint          layers with shapes and norms, loss, minibatches,\n"
        "                        reference results, known null directions, dead units\n"
        "  a spectrum            what was computed, statistics, certificates, the statement\n"
        "  a vector file         number of vectors, their norms, how they were computed\n"
        "  an .arch file         layers; with --inputs also shapes and parameters\n"
        "  a .study file, or     what the study asks for, and the progress of each run\n"
        "  a study's folder\n"
        "\nEXAMPLES\n"
        "  kappascope inspect step_000050000.h5\n"
        "  kappascope inspect step_000050000.spectrum.h5\n"
        "  kappascope inspect early.vectors.h5 --against late.vectors.h5\n"
        "  kappascope inspect --inputs 261 mine.arch\n"
        "  kappascope inspect checkpoints/quick\n",
    .options = options,
};

static ks_status inspect(const struct ks_arguments *arguments)
{
    uint64_t columns = 0;

    if (arguments->n_rest != 1)
        return ks_fail(KS_USAGE, "expected one file, found %zu arguments (see --help)",
                       arguments->n_rest);
    if (json && !against)
        return ks_fail(KS_USAGE, "--json: expected with --against FILE");
    if (against && inputs)
        return ks_fail(KS_USAGE, "--against: expected no --inputs");
    if (against)
        return ks_inspect_overlap(arguments->rest[0], against, json, stdout);
    KS_TRY(ks_option_integer("inputs", inputs, 1, 10000000, &columns));
    return ks_inspect(arguments->rest[0], (size_t)columns, stdout);
}

int main(int argc, char **argv)
{
    return ks_program_run(&program, argc, argv, inspect);
}
