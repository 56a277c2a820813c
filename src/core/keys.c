#include "core/keys.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/line.h"
#include "core/number.h"

static const char *const yes[] = {"1", "yes", "true", "on", NULL};
static const char *const no[] = {"0", "no", "false", "off", NULL};

const struct ks_key *ks_key_find(const struct ks_key *keys, const char *name)
{
    for (; keys->name; keys++)
        if (strcmp(keys->name, name) == 0)
            return keys;
    return NULL;
}

/* --- the members of a struct --- */

static void *member(const struct ks_key *key, const void *values)
{
    return (char *)values + key->offset;
}

static bool is_double(const struct ks_key *key)
{
    return key->automatic || key->type == KS_KEY_NUMBER;
}

/* Enumerations are kept like an int. */
static void put_integer(const struct ks_key *key, void *values, uint64_t integer)
{
    void *to = member(key, values);

    if (key->size == sizeof(bool))
        *(bool *)to = integer != 0;
    else if (key->size == sizeof(int))
        *(int *)to = (int)integer;
    else
        *(size_t *)to = (size_t)integer;
}

static int64_t get_integer(const struct ks_key *key, const void *values)
{
    const void *from = member(key, values);

    return key->size == sizeof(bool)  ? *(const bool *)from
           : key->size == sizeof(int) ? *(const int *)from
                                      : (int64_t) * (const size_t *)from;
}

/* --- reading --- */

static bool read_integer(const struct ks_key *key, const char *text, uint64_t *integer)
{
    const bool on = key->type != KS_KEY_OFF;
    size_t i;

    switch (key->type) {
    case KS_KEY_FLAG:
    case KS_KEY_OFF:
        *integer = yes[ks_word_index(text, SIZE_MAX, yes)] ? on : !on;
        return *integer == on || no[ks_word_index(text, SIZE_MAX, no)];
    case KS_KEY_CHOICE:
        i = ks_word_index(text, SIZE_MAX, key->choices);
        *integer = i + (uint64_t)key->low;
        return key->choices[i];
    default:
        return ks_parse_integer(text, (uint64_t)key->low,
                                key->high < KS_KEY_ANY ? (uint64_t)key->high : INT64_MAX, integer);
    }
}

static ks_status refuse(const struct ks_key *key, const char *dashes, const char *found)
{
    char expected[256], low[KS_VALUE_LENGTH], range[80];
    const char *what = key->type == KS_KEY_NUMBER ? "a number" : "an integer";

    snprintf(low, sizeof low, "%.15g", key->low);
    if (key->low == -DBL_MAX)
        *range = '\0';
    else if (key->low == DBL_TRUE_MIN)
        snprintf(range, sizeof range, " above 0");
    else if (key->high >= KS_KEY_ANY)
        snprintf(range, sizeof range, " from %s", low);
    else
        snprintf(range, sizeof range, " from %s to %.15g", low, key->high);
    if (key->type == KS_KEY_FLAG || key->type == KS_KEY_OFF)
        snprintf(expected, sizeof expected, "yes or no (1 or 0)");
    else if (key->type == KS_KEY_CHOICE)
        ks_words_print(key->choices, ", ", " or ", sizeof expected, expected);
    else
        snprintf(expected, sizeof expected, "%s%s", what, range);
    return ks_fail(KS_USAGE, "%s%s: expected %s%s, found '%s'", dashes, key->name, expected,
                   key->automatic ? " or auto" : "", found);
}

static ks_status add_text(const struct ks_key *key, const char *text, struct ks_key_texts *texts)
{
    if (texts->n == KS_KEY_MOST_TEXTS)
        return ks_fail(KS_USAGE, "--%s: expected at most %d of them", key->name, KS_KEY_MOST_TEXTS);
    texts->text[texts->n++] = text;
    return KS_OK;
}

ks_status ks_key_set(const struct ks_key *key, const char *dashes, const char *text, void *values)
{
    uint64_t integer = 0;
    double number = NAN;
    bool is_read;

    if (key->type == KS_KEY_OTHER)
        return key->read(key, text, values);
    if (key->type == KS_KEY_TEXTS)
        return add_text(key, text, member(key, values));
    if (key->type == KS_KEY_TEXT) {
        *(const char **)member(key, values) = text;
        return KS_OK;
    }
    if (key->automatic && strcmp(text, "auto") == 0) {
        is_read = true;
    } else if (key->type == KS_KEY_NUMBER) {
        is_read = ks_parse_number(text, key->low, key->high, &number);
    } else {
        is_read = read_integer(key, text, &integer);
        number = (double)integer;
    }
    if (!is_read)
        return refuse(key, dashes, text);
    if (is_double(key))
        *(double *)member(key, values) = number;
    else
        put_integer(key, values, integer);
    return KS_OK;
}

void ks_keys_defaults(const struct ks_key *keys, void *values)
{
    for (; keys->name; keys++)
        if (keys->default_text && ks_key_set(keys, "", keys->default_text, values) != KS_OK)
            assert(!"a default that its own row refuses");
}

/* --- printing and comparing --- */

void ks_key_print(const struct ks_key *key, const void *values, char text[KS_VALUE_LENGTH])
{
    double number;

    if (key->type == KS_KEY_CHOICE) {
        const int64_t word = get_integer(key, values) - (int64_t)key->low;

        snprintf(text, KS_VALUE_LENGTH, "%s", word < 0 ? "" : key->choices[word]);
        return;
    }
    if (!is_double(key)) {
        snprintf(text, KS_VALUE_LENGTH, "%" PRId64, get_integer(key, values));
        return;
    }
    number = *(double *)member(key, values);
    if (key->automatic && isnan(number)) {
        snprintf(text, KS_VALUE_LENGTH, "auto");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) { /* the fewest that restore the value */
        snprintf(text, KS_VALUE_LENGTH, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
}

bool ks_key_number(const struct ks_key *key, const void *values, double *number)
{
    if (key->type == KS_KEY_CHOICE)
        return false;
    *number = is_double(key) ? *(double *)member(key, values) : (double)get_integer(key, values);
    return !isnan(*number);
}

bool ks_key_same(const struct ks_key *key, const void *a, const void *b)
{
    const char *first, *second;

    if (key->type != KS_KEY_TEXT)
        return memcmp(member(key, a), member(key, b), key->size) == 0;
    first = *(const char **)member(key, a);
    second = *(const char **)member(key, b);
    return first && second ? strcmp(first, second) == 0 : first == second;
}

/* --- which keys go together --- */

bool ks_keys_is_given(const struct ks_key *keys, uint64_t given, const char *name)
{
    const struct ks_key *key = ks_key_find(keys, name);

    assert(key);
    return (given & KS_KEY_BIT(keys, key)) != 0;
}

/* Whether an option, or "OPTION VALUE", is given. */
static bool is_found(const struct ks_key *keys, const void *values, uint64_t given,
                     const char *words)
{
    const char *wanted = strchr(words, ' ');
    char name[KS_VALUE_LENGTH], value[KS_VALUE_LENGTH];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(words, " "), words);
    if (!ks_keys_is_given(keys, given, name))
        return false;
    if (!wanted)
        return true;
    ks_key_print(ks_key_find(keys, name), values, value);
    return strcmp(value, wanted + 1) == 0;
}

ks_status ks_keys_check(const struct ks_key *keys, const struct ks_key_rule *rules,
                        const void *values, uint64_t given)
{
    for (const struct ks_key_rule *r = rules; r->option; r++) {
        if (!ks_keys_is_given(keys, given, r->option) ||
            (r->unless && ks_keys_is_given(keys, given, r->unless)))
            continue;
        if (r->needs && !ks_keys_is_given(keys, given, r->needs))
            return ks_fail(KS_USAGE, "%s", r->message);
        for (const char *const *e = r->excluded; *e; e++)
            if (is_found(keys, values, given, *e))
                return ks_fail(KS_USAGE, r->message, *e);
    }
    return KS_OK;
}
