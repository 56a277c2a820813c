/* Reads the file of a task of the user's own. libinih reads the INI format. */
#include "env/own.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ini.h>

#include "core/memory.h"
#include "core/number.h"
#include "core/path.h"
#include "io/sha256.h"
#include "io/text.h"

static const char ENDING[] = ".task", MODEL[] = ".xml";

struct parser {
    struct ks_env_own *own;
    unsigned seen; /* bit i: the i-th key of [task] has been read */
    ks_status status;
};

static ks_status copy_name(const char *what, const char *from, size_t length, char to[KS_OWN_NAME])
{
    if (length == 0 || length >= KS_OWN_NAME)
        return ks_fail(KS_FORMAT, "%s: expected a name of 1 to %d characters, found '%.*s'", what,
                       KS_OWN_NAME - 1, (int)length, from);
    memcpy(to, from, length);
    to[length] = '\0';
    return KS_OK;
}

/* --- quantities: "qpos", "qvel[0]", "sensor:height", "act[2:]", "ctrl[:3]" --- */

static ks_status refuse_range(const char *word)
{
    return ks_fail(KS_FORMAT, "expected a range as in [2], [1:3], [1:] or [:3], found '%s'", word);
}

/* Reads digits, if there are any. */
static bool read_index(const char **at, size_t *index)
{
    size_t length = strspn(*at, "0123456789");
    char digits[8];
    uint64_t value;

    if (length == 0)
        return true;
    if (length >= sizeof digits)
        return false;
    memcpy(digits, *at, length);
    digits[length] = '\0';
    if (!ks_parse_integer(digits, 0, 9999999, &value))
        return false;
    *index = (size_t)value;
    *at += length;
    return true;
}

/* `at` is behind the quantity's name: "" or "[a:b]". */
static ks_status read_range(const char *word, const char *at, struct ks_own_quantity *q)
{
    size_t none = SIZE_MAX;
    bool single;

    q->first = 0, q->end = SIZE_MAX;
    if (!*at)
        return KS_OK;
    at++;
    single = !strchr(at, ':');
    if (!read_index(&at, single ? &none : &q->first))
        return refuse_range(word);
    if (single && none != SIZE_MAX)
        q->first = none, q->end = none + 1;
    else if (single || *at++ != ':' || !read_index(&at, &q->end))
        return refuse_range(word);
    return strcmp(at, "]") == 0 && q->first < q->end ? KS_OK : refuse_range(word);
}

static ks_status read_quantity(const char *word, struct ks_own_quantity *q)
{
    static const char *const kinds[] = {[KS_OWN_QPOS] = "qpos",
                                        [KS_OWN_QVEL] = "qvel",
                                        [KS_OWN_ACT] = "act",
                                        [KS_OWN_CTRL] = "ctrl"};
    static const char sensor[] = "sensor:";
    size_t length = strcspn(word, "[");

    for (size_t i = 0; i < KS_OWN_SENSOR; i++)
        if (strlen(kinds[i]) == length && strncmp(word, kinds[i], length) == 0) {
            q->kind = i;
            return read_range(word, word + length, q);
        }
    if (strncmp(word, sensor, strlen(sensor)) != 0)
        return ks_fail(KS_FORMAT,
                       "expected qpos, qvel, act, ctrl or sensor:NAME, perhaps with a range, found "
                       "'%s'",
                       word);
    q->kind = KS_OWN_SENSOR;
    KS_TRY(copy_name("sensor", word + strlen(sensor), length - strlen(sensor), q->sensor));
    return read_range(word, word + length, q);
}

/* --- bounds and tolerances: "lower=1 upper=inf margin=0.5 value=0.1 sigmoid=linear" --- */

static ks_status read_number(const char *key, const char *text, double low, double *value)
{
    if (strcmp(text, "inf") == 0 || strcmp(text, "-inf") == 0)
        *value = *text == '-' ? -INFINITY : INFINITY;
    else if (!ks_parse_number(text, -1e300, 1e300, value))
        return ks_fail(KS_FORMAT, "%s: expected a number, found '%s'", key, text);
    return *value >= low ? KS_OK
                         : ks_fail(KS_FORMAT, "%s: expected at least %g, found %s", key, low, text);
}

static ks_status read_sigmoid(const char *text, enum ks_sigmoid *sigmoid)
{
    static const char *const words[] = {
        [KS_GAUSSIAN] = "gaussian", [KS_LINEAR] = "linear", [KS_QUADRATIC] = "quadratic"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text, words[i]) == 0) {
            *sigmoid = i;
            return KS_OK;
        }
    return ks_fail(KS_FORMAT, "sigmoid: expected gaussian, linear or quadratic, found '%s'", text);
}

static ks_status read_option(char *word, bool shaped, struct ks_own_term *t)
{
    char *text = strchr(word, '=');

    if (!text)
        return ks_fail(KS_FORMAT, "expected KEY=NUMBER, found '%s'", word);
    *text++ = '\0';
    if (strcmp(word, "lower") == 0)
        return read_number(word, text, -INFINITY, &t->bounds.lower);
    if (strcmp(word, "upper") == 0)
        return read_number(word, text, -INFINITY, &t->bounds.upper);
    if (shaped && strcmp(word, "margin") == 0)
        return read_number(word, text, 0, &t->margin);
    if (shaped && strcmp(word, "value") == 0)
        return read_number(word, text, 0, &t->value);
    if (shaped && strcmp(word, "sigmoid") == 0)
        return read_sigmoid(text, &t->sigmoid);
    return ks_fail(KS_FORMAT, "unknown option '%s' (known: lower, upper%s)", word,
                   shaped ? ", margin, value, sigmoid" : "");
}

/* Without any bound, a reward is largest at 0. A single bound leaves the other side open. */
static ks_status check_bounds(struct ks_own_term *t, bool shaped)
{
    bool none = isnan(t->bounds.lower) && isnan(t->bounds.upper);

    if (none && !shaped)
        return ks_fail(KS_FORMAT, "expected lower=NUMBER or upper=NUMBER");
    if (isnan(t->bounds.lower))
        t->bounds.lower = none ? 0 : -INFINITY;
    if (isnan(t->bounds.upper))
        t->bounds.upper = none ? 0 : INFINITY;
    if (t->bounds.lower > t->bounds.upper)
        return ks_fail(KS_FORMAT, "expected lower <= upper, found %g and %g", t->bounds.lower,
                       t->bounds.upper);
    if (!(t->value < 1) || (t->value == 0 && t->sigmoid == KS_GAUSSIAN) || isinf(t->margin))
        return ks_fail(KS_FORMAT,
                       "expected a finite margin, and a value below 1 (gaussian: above 0), found "
                       "%g and %g",
                       t->margin, t->value);
    return KS_OK;
}

/* A line of one of the three lists. */
static ks_status add_term(struct ks_own_terms *terms, const char *name, const char *value,
                          bool bounded, bool shaped)
{
    struct ks_own_term *t = &terms->list[terms->n];
    char *copy = NULL, *save = NULL, *word;
    ks_status status;

    for (size_t i = 0; i < terms->n; i++)
        if (strcmp(terms->list[i].name, name) == 0)
            return ks_fail(KS_FORMAT, "given twice");
    if (terms->n == KS_OWN_TERMS)
        return ks_fail(KS_FORMAT, "more than %d lines", KS_OWN_TERMS);
    *t = (struct ks_own_term){.bounds = {NAN, NAN}, .value = 0.1, .sigmoid = KS_GAUSSIAN};
    KS_TRY(copy_name("name", name, strlen(name), t->name));
    KS_TRY(ks_copy_string(value, &copy));
    word = strtok_r(copy, " \t", &save);
    status = read_quantity(word ? word : "", &t->quantity);
    while (status == KS_OK && (word = strtok_r(NULL, " \t", &save)) != NULL)
        status = bounded ? read_option(word, shaped, t)
                         : ks_fail(KS_FORMAT, "expected one quantity, found also '%s'", word);
    if (status == KS_OK && bounded)
        status = check_bounds(t, shaped);
    free(copy);
    terms->n++;
    return status;
}

/* --- the file --- */

static ks_status set_model(struct ks_env_own *own, const char *value)
{
    const char *base = ks_path_base(own->path);

    free(own->model);
    return *value == '/'
               ? ks_copy_string(value, &own->model)
               : ks_print_string(&own->model, "%.*s%s", (int)(base - own->path), own->path, value);
}

static ks_status take_task(struct parser *p, const char *key, const char *value)
{
    struct ks_env_own *own = p->own;
    const struct {
        const char *name;
        double *number, low;
    } keys[] = {{"model", NULL, 0},
                {"start", NULL, 0},
                {"control_step", &own->domain.control_step, 1e-9},
                {"episode", &own->domain.limit, 1e-9},
                {"position_noise", &own->position_noise, 0},
                {"velocity_noise", &own->velocity_noise, 0}};

    assert(own);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strcmp(key, keys[i].name) != 0)
            continue;
        if (p->seen & 1u << i)
            return ks_fail(KS_FORMAT, "given twice");
        p->seen |= 1u << i;
        if (i == 0)
            return set_model(own, value);
        if (!keys[i].number)
            return copy_name(key, value, strlen(value), own->key);
        return ks_parse_number(value, keys[i].low, 1e9, keys[i].number)
                   ? KS_OK
                   : ks_fail(KS_FORMAT, "expected a number from %g to 1e9, found '%s'", keys[i].low,
                             value);
    }
    return ks_fail(KS_FORMAT, "unknown option (known: model, start, control_step, episode, "
                              "position_noise, velocity_noise)");
}

static ks_status take(struct parser *p, const char *section, const char *key, const char *value)
{
    if (strcmp(section, "task") == 0)
        return take_task(p, key, value);
    if (strcmp(section, "observation") == 0)
        return add_term(&p->own->observation, key, value, false, false);
    if (strcmp(section, "reward") == 0)
        return add_term(&p->own->reward, key, value, true, true);
    if (strcmp(section, "terminal") == 0)
        return add_term(&p->own->terminal, key, value, true, false);
    return ks_fail(KS_FORMAT, "expected [task], [observation], [reward] or [terminal]");
}

/* Keeps the first failure, with its place. */
static int handle(void *user, const char *section, const char *key, const char *value)
{
    struct parser *p = user;
    char message[600];
    ks_status status;

    if (p->status != KS_OK)
        return 0;
    status = take(p, section, key, value);
    if (status == KS_OK)
        return 1;
    snprintf(message, sizeof message, "%s", ks_error_text());
    p->status = ks_fail(status, "%s: [%s] %s: %s", p->own->path, section, key, message);
    return 0;
}

static ks_status require(const struct ks_env_own *own)
{
    const char *missing = own->domain.control_step == 0 ? "control_step in [task]"
                          : own->domain.limit == 0      ? "episode in [task]"
                          : own->observation.n == 0     ? "a line in [observation]"
                          : own->reward.n == 0          ? "a line in [reward]"
                                                        : NULL;

    return missing ? ks_fail(KS_FORMAT, "%s: expected %s, found none", own->path, missing) : KS_OK;
}

/* The name is part of paths and tables, where it must not be taken for a task of the project. */
static ks_status set_name(struct ks_env_own *own)
{
    const char *base = ks_path_base(own->path);
    struct ks_env_about about;

    KS_TRY(ks_print_string(&own->name, "%.*s", (int)ks_path_stem(base, ENDING), base));
    for (const char *c = own->name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("+-_.", *c))
            return ks_fail(KS_FORMAT, "%s: expected a name of letters, digits and +-_.", own->path);
    return ks_env_about_task(own->name, &about)
               ? ks_fail(KS_FORMAT, "%s: there is a task of this name already", own->path)
               : KS_OK;
}

static ks_status parse(struct ks_env_own *own, const char *text)
{
    struct parser p = {.own = own};
    int line = ini_parse_string(text, handle, &p);

    KS_TRY(p.status);
    if (line > 0)
        return ks_fail(KS_FORMAT, "%s:%d: expected a section, KEY = VALUE or a comment", own->path,
                       line);
    return line == 0 ? require(own) : ks_fail(KS_MEMORY, "%s: out of memory", own->path);
}

bool ks_env_own_is_file(const char *task)
{
    return ks_path_ends(task, ENDING) || ks_path_ends(task, MODEL);
}

ks_status ks_env_own_read(const char *path, struct ks_env_own **out)
{
    size_t stem = ks_path_stem(path, MODEL), size = 0;
    char digest[KS_SHA256_TEXT], *text = NULL;
    struct ks_env_own *own = NULL;
    ks_status status = KS_OK;

    *out = NULL;
    if (stem == strlen(path))
        stem = ks_path_stem(path, ENDING);
    KS_GO(ks_alloc(1, sizeof *own, &own));
    own->domain = ks_env_own_domain;
    KS_GO(ks_print_string(&own->path, "%.*s%s", (int)stem, path, ENDING));
    KS_GO(ks_print_string(&own->model, "%.*s%s", (int)stem, path, MODEL));
    KS_GO(set_name(own));
    KS_GO(ks_text_read(own->path, &text, &size));
    if (strlen(text) != size) {
        status = ks_fail(KS_FORMAT, "%s: expected text, found a zero byte", own->path);
        goto done;
    }
    KS_GO(parse(own, text));
    KS_GO(ks_sha256_file(own->model, digest));
    KS_GO(ks_print_string(&own->identity, "%s; SHA-256 of the model: %s\n", text, digest));
    own->domain.model = own->model;
    own->task = (struct ks_env_task){.name = own->name, .domain = &own->domain};
    *out = own, own = NULL;
done:
    free(text);
    ks_env_own_free(own);
    return status;
}

void ks_env_own_free(struct ks_env_own *own)
{
    if (!own)
        return;
    free(own->path);
    free(own->name);
    free(own->model);
    free(own->identity);
    free(own);
}
