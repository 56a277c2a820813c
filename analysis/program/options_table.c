/* The analyzer's options: read as strings, so that every refusal says the same things. */
#include "program/options_table.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/number.h"

static int json, csv, exact, layers, keep_basis, no_certificates;
static char *folder, *analysis_name, *operator_name, *critic, *layer, *batchnorm, *order, *probes,
    *seed, *precision, *batches, *weight_decay, *scale, *memory, *compat, *rewards, *start,
    *learning_rate, *apply, *output, *gradient;

#define TEXT(name, letter, variable, help, argument)                                               \
    {                                                                                              \
        name, letter, POPT_ARG_STRING, &(variable), 0, help, argument                              \
    }
#define FLAG(name, variable, help)                                                                 \
    {                                                                                              \
        name, '\0', POPT_ARG_NONE, &(variable), 0, help, NULL                                      \
    }

const struct poptOption ks_options_table[] = {
    TEXT("out", 'o', folder, "write the spectra there, not beside their checkpoints", "DIR"),
    TEXT("name", '\0', analysis_name,
         "call the spectra CHECKPOINT.NAME.spectrum.h5: further analyses of a checkpoint", "NAME"),
    FLAG("json", json, "print the summaries as JSON, one object per line"),
    FLAG("csv", csv, "print the summaries as CSV, one row per checkpoint"),
    TEXT("operator", '\0', operator_name,
         "hessian (the default), ggn, residual,"
         " preconditioned, manifold",
         "NAME"),
    TEXT("critic", '\0', critic, "the diagonal block of one critic (all)", "E"),
    TEXT("layer", '\0', layer, "the diagonal block of one layer (all)", "NN"),
    FLAG("layers", layers,
         "a table (CSV, JSON) of the diagonal blocks of all layers, each by itself; no spectra"),
    TEXT("batchnorm", '\0', batchnorm, "batch (train, the default) or running (eval) statistics",
         "train|eval"),
    TEXT("order", '\0', order, "Lanczos steps (90)", "M"),
    TEXT("probes", '\0', probes, "start vectors (1)", "K"),
    TEXT("seed", '\0', seed, "seed of the start vectors (0)", "S"),
    TEXT("precision", '\0', precision, "precision of the products (f32; preconditioned: f64)",
         "f32|f64"),
    TEXT("batches", '\0', batches, "use the first N minibatches (all)", "N"),
    TEXT("weight-decay", '\0', weight_decay, "add MU2/2 |theta|^2 to the loss (0)", "MU2"),
    TEXT("scale", '\0', scale, "multiply the operator (1)", "C"),
    TEXT("memory", '\0', memory, "memory per process, e.g. 800M or 2G (half of what is free)",
         "SIZE"),
    FLAG("keep-basis", keep_basis,
         "keep the Lanczos steps on disk: a run that was stopped goes on, a larger --order adds"),
    FLAG("exact", exact, "all eigenvalues, from the dense operator (small critics)"),
    TEXT("compat", '\0', compat,
         "xqc: the published code's Lanczos process in f32, one probe, unweighted statistics,"
         " products by 1/N once more, raw rewards",
         "xqc"),
    TEXT("rewards", '\0', rewards, "targets from normalized (the default) or from raw rewards",
         "normalized|raw"),
    TEXT("start", '\0', start,
         "random (the default); gradient: one more probe, which starts at the loss's gradient",
         "random|gradient"),
    FLAG("no-certificates", no_certificates,
         "leave out the float64 products that certify the bounds"),
    TEXT("learning-rate", '\0', learning_rate,
         "of the optimizer, for sharpness_ratio (the checkpoint's own)", "ETA"),
    TEXT("apply", '\0', apply, "multiply the operator by the vectors of a file", "IN"),
    TEXT("output", '\0', output, "where the products go", "OUT"),
    TEXT("gradient", '\0', gradient, "where loss and gradient go", "OUT"),
    POPT_TABLEEND};

/* Reads an integer in [low, high]; *value stays where the option is absent. */
static ks_status integer(const char *name, const char *text, uint64_t low, uint64_t high,
                         uint64_t *value)
{
    if (text && !ks_parse_integer(text, low, high, value))
        return ks_fail(KS_USAGE,
                       "--%s: expected an integer from %" PRIu64 " to %" PRIu64 ", found '%s'",
                       name, low, high, text);
    return KS_OK;
}

static ks_status size(const char *name, const char *text, size_t high, size_t *value)
{
    uint64_t number = *value;

    KS_TRY(integer(name, text, 1, high, &number));
    *value = (size_t)number;
    return KS_OK;
}

/* A number from 0, -1 where the option is absent. */
static ks_status number_or_all(const char *name, const char *text, int *value)
{
    uint64_t number = 0;

    KS_TRY(integer(name, text, 0, INT32_MAX, &number));
    *value = text ? (int)number : -1;
    return KS_OK;
}

static ks_status real_number(const char *name, const char *text, const char *expected,
                             double *value)
{
    if (text && !ks_parse_number(text, -DBL_MAX, DBL_MAX, value))
        return ks_fail(KS_USAGE, "--%s: expected %s, found '%s'", name, expected, text);
    return KS_OK;
}

/* "512M": an integer and a suffix, powers of 1024. */
static ks_status bytes(const char *name, const char *text, size_t *value)
{
    static const char suffixes[] = "KMGT";
    const char *suffix;
    char *end;
    unsigned long long number, unit = 1;

    if (!text)
        return KS_OK;
    errno = 0;
    number = strtoull(text, &end, 10);
    suffix = *end ? strchr(suffixes, *end) : NULL;
    if (suffix) {
        unit = 1ULL << 10 * (suffix - suffixes + 1);
        end++;
    }
    if (strspn(text, "0123456789") == 0 || *end || errno || number == 0 || number > SIZE_MAX / unit)
        return ks_fail(KS_USAGE, "--%s: expected bytes, e.g. 800M or 2G, found '%s'", name, text);
    *value = (size_t)(number * unit);
    return KS_OK;
}

/* The second choice: true; the first, or no option: false. */
static ks_status choice(const char *name, const char *text, const char *first, const char *second,
                        bool *is_second)
{
    *is_second = text && strcmp(text, second) == 0;
    if (!text || *is_second || strcmp(text, first) == 0)
        return KS_OK;
    return ks_fail(KS_USAGE, "--%s: expected %s or %s, found '%s'", name, first, second, text);
}

static ks_status find_operator(const char *name, const struct ks_operator_kind **kind)
{
    char list[256] = "";
    size_t used = 0;

    *kind = name ? ks_operator_kind_find(name) : ks_operator_kinds;
    if (*kind)
        return KS_OK;
    for (const struct ks_operator_kind *k = ks_operator_kinds; k->name && used < sizeof list; k++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "",
                                 k->name);
    return ks_fail(KS_USAGE, "--operator: expected one of %s; found '%s'", list, name);
}

static ks_status read_rewards(struct ks_options *a)
{
    bool raw;

    KS_TRY(choice("rewards", rewards, "normalized", "raw", &raw));
    a->rewards = raw                  ? KS_REWARDS_RAW
                 : compat && !rewards ? KS_REWARDS_RAW_IF_THERE
                                      : KS_REWARDS_NORMALIZED;
    return KS_OK;
}

/* The published code has one way to compute; what contradicts it is refused. */
static ks_status read_compat(struct ks_options *a)
{
    if (!compat)
        return KS_OK;
    if (strcmp(compat, "xqc") != 0)
        return ks_fail(KS_USAGE, "--compat: expected xqc, found '%s'", compat);
    if (!a->single)
        return ks_fail(KS_USAGE, "--compat xqc: expected --precision f32, found f64");
    if (a->gradient_probe)
        return ks_fail(KS_USAGE, "--compat xqc: expected --start random, found gradient");
    if (a->probes != 1)
        return ks_fail(KS_USAGE, "--compat xqc: expected --probes 1, found '%s'", probes);
    if (a->rewards == KS_REWARDS_NORMALIZED)
        return ks_fail(KS_USAGE, "--compat xqc: expected --rewards raw, found normalized");
    a->compat = true;
    return KS_OK;
}

/* One of the given options that is about Lanczos steps; NULL: there is none. */
static const char *about_steps(void)
{
    return order             ? "--order"
           : probes          ? "--probes"
           : seed            ? "--seed"
           : keep_basis      ? "--keep-basis"
           : start           ? "--start"
           : no_certificates ? "--no-certificates"
                             : NULL;
}

/* Vectors are written in place of a spectrum, so options of spectra are refused; a gradient alone
 * is that of the whole loss, so options of products are. */
static ks_status read_vectors(const struct ks_options *a)
{
    const char *found = a->exact    ? "--exact"
                        : a->layers ? "--layers"
                        : a->folder ? "--out"
                        : a->name   ? "--name"
                        : a->json   ? "--json"
                        : a->csv    ? "--csv"
                                    : about_steps();
    const char *part = critic          ? "critic"
                       : layer         ? "layer"
                       : operator_name ? "operator"
                       : a->compat     ? "compat"
                                       : NULL;

    if (!a->apply && !a->gradient)
        return KS_OK;
    if (found)
        return ks_fail(KS_USAGE, "--apply and --gradient: expected no %s: they write no spectrum",
                       found);
    if (!a->apply && part)
        return ks_fail(KS_USAGE, "--gradient: expected no --%s, which is about products", part);
    return KS_OK;
}

/* Each layer has its block, and there are no files. */
static ks_status read_layers(const struct ks_options *a)
{
    const char *found = layer               ? "--layer"
                        : a->exact          ? "--exact"
                        : a->compat         ? "--compat"
                        : a->keep_basis     ? "--keep-basis"
                        : a->gradient_probe ? "--start gradient"
                        : a->folder         ? "--out"
                        : a->name           ? "--name"
                                            : NULL;

    if (a->layers && found)
        return ks_fail(KS_USAGE, "--layers: expected no %s", found);
    return KS_OK;
}

const char ks_options_name_characters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

static ks_status check_name(void)
{
    size_t length = analysis_name ? strspn(analysis_name, ks_options_name_characters) : 0;

    if (analysis_name && (length == 0 || length > KS_OPTIONS_NAME || analysis_name[length]))
        return ks_fail(KS_USAGE, "--name: expected 1 to %d letters, digits, - and _, found '%s'",
                       KS_OPTIONS_NAME, analysis_name);
    return KS_OK;
}

static ks_status read_files(struct ks_options *a)
{
    a->folder = folder;
    a->name = analysis_name;
    a->apply = apply;
    a->output = output;
    a->gradient = gradient;
    KS_TRY(check_name());
    if (!a->apply != !a->output)
        return ks_fail(KS_USAGE,
                       "--apply IN and --output OUT: expected both or neither, found --%s",
                       a->apply ? "apply" : "output");
    if (a->exact && about_steps())
        return ks_fail(KS_USAGE, "%s: expected without --exact: it takes no Lanczos steps",
                       about_steps());
    if (a->json && a->csv)
        return ks_fail(KS_USAGE, "--json and --csv: expected at most one of them");
    KS_TRY(read_layers(a));
    return read_vectors(a);
}

ks_status ks_options_read(struct ks_options *a)
{
    bool f64;

    *a = (struct ks_options){.json = json,
                             .csv = csv,
                             .exact = exact,
                             .layers = layers,
                             .keep_basis = keep_basis,
                             .certificates = !no_certificates,
                             .learning_rate = NAN,
                             .order = 90,
                             .probes = 1,
                             .scale = 1};
    KS_TRY(find_operator(operator_name, &a->kind));
    KS_TRY(choice("batchnorm", batchnorm, "train", "eval", &a->evaluation));
    KS_TRY(choice("precision", precision, "f32", "f64", &f64));
    a->single = precision ? !f64 : compat || !a->kind->wide;
    KS_TRY(number_or_all("critic", critic, &a->critic));
    KS_TRY(number_or_all("layer", layer, &a->layer));
    KS_TRY(size("order", order, 10000, &a->order));
    KS_TRY(size("probes", probes, 10000, &a->probes));
    KS_TRY(integer("seed", seed, 0, INT64_MAX, &a->seed));
    KS_TRY(size("batches", batches, 1000000, &a->batches));
    KS_TRY(real_number("weight-decay", weight_decay, "a number from 0", &a->weight_decay));
    if (a->weight_decay < 0)
        return ks_fail(KS_USAGE, "--weight-decay: expected a number from 0, found '%s'",
                       weight_decay);
    KS_TRY(real_number("scale", scale, "a number other than 0", &a->scale));
    if (a->scale == 0)
        return ks_fail(KS_USAGE, "--scale: expected a number other than 0, found '%s'", scale);
    KS_TRY(bytes("memory", memory, &a->memory));
    KS_TRY(choice("start", start, "random", "gradient", &a->gradient_probe));
    KS_TRY(real_number("learning-rate", learning_rate, "a number above 0", &a->learning_rate));
    if (a->learning_rate <= 0)
        return ks_fail(KS_USAGE, "--learning-rate: expected a number above 0, found '%s'",
                       learning_rate);
    KS_TRY(read_rewards(a));
    KS_TRY(read_compat(a));
    return read_files(a);
}
