#include "core/line.h"

#include <assert.h>
#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/number.h"

ks_status ks_line_fail(const struct ks_line *line, const char *format, ...)
{
    char message[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return ks_fail(KS_FORMAT, "%s:%zu: %s", line->source, line->number, message);
}

/* The length of NAME in a word "NAME=...", 0 for a word that is not an option. */
static size_t option_name_length(const char *word)
{
    const char *equals = strchr(word, '=');

    return equals ? (size_t)(equals - word) : 0;
}

static ks_status refuse_repeated(const struct ks_line *line)
{
    for (size_t i = 0; i < line->n_words; i++) {
        size_t length = option_name_length(line->word[i]);

        for (size_t j = 0; j < i && length > 0; j++)
            if (strncmp(line->word[i], line->word[j], length + 1) == 0)
                return ks_line_fail(line, "option '%.*s' is given twice", (int)length,
                                    line->word[i]);
    }
    return KS_OK;
}

size_t ks_word_index(const char *word, size_t n, const char *const *words)
{
    size_t i = 0;

    while (i < n && words[i] && strcmp(words[i], word) != 0)
        i++;
    return i;
}

void ks_words_print(const char *const *words, const char *comma, const char *last, size_t room,
                    char *text)
{
    size_t used = 0;

    *text = '\0';
    for (size_t i = 0; words[i] && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%s",
                                 i == 0         ? ""
                                 : words[i + 1] ? comma
                                                : last,
                                 words[i]);
}

ks_status ks_line_split(struct ks_line *line, const char *source, size_t number, const char *text)
{
    const size_t length = strcspn(text, "#\r\n");
    const char *end = text + strcspn(text, "\r\n");
    char *c;

    memset(line, 0, sizeof *line);
    line->source = source;
    line->number = number;
    end += strspn(end, "\r");
    if (*end != '\0' && *end != '\n')
        return ks_line_fail(line, "expected one line, found a carriage return within it");
    if (length >= sizeof line->text)
        return ks_line_fail(line, "the line has %zu characters, expected at most %zu", length,
                            sizeof line->text - 1);
    memcpy(line->text, text, length);
    for (c = line->text; *c;) {
        if (isspace((unsigned char)*c)) {
            *c++ = '\0';
            continue;
        }
        if (line->n_words == KS_LINE_WORDS)
            return ks_line_fail(line, "the line has more than %d words", KS_LINE_WORDS);
        line->word[line->n_words++] = c;
        while (*c && !isspace((unsigned char)*c))
            c++;
    }
    if (line->n_words > 1 && strcmp(line->word[line->n_words - 1], "{") == 0) {
        line->opens = true;
        line->n_words--;
    }
    if (line->n_words > 0)
        line->taken[0] = true;
    return refuse_repeated(line);
}

/* The number must be finite. */
static ks_status parse_number(const struct ks_line *line, const char *what, const char *word,
                              double *value)
{
    return ks_parse_number(word, -DBL_MAX, DBL_MAX, value)
               ? KS_OK
               : ks_line_fail(line, "%s: expected a number, found '%s'", what, word);
}

static ks_status check_range(const struct ks_line *line, const char *what, double number,
                             double low, double high)
{
    if (number < low || number > high)
        return ks_line_fail(line, "%s: expected a number from %g to %g, found %g", what, low, high,
                            number);
    return KS_OK;
}

static ks_status take_argument(struct ks_line *line, const char *what, const char **word)
{
    for (size_t i = 1; i < line->n_words; i++)
        if (!line->taken[i] && option_name_length(line->word[i]) == 0) {
            line->taken[i] = true;
            *word = line->word[i];
            return KS_OK;
        }
    return ks_line_fail(line, "'%s' needs %s", line->word[0], what);
}

static ks_status take_number(struct ks_line *line, const char *what, double *value)
{
    const char *word = NULL;

    KS_TRY(take_argument(line, what, &word));
    assert(word);
    return parse_number(line, what, word, value);
}

ks_status ks_line_argument_number(struct ks_line *line, const char *what, double low, double high,
                                  double *value)
{
    KS_TRY(take_number(line, what, value));
    return check_range(line, what, *value, low, high);
}

ks_status ks_line_argument_size(struct ks_line *line, const char *what, size_t low, size_t high,
                                size_t *value)
{
    double number = 0;

    KS_TRY(take_number(line, what, &number));
    if (number < (double)low || number > (double)high || number != floor(number))
        return ks_line_fail(line, "%s: expected an integer from %zu to %zu, found %g", what, low,
                            high, number);
    *value = (size_t)number;
    return KS_OK;
}

/* Reads digits; *value is unchanged if there are none. Returns what follows. */
static const char *read_digits(const char *c, size_t *value)
{
    char *end = (char *)c;

    if (isdigit((unsigned char)*c))
        *value = (size_t)strtoull(c, &end, 10);
    return end;
}

ks_status ks_line_argument_slice(struct ks_line *line, const char *name, size_t columns,
                                 size_t *from, size_t *to)
{
    const char *word = NULL, *c;
    size_t length = strlen(name);

    KS_TRY(take_argument(line, "a slice of columns", &word));
    assert(word);
    *from = 0, *to = columns;
    c = strncmp(word, name, length) == 0 && word[length] == '[' ? word + length + 1 : "";
    c = read_digits(c, from);
    c = *c == ':' ? read_digits(c + 1, to) : "";
    if (strcmp(c, "]") != 0)
        return ks_line_fail(line, "'%s': expected %s[FROM:TO], found '%s'", line->word[0], name,
                            word);
    if (*from >= *to || *to > columns)
        return ks_line_fail(line, "'%s': expected columns FROM < TO <= %zu, found '%s'",
                            line->word[0], columns, word);
    return KS_OK;
}

/* The index of the word "name=...", 0 if absent (word 0 is the keyword). */
static size_t find_option(const struct ks_line *line, const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 1; i < line->n_words; i++)
        if (option_name_length(line->word[i]) == length &&
            strncmp(line->word[i], name, length) == 0)
            return i;
    return 0;
}

/* Finds the option and remembers its name, which is a string constant. */
static size_t ask_option(struct ks_line *line, const char *name)
{
    if (line->n_options < KS_LINE_OPTIONS)
        line->option[line->n_options++] = name;
    return find_option(line, name);
}

bool ks_line_has_option(const struct ks_line *line, const char *name)
{
    return find_option(line, name) != 0;
}

ks_status ks_line_option_number(struct ks_line *line, const char *name, double low, double high,
                                double *value)
{
    size_t i = ask_option(line, name);

    if (i == 0)
        return KS_OK;
    line->taken[i] = true;
    KS_TRY(parse_number(line, name, line->word[i] + strlen(name) + 1, value));
    return check_range(line, name, *value, low, high);
}

ks_status ks_line_option_choice(struct ks_line *line, const char *name, const char *const *choices,
                                size_t *value)
{
    size_t i = ask_option(line, name), k;
    const char *found;
    char list[128];

    if (i == 0)
        return KS_OK;
    line->taken[i] = true;
    found = line->word[i] + strlen(name) + 1;
    k = ks_word_index(found, SIZE_MAX, choices);
    if (choices[k]) {
        *value = k;
        return KS_OK;
    }
    ks_words_print(choices, "|", "|", sizeof list, list);
    return ks_line_fail(line, "%s: expected %s, found '%s'", name, list, found);
}

ks_status ks_line_option_flag(struct ks_line *line, const char *name, bool *value)
{
    static const char *const no_yes[] = {"no", "yes", NULL};
    size_t given = *value;

    KS_TRY(ks_line_option_choice(line, name, no_yes, &given));
    *value = given;
    return KS_OK;
}

/* --- "Did you mean ...": the known name that a word was probably meant to be --- */

enum { LONGEST = 24, SHORT = 6, MISSING = 1, SWAPPED = 1, ADDED = 2, REPLACED = 2 };

/* Lower case, without '_' and '-', from behind the last '.'; false if it is empty or too long. */
static bool normalize(const char *word, char out[LONGEST])
{
    const char *dot = strrchr(word, '.');
    size_t n = 0;

    for (const char *c = dot ? dot + 1 : word; *c; c++) {
        if (*c == '_' || *c == '-')
            continue;
        if (n + 1 == LONGEST)
            return false;
        out[n++] = (char)tolower((unsigned char)*c);
    }
    out[n] = '\0';
    return n > 0;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* The cheapest way to make `word` from `name` by missing, added, replaced and swapped letters
 * (Damerau, Communications of the ACM 7, 1964). */
static int cost(const char *word, const char *name)
{
    int at[LONGEST][LONGEST];
    const int n = (int)strlen(word), m = (int)strlen(name);

    for (int i = 0; i <= n; i++)
        for (int j = 0; j <= m; j++) {
            int best = i == 0 ? MISSING * j : ADDED * i;

            if (i > 0 && j > 0) {
                best = at[i - 1][j - 1] + (word[i - 1] == name[j - 1] ? 0 : REPLACED);
                best = least(best, at[i - 1][j] + ADDED);
                best = least(best, at[i][j - 1] + MISSING);
            }
            if (i > 1 && j > 1 && word[i - 1] == name[j - 2] && word[i - 2] == name[j - 1])
                best = least(best, at[i - 2][j - 2] + SWAPPED);
            at[i][j] = best;
        }
    return at[n][m];
}

/* The one of `names` that `word` means, or NULL: in another spelling (upper and lower case,
 * '_' and '-', a prefix such as "nn."), by one of the aliases whose name, without what follows it,
 * is among them, or with a few wrong letters. Added and replaced letters count more than missing
 * and swapped ones, so that "selu" is not taken for "relu". */
static const char *nearest_name(const char *word, const char *const *names,
                                const struct ks_near_alias *aliases)
{
    char found[LONGEST], known[LONGEST];
    const char *nearest = NULL, *name = NULL;
    int allowed;

    if (!normalize(word, found))
        return NULL;
    allowed = strlen(found) < SHORT ? 1 : 2;
    for (; aliases && aliases->word && !name; aliases++)
        if (strcmp(aliases->word, found) == 0)
            name = aliases->name;
    for (size_t i = 0; names[i]; i++) {
        if (!normalize(names[i], known))
            continue;
        if (name && strncmp(names[i], name, strlen(names[i])) == 0)
            return name;
        if (strcmp(known, found) == 0)
            return names[i];
        if (cost(found, known) <= allowed) {
            allowed = cost(found, known) - 1;
            nearest = names[i];
        }
    }
    return nearest;
}

/* ": did you mean 'eps='?" (nothing if no option is near) and " (known: eps, affine)". */
static ks_status unknown_option(const struct ks_line *line, const char *word)
{
    static const struct ks_near_alias aliases[] = {
        {"epsilon", "eps"}, {"usebias", "bias"}, {"vmin", "min"}, {"vmax", "max"}, {NULL, NULL}};
    char name[KS_LINE_LENGTH], list[128];
    const char *near;

    snprintf(name, sizeof name, "%.*s", (int)option_name_length(word), word);
    near = nearest_name(name, line->option, aliases);
    ks_words_print(line->option, ", ", ", ", sizeof list, list);
    return ks_line_fail(line, "unknown option '%s' for '%s'%s%s%s (known: %s)", word, line->word[0],
                        near ? ": did you mean '" : "", near ? near : "", near ? "='?" : "",
                        *list ? list : "none");
}

ks_status ks_line_end(const struct ks_line *line)
{
    for (size_t i = 1; i < line->n_words; i++)
        if (!line->taken[i])
            return option_name_length(line->word[i]) > 0
                       ? unknown_option(line, line->word[i])
                       : ks_line_fail(line, "unknown argument '%s' for '%s'", line->word[i],
                                      line->word[0]);
    return KS_OK;
}

ks_status ks_line_unknown(const struct ks_line *line, const char *what, const char *found,
                          const char *const *known, const struct ks_near_alias *aliases)
{
    const char *near = nearest_name(found, known, aliases);
    char list[512];

    ks_words_print(known, ", ", ", ", sizeof list, list);
    return ks_line_fail(line, "unknown %s '%s'%s%s%s (known: %s)", what, found,
                        near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "", list);
}
