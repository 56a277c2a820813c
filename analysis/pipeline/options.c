/* The table of the analyzer's options, and what several of them mean together. */
#include "pipeline/options.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/number.h"

/* --- values with a form of their own --- */

/* `values` of the following functions is a struct ks_analyze_options. */

static ks_status read_operator(const struct ks_key *key, const char *text, void *values)
{
    struct ks_analyze_options *o = values;
    const struct ks_operator_kind *kind = ks_operator_kind_find(text);
    char list[256] = "";
    size_t used = 0;

    if (kind) {
        o->spectrum.kind = kind;
        return KS_OK;
    }
    for (const struct ks_operator_kind *k = ks_operator_kinds; k->name && used < sizeof list; k++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "",
                                 k->name);
    return ks_fail(KS_USAGE, "--%s: expected one of %s; found '%s'", key->name, list, text);
}

/* --layer 2, 02 or 02_dense, the name of the layer's group in a checkpoint. */
static ks_status read_layer(const struct ks_key *key, const char *text, void *values)
{
    struct ks_analyze_options *o = values;
    const size_t digits = strspn(text, "0123456789");
    char number[16];
    uint64_t value;

    snprintf(number, sizeof number, "%.*s", (int)digits, text);
    if (digits == 0 || digits >= sizeof number || !ks_parse_integer(number, 0, INT32_MAX, &value) ||
        (text[digits] && (text[digits] != '_' || !text[digits + 1])))
        return ks_fail(KS_USAGE, "--%s: expected a number from 0, or 02_dense, found '%s'",
                       key->name, text);
    o->spectrum.layer = (int)value;
    o->spectrum.layer_kind = text[digits] ? text + digits + 1 : NULL;
    return KS_OK;
}

/* --array 00_dense/kernel,2/bias: what a critic has is checked when it is known. */
static ks_status read_arrays(const struct ks_key *key, const char *text, void *values)
{
    struct ks_spectrum_options *o = &((struct ks_analyze_options *)values)->spectrum;
    size_t length = strlen(text);

    if (length == 0 || length >= sizeof o->arrays)
        return ks_fail(KS_USAGE,
                       "--%s: expected arrays such as 00_dense/kernel,00_dense/bias, of less "
                       "than %zu letters, found '%.32s%s'",
                       key->name, sizeof o->arrays, text, length > 32 ? "..." : "");
    memset(o->arrays, 0, sizeof o->arrays);
    for (length = 0; *text; text++) /* in a study's file a space may follow the comma */
        if (*text != ' ')
            o->arrays[length++] = *text;
    return KS_OK;
}

/* Kept with 1 added, as 0 means all of them. */
static ks_status read_batch(const struct ks_key *key, const char *text, void *values)
{
    uint64_t batch = 0;

    if (!ks_parse_integer(text, 0, 999999, &batch))
        return ks_fail(KS_USAGE, "--%s: expected an integer from 0 to 999999, found '%s'",
                       key->name, text);
    ((struct ks_analyze_options *)values)->spectrum.batch = (size_t)batch + 1;
    return KS_OK;
}

/* "512M": an integer and a suffix, powers of 1024. */
static ks_status read_bytes(const struct ks_key *key, const char *text, void *values)
{
    static const char suffixes[] = "KMGT";
    const char *suffix;
    char *end;
    unsigned long long number, unit = 1;

    errno = 0;
    number = strtoull(text, &end, 10);
    suffix = *end ? strchr(suffixes, *end) : NULL;
    if (suffix) {
        unit = 1ULL << 10 * (suffix - suffixes + 1);
        end++;
    }
    if (strspn(text, "0123456789") == 0 || *end || errno || number == 0 || number > SIZE_MAX / unit)
        return ks_fail(KS_USAGE, "--%s: expected bytes, e.g. 800M or 2G, found '%s'", key->name,
                       text);
    ((struct ks_analyze_options *)values)->spectrum.memory = (size_t)(number * unit);
    return KS_OK;
}

static ks_status read_compat(const struct ks_key *key, const char *text, void *values)
{
    if (strcmp(text, "xqc") != 0)
        return ks_fail(KS_USAGE, "--%s: expected xqc, found '%s'", key->name, text);
    ((struct ks_analyze_options *)values)->spectrum.published = true;
    return KS_OK;
}

const char ks_options_name_characters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

static ks_status read_name(const struct ks_key *key, const char *text, void *values)
{
    const size_t length = strspn(text, ks_options_name_characters);

    if (length == 0 || length > KS_OPTIONS_NAME || text[length])
        return ks_fail(KS_USAGE, "--%s: expected 1 to %d letters, digits, - and _, found '%s'",
                       key->name, KS_OPTIONS_NAME, text);
    ((struct ks_analyze_options *)values)->name = text;
    return KS_OK;
}

/* --- the table --- */

static const char *const batchnorms[] = {"train", "loss", "eval", NULL};
static const char *const starts[] = {"random", "gradient", NULL};
static const char *const precisions[] = {"f64", "f32", NULL}; /* products_f32 */
static const char *const rewards[] = {"normalized", "raw", "raw-if-present", NULL};
static const char *const ends[] = {"largest", "smallest", NULL};

#define OF_OUTPUT(member) KS_KEY_AT(struct ks_analyze_options, member), KS_OPTION_OUTPUT
#define OF_METHOD(member) KS_KEY_AT(struct ks_analyze_options, member), KS_OPTION_METHOD
#define OF_SPECTRUM(member)                                                                        \
    KS_KEY_AT(struct ks_analyze_options, spectrum.member), KS_OPTION_SPECTRUM

/* ks_spectrum_options_print has those of a spectrum in this order, which files know. */
const struct ks_key ks_analyze_keys[] = {
    {"out", KS_ROW_TEXT(), NULL, OF_OUTPUT(folder), "DIR",
     "write the spectra to DIR instead of beside their checkpoints", .letter = 'o'},
    {"name", KS_ROW_OTHER(), NULL, OF_OUTPUT(name), "NAME",
     "name the spectra CHECKPOINT.NAME.spectrum.h5, for several analyses of a checkpoint",
     .read = read_name},
    {"json", KS_ROW_FLAG(), NULL, OF_OUTPUT(json), NULL,
     "print the statistics as JSON, one object per line"},
    {"csv", KS_ROW_FLAG(), NULL, OF_OUTPUT(csv), NULL,
     "print the statistics as CSV, one row per checkpoint"},
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): the member is the pointer itself */
    {"operator", KS_ROW_OTHER(), "hessian", OF_SPECTRUM(kind), "NAME",
     "hessian, ggn, residual, preconditioned, manifold, ntk, ntk-value, fisher",
     .read = read_operator},
    {"critic", KS_ROW_COUNT(0, INT32_MAX), NULL, OF_SPECTRUM(critic), "E",
     "the diagonal block of one critic (default: all)"},
    {"layer", KS_ROW_OTHER(), NULL, OF_SPECTRUM(layer), "NN",
     "the diagonal block of one layer, 2 or 02_dense (default: all)", .read = read_layer},
    {"array", KS_ROW_OTHER(), NULL, OF_SPECTRUM(arrays), "NN/NAME",
     "the diagonal block of single arrays, such as 02_dense/kernel,02_dense/bias (default: all)",
     .read = read_arrays},
    {"layers", KS_ROW_FLAG(), NULL, OF_OUTPUT(layers), NULL,
     "print a table (CSV, JSON) of the diagonal blocks of all layers; write no spectra"},
    {"batchnorm", KS_ROW_CHOICE(batchnorms), "train", OF_SPECTRUM(batchnorm), NULL,
     "batch (train) or running (eval) statistics; loss: batch statistics of the loss's rows alone"},
    {"order", KS_ROW_COUNT(1, 10000), KS_DIGITS(KS_DEFAULT_ORDER), OF_SPECTRUM(order), "M",
     "Lanczos steps"},
    {"probes", KS_ROW_COUNT(1, 10000), "1", OF_SPECTRUM(probes), "K", "random start vectors"},
    {"tolerance", KS_ROW_TEXT(), NULL, OF_METHOD(tolerance), "TOL",
     "stop when intervals are this tight: 0.05, or lambda_max=0.01,directions_1e2=1; --order, and "
     "--probes (" KS_DIGITS(KS_OPTIONS_MOST_PROBES) "), are limits then"},
    {"seed", KS_ROW_COUNT(0, KS_KEY_ANY), "0", OF_SPECTRUM(seed), "S", "seed of the start vectors"},
    {"start", KS_ROW_CHOICE(starts), "random", OF_SPECTRUM(gradient_probe), NULL,
     "gradient: one more probe, which starts at the loss's gradient"},
    {"complement", KS_ROW_FLAG(), NULL, OF_METHOD(spectrum.complement), NULL,
     "a second probe, in the complement of the first one's Krylov space, for tighter directions_*"},
    {"precision", KS_ROW_CHOICE(precisions), NULL, OF_SPECTRUM(products_f32), NULL,
     "precision of the products (default: f32; preconditioned: f64)"},
    {"products", KS_ROW_CHOICE(ks_products_names), "auto", OF_METHOD(spectrum.products), NULL,
     "float32 products by OpenBLAS (blas) or of bfloat16 parts (split3), as accurate; auto: split3 "
     "with AMX"},
    {"batches", KS_ROW_COUNT(1, 1000000), NULL, OF_SPECTRUM(batches), "N",
     "use the first N minibatches (default: all)"},
    {"batch", KS_ROW_OTHER(), NULL, OF_SPECTRUM(batch), "I", "use minibatch I alone, from 0",
     .read = read_batch},
    {"weight-decay", KS_ROW_NUMBER(0, DBL_MAX), "0", OF_SPECTRUM(weight_decay), "MU2",
     "add MU2/2 |theta|^2 to the loss"},
    {"scale", KS_ROW_NUMBER(-DBL_MAX, DBL_MAX), "1", OF_SPECTRUM(scale), "C",
     "multiply the operator by C"},
    {"memory", KS_ROW_OTHER(), NULL, OF_METHOD(spectrum.memory), "SIZE",
     "memory, e.g. 800M or 2G (default: half of the free memory)", .read = read_bytes},
    {"exact", KS_ROW_FLAG(), NULL, OF_SPECTRUM(exact), NULL,
     "all eigenvalues, from the dense operator (small critics)"},
    {"compat", KS_ROW_OTHER(), NULL, OF_SPECTRUM(published), "xqc",
     "xqc: the published code's Lanczos recurrence in f32, one probe, unweighted statistics, "
     "products divided by N once more, raw rewards",
     .read = read_compat},
    {"rewards", KS_ROW_CHOICE(rewards), "normalized", OF_SPECTRUM(rewards), "TARGETS",
     "targets from normalized or from raw rewards: normalized, raw; raw-if-present: raw where the "
     "checkpoint has them"},
    {"no-certificates", KS_ROW_OFF(), NULL, OF_SPECTRUM(certificates), NULL,
     "leave out the float64 products that certify the bounds, or with --compat xqc measure how far "
     "rounding moves kappa"},
    {"count-above", KS_ROW_NUMBER(DBL_TRUE_MIN, DBL_MAX), NULL, OF_SPECTRUM(count_above), "X",
     "also count the eigenvalues of an absolute value above X (directions_above)"},
    {"learning-rate", KS_ROW_NUMBER(DBL_TRUE_MIN, DBL_MAX), NULL, OF_SPECTRUM(learning_rate), "ETA",
     "the optimizer's learning rate, for sharpness_ratio and step_change (default: the "
     "checkpoint's)"},
    {"apply", KS_ROW_TEXT(), NULL, OF_OUTPUT(apply), "IN",
     "multiply the operator by the vectors in file IN"},
    {"eigenvectors", KS_ROW_COUNT(1, 10000), NULL, OF_OUTPUT(spectrum.eigenvectors), "K",
     "write the K eigenvectors of largest |eigenvalue| to --output, to a relative residual of "
     "--tolerance (" KS_DIGITS(KS_DEFAULT_RESIDUAL) "), and print a table of them"},
    {"which", KS_ROW_CHOICE(ends), "largest", OF_OUTPUT(spectrum.smallest), NULL,
     "eigenvectors of largest |eigenvalue|, or of smallest, that is most negative, eigenvalue"},
    {"output", KS_ROW_TEXT(), NULL, OF_OUTPUT(output), "OUT",
     "write the products of --apply, or the eigenvectors, to OUT"},
    {"gradient", KS_ROW_TEXT(), NULL, OF_OUTPUT(gradient), "OUT", "write loss and gradient to OUT"},
    KS_KEYS_END,
};

#define LANCZOS "order", "probes", "tolerance", "seed", "start", "complement", "no-certificates"
#define SPECTRUM                                                                                   \
    "exact", "layers", "count-above", "learning-rate", "out", "name", "json", "csv", LANCZOS

const struct ks_key_rule ks_analyze_rules[] = {
    {"tolerance", "--tolerance: expected no --%s", {"compat", "layers"}, .unless = "eigenvectors"},
    {"eigenvectors", "--eigenvectors: expected no --%s",
     .excluded = {"apply", "gradient", "layers", "exact", "compat", "probes", "start", "complement",
                  "no-certificates", "count-above", "learning-rate", "out", "name"}},
    {"eigenvectors", "--eigenvectors: expected a file for them, --output OUT", .needs = "output"},
    {"which", "--which: expected with --eigenvectors K", .needs = "eigenvectors"},
    {"apply", "--apply IN and --output OUT: expected both or neither, found --apply",
     .needs = "output", .unless = "eigenvectors"},
    {"output", "--apply IN and --output OUT: expected both or neither, found --output",
     .needs = "apply", .unless = "eigenvectors"},
    {"exact", "--%s: expected without --exact, which takes no Lanczos steps",
     .excluded = {LANCZOS}},
    {"complement", "--complement: expected no --%s: it is the complement of a single probe",
     .excluded = {"probes"}},
    {"json", "--json and --csv: expected at most one of them", .excluded = {"csv"}},
    {"layers", "--layers: expected no --%s",
     .excluded = {"layer", "array", "exact", "compat", "start gradient", "complement",
                  "count-above", "learning-rate", "out", "name"}},
    {"compat", "--compat xqc: expected no --%s: the published code has no intervals",
     .excluded = {"count-above", "complement"}},
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
    {.option = NULL},
};

/* --- all options together --- */

static bool is_given(const struct ks_analyze_options *o, const char *name)
{
    return ks_keys_is_given(ks_analyze_keys, o->given, name);
}

struct ks_analyze_options ks_options_start(void)
{
    struct ks_analyze_options o = {.spectrum = {.certificates = true,
                                                .learning_rate = NAN,
                                                .residual = KS_DEFAULT_RESIDUAL,
                                                .critic = -1,
                                                .layer = -1}};

    ks_keys_defaults(ks_analyze_keys, &o);
    return o;
}

struct ks_spectrum_options ks_spectrum_options_defaults(void)
{
    struct ks_analyze_options o = ks_options_start();

    ks_options_finish(&o); /* cannot fail: nothing is given that would go against a rule */
    return o.spectrum;
}

/* Parts are of float32. */
static ks_status choose_products(struct ks_analyze_options *options)
{
    struct ks_spectrum_options *o = &options->spectrum;

    if (!is_given(options, "precision"))
        o->products_f32 = o->published || !o->kind->wide;
    if (o->products == KS_PRODUCTS_SPLIT3 && !o->products_f32)
        return ks_fail(KS_USAGE, "--products split3: expected --precision f32, found f64");
    if (o->products == KS_PRODUCTS_SPLIT3 && o->published)
        return ks_fail(KS_USAGE, "--compat xqc: expected --products blas, found split3");
    o->products = o->products_f32 && !o->published ? ks_products_choose(o->products)
                                                   : KS_PRODUCTS_BLAS;
    return KS_OK;
}

/* With --eigenvectors, --tolerance is their relative residual. */
static ks_status set_residual(struct ks_analyze_options *options)
{
    struct ks_spectrum_options *o = &options->spectrum;
    const char *text = options->tolerance;

    if (text && (!ks_parse_number(text, DBL_TRUE_MIN, 1, &o->residual) || o->residual == 1))
        return ks_fail(KS_USAGE, "--tolerance: expected a number above 0 and below 1, found '%s'",
                       text);
    if (!is_given(options, "order"))
        o->order = KS_DEFAULT_ORDER + KS_OPTIONS_STEPS * o->eigenvectors;
    return o->order >= o->eigenvectors
               ? KS_OK
               : ks_fail(KS_USAGE,
                         "--order: expected at least %zu, as many as --eigenvectors, found %zu",
                         o->eigenvectors, o->order);
}

static ks_status set_tolerances(struct ks_analyze_options *options)
{
    struct ks_spectrum_options *o = &options->spectrum;

    if (!options->tolerance)
        return KS_OK;
    if (!is_given(options, "probes") && !o->complement)
        o->probes = KS_OPTIONS_MOST_PROBES;
    KS_TRY(ks_tolerances_read(options->tolerance, &o->tolerances));
    for (size_t i = 0; i < o->tolerances.n && o->count_above == 0; i++)
        if (o->tolerances.list[i].statistic == KS_STAT_DIRECTIONS_ABOVE)
            return ks_fail(KS_USAGE, "--tolerance: directions_above: expected a size, "
                                     "--count-above X, found none");
    return KS_OK;
}

/* --compat xqc fixes how everything is computed, so contradicting options are refused. */
static ks_status check_compat(const struct ks_spectrum_options *o)
{
    if (!o->products_f32)
        return ks_fail(KS_USAGE, "--compat xqc: expected --precision f32, found f64");
    if (o->gradient_probe)
        return ks_fail(KS_USAGE, "--compat xqc: expected --start random, found gradient");
    if (o->probes != 1)
        return ks_fail(KS_USAGE, "--compat xqc: expected --probes 1, found %zu", o->probes);
    return o->rewards != KS_REWARDS_NORMALIZED
               ? KS_OK
               : ks_fail(KS_USAGE, "--compat xqc: expected --rewards raw, found normalized");
}

ks_status ks_options_finish(struct ks_analyze_options *options)
{
    struct ks_spectrum_options *o = &options->spectrum;

    KS_TRY(ks_keys_check(ks_analyze_keys, ks_analyze_rules, options, options->given));
    KS_TRY(choose_products(options));
    KS_TRY(o->eigenvectors > 0 ? set_residual(options) : set_tolerances(options));
    if (o->scale == 0)
        return ks_fail(KS_USAGE, "--scale: expected a number other than 0, found 0");
    if (o->published && !is_given(options, "rewards"))
        o->rewards = KS_REWARDS_RAW_IF_PRESENT;
    return o->published ? check_compat(o) : KS_OK;
}

bool ks_spectrum_options_same(const struct ks_spectrum_options *a,
                              const struct ks_spectrum_options *b)
{
    const struct ks_tolerance *of_a = a->tolerances.list, *of_b = b->tolerances.list;
    const struct ks_analyze_options first = {.spectrum = *a}, second = {.spectrum = *b};

    for (const struct ks_key *key = ks_analyze_keys; key->name; key++)
        if (key->role == KS_OPTION_SPECTRUM && !ks_key_same(key, &first, &second))
            return false;
    if (a->tolerances.n != b->tolerances.n || a->complement != b->complement)
        return false;
    for (size_t i = 0; i < a->tolerances.n; i++)
        if (of_a[i].statistic != of_b[i].statistic || of_a[i].most != of_b[i].most)
            return false;
    return true;
}

void ks_spectrum_options_print(const struct ks_spectrum_options *o,
                               char text[KS_SPECTRUM_OPTIONS_TEXT])
{
    const struct ks_analyze_options all = {.spectrum = *o};
    int used = 0;

    for (const struct ks_key *key = ks_analyze_keys; key->name; key++) {
        const char *name = key->name + (key->type == KS_KEY_OFF ? strlen("no-") : 0);
        const char *word = key->read == read_operator ? o->kind->name
                           : key->read == read_arrays ? o->arrays
                                                      : NULL;
        char value[KS_VALUE_LENGTH];
        double number;

        if (key->role != KS_OPTION_SPECTRUM)
            continue;
        if (key->type == KS_KEY_NUMBER) {
            ks_key_number(key, &all, &number);
            snprintf(value, sizeof value, "%.17g", number);
        } else if (!word) {
            ks_key_print(key, &all, value);
        }
        used += snprintf(text + used, (size_t)(KS_SPECTRUM_OPTIONS_TEXT - used), "%s=%s ", name,
                         word ? word : value);
    }
    used += snprintf(text + used, (size_t)(KS_SPECTRUM_OPTIONS_TEXT - used), "%stolerance=",
                     o->complement ? "complement=yes " : ""); /* older files do not know it */
    for (size_t i = 0; i < o->tolerances.n; i++)
        used += snprintf(text + used, (size_t)(KS_SPECTRUM_OPTIONS_TEXT - used), "%s%s:%.17g",
                         i > 0 ? "," : "", ks_tolerance_name(&o->tolerances.list[i]),
                         o->tolerances.list[i].most);
}
