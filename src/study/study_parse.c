/* Parses the text of a `.study` file. libinih reads the INI format; lines are counted here, so that
 * a message can name one. */
#include "study/study_parse.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ini.h>

#include "core/memory.h"
#include "core/milestones.h"
#include "pipeline/options.h"
#include "study/shell.h"

enum { STUDY_KEYS = 7 };

struct parser {
    struct ks_study *study;
    struct ks_study_analysis *analysis; /* of the current section; NULL: not an [analyze] section */
    struct ks_study_architecture *variant; /* likewise for [variant NAME] */
    bool seen[STUDY_KEYS];                 /* which keys of [study] have been read */
    bool scope_seen[2]; /* of `checkpoints` and `architectures` in the current section */
    const char *next;   /* the rest of the text               */
    size_t line;        /* the number of the current line     */
    bool indented;      /* it continues the value before it   */
    bool check_files;
    ks_status status; /* the first failure */
};

/* Calls `add` with every word of a list separated by spaces or commas. */
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
    p->study->env_line = p->line;
    return ks_study_set_env(p->study, value, p->check_files);
}

static ks_status add_architecture(struct parser *p, const char *word)
{
    return ks_study_add_architectures(p->study, word, p->check_files);
}

static ks_status add_seed(struct parser *p, const char *word)
{
    return ks_study_add_seeds(p->study, word);
}

static ks_status set_architectures(struct parser *p, const char *value)
{
    return split(p, value, add_architecture);
}

static ks_status set_seeds(struct parser *p, const char *value)
{
    return split(p, value, add_seed);
}

static ks_status set_steps(struct parser *p, const char *value)
{
    return ks_study_parse_size("steps", value, 1, KS_MOST_STEPS, &p->study->steps);
}

static ks_status set_stop(struct parser *p, const char *value)
{
    p->study->stop_line = p->line;
    return ks_study_parse_size("stop", value, 1, KS_MOST_STEPS, &p->study->stop);
}

static ks_status set_missing(struct parser *p, const char *value)
{
    return set_switch("missing", value, "error", "drop", &p->study->drop_missing);
}

static ks_status set_grid(struct parser *p, const char *value)
{
    return set_switch("grid", value, "all", "common", &p->study->common_grid);
}

/* The keys of [study]; a list may continue on indented lines. */
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
                   p->indented ? " (an indented line continues the one before it)" : "");
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
    return ks_fail(KS_FORMAT, "unknown option '%s' for [study]", key);
}

static ks_status add_setting(const struct parser *p, struct ks_setting *list, size_t *n,
                             const char *key, const char *value)
{
    if (ks_setting_find(list, *n, key))
        return refuse_second(p, key);
    if (*n == KS_STUDY_SETTINGS)
        return ks_fail(KS_FORMAT, "more than %d settings", KS_STUDY_SETTINGS);
    (*n)++;
    list[*n - 1].line = p->line;
    KS_TRY(ks_copy_string(key, &list[*n - 1].key));
    return ks_copy_string(value, &list[*n - 1].value);
}

static ks_status take_scope(struct parser *p, const char *key, const char *value)
{
    bool *seen = &p->scope_seen[strcmp(key, "architectures") == 0];

    if (*seen && !(p->indented && strcmp(key, "architectures") == 0))
        return refuse_second(p, key);
    *seen = true;
    return ks_study_set_scope(p->analysis, key, value, p->line);
}

/* Each option is checked with those before it, so that a refusal names its line. */
static ks_status take_analysis(struct parser *p, const char *key, const char *value)
{
    struct ks_study_analysis *a = p->analysis;
    struct ks_spectrum_options options;

    if (ks_study_is_scope(key))
        return take_scope(p, key, value);
    KS_TRY(add_setting(p, a->setting, &a->n, key, value));
    return ks_study_read_analysis(a, &options);
}

/* Checks the setting by itself; ks_study_read checks it together with [train]. */
static ks_status take_variant(struct parser *p, const char *key, const char *value)
{
    struct ks_study_architecture *v = p->variant;
    struct ks_settings alone;

    if (strcmp(key, "architecture") == 0)
        return v->word ? refuse_second(p, key)
                       : ks_study_set_network(p->study, value, p->check_files);
    KS_TRY(add_setting(p, v->own, &v->n_own, key, value));
    ks_settings_defaults(&alone);
    return ks_settings_set(&alone, key, value);
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
    if (p->analysis)
        return take_analysis(p, key, value);
    if (p->variant)
        return take_variant(p, key, value);
    return ks_fail(KS_FORMAT, "'%s' is outside of [study], [train], [variant] and [analyze]", key);
}

/* Keeps the first failure, with the file and the line's number. */
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

/* Starts the section [analyze NAME]; `name` is the rest of the line from NAME on. */
static ks_status open_analysis(struct parser *p, const char *name)
{
    struct ks_study *s = p->study;
    int length = (int)strspn(name, ks_options_name_characters);

    assert(s);
    if (length == 0 || length > KS_STUDY_NAME || name[length + strspn(name + length, " \t")] != ']')
        return ks_fail(KS_FORMAT,
                       "[analyze NAME]: expected a name of 1 to %d letters, digits, - and _, found "
                       "'%.*s'",
                       KS_STUDY_NAME, (int)strcspn(name, "]\r\n"), name);
    for (size_t i = 0; i < s->n_analyses; i++)
        if (strlen(s->analysis[i].name) == (size_t)length &&
            strncmp(s->analysis[i].name, name, (size_t)length) == 0)
            return ks_fail(KS_FORMAT, "[analyze %.*s]: %s", length, name,
                           i == 0 ? "this is the name of the section [analyze] itself"
                                  : "a section of this name exists already");
    if (s->n_analyses == KS_STUDY_ANALYSES)
        return ks_fail(KS_FORMAT, "more than %d analyses", KS_STUDY_ANALYSES);
    p->analysis = &s->analysis[s->n_analyses++];
    snprintf(p->analysis->name, sizeof p->analysis->name, "%.*s", length, name);
    return KS_OK;
}

/* Starts the section [variant NAME]; `name` is the rest of the line from NAME on. */
static ks_status open_variant(struct parser *p, const char *name)
{
    size_t length = strcspn(name, " \t]\r\n");
    char *copy = NULL;
    ks_status status;

    assert(p->study);
    if (length == 0 || name[length + strspn(name + length, " \t")] != ']')
        return ks_fail(KS_FORMAT, "[variant NAME]: expected a name, found '%.*s'",
                       (int)strcspn(name, "]\r\n"), name);
    KS_TRY(ks_print_string(&copy, "%.*s", (int)length, name));
    status = ks_study_add_variant(p->study, copy, p->line);
    free(copy);
    p->variant = &p->study->architecture[p->study->n_architectures - 1];
    return status;
}

static bool starts(const char *line, const char *with)
{
    return strncmp(line, with, strlen(with)) == 0;
}

/* Section lines are parsed here, because libinih reports only sections that contain a key. */
static ks_status open_section(struct parser *p, const char *line)
{
    static const char named[] = "[analyze ", variant[] = "[variant ";

    p->variant = NULL;
    p->scope_seen[0] = p->scope_seen[1] = false;
    p->analysis = starts(line, "[analyze]") ? &p->study->analysis[0] : NULL;
    if (p->analysis || starts(line, "[study]") || starts(line, "[train]"))
        return KS_OK;
    if (starts(line, named))
        return open_analysis(p, line + strlen(named) + strspn(line + strlen(named), " "));
    if (starts(line, variant))
        return open_variant(p, line + strlen(variant) + strspn(line + strlen(variant), " "));
    return ks_fail(KS_FORMAT,
                   "expected [study], [train], [variant NAME] or [analyze], found '%.*s'",
                   (int)strcspn(line, "\r\n"), line);
}

/* Like fgets, for the text in memory. */
static char *next_line(char *line, int room, void *stream)
{
    struct parser *p = stream;
    size_t length = strcspn(p->next, "\n"), size = length + (p->next[length] == '\n');
    ks_status status = KS_OK;

    if (!*p->next || p->status != KS_OK)
        return NULL;
    p->line++;
    if (size >= (size_t)room) {
        ks_fail(KS_FORMAT, "expected a line of at most %d characters, found %zu", room - 2, length);
        fail_here(p, KS_FORMAT);
        return NULL;
    }
    memcpy(line, p->next, size);
    line[size] = '\0';
    p->next += size;
    p->indented = isspace((unsigned char)*line) != 0;
    if (line[strspn(line, " \t")] == '[')
        status = open_section(p, line + strspn(line, " \t"));
    if (status != KS_OK)
        fail_here(p, status);
    return line;
}

ks_status ks_study_parse(struct ks_study *study, bool check_files)
{
    struct parser p = {.study = study, .next = study->text, .check_files = check_files};
    int line;

    ks_settings_defaults(&study->settings);
    study->n_analyses = 1;
    snprintf(study->analysis[0].name, sizeof study->analysis[0].name, "%s", KS_STUDY_STANDARD);
    line = ini_parse_stream(next_line, &p, handle, &p);
    if (p.status != KS_OK)
        return p.status;
    if (line > 0)
        return ks_fail(KS_FORMAT, "%s:%d: expected a section, KEY = VALUE or a comment",
                       study->path, line);
    return line == 0 ? KS_OK : ks_fail(KS_MEMORY, "%s: out of memory", study->path);
}

/* Options that a study's file must not set: the study itself decides where files go and what is
 * printed. */
static const char *const refused[] = {"out",      "json", "csv",    "apply",       "output",
                                      "gradient", "name", "layers", "eigenvectors"};

/* NULL if a study must not set it, or if there is no such option. */
static const struct poptOption *find_option(const struct ks_words *w, const char *key)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strcmp(key, refused[i]) == 0)
            return NULL;
    for (const struct poptOption *o = w->table; o->longName; o++)
        if (strcmp(o->longName, key) == 0)
            return o;
    return NULL;
}

static bool is_among(const char *value, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(value, *words) == 0)
            return true;
    return false;
}

static bool is_yes(const char *value)
{
    return is_among(value, (const char *const[]){"yes", "true", "on", "1", NULL});
}

static bool is_no(const char *value)
{
    return is_among(value, (const char *const[]){"no", "false", "off", "0", NULL});
}

static ks_status take_setting(const struct ks_words *w, const char *key, const char *value)
{
    const struct poptOption *o = find_option(w, key);

    if (!o)
        return ks_fail(KS_FORMAT, "unknown option '%s' for [analyze]", key);
    if (!*value)
        return ks_fail(KS_FORMAT, "%s: expected a value, found nothing", key);
    if (o->argInfo == POPT_ARG_STRING) {
        free(*(char **)o->arg);
        return ks_copy_string(value, o->arg);
    }
    if (!is_yes(value) && !is_no(value))
        return ks_fail(KS_FORMAT, "%s: expected yes or no, found '%s'", key, value);
    *(int *)o->arg = is_yes(value);
    return KS_OK;
}

ks_status ks_study_read_analysis(const struct ks_study_analysis *asked,
                                 struct ks_spectrum_options *options)
{
    struct ks_words words;
    struct ks_analyze_options read;
    ks_status status = KS_OK;

    ks_words_start(&words);
    for (size_t i = 0; i < asked->n && status == KS_OK; i++)
        status = take_setting(&words, asked->setting[i].key, asked->setting[i].value);
    if (status == KS_OK)
        status = ks_options_read(&words, &read);
    if (status == KS_OK)
        *options = read.spectrum;
    options->layer_kind = NULL; /* a string of `words` */
    ks_words_clear(&words);
    return status;
}

bool ks_study_print_options(const struct ks_study_analysis *analysis, FILE *out)
{
    struct ks_words words;
    bool memory = false;

    ks_words_start(&words);
    if (strcmp(analysis->name, KS_STUDY_STANDARD) != 0)
        ks_shell_option(out, "name", analysis->name);
    for (size_t i = 0; i < analysis->n; i++) {
        const char *key = analysis->setting[i].key, *value = analysis->setting[i].value;
        const struct poptOption *o = find_option(&words, key);

        memory = memory || strcmp(key, "memory") == 0;
        if (!o || o->argInfo != POPT_ARG_NONE)
            ks_shell_option(out, key, value);
        else if (is_yes(value))
            fprintf(out, " --%s", key);
    }
    return memory;
}
