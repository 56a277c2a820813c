#include "program/options_table.h"

#include <stdlib.h>
#include <string.h>

#define IN_WORDS(number)   #number
#define NUMBER_TEXT(macro) IN_WORDS(macro)
#define TEXT(name, letter, variable, help, argument)                                               \
    {                                                                                              \
        name, letter, POPT_ARG_STRING, &given->variable, 0, help, argument                         \
    }
#define FLAG(name, variable, help)                                                                 \
    {                                                                                              \
        name, '\0', POPT_ARG_NONE, &given->variable, 0, help, NULL                                 \
    }

void ks_options_table(struct ks_options_given *given, struct poptOption table[KS_OPTIONS_TABLE])
{
    const struct poptOption list[KS_OPTIONS_TABLE] = {
        TEXT("out", 'o', folder, "write the spectra to DIR instead of beside their checkpoints",
             "DIR"),
        TEXT("name", '\0', name,
             "name the spectra CHECKPOINT.NAME.spectrum.h5, for several analyses of a checkpoint",
             "NAME"),
        FLAG("json", json, "print the statistics as JSON, one object per line"),
        FLAG("csv", csv, "print the statistics as CSV, one row per checkpoint"),
        TEXT("operator", '\0', operator_name,
             "hessian (the default), ggn, residual, preconditioned, manifold", "NAME"),
        TEXT("critic", '\0', critic, "the diagonal block of one critic (all)", "E"),
        TEXT("layer", '\0', layer, "the diagonal block of one layer (all)", "NN"),
        FLAG("layers", layers,
             "print a table (CSV, JSON) of the diagonal blocks of all layers; write no spectra"),
        TEXT("batchnorm", '\0', batchnorm,
             "batch (train, the default) or running (eval) statistics; loss: batch statistics of "
             "the loss's rows alone",
             "train|loss|eval"),
        TEXT("order", '\0', order, "Lanczos steps (" NUMBER_TEXT(KS_OPTIONS_ORDER) ")", "M"),
        TEXT("probes", '\0', probes, "random start vectors (1)", "K"),
        TEXT("seed", '\0', seed, "seed of the start vectors (0)", "S"),
        TEXT("precision", '\0', precision, "precision of the products (f32; preconditioned: f64)",
             "f32|f64"),
        TEXT("batches", '\0', batches, "use the first N minibatches (all)", "N"),
        TEXT("weight-decay", '\0', weight_decay, "add MU2/2 |theta|^2 to the loss (0)", "MU2"),
        TEXT("scale", '\0', scale, "multiply the loss by C (1)", "C"),
        TEXT("memory", '\0', memory,
             "memory per process, e.g. 800M or 2G (half of the free memory)", "SIZE"),
        FLAG("keep-basis", keep_basis,
             "keep the Lanczos steps on disk: a stopped run resumes, a larger --order adds steps"),
        FLAG("exact", exact, "all eigenvalues, from the dense operator (small critics)"),
        TEXT(
            "compat", '\0', compat,
            "xqc: the published code's Lanczos recurrence in f32, one probe, unweighted statistics,"
            " products divided by N once more, raw rewards",
            "xqc"),
        TEXT("rewards", '\0', rewards, "targets from normalized (the default) or from raw rewards",
             "normalized|raw"),
        TEXT("start", '\0', start,
             "random (the default); gradient: one more probe, which starts at the loss's gradient",
             "random|gradient"),
        FLAG("no-certificates", no_certificates,
             "leave out the float64 products that certify the bounds"),
        TEXT("learning-rate", '\0', learning_rate,
             "the optimizer's learning rate, for sharpness_ratio (the checkpoint's)", "ETA"),
        TEXT("apply", '\0', apply, "multiply the operator by the vectors in file IN", "IN"),
        TEXT("output", '\0', output, "write the products of --apply to OUT", "OUT"),
        TEXT("gradient", '\0', gradient, "write loss and gradient to OUT", "OUT"),
        POPT_TABLEEND};

    memcpy(table, list, sizeof list);
}

void ks_options_clear(struct ks_options_given *given)
{
    struct poptOption table[KS_OPTIONS_TABLE];

    ks_options_table(given, table);
    for (const struct poptOption *o = table; o->longName; o++)
        if (o->argInfo == POPT_ARG_STRING)
            free(*(char **)o->arg);
    *given = (struct ks_options_given){.json = 0};
}
