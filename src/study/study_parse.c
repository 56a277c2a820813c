/* Parses the text of a `.study` file. libinih reads the INI format; lines are counted here, so that
 * a message can name one. */
#include "study/study_parse.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <ini.h>

#include "core/memory.h"
#include "core/process.h"

ks_status ks_study_fail_at(const struct ks_study *s, size_t line, const char *place,
                           ks_status status)
{
    char number[24] = "";

    if (line > 0)
        snprintf(number, sizeof number, ":%zu", line);
    return ks_fail(status, "%s%s: %s%s%s", s->path, number, place ? place : "", place ? ": " : "",
                   ks_error_text());
}

static int handle(void *user, const char *name, const char *key, const char *value)
{
    struct ks_study_parser *p = user;
    ks_status status;

    (void)name; /* open_section has read it */
    if (p->status != KS_OK)
        return 0;
    status = ks_study_take(p, key, value);
    if (status != KS_OK)
        p->status = ks_study_fail_at(p->study, p->line, NULL, status);
    return status == KS_OK;
}

/* How a study multiplies if it does not say: as studies from before the option existed. */
static const char PRODUCTS[] = "products", BLAS[] = "blas";

/* The next analysis, without options. */
static void add_analysis(struct ks_study *s, int length, const char *name)
{
    struct ks_study_analysis *a = &s->analysis[s->n_analyses++];

    snprintf(a->name, sizeof a->name, "%.*s", length, name);
    a->asked = ks_options_start();
    a->options = ks_spectrum_options_defaults();
    a->asked.spectrum.products = a->options.products = KS_PRODUCTS_BLAS;
}

/* Starts the section [analyze NAME]; `name` is the rest of the line from NAME on. */
static ks_status open_analysis(struct ks_study_parser *p, const char *name)
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
    p->analysis = &s->analysis[s->n_analyses];
    add_analysis(s, length, name);
    return KS_OK;
}

/* Starts the section [variant NAME]; `name` is the rest of the line from NAME on. */
static ks_status open_variant(struct ks_study_parser *p, const char *name)
{
    size_t length = strcspn(name, " \t]\r\n");
    KS_OWNED char *copy = NULL;

    assert(p->study);
    if (length == 0 || name[length + strspn(name + length, " \t")] != ']')
        return ks_fail(KS_FORMAT, "[variant NAME]: expected a name, found '%.*s'",
                       (int)strcspn(name, "]\r\n"), name);
    KS_TRY(ks_print_string(&copy, "%.*s", (int)length, name));
    return ks_study_add_variant(p, copy);
}

/* Section lines are parsed here, because libinih reports only sections that contain a key. */
static ks_status open_section(struct ks_study_parser *p, const char *line)
{
    static const struct {
        const char *start;
        enum ks_study_section section;
        ks_status (*open)(struct ks_study_parser *p, const char *name);
    } kinds[] = {{"[study]", KS_STUDY_SECTION, NULL},
                 {"[train]", KS_TRAIN_SECTION, NULL},
                 {"[analyze]", KS_ANALYZE_SECTION, NULL},
                 {"[analyze ", KS_ANALYZE_SECTION, open_analysis},
                 {"[variant ", KS_VARIANT_SECTION, open_variant}};

    ks_study_open_section(p);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t length = strlen(kinds[i].start);

        if (strncmp(line, kinds[i].start, length) != 0)
            continue;
        p->section = kinds[i].section;
        p->analysis = p->section == KS_ANALYZE_SECTION ? &p->study->analysis[0] : NULL;
        return kinds[i].open ? kinds[i].open(p, line + length + strspn(line + length, " ")) : KS_OK;
    }
    return ks_fail(KS_FORMAT,
                   "expected [study], [train], [variant NAME] or [analyze], found '%.*s'",
                   (int)strcspn(line, "\r\n"), line);
}

/* Like fgets, for the text in memory. */
static char *next_line(char *line, int room, void *stream)
{
    struct ks_study_parser *p = stream;
    size_t length = strcspn(p->next, "\n"), size = length + (p->next[length] == '\n');
    ks_status status = KS_OK;

    if (!*p->next || p->status != KS_OK)
        return NULL;
    p->line++;
    if (size >= (size_t)room) {
        ks_fail(KS_FORMAT, "expected a line of at most %d characters, found %zu", room - 2, length);
        p->status = ks_study_fail_at(p->study, p->line, NULL, KS_FORMAT);
        return NULL;
    }
    memcpy(line, p->next, size);
    line[size] = '\0';
    p->next += size;
    p->indented = isspace((unsigned char)*line) != 0;
    if (line[strspn(line, " \t")] == '[')
        status = open_section(p, line + strspn(line, " \t"));
    if (status != KS_OK)
        p->status = ks_study_fail_at(p->study, p->line, NULL, status);
    return line;
}

ks_status ks_study_parse(struct ks_study *study, bool check_files)
{
    static const char MARK[] = "\xEF\xBB\xBF"; /* a byte order mark, which some editors write */
    const size_t marked = strncmp(study->text, MARK, strlen(MARK)) == 0 ? strlen(MARK) : 0;
    struct ks_study_parser p = {
        .study = study, .next = study->text + marked, .check_files = check_files};
    int line;

    ks_settings_defaults(&study->settings);
    add_analysis(study, (int)strlen(KS_STUDY_STANDARD), KS_STUDY_STANDARD);
    line = ini_parse_stream(next_line, &p, handle, &p);
    if (p.status != KS_OK)
        return p.status;
    if (line > 0)
        return ks_fail(KS_FORMAT, "%s:%d: expected a section, KEY = VALUE or a comment",
                       study->path, line);
    return line == 0 ? KS_OK : ks_fail(KS_MEMORY, "%s: out of memory", study->path);
}

/* The analyzer's option of that name, NULL if there is none that a study may set. */
static const struct ks_key *find_option(const char *name)
{
    const struct ks_key *key = ks_key_find(ks_analyze_keys, name);

    return key && key->role != KS_OPTION_OUTPUT ? key : NULL;
}

/* Whether a flag is given as "no", which is as if it were not given. */
static bool is_off(const struct ks_key *key, const struct ks_study_analysis *a)
{
    double on = 1;

    if (key->type != KS_KEY_FLAG && key->type != KS_KEY_OFF)
        return false;
    ks_key_number(key, &a->asked, &on);
    return (on != 0) != (key->type == KS_KEY_FLAG);
}

ks_status ks_study_set_option(struct ks_study_analysis *a, const char *name, const char *value)
{
    const struct ks_key *key = find_option(name);
    struct ks_analyze_options all;

    if (!key)
        return ks_fail(KS_FORMAT, "unknown option '%s' for [analyze]", name);
    if (!*value)
        return ks_fail(KS_FORMAT, "%s: expected a value, found nothing", name);
    KS_TRY(ks_key_set(key, "--", value, &a->asked));
    if (!is_off(key, a))
        a->asked.given |= KS_KEY_BIT(ks_analyze_keys, key);
    all = a->asked;
    KS_TRY(ks_options_finish(&all));
    a->options = all.spectrum;
    return KS_OK;
}

bool ks_study_print_options(const struct ks_study_analysis *analysis, FILE *out)
{
    if (strcmp(analysis->name, KS_STUDY_STANDARD) != 0)
        ks_shell_option(out, "name", analysis->name);
    if (!ks_setting_find(analysis->setting, analysis->n, PRODUCTS))
        ks_shell_option(out, PRODUCTS, BLAS);
    for (size_t i = 0; i < analysis->n; i++) {
        const char *name = analysis->setting[i].key;
        const struct ks_key *key = find_option(name);

        if (key->type != KS_KEY_FLAG && key->type != KS_KEY_OFF)
            ks_shell_option(out, name, analysis->setting[i].value);
        else if (!is_off(key, analysis))
            fprintf(out, " --%s", name);
    }
    return ks_setting_find(analysis->setting, analysis->n, "memory") != NULL;
}
