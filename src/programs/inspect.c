/* kappascope-inspect: prints what is in a file, for a person. */
#include <stdint.h>
#include <stdlib.h>

#include "core/number.h"
#include "core/program.h"
#include "inspect/inspect.h"
#include "io/h5.h"

static char *inputs;

static const struct poptOption options[] = {
    {"inputs", '\0', POPT_ARG_STRING, &inputs, 0,
     "columns of the input: for an architecture file, shapes and parameters are printed too", "D"},
    POPT_TABLEEND};

static const struct ks_library libraries[] = {{"HDF5", ks_h5_version}, {NULL, NULL}};

static const struct ks_program program = {
    .libraries = libraries,
    .name = "kappascope-inspect",
    .synopsis = "[OPTION...] FILE",
    .description = "prints what is in a file",
    .details = "FILE is one of these:\n"
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
               "  kappascope inspect --inputs 261 mine.arch\n"
               "  kappascope inspect checkpoints/quick\n",
    .options = options,
};

static ks_status inspect(const struct ks_arguments *arguments)
{
    enum { MOST = 10000000 };
    uint64_t columns = 0;

    if (arguments->n_rest != 1)
        return ks_fail(KS_USAGE, "expected one file, found %zu arguments (see --help)",
                       arguments->n_rest);
    if (inputs && !ks_parse_integer(inputs, 1, MOST, &columns))
        return ks_fail(KS_USAGE, "--inputs: expected an integer from 1 to %d, found '%s'", MOST,
                       inputs);
    return ks_inspect(arguments->rest[0], (size_t)columns, stdout);
}

int main(int argc, char **argv)
{
    struct ks_arguments arguments;
    ks_status status = ks_program_start(&program, argc, argv, &arguments);

    if (status == KS_OK && !arguments.done)
        status = inspect(&arguments);
    free(inputs);
    return ks_program_end(&program, &arguments, status);
}
