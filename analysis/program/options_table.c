#include "program/options_table.h"

#include <stdlib.h>
#include <string.h>

#define IN_WORDS(number)   #number
#define NUMBER_TEXT(macro) IN_WORDS(macro)
#define TEXT(name, variable, help, argument)                                                       \
    {                                                                                              \
        name, '\0', POPT_ARG_STRING, &given->variable, 0, help, argument                           \
    }
#define FLAG(name, variable, help)                                                                 \
    {                                                                                              \
        name, '\0', POPT_ARG_NONE, &given->variable, 0, help, NULL                                 \
    }

void ks_options_table(struct ks_options_given *given, struct poptOption table[KS_OPTIONS_TABLE])
{
    const struct poptOption list[KS_OPTIONS_TABLE] = {
        {"out", 'o', POPT_ARG_STRING, &given->folder, 0,
         "write the spectra to DIR instead of beside their checkpoints", "DIR"},
        TEXT("name", name,
             "name the spectra CHECKPOINT.NAME.spectrum.h5, for several analyses of a checkpoint",
             "NAME"),
        FLAG("json", json, "print the statistics as JSON, one object per line"),
        FLAG("csv", csv, "print the statistics as CSV, one row per checkpoint"),
        TEXT("operator", operator_name,
             "hessian (the default), ggn, residual, preconditioned, manifold", "NAME"),
        TEXT("critic", critic, "the diagonal block of one critic (all)", "E"),
        TEXT("layer", layer, "the diagonal block of one layer, 2 or 02_dense (all)", "NN"),
        FLAG("layers", layers,
             "print a table (CSV, JSON) of the diagonal blocks of all layers; write no spectra"),
        TEXT("batchnorm", batchnorm,
             "batch (train, the default) or running (eval) statistics; loss: batch statistics of "
             "the loss's rows alone",
             "train|loss|eval"),
        TEXT("order", order, "Lanczos steps (" NUMBER_TEXT(KS_OPTIONS_ORDER) ")", "M"),
        TEXT("probes", probes, "random start vectors (1)", "K"),
        TEXT("tolerance", tolerance,
             "stop when intervals are this tight: 0.05, or lambda_max=0.01,directions_1e2=1; "
             "--order, and --probes (" NUMBER_TEXT(KS_OPTIONS_MOST_PROBES) "), are limits then",
             "TOL"),
        TEXT("seed", seed, "seed of the start vectors (0)", "S"),
        TEXT("precision", precision, "precision of the products (f32; preconditioned: f64)",
             "f32|f64"),
        TEXT("batches", batches, "use the first N minibatches (all)", "N"),
        TEXT("weight-decay", weight_decay, "add MU2/2 |theta|^2 to the loss (0)", "MU2"),
        TEXT("scale", scale, "multiply the loss by C (1)", "C"),
        TEXT("memory", memory, "memory per process, e.g. 800M or 2G (half of the free memory)",
             "SIZE"),
        FLAG("exact", exact, "all eigenvalues, from the dense operator (small critics)"),
        TEXT(
            "compat", compat,
            "xqc: the published code's Lanczos recurrence in f32, one probe, unweighted statistics,"
            " products divided by N once more, raw rewards",
            "xqc"),
        TEXT("rewards", rewards, "targets from normalized (the default) or from raw rewards",
             "normalized|raw"),
        TEXT("start", start,
             "random (the default); gradient: one more probe, which starts at the loss's gradient",
             "random|gradient"),
        FLAG("no-certificates", no_certificates,
             "leave out the float64 products that certify the bounds"),
        TEXT("learning-rate", learning_rate,
             "the optimizer's learning rate, for sharpness_ratio (the checkpoint's)", "ETA"),
        TEXT("apply", apply, "multiply the operator by the vectors in file IN", "IN"),
        TEXT("eigenvectors", eigenvectors,
             "write the K eigenvectors of largest |eigenvalue| to --output, to a relative residual "
             "of --tolerance (" NUMBER_TEXT(KS_OPTIONS_RESIDUAL) "), and print a table of them",
             "K"),
        TEXT("output", output, "write the products of --apply, or the eigenvectors, to OUT", "OUT"),
        TEXT("gradient", gradient, "write loss and gradient to OUT", "OUT"),
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
