/* The tables of keys (core/keys.h): each type's values, refusals and text, and rules between keys.
 * The settings of a training are tested by test_settings.c, the analyzer's options by
 * test_analyze_refusals.c. */
#include "test.h"

#include <float.h>

#include "core/keys.h"

enum colour { NONE, RED, BLUE };

struct values {
    size_t order, skip;
    uint64_t seed;
    int critic;
    double scale, rate;
    bool csv, certificates, small;
    enum colour colour;
    const char *out;
    struct ks_key_texts set;
    size_t length; /* of a text */
};

static ks_status read_length(const struct ks_key *key, const char *text, void *values)
{
    if (!*text)
        return ks_fail(KS_USAGE, "--%s: expected letters, found none", key->name);
    ((struct values *)values)->length = strlen(text);
    return KS_OK;
}

static const char *const sizes[] = {"large", "small", NULL};
static const char *const colours[] = {"red", "blue", NULL};

#define AT(member) KS_KEY_AT(struct values, member)

static const struct ks_key keys[] = {
    {"order", KS_ROW_COUNT(1, 10000), "90", AT(order)},
    {"skip", KS_ROW_FLAG(), "1", AT(skip)},
    {"seed", KS_ROW_COUNT(0, KS_KEY_ANY), "0", AT(seed)},
    {"critic", KS_ROW_COUNT(0, INT32_MAX), NULL, AT(critic)},
    {"scale", KS_ROW_NUMBER(-DBL_MAX, DBL_MAX), "1", AT(scale)},
    {"rate", KS_ROW_NUMBER(DBL_TRUE_MIN, DBL_MAX), "auto", AT(rate), .automatic = true},
    {"csv", KS_ROW_FLAG(), NULL, AT(csv)},
    {"no-certificates", KS_ROW_OFF(), NULL, AT(certificates)},
    {"size", KS_ROW_CHOICE(sizes), "large", AT(small)},
    {"colour", KS_ROW_CHOICE_FROM(RED, colours), NULL, AT(colour)},
    {"out", KS_ROW_TEXT(), NULL, AT(out)},
    {"set", KS_ROW_TEXTS(), NULL, AT(set)},
    {"word", KS_ROW_OTHER(), NULL, AT(length), .read = read_length},
    KS_KEYS_END};

static struct values start(void)
{
    struct values v = {.critic = -1, .certificates = true};

    ks_keys_defaults(keys, &v);
    return v;
}

static ks_status set(const char *name, const char *text, struct values *v)
{
    return ks_key_set(ks_key_find(keys, name), "--", text, v);
}

/* Each value is kept, printed and restored from its text. */
TEST(test_values)
{
    static const char *const cases[][3] = {
        {"order", "1e3", "1000"},
        {"skip", "off", "0"},
        {"seed", "9223372036854775807", "9223372036854775807"},
        {"critic", "1", "1"},
        {"scale", "-0.1", "-0.1"},
        {"rate", "0.30000000000000004", "0.30000000000000004"},
        {"csv", "yes", "1"},
        {"no-certificates", "yes", "0"},
        {"size", "small", "small"},
        {"colour", "blue", "blue"},
        {"word", "letters", "7"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct ks_key *key = ks_key_find(keys, cases[i][0]);
        struct values v = start();
        const struct values before = v;
        char text[KS_VALUE_LENGTH];

        assert_ok(set(key->name, cases[i][1], &v));
        ks_key_print(key, &v, text);
        assert_string_equal(text, cases[i][2]);
        for (const struct ks_key *k = keys; k->name; k++)
            if (k->type != KS_KEY_TEXTS)
                assert_int_equal(ks_key_same(k, &v, &before), k != key);
    }
}

TEST(test_defaults)
{
    struct values v = start(), other = start();
    char text[KS_VALUE_LENGTH];
    double number;

    ks_key_print(ks_key_find(keys, "colour"), &v, text);
    assert_string_equal(text, "");
    assert_true(v.order == 90 && v.skip == 1 && v.critic == -1 && v.scale == 1 && isnan(v.rate));
    assert_true(!v.csv && v.certificates && !v.small && v.colour == NONE && !v.out);
    assert_false(ks_key_number(ks_key_find(keys, "rate"), &v, &number));
    assert_true(ks_key_number(ks_key_find(keys, "critic"), &v, &number) && number == -1);
    assert_null(ks_key_find(keys, "ord"));
    assert_ok(set("out", "a folder", &v));
    assert_false(ks_key_same(ks_key_find(keys, "out"), &v, &other));
    other.out = (char[]){"a folder"};
    assert_true(ks_key_same(ks_key_find(keys, "out"), &v, &other));
}

/* A refused value changes nothing. */
TEST(test_refused)
{
    static const char *const cases[][3] = {
        {"order", "0", "--order: expected an integer from 1 to 10000, found '0'"},
        {"order", "", "--order: expected an integer from 1 to 10000, found ''"},
        {"seed", "9223372036854775808", "--seed: expected an integer from 0, found '92"},
        {"scale", "inf", "--scale: expected a number, found 'inf'"},
        {"rate", "0", "--rate: expected a number above 0 or auto, found '0'"},
        {"csv", "perhaps", "--csv: expected yes or no (1 or 0), found 'perhaps'"},
        {"size", "tiny", "--size: expected large or small, found 'tiny'"},
        {"word", "", "--word: expected letters"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct values v = start();
        const struct values before = v;

        assert_fails(set(cases[i][0], cases[i][1], &v), KS_USAGE, cases[i][2]);
        assert_memory_equal(&v, &before, sizeof v);
    }
}

TEST(test_repeated)
{
    struct values v = start();

    for (size_t i = 0; i < KS_KEY_MOST_TEXTS; i++)
        assert_ok(set("set", i == 1 ? "b" : "a", &v));
    assert_string_equal(v.set.text[1], "b");
    assert_fails(set("set", "c", &v), KS_USAGE, "--set: expected at most 256 of them");
}

TEST(test_rules)
{
    static const struct ks_key_rule rules[] = {
        {"csv", "--csv: expected no --%s", .excluded = {"out", "size small"}, .unless = "word"},
        {"scale", "--scale: expected --order", .needs = "order"},
        {.option = NULL}};
    static const struct {
        const char *given[3], *size, *message; /* NULL: accepted */
    } cases[] = {
        {{"csv"}, "large", NULL},
        {{"csv", "out"}, "large", "--csv: expected no --out"},
        {{"csv", "size"}, "large", NULL},
        {{"csv", "size"}, "small", "--csv: expected no --size small"},
        {{"csv", "size", "word"}, "small", NULL},
        {{"scale"}, "large", "--scale: expected --order"},
        {{"scale", "order"}, "large", NULL},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct values v = start();
        uint64_t given = 0;

        assert_ok(set("size", cases[i].size, &v));
        for (size_t k = 0; k < 3 && cases[i].given[k]; k++)
            given |= KS_KEY_BIT(keys, ks_key_find(keys, cases[i].given[k]));
        if (cases[i].message)
            assert_fails(ks_keys_check(keys, rules, &v, given), KS_USAGE, cases[i].message);
        else
            assert_ok(ks_keys_check(keys, rules, &v, given));
    }
}
