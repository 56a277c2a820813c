/* From the words of a command line to checked options: every refusal names the option, what was
 * expected and what was found. */
#include "pipeline/options.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/number.h"

#define IN_WORDS(number)   #number
#define NUMBER_TEXT(macro) IN_WORDS(macro)

/* --- the values --- */

/* The functions below leave *value unchanged if the option is absent (`text` is NULL), unless they
 * say otherwise. */

/* --layer 2, 02 or 02_dense, the name of the layer's group in a checkpoint. */
static ks_status read_layer(const char *text, struct ks_spectrum_options *o)
{
    const size_t digits = text ? strspn(text, "0123456789") : 0;
    char number[16];
    uint64_t value;

    if (!text)
        return KS_OK;
    snprintf(number, sizeof number, "%.*s", (int)digits, text);
    if (digits == 0 || digits >= sizeof number || !ks_parse_integer(number, 0, INT32_MAX, &value) ||
        (text[digits] && (text[digits] != '_' || !text[digits + 1])))
        return ks_fail(KS_USAGE, "--layer: expected a number from 0, or 02_dense, found '%s'",
                       text);
    o->layer = (int)value;
    o->layer_kind = text[digits] ? text + digits + 1 : NULL;
    return KS_OK;
}

/* --array 00_dense/kernel,2/bias: what a critic has is checked when it is known. */
static ks_status read_arrays(const char *text, struct ks_spectrum_options *o)
{
    size_t length = text ? strlen(text) : 0;

    if (text && (length == 0 || length >= sizeof o->arrays))
        return ks_fail(KS_USAGE,
                       "--array: expected arrays such as 00_dense/kernel,00_dense/bias, of less "
                       "than %zu letters, found '%.32s%s'",
                       sizeof o->arrays, text, length > 32 ? "..." : "");
    length = 0;
    for (; text && *text; text++) /* in a study's file a space may follow the comma */
        if (*text != ' ')
            o->arrays[length++] = *text;
    o->arrays[length] = '\0';
    return KS_OK;
}

static ks_status real_number(const char *name, const char *text, const char *expected, double least,
                             double *value)
{
    if (text && !ks_parse_number(text, least, DBL_MAX, value))
        return ks_fail(KS_USAGE, "--%s: expected %s, found '%s'", name, expected, text);
    return KS_OK;
}

ks_status ks_option_count_above(const char *text, double *size)
{
    return real_number("count-above", text, "a number above 0", DBL_TRUE_MIN, size);
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

/* *is_second: whether the second of two words was given; false if the option is absent. */
static ks_status choice(const char *name, const char *text, const char *first, const char *second,
                        bool *is_second)
{
    *is_second = text && strcmp(text, second) == 0;
    if (!text || *is_second || strcmp(text, first) == 0)
        return KS_OK;
    return ks_fail(KS_USAGE, "--%s: expected %s or %s, found '%s'", name, first, second, text);
}

/* --- the table --- */

static const struct row {
    const char *name, *help, *argument; /* without an argument it is a flag */
    char letter;
} rows[KS_WORDS] = {
    {"out", "write the spectra to DIR instead of beside their checkpoints", "DIR", 'o'},
    {"name", "name the spectra CHECKPOINT.NAME.spectrum.h5, for several analyses of a checkpoint",
     "NAME", 0},
    {"json", "print the statistics as JSON, one object per line", NULL, 0},
    {"csv", "print the statistics as CSV, one row per checkpoint", NULL, 0},
    {"operator", "hessian (the default), ggn, residual, preconditioned, manifold", "NAME", 0},
    {"critic", "the diagonal block of one critic (all)", "E", 0},
    {"layer", "the diagonal block of one layer, 2 or 02_dense (all)", "NN", 0},
    {"array", "the diagonal block of single arrays, such as 02_dense/kernel,02_dense/bias (all)",
     "NN/NAME", 0},
    {"layers", "print a table (CSV, JSON) of the diagonal blocks of all layers; write no spectra",
     NULL, 0},
    {"batchnorm",
     "batch (train, the default) or running (eval) statistics; loss: batch statistics of the "
     "loss's "
     "rows alone",
     "train|loss|eval", 0},
    {"order", "Lanczos steps (" NUMBER_TEXT(KS_DEFAULT_ORDER) ")", "M", 0},
    {"probes", "random start vectors (1)", "K", 0},
    {"tolerance",
     "stop when intervals are this tight: 0.05, or lambda_max=0.01,directions_1e2=1; --order, and "
     "--probes (" NUMBER_TEXT(KS_OPTIONS_MOST_PROBES) "), are limits then",
     "TOL", 0},
    {"seed", "seed of the start vectors (0)", "S", 0},
    {"precision", "precision of the products (f32; preconditioned: f64)", "f32|f64", 0},
    {"products",
     "float32 products by OpenBLAS (blas) or of bfloat16 parts (split3), as accurate; auto (the "
     "default): split3 with AMX",
     "auto|blas|split3", 0},
    {"batches", "use the first N minibatches (all)", "N", 0},
    {"batch", "use minibatch I alone, from 0", "I", 0},
    {"weight-decay", "add MU2/2 |theta|^2 to the loss (0)", "MU2", 0},
    {"scale", "multiply the loss by C (1)", "C", 0},
    {"memory", "memory per process, e.g. 800M or 2G (half of the free memory)", "SIZE", 0},
    {"exact", "all eigenvalues, from the dense operator (small critics)", NULL, 0},
    {"compat",
     "xqc: the published code's Lanczos recurrence in f32, one probe, unweighted statistics, "
     "products divided by N once more, raw rewards",
     "xqc", 0},
    {"rewards", "targets from normalized (the default) or from raw rewards", "normalized|raw", 0},
    {"start", "random (the default); gradient: one more probe, which starts at the loss's gradient",
     "random|gradient", 0},
    {"no-certificates",
     "leave out the float64 products that certify the bounds, or with --compat xqc measure how far "
     "rounding moves kappa",
     NULL, 0},
    {"count-above", "also count the eigenvalues of an absolute value above X (directions_above)",
     "X", 0},
    {"learning-rate", "the optimizer's learning rate, for sharpness_ratio (the checkpoint's)",
     "ETA", 0},
    {"apply", "multiply the operator by the vectors in file IN", "IN", 0},
    {"eigenvectors",
     "write the K eigenvectors of largest |eigenvalue| to --output, to a relative residual of "
     "--tolerance (" NUMBER_TEXT(KS_DEFAULT_RESIDUAL) "), and print a table of them",
     "K", 0},
    {"which",
     "eigenvectors of largest |eigenvalue| (the default), or of smallest, that is most negative, "
     "eigenvalue",
     "largest|smallest", 0},
    {"output", "write the products of --apply, or the eigenvectors, to OUT", "OUT", 0},
    {"gradient", "write loss and gradient to OUT", "OUT", 0},
};

void ks_words_start(struct ks_words *w)
{
    *w = (struct ks_words){.text = {NULL}};
    for (size_t i = 0; i < KS_WORDS; i++) {
        const struct row *r = &rows[i];

        w->table[i] = (struct poptOption){.longName = r->name,
                                          .shortName = r->letter,
                                          .argInfo = r->argument ? POPT_ARG_STRING : POPT_ARG_NONE,
                                          .arg = r->argument ? (void *)&w->text[i] : &w->flag[i],
                                          .descrip = r->help,
                                          .argDescrip = r->argument};
    }
}

void ks_words_clear(struct ks_words *w)
{
    for (size_t i = 0; i < KS_WORDS; i++)
        free(w->text[i]);
    ks_words_start(w);
}

static size_t find_row(const char *name)
{
    size_t i = 0;

    while (strcmp(rows[i].name, name) != 0)
        i++;
    return i;
}

/* The value of an option, NULL if it is absent. */
static const char *text_of(const struct ks_words *w, const char *name)
{
    return w->text[find_row(name)];
}

static bool is_given(const struct ks_words *w, const char *name)
{
    const size_t i = find_row(name);

    return w->text[i] || w->flag[i];
}

/* --- options that exclude or require each other --- */

#define LANCZOS  "order", "probes", "tolerance", "seed", "start", "no-certificates"
#define SPECTRUM "exact", "layers", "count-above", "out", "name", "json", "csv", LANCZOS

static const struct rule {
    const char *option, *message; /* %s: the excluded option that is found                     */
    const char *excluded[14];     /* by `option`; "start gradient" has a value                 */
    const char *needs, *unless;   /* what `option` needs; what suspends the rule (NULL: none)  */
} rules[] = {
    {"tolerance", "--tolerance: expected no --%s", {"compat", "layers"}, .unless = "eigenvectors"},
    {"eigenvectors", "--eigenvectors: expected no --%s",
     .excluded = {"apply", "gradient", "layers", "exact", "compat", "probes", "start",
                  "no-certificates", "count-above", "out", "name"}},
    {"eigenvectors", "--eigenvectors: expected a file for them, --output OUT", .needs = "output"},
    {"which", "--which: expected with --eigenvectors K", .needs = "eigenvectors"},
    {"apply", "--apply IN and --output OUT: expected both or neither, found --apply",
     .needs = "output", .unless = "eigenvectors"},
    {"output", "--apply IN and --output OUT: expected both or neither, found --output",
     .needs = "apply", .unless = "eigenvectors"},
    {"exact", "--%s: expected without --exact, which takes no Lanczos steps",
     .excluded = {LANCZOS}},
    {"json", "--json and --csv: expected at most one of them", .excluded = {"csv"}},
    {"layers", "--layers: expected no --%s",
     .excluded = {"layer", "array", "exact", "compat", "start gradient", "count-above", "out",
                  "name"}},
    {"compat", "--compat xqc: expected no --%s: the published code has no intervals",
     .excluded = {"count-above"}},
    {"array", "--array: expected no --%s", .excluded = {"layer"}},
    /* These write vectors and no spectrum. The gradient belongs to the full loss. */
    {"batch", "--batch: expected no --%s: it is one minibatch", .excluded = {"batches"}},
    {"apply", "--apply and --gradient: expected no --%s: they write no spectrum",
     .excluded = {SPECTRUM}},
    {"gradient", "--apply and --gradient: expected no --%s: they write no spectrum",
     .excluded = {SPECTRUM}},
    {"gradient",
     "--gradient: expected no --%s: it concerns products only",
     {"critic", "layer", "array", "operator", "compat"},
     .unless = "apply"},
};

/* Whether an option, or "OPTION VALUE", is given. */
static bool is_found(const struct ks_words *w, const char *words)
{
    const char *value = strchr(words, ' ');
    char name[32];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(words, " "), words);
    return is_given(w, name) && (!value || strcmp(text_of(w, name), value + 1) == 0);
}

static ks_status check_rules(const struct ks_words *w)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct rule *r = &rules[i];

        if (!is_given(w, r->option) || (r->unless && is_given(w, r->unless)))
            continue;
        if (r->needs && !is_given(w, r->needs))
            return ks_fail(KS_USAGE, "%s", r->message);
        for (const char *const *e = r->excluded; *e; e++)
            if (is_found(w, *e))
                return ks_fail(KS_USAGE, r->message, *e);
    }
    return KS_OK;
}

/* --- reading --- */

static ks_status read_batchnorm(const char *text, struct ks_spectrum_options *o)
{
    o->evaluation = text && strcmp(text, "eval") == 0;
    o->loss_rows_only = text && strcmp(text, "loss") == 0;
    if (!text || o->evaluation || o->loss_rows_only || strcmp(text, "train") == 0)
        return KS_OK;
    return ks_fail(KS_USAGE, "--batchnorm: expected train, loss or eval, found '%s'", text);
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

/* Parts are of float32. */
static ks_status read_products(const struct ks_words *w, struct ks_spectrum_options *o)
{
    const char *text = text_of(w, "products");
    const bool compat = is_given(w, "compat");
    enum ks_products wish = KS_PRODUCTS_BLAS;

    while (text && ks_products_names[wish] && strcmp(text, ks_products_names[wish]) != 0)
        wish++;
    if (!text)
        wish = KS_PRODUCTS_AUTO;
    if (wish > KS_PRODUCTS_AUTO)
        return ks_fail(KS_USAGE, "--products: expected auto, blas or split3, found '%s'", text);
    if (wish == KS_PRODUCTS_SPLIT3 && !o->products_f32)
        return ks_fail(KS_USAGE, "--products split3: expected --precision f32, found f64");
    if (wish == KS_PRODUCTS_SPLIT3 && compat)
        return ks_fail(KS_USAGE, "--compat xqc: expected --products blas, found split3");
    o->products = o->products_f32 && !compat ? ks_products_choose(wish) : KS_PRODUCTS_BLAS;
    return KS_OK;
}

static ks_status read_operator(const struct ks_words *w, struct ks_spectrum_options *o)
{
    const char *precision = text_of(w, "precision"), *critic = text_of(w, "critic");
    uint64_t number = 0;
    bool f64;

    KS_TRY(find_operator(text_of(w, "operator"), &o->kind));
    KS_TRY(read_batchnorm(text_of(w, "batchnorm"), o));
    KS_TRY(choice("precision", precision, "f32", "f64", &f64));
    o->products_f32 = precision ? !f64 : is_given(w, "compat") || !o->kind->wide;
    KS_TRY(read_products(w, o));
    KS_TRY(ks_option_integer("critic", critic, 0, INT32_MAX, &number));
    o->critic = critic ? (int)number : -1;
    KS_TRY(read_arrays(text_of(w, "array"), o));
    return read_layer(text_of(w, "layer"), o);
}

/* With --eigenvectors, --tolerance is their relative residual. */
static ks_status read_eigenvectors(const struct ks_words *w, struct ks_spectrum_options *o)
{
    const char *tolerance = text_of(w, "tolerance"), *order = text_of(w, "order");

    KS_TRY(choice("which", text_of(w, "which"), "largest", "smallest", &o->smallest));
    KS_TRY(ks_option_size("eigenvectors", text_of(w, "eigenvectors"), 1, 10000, &o->eigenvectors));
    KS_TRY(real_number("tolerance", tolerance, "a number above 0 and below 1", 0, &o->residual));
    if (!(o->residual > 0 && o->residual < 1))
        return ks_fail(KS_USAGE, "--tolerance: expected a number above 0 and below 1, found '%s'",
                       tolerance);
    if (!order)
        o->order = KS_DEFAULT_ORDER + KS_OPTIONS_STEPS * o->eigenvectors;
    if (o->order < o->eigenvectors)
        return ks_fail(KS_USAGE,
                       "--order: expected at least %zu, as many as --eigenvectors, found "
                       "'%s'",
                       o->eigenvectors, order);
    return KS_OK;
}

static ks_status read_tolerances(const char *text, struct ks_spectrum_options *o)
{
    KS_TRY(ks_tolerances_read(text, &o->tolerances));
    for (size_t i = 0; i < o->tolerances.n && o->count_above == 0; i++)
        if (o->tolerances.list[i].statistic == KS_STAT_DIRECTIONS_ABOVE)
            return ks_fail(KS_USAGE, "--tolerance: directions_above: expected a size, "
                                     "--count-above X, found none");
    return KS_OK;
}

static ks_status read_steps(const struct ks_words *w, struct ks_spectrum_options *o)
{
    const char *tolerance = text_of(w, "tolerance");

    KS_TRY(ks_option_count_above(text_of(w, "count-above"), &o->count_above));
    KS_TRY(ks_option_size("order", text_of(w, "order"), 1, 10000, &o->order));
    KS_TRY(ks_option_size("probes", text_of(w, "probes"), 1, 10000, &o->probes));
    KS_TRY(ks_option_integer("seed", text_of(w, "seed"), 0, INT64_MAX, &o->seed));
    KS_TRY(choice("start", text_of(w, "start"), "random", "gradient", &o->gradient_probe));
    if (is_given(w, "eigenvectors"))
        return read_eigenvectors(w, o);
    if (tolerance && !is_given(w, "probes"))
        o->probes = KS_OPTIONS_MOST_PROBES;
    return tolerance ? read_tolerances(tolerance, o) : KS_OK;
}

static ks_status read_loss(const struct ks_words *w, struct ks_spectrum_options *o)
{
    const char *decay = text_of(w, "weight-decay"), *scale = text_of(w, "scale");
    const char *rate = text_of(w, "learning-rate");

    KS_TRY(ks_option_size("batches", text_of(w, "batches"), 1, 1000000, &o->batches));
    KS_TRY(ks_option_size("batch", text_of(w, "batch"), 0, 999999, &o->batch));
    o->batch += is_given(w, "batch");
    KS_TRY(real_number("weight-decay", decay, "a number from 0", 0, &o->weight_decay));
    KS_TRY(real_number("scale", scale, "a number other than 0", -DBL_MAX, &o->scale));
    if (o->scale == 0)
        return ks_fail(KS_USAGE, "--scale: expected a number other than 0, found '%s'", scale);
    return real_number("learning-rate", rate, "a number above 0", DBL_TRUE_MIN, &o->learning_rate);
}

static ks_status read_rewards(const struct ks_words *w, struct ks_spectrum_options *o)
{
    const char *rewards = text_of(w, "rewards");
    bool raw;

    KS_TRY(choice("rewards", rewards, "normalized", "raw", &raw));
    o->rewards = raw                                 ? KS_REWARDS_RAW
                 : is_given(w, "compat") && !rewards ? KS_REWARDS_RAW_IF_PRESENT
                                                     : KS_REWARDS_NORMALIZED;
    return KS_OK;
}

/* --compat xqc fixes how everything is computed, so contradicting options are refused. */
static ks_status read_compat(const struct ks_words *w, struct ks_spectrum_options *o)
{
    const char *compat = text_of(w, "compat");

    if (!compat)
        return KS_OK;
    if (strcmp(compat, "xqc") != 0)
        return ks_fail(KS_USAGE, "--compat: expected xqc, found '%s'", compat);
    if (!o->products_f32)
        return ks_fail(KS_USAGE, "--compat xqc: expected --precision f32, found f64");
    if (o->gradient_probe)
        return ks_fail(KS_USAGE, "--compat xqc: expected --start random, found gradient");
    if (o->probes != 1)
        return ks_fail(KS_USAGE, "--compat xqc: expected --probes 1, found '%s'",
                       text_of(w, "probes"));
    if (o->rewards == KS_REWARDS_NORMALIZED)
        return ks_fail(KS_USAGE, "--compat xqc: expected --rewards raw, found normalized");
    o->published = true;
    return KS_OK;
}

const char ks_options_name_characters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

static ks_status check_name(const char *name)
{
    size_t length = name ? strspn(name, ks_options_name_characters) : 0;

    if (name && (length == 0 || length > KS_OPTIONS_NAME || name[length]))
        return ks_fail(KS_USAGE, "--name: expected 1 to %d letters, digits, - and _, found '%s'",
                       KS_OPTIONS_NAME, name);
    return KS_OK;
}

ks_status ks_options_read(const struct ks_words *w, struct ks_analyze_options *options)
{
    struct ks_spectrum_options *o = &options->spectrum;

    *options = (struct ks_analyze_options){.spectrum = ks_spectrum_options_defaults(),
                                           .layers = is_given(w, "layers"),
                                           .json = is_given(w, "json"),
                                           .csv = is_given(w, "csv"),
                                           .folder = text_of(w, "out"),
                                           .name = text_of(w, "name"),
                                           .apply = text_of(w, "apply"),
                                           .output = text_of(w, "output"),
                                           .gradient = text_of(w, "gradient")};
    o->exact = is_given(w, "exact");
    o->certificates = !is_given(w, "no-certificates");
    KS_TRY(check_name(options->name));
    KS_TRY(read_operator(w, o));
    KS_TRY(check_rules(w));
    KS_TRY(read_steps(w, o));
    KS_TRY(read_loss(w, o));
    KS_TRY(bytes("memory", text_of(w, "memory"), &o->memory));
    KS_TRY(read_rewards(w, o));
    return read_compat(w, o);
}
