/* Reads the text of a `.study` file: INI by libinih, whose lines are counted here so that a message
 * can name one. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "ks/study_keys.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ini.h>

#include "ks/architecture.h"
#include "ks/memory.h"
#include "ks/number.h"
#include "ks/path.h"
#include "ks/schedule.h"
#include "ks/text.h"

enum { STUDY_KEYS = 7, MOST_SEED = 1000000000 };

struct parser {
    struct ks_study *study;
    bool seen[STUDY_KEYS]; /* keys of [study], in the table's order */
    const char *next;      /* what of the text is to be read     */
    size_t line;           /* the number of the line read last   */
    bool indented;         /* it goes on with the value before it */
    bool check_files;
    ks_status status; /* the first failure */
};

/* What a name of the twelve says. */
static void describe(struct ks_study_architecture *a)
{
    const struct ks_architecture *named = ks_architecture_find(a->name);

    a->normalization = named ? named->normalization : "other";
    a->weight_normalization = named && named->weight_normalization;
    a->loss = named ? named->loss : "other";
}

/* The words of names that become folders, options and targets of make. */
static bool is_plain(const char *name)
{
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("+-_.", *c))
            return false;
    return *name && *name != '.' && *name != '-';
}

/* A description in a file, found from the study's folder. Training gets it with its own name, also
 * where that is a link's: runs are called by it. */
static ks_status set_file(const struct parser *p, const char *word, struct ks_study_architecture *a)
{
    const char *base = ks_path_base(word), *study = p->study->path;
    char *folder = NULL, *resolved;
    ks_status status;

    KS_TRY(ks_copy_string(base, &a->name));
    if (!p->check_files)
        return ks_copy_string(word, &a->argument);
    if (*word == '/')
        status = ks_print_string(&folder, "%.*s", (int)(base - word), word);
    else
        status = ks_print_string(&folder, "%.*s./%.*s", (int)(ks_path_base(study) - study), study,
                                 (int)(base - word), word);
    KS_TRY(status);
    resolved = realpath(folder, NULL);
    free(folder);
    status = ks_print_string(&a->argument, "%s/%s", resolved ? resolved : ".", base);
    free(resolved);
    KS_TRY(status);
    return resolved && ks_text_exists(a->argument)
               ? KS_OK
               : ks_fail(KS_FORMAT, "architectures: %s: no such file", word);
}

static ks_status set_known(const struct parser *p, const char *word,
                           struct ks_study_architecture *a)
{
    KS_TRY(ks_copy_string(word, &a->name));
    KS_TRY(ks_copy_string(word, &a->argument));
    return !p->check_files || ks_architecture_find(word)
               ? KS_OK
               : ks_fail(KS_FORMAT, "architectures: '%s' is not known", word);
}

static ks_status add_architecture(struct parser *p, const char *word)
{
    struct ks_study *s = p->study;
    struct ks_study_architecture *a = &s->architecture[s->n_architectures];
    bool file = ks_architecture_is_file(word);

    if (s->n_architectures == KS_STUDY_ARCHITECTURES)
        return ks_fail(KS_FORMAT, "architectures: more than %d", KS_STUDY_ARCHITECTURES);
    if (!file && !is_plain(word))
        return ks_fail(KS_FORMAT, "architectures: '%s' is not known", word);
    s->n_architectures++; /* from here on freed with the study */
    KS_TRY(file ? set_file(p, word, a) : set_known(p, word, a));
    if (!is_plain(a->name))
        return ks_fail(KS_FORMAT,
                       "architectures: '%s': expected a name of letters, digits and +-_.", a->name);
    for (size_t i = 0; i + 1 < s->n_architectures; i++)
        if (strcmp(s->architecture[i].name, a->name) == 0)
            return ks_fail(KS_FORMAT, "architectures: '%s' is given twice", a->name);
    describe(a);
    return KS_OK;
}

static ks_status add_architectures(struct parser *p, const char *word)
{
    if (strcmp(word, "all") != 0)
        return add_architecture(p, word);
    for (const struct ks_architecture *named = ks_architectures; named->name; named++)
        KS_TRY(add_architecture(p, named->name));
    return KS_OK;
}

static ks_status parse_size(const char *what, const char *word, size_t low, size_t high,
                            size_t *value)
{
    uint64_t number = 0;

    if (!ks_parse_integer(word, low, high, &number))
        return ks_fail(KS_FORMAT, "%s: expected a whole number from %zu to %zu, found '%s'", what,
                       low, high, word);
    *value = (size_t)number;
    return KS_OK;
}

/* "3", or "0..4" for five of them. */
static ks_status add_seeds(struct parser *p, const char *word)
{
    struct ks_study *s = p->study;
    const char *dots = strstr(word, "..");
    char first[24] = "";
    size_t from = 0, to = 0, length = dots ? (size_t)(dots - word) : strlen(word);

    if (length >= sizeof first)
        return ks_fail(KS_FORMAT, "seeds: expected a whole number, found '%s'", word);
    snprintf(first, sizeof first, "%.*s", (int)length, word);
    KS_TRY(parse_size("seeds", first, 0, MOST_SEED, &from));
    to = from;
    if (dots)
        KS_TRY(parse_size("seeds", dots + 2, from, MOST_SEED, &to));
    for (; from <= to; from++) {
        for (size_t i = 0; i < s->n_seeds; i++)
            if (s->seed[i] == from)
                return ks_fail(KS_FORMAT, "seeds: %zu is given twice", from);
        if (s->n_seeds == KS_STUDY_SEEDS)
            return ks_fail(KS_FORMAT, "seeds: more than %d", KS_STUDY_SEEDS);
        s->seed[s->n_seeds++] = from;
    }
    return KS_OK;
}

/* Calls `add` with every word of a list that spaces or commas separate. */
static ks_status split(struct parser *p, const char *value,
                       ks_status (*add)(struct parser *p, const char *word))
{
    ks_status status = KS_OK;
    char *copy = NULL, *save = NULL;

    KS_TRY(ks_copy_string(value, &copy));
    for (char *word = strtok_r(copy, ", \t", &save); word && status == KS_OK;
         word = strtok_r(NULL, ", \t", &save))
        status = add(p, word);
    free(copy);
    return status;
}

static ks_status set_switch(const char *key, const char *value, const char *off, const char *on,
                            bool *is_on)
{
    *is_on = strcmp(value, on) == 0;
    if (!*is_on && strcmp(value, off) != 0)
        return ks_fail(KS_FORMAT, "%s: expected %s or %s, found '%s'", key, off, on, value);
    return KS_OK;
}

static ks_status set_env(struct parser *p, const char *value)
{
    if (!is_plain(value))
        return ks_fail(KS_FORMAT, "env: expected the name of a task, found '%s'", value);
    p->study->env_line = p->line;
    return ks_copy_string(value, &p->study->env);
}

static ks_status set_architectures(struct parser *p, const char *value)
{
    return split(p, value, add_architectures);
}

static ks_status set_seeds(struct parser *p, const char *value)
{
    return split(p, value, add_seeds);
}

static ks_status set_steps(struct parser *p, const char *value)
{
    return parse_size("steps", value, 1, KS_MOST_STEPS, &p->study->steps);
}

static ks_status set_stop(struct parser *p, const char *value)
{
    p->study->stop_line = p->line;
    return parse_size("stop", value, 1, KS_MOST_STEPS, &p->study->stop);
}

static ks_status set_missing(struct parser *p, const char *value)
{
    return set_switch("missing", value, "error", "drop", &p->study->drop_missing);
}

static ks_status set_grid(struct parser *p, const char *value)
{
    return set_switch("grid", value, "all", "common", &p->study->common_grid);
}

/* The keys of [study]; lists may go on with indented lines. */
static const struct {
    const char *name;
    ks_status (*set)(struct parser *p, const char *value);
    bool list;
} study_keys[STUDY_KEYS] = {
    {"env", set_env, false},    {"architectures", set_architectures, true},
    {"seeds", set_seeds, true}, {"steps", set_steps, false},
    {"stop", set_stop, false},  {"missing", set_missing, false},
    {"grid", set_grid, false},
};

static ks_status refuse_second(const struct parser *p, const char *key)
{
    return ks_fail(KS_FORMAT, "'%s' is given twice%s", key,
                   p->indented ? " (an indented line goes on with the one before)" : "");
}

static ks_status take_study(struct parser *p, const char *key, const char *value)
{
    for (size_t i = 0; i < STUDY_KEYS; i++)
        if (strcmp(key, study_keys[i].name) == 0) {
            if (p->seen[i] && !(study_keys[i].list && p->indented))
                return refuse_second(p, key);
            p->seen[i] = true;
            return study_keys[i].set(p, value);
        }
    return ks_fail(KS_FORMAT, "[study] does not know '%s'", key);
}

static ks_status add_setting(const struct parser *p, struct ks_setting *list, size_t *n,
                             const char *key, const char *value)
{
    for (size_t i = 0; i < *n; i++)
        if (strcmp(list[i].key, key) == 0)
            return refuse_second(p, key);
    if (*n == KS_STUDY_SETTINGS)
        return ks_fail(KS_FORMAT, "more than %d settings", KS_STUDY_SETTINGS);
    (*n)++;
    list[*n - 1].line = p->line;
    KS_TRY(ks_copy_string(key, &list[*n - 1].key));
    return ks_copy_string(value, &list[*n - 1].value);
}

static ks_status take(struct parser *p, const char *section, const char *key, const char *value)
{
    struct ks_study *s = p->study;

    if (strcmp(section, "study") == 0)
        return take_study(p, key, value);
    if (strcmp(section, "train") == 0) {
        KS_TRY(add_setting(p, s->train, &s->n_train, key, value));
        return ks_settings_set(&s->settings, key, value);
    }
    if (strcmp(section, "analyze") == 0) {
        KS_TRY(add_setting(p, s->analyze, &s->n_analyze, key, value));
        return ks_study_take_analyze(key, value);
    }
    return ks_fail(KS_FORMAT, "'%s' stands outside of [study], [train] and [analyze]", key);
}

/* Keeps the first failure, with the line's number. */
static int fail_here(struct parser *p, ks_status status)
{
    char message[1024];

    strncpy(message, ks_error_text(), sizeof message - 1);
    message[sizeof message - 1] = '\0';
    p->status = ks_fail(status, "%s:%zu: %s", p->study->path, p->line, message);
    return 0;
}

static int handle(void *user, const char *section, const char *key, const char *value)
{
    struct parser *p = user;
    ks_status status;

    if (p->status != KS_OK)
        return 0;
    status = take(p, section, key, value);
    return status == KS_OK ? 1 : fail_here(p, status);
}

/* Sections are looked at here: libinih tells only of those that hold a key. */
static void check_section(struct parser *p, const char *line)
{
    static const char *const known[] = {"[study]", "[train]", "[analyze]"};

    for (size_t i = 0; i < 3; i++)
        if (strncmp(line, known[i], strlen(known[i])) == 0)
            return;
    ks_fail(KS_FORMAT, "expected [study], [train] or [analyze], found '%.*s'",
            (int)strcspn(line, "\r\n"), line);
    fail_here(p, KS_FORMAT);
}

/* fgets for the text in memory. */
static char *next_line(char *line, int room, void *stream)
{
    struct parser *p = stream;
    size_t length = strcspn(p->next, "\n"), whole = length + (p->next[length] == '\n');

    if (!*p->next || p->status != KS_OK)
        return NULL;
    p->line++;
    if (whole >= (size_t)room) {
        ks_fail(KS_FORMAT, "a line of %zu characters, at most %d are allowed", length, room - 2);
        fail_here(p, KS_FORMAT);
        return NULL;
    }
    memcpy(line, p->next, whole);
    line[whole] = '\0';
    p->next += whole;
    p->indented = isspace((unsigned char)*line) != 0;
    if (line[strspn(line, " \t")] == '[')
        check_section(p, line + strspn(line, " \t"));
    return line;
}

ks_status ks_study_parse(struct ks_study *study, bool check_files)
{
    struct parser p = {.study = study, .next = study->text, .check_files = check_files};
    int line;

    ks_settings_start(&study->settings);
    line = ini_parse_stream(next_line, &p, handle, &p);
    ks_study_forget_analyze();
    if (p.status != KS_OK)
        return p.status;
    if (line > 0)
        return ks_fail(KS_FORMAT, "%s:%d: expected a section, KEY = VALUE or a comment",
                       study->path, line);
    return line == 0 ? KS_OK : ks_fail(KS_MEMORY, "%s: out of memory", study->path);
}
