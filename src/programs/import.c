/* kappascope-import: a critic from another framework's files, as a checkpoint. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <msgpack.h>
#include <zip.h>

#include "core/number.h"
#include "core/program.h"
#include "import/import.h"
#include "io/h5.h"

static char *arch, *map, *batch, *output, *ensemble_axis, *slice;

static const struct poptOption options[] = {
    {"arch", '\0', POPT_ARG_STRING, &arch, 0, "the critic's description, with its loss", "A.arch"},
    {"map", '\0', POPT_ARG_STRING, &map, 0, "which array of WEIGHTS is which of the critic's",
     "M.map"},
    {"batch", '\0', POPT_ARG_STRING, &batch, 0,
     "the minibatches: arrays input and target, and optionally weight, output, loss and "
     "gradient_norm",
     "B.npz"},
    {"output", 'o', POPT_ARG_STRING, &output, 0,
     "the checkpoint to write; without it only the listing is printed", "C.h5"},
    {"ensemble-axis", '\0', POPT_ARG_STRING, &ensemble_axis, 0,
     "each index of this axis of every array is another critic; axes count from 0", "AXIS"},
    {"slice", '\0', POPT_ARG_STRING, &slice, 0,
     "take one index of an axis of every array, such as one of several seeds", "AXIS:INDEX"},
    POPT_TABLEEND};

static const struct ks_library libraries[] = {{"HDF5", ks_h5_version},
                                              {"jansson", jansson_version_str},
                                              {"libzip", zip_libzip_version},
                                              {"msgpack-c", msgpack_version},
                                              {NULL, NULL}};

static const struct ks_program program = {
    .libraries = libraries,
    .name = "kappascope-import",
    .synopsis = "--arch A.arch --map M.map --batch B.npz WEIGHTS... -o C.h5",
    .description = "writes a critic from another framework's files as a checkpoint",
    .details = "DESCRIPTION\n"
               "  WEIGHTS is a file of safetensors, NumPy (.npz), Flax (.msgpack) or HDF5 (.h5).\n"
               "  Several files are several critics. The map has a line 'layout = torch' or\n"
               "  'layout = flax' and a line for each array:\n"
               "\n"
               "    layout = torch\n"
               "    00_dense/kernel = critic.0.weight\n"
               "    00_dense/bias   = critic.0.bias\n"
               "    ignore actor.**\n"
               "\n"
               "  In names, * stands for any characters except '.' and '/', ** for any\n"
               "  characters, and ? for one character except '.' and '/'. Several matches are\n"
               "  several critics. Every array of WEIGHTS must be taken or ignored. If one is\n"
               "  unused, missing or ambiguous, the listing says so and nothing is written.\n"
               "  If B.npz has what the other program computed (output [N,B,E,K], loss [N],\n"
               "  gradient_norm [N]), this is compared before anything is written.\n"
               "\n"
               "EXAMPLES\n"
               "  kappascope import --arch a.arch --map m.map --batch b.npz critic.npz -o c.h5\n"
               "  kappascope import --arch a.arch --map m.map --batch b.npz --slice 0:3 \\\n"
               "      --ensemble-axis 1 seeds.npz -o seed3.h5\n",
    .options = options,
};

enum { AXES = KS_STORED_DIMS - 1, MOST = 1 << 30 };

/* Parses AXIS:INDEX, such as "0:3". */
static ks_status parse_slice(char *text, struct ks_axes *axes)
{
    char *colon = strchr(text, ':');
    uint64_t axis, index;

    if (colon)
        *colon = '\0';
    if (!colon || !ks_parse_integer(text, 0, AXES, &axis) ||
        !ks_parse_integer(colon + 1, 0, MOST, &index))
        return ks_fail(KS_USAGE, "--slice: expected AXIS:INDEX, such as 0:3, found '%s%s%s'", text,
                       colon ? ":" : "", colon ? colon + 1 : "");
    axes->has_slice = true;
    axes->slice = (size_t)axis;
    axes->index = (size_t)index;
    return KS_OK;
}

static ks_status parse_axes(struct ks_axes *axes)
{
    uint64_t axis = 0;

    if (ensemble_axis && !ks_parse_integer(ensemble_axis, 0, AXES, &axis))
        return ks_fail(KS_USAGE, "--ensemble-axis: expected an integer from 0 to %d, found '%s'",
                       AXES, ensemble_axis);
    axes->has_ensemble = ensemble_axis != NULL;
    axes->ensemble = (size_t)axis;
    if (slice)
        KS_TRY(parse_slice(slice, axes));
    if (axes->has_slice && axes->has_ensemble && axes->slice == axes->ensemble)
        return ks_fail(KS_USAGE, "--slice and --ensemble-axis: expected two axes, both are %zu",
                       axes->slice);
    return KS_OK;
}

static ks_status run(const struct ks_arguments *arguments)
{
    struct ks_import import = {.arch = arch,
                               .map = map,
                               .batch = batch,
                               .output = output,
                               .weights = arguments->rest,
                               .n_weights = arguments->n_rest,
                               .quiet = arguments->quiet};

    if (!arch || !map || !batch)
        return ks_fail(KS_USAGE, "expected %s (see --help)",
                       !arch  ? "--arch A.arch"
                       : !map ? "--map M.map"
                              : "--batch B.npz");
    if (arguments->n_rest == 0)
        return ks_fail(KS_USAGE, "expected a file of weights, found none (see --help)");
    KS_TRY(parse_axes(&import.axes));
    return ks_import_run(&import);
}

int main(int argc, char **argv)
{
    struct ks_arguments arguments;
    ks_status status = ks_program_start(&program, argc, argv, &arguments);
    char *const given[] = {arch, map, batch, output, ensemble_axis, slice};

    if (status == KS_OK && !arguments.done)
        status = run(&arguments);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        free(given[i]);
    return ks_program_end(&program, &arguments, status);
}
