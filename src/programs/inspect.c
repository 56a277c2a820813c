/* kappascope-inspect: prints what is in a file, for a person. */
#include "inspect/inspect.h"
#include "core/program.h"
#include "io/h5.h"

static struct command {
    size_t inputs;
    const char *against;
    bool json;
} command;

#define AT(member) KS_KEY_AT(struct command, member), 0

static const struct ks_key keys[] = {
    {"inputs", KS_ROW_COUNT(1, 10000000), NULL, AT(inputs), "D",
     "columns of the input: for an architecture file, shapes and parameters are printed too"},
    {"against", KS_ROW_TEXT(), NULL, AT(against), "FILE",
     "of two files of eigenvectors: the overlap of the leading eigenspaces"},
    {"json", KS_ROW_FLAG(), NULL, AT(json), NULL, "print the overlaps of --against as JSON"},
    KS_KEYS_END};

static const struct ks_key_rule rules[] = {
    {"json", "--json: expected with --against FILE", .needs = "against"},
    {"against", "--against: expected no --%s", .excluded = {"inputs"}},
    {.option = NULL}};

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
    .keys = keys,
    .rules = rules,
    .values = &command,
};

static ks_status inspect(const struct ks_arguments *arguments)
{
    const char *const *file = arguments->rest;

    if (arguments->n_rest != 1)
        return ks_fail(KS_USAGE, "expected one file, found %zu arguments (see --help)",
                       arguments->n_rest);
    return command.against ? ks_inspect_overlap(*file, command.against, command.json, stdout)
                           : ks_inspect(*file, command.inputs, stdout);
}

int main(int argc, char **argv)
{
    return ks_program_run(&program, argc, argv, inspect);
}
