/* From the words of a command line to checked options: every refusal names the option, what was
 * expected and what was found. */
#include "program/options_table.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/number.h"

/* An integer in [low, high]. This and the functions below leave *value unchanged if the option is
 * absent (`text` is NULL), unless they say otherwise. */
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

/* An integer from 0; *value is -1 if the option is absent. */
static ks_status number_or_all(const char *name, const char *text, int *value)
{
    uint64_t number = 0;

    KS_TRY(integer(name, text, 0, INT32_MAX, &number));
    *value = text ? (int)number : -1;
    return KS_OK;
}

/* --layer 2, 02 or 02_dense, the name of the layer's group in a checkpoint. */
static ks_status read_layer(const char *text, struct ks_options *o)
{
    const size_t digits = text ? strspn(text, "0123456789") : 0;
    char number[16];
    uint64_t value;

    o->layer = -1;
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

/* *is_second: whether the second of two words was given; false if the option is absent. */
static ks_status choice(const char *name, const char *text, const char *first, const char *second,
                        bool *is_second)
{
    *is_second = text && strcmp(text, second) == 0;
    if (!text || *is_second || strcmp(text, first) == 0)
        return KS_OK;
    return ks_fail(KS_USAGE, "--%s: expected %s or %s, found '%s'", name, first, second, text);
}

static ks_status read_batchnorm(const char *text, struct ks_options *o)
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

static ks_status read_rewards(const struct ks_options_given *given, struct ks_options *o)
{
    bool raw;

    KS_TRY(choice("rewards", given->rewards, "normalized", "raw", &raw));
    o->rewards = raw                                ? KS_REWARDS_RAW
                 : given->compat && !given->rewards ? KS_REWARDS_RAW_IF_PRESENT
                                                    : KS_REWARDS_NORMALIZED;
    return KS_OK;
}

/* --compat xqc fixes how everything is computed, so contradicting options are refused. */
static ks_status read_compat(const struct ks_options_given *given, struct ks_options *o)
{
    if (!given->compat)
        return KS_OK;
    if (strcmp(given->compat, "xqc") != 0)
        return ks_fail(KS_USAGE, "--compat: expected xqc, found '%s'", given->compat);
    if (!o->single)
        return ks_fail(KS_USAGE, "--compat xqc: expected --precision f32, found f64");
    if (o->gradient_probe)
        return ks_fail(KS_USAGE, "--compat xqc: expected --start random, found gradient");
    if (o->probes != 1)
        return ks_fail(KS_USAGE, "--compat xqc: expected --probes 1, found '%s'", given->probes);
    if (o->rewards == KS_REWARDS_NORMALIZED)
        return ks_fail(KS_USAGE, "--compat xqc: expected --rewards raw, found normalized");
    o->compat = true;
    return KS_OK;
}

/* The first of the given options that configure Lanczos; NULL if there is none. */
static const char *lanczos_option(const struct ks_options_given *given)
{
    return given->order             ? "--order"
           : given->probes          ? "--probes"
           : given->tolerance       ? "--tolerance"
           : given->seed            ? "--seed"
           : given->start           ? "--start"
           : given->no_certificates ? "--no-certificates"
                                    : NULL;
}

/* --apply and --gradient write vectors and no spectrum, so options of spectra are refused. The
 * gradient belongs to the full loss, so without --apply options of the operator are refused too. */
static ks_status check_vectors(const struct ks_options_given *given)
{
    const char *found = given->exact    ? "--exact"
                        : given->layers ? "--layers"
                        : given->folder ? "--out"
                        : given->name   ? "--name"
                        : given->json   ? "--json"
                        : given->csv    ? "--csv"
                                        : lanczos_option(given);
    const char *part = given->critic          ? "critic"
                       : given->layer         ? "layer"
                       : given->operator_name ? "operator"
                       : given->compat        ? "compat"
                                              : NULL;

    if (!given->apply && !given->gradient)
        return KS_OK;
    if (found)
        return ks_fail(KS_USAGE, "--apply and --gradient: expected no %s: they write no spectrum",
                       found);
    if (!given->apply && part)
        return ks_fail(KS_USAGE, "--gradient: expected no --%s: it concerns products only", part);
    return KS_OK;
}

/* With --eigenvectors, --tolerance is their relative residual. */
static ks_status read_eigenvectors(const struct ks_options_given *given, struct ks_options *o)
{
    KS_TRY(size("eigenvectors", given->eigenvectors, 10000, &o->eigenvectors));
    KS_TRY(
        real_number("tolerance", given->tolerance, "a number above 0 and below 1", &o->residual));
    if (!(o->residual > 0 && o->residual < 1))
        return ks_fail(KS_USAGE, "--tolerance: expected a number above 0 and below 1, found '%s'",
                       given->tolerance);
    if (!given->order)
        o->order = KS_OPTIONS_ORDER + KS_OPTIONS_STEPS * o->eigenvectors;
    if (o->order < o->eigenvectors)
        return ks_fail(KS_USAGE,
                       "--order: expected at least %zu, as many as --eigenvectors, found "
                       "'%s'",
                       o->eigenvectors, given->order);
    return KS_OK;
}

/* Bounds and intervals are what --tolerance waits for. */
static ks_status read_tolerance(const struct ks_options_given *given, struct ks_options *o)
{
    const char *found = given->compat ? "--compat" : given->layers ? "--layers" : NULL;

    if (given->eigenvectors)
        return read_eigenvectors(given, o);
    if (!given->tolerance)
        return KS_OK;
    if (found)
        return ks_fail(KS_USAGE, "--tolerance: expected no %s", found);
    if (!given->probes)
        o->probes = KS_OPTIONS_MOST_PROBES;
    return ks_tolerances_read(given->tolerance, &o->tolerances);
}

/* --layers analyzes every layer's block and writes no files. */
static ks_status check_layers(const struct ks_options_given *given, const struct ks_options *o)
{
    const char *found = given->layer        ? "--layer"
                        : given->exact      ? "--exact"
                        : given->compat     ? "--compat"
                        : o->gradient_probe ? "--start gradient"
                        : given->folder     ? "--out"
                        : given->name       ? "--name"
                                            : NULL;

    if (given->layers && found)
        return ks_fail(KS_USAGE, "--layers: expected no %s", found);
    return KS_OK;
}

/* --eigenvectors runs one start vector and writes vectors. */
static ks_status check_eigenvectors(const struct ks_options_given *given)
{
    const char *found = given->apply             ? "--apply"
                        : given->gradient        ? "--gradient"
                        : given->layers          ? "--layers"
                        : given->exact           ? "--exact"
                        : given->compat          ? "--compat"
                        : given->probes          ? "--probes"
                        : given->start           ? "--start"
                        : given->no_certificates ? "--no-certificates"
                        : given->folder          ? "--out"
                        : given->name            ? "--name"
                                                 : NULL;

    if (!given->eigenvectors)
        return KS_OK;
    if (found)
        return ks_fail(KS_USAGE, "--eigenvectors: expected no %s", found);
    if (!given->output)
        return ks_fail(KS_USAGE, "--eigenvectors: expected a file for them, --output OUT");
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

/* Options that exclude or require each other. */
static ks_status check_combination(const struct ks_options_given *given, const struct ks_options *o)
{
    KS_TRY(check_name(given->name));
    KS_TRY(check_eigenvectors(given));
    if (!given->eigenvectors && !given->apply != !given->output)
        return ks_fail(KS_USAGE,
                       "--apply IN and --output OUT: expected both or neither, found --%s",
                       given->apply ? "apply" : "output");
    if (given->exact && lanczos_option(given))
        return ks_fail(KS_USAGE, "%s: expected without --exact, which takes no Lanczos steps",
                       lanczos_option(given));
    if (given->json && given->csv)
        return ks_fail(KS_USAGE, "--json and --csv: expected at most one of them");
    KS_TRY(check_layers(given, o));
    return check_vectors(given);
}

static ks_status read_loss(const struct ks_options_given *given, struct ks_options *o)
{
    KS_TRY(size("batches", given->batches, 1000000, &o->batches));
    KS_TRY(real_number("weight-decay", given->weight_decay, "a number from 0", &o->weight_decay));
    if (o->weight_decay < 0)
        return ks_fail(KS_USAGE, "--weight-decay: expected a number from 0, found '%s'",
                       given->weight_decay);
    KS_TRY(real_number("scale", given->scale, "a number other than 0", &o->scale));
    if (o->scale == 0)
        return ks_fail(KS_USAGE, "--scale: expected a number other than 0, found '%s'",
                       given->scale);
    return KS_OK;
}

static ks_status read_learning_rate(const char *text, double *rate)
{
    KS_TRY(real_number("learning-rate", text, "a number above 0", rate));
    if (*rate <= 0)
        return ks_fail(KS_USAGE, "--learning-rate: expected a number above 0, found '%s'", text);
    return KS_OK;
}

ks_status ks_options_read(const struct ks_options_given *given, struct ks_options *o)
{
    bool f64;

    *o = (struct ks_options){.json = given->json,
                             .csv = given->csv,
                             .exact = given->exact,
                             .layers = given->layers,
                             .certificates = !given->no_certificates,
                             .learning_rate = NAN,
                             .order = KS_OPTIONS_ORDER,
                             .residual = KS_OPTIONS_RESIDUAL,
                             .probes = 1,
                             .scale = 1,
                             .folder = given->folder,
                             .name = given->name,
                             .apply = given->apply,
                             .output = given->output,
                             .gradient = given->gradient};
    KS_TRY(find_operator(given->operator_name, &o->kind));
    KS_TRY(read_batchnorm(given->batchnorm, o));
    KS_TRY(choice("precision", given->precision, "f32", "f64", &f64));
    o->single = given->precision ? !f64 : given->compat || !o->kind->wide;
    KS_TRY(number_or_all("critic", given->critic, &o->critic));
    KS_TRY(read_layer(given->layer, o));
    KS_TRY(size("order", given->order, 10000, &o->order));
    KS_TRY(size("probes", given->probes, 10000, &o->probes));
    KS_TRY(read_tolerance(given, o));
    KS_TRY(integer("seed", given->seed, 0, INT64_MAX, &o->seed));
    KS_TRY(read_loss(given, o));
    KS_TRY(bytes("memory", given->memory, &o->memory));
    KS_TRY(choice("start", given->start, "random", "gradient", &o->gradient_probe));
    KS_TRY(read_learning_rate(given->learning_rate, &o->learning_rate));
    KS_TRY(read_rewards(given, o));
    KS_TRY(read_compat(given, o));
    return check_combination(given, o);
}

size_t ks_first_minibatches(const struct ks_options *o, size_t most)
{
    enum { FEW = 8 }; /* their standard error is known to a quarter (its chi-square) */
    const struct ks_tolerances *t = &o->tolerances;

    /* A first look at FEW of them costs more than it may save if there are hardly twice as many. */
    for (size_t i = 0; i < t->n && o->certificates && most >= 2 * FEW; i++)
        if (ks_tolerance_end(&t->list[i]))
            return FEW;
    return most;
}
