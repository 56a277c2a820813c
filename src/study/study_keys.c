/* The keys of a study's file: what each section may set. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "study/study_parse.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/milestones.h"
#include "core/number.h"
#include "core/process.h"
#include "env/env.h"
#include "io/file.h"
#include "train/architecture.h"

enum { MOST_SEED = 1000000000 };

bool ks_study_is_plain(const char *name)
{
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("+-_.", *c))
            return false;
    return *name && *name != '.' && *name != '-';
}

/* Calls `add` with every word of a list separated by spaces or commas. */
static ks_status split(struct ks_study_parser *p, const char *value,
                       ks_status (*add)(struct ks_study_parser *p, const char *word))
{
    KS_OWNED char *copy = NULL;
    char *save = NULL;

    KS_TRY(ks_copy_string(value, &copy));
    for (char *word = strtok_r(copy, ", \t", &save); word; word = strtok_r(NULL, ", \t", &save))
        KS_TRY(add(p, word));
    return KS_OK;
}

/* The path of a file that is named relative to the folder of the study's file. Training gets the
 * folder's real path but the file's own name, even if that is a link: runs are named after it. */
static ks_status find_file(const struct ks_study_parser *p, const char *key, const char *word,
                           char **path)
{
    const char *base = ks_path_base(word), *study = p->study->path;
    KS_OWNED char *folder = NULL, *resolved = NULL;
    const bool from_root = *word == '/';

    if (!p->check_files)
        return ks_copy_string(word, path);
    KS_TRY(ks_print_string(&folder, "%.*s%s%.*s",
                           from_root ? 0 : (int)(ks_path_base(study) - study), study,
                           from_root ? "" : "./", (int)(base - word), word));
    resolved = realpath(folder, NULL);
    KS_TRY(ks_print_string(path, "%s/%s", resolved ? resolved : ".", base));
    KS_TRY(ks_shell_check(key, *path));
    return resolved && ks_path_exists(*path)
               ? KS_OK
               : ks_fail(KS_FORMAT, "%s: %s: does not exist", key, word);
}

static ks_status set_env(struct ks_study_parser *p, const char *word)
{
    struct ks_study *s = p->study;
    const char *base = ks_path_base(word), *dot = strrchr(base, '.');
    bool file = ks_env_is_file(word);

    s->env_line = p->line;
    KS_TRY(ks_print_string(&s->env, "%.*s", file ? (int)(dot - base) : INT_MAX, base));
    if (!ks_study_is_plain(s->env) || (base != word && !file) || ks_path_ends(base, ".task"))
        return ks_fail(KS_FORMAT, "env: expected the name of a task or of a .so file, found '%s'",
                       word);
    return file ? find_file(p, "env", word, &s->env_argument)
                : ks_copy_string(word, &s->env_argument);
}

/* --- architectures and variants --- */

/* Sets the network: the name of an architecture or system, or a file. It names the architecture
 * unless that is a variant. */
static ks_status set_network(const struct ks_study_parser *p, const char *word,
                             struct ks_study_architecture *a)
{
    const struct ks_architecture *named = ks_architecture_find(word);
    const bool file = ks_architecture_is_file(word) || ks_system_is_file(word);
    KS_OWNED char *system = NULL;

    a->normalization = named ? named->normalization : "other";
    a->weight_normalization = named && named->weight_normalization;
    a->loss = named ? named->loss : "other";
    if (!file && !ks_study_is_plain(word))
        return ks_fail(KS_FORMAT, "architectures: unknown architecture '%s'", word);
    KS_TRY(ks_copy_string(word, &a->word));
    if (!a->name)
        KS_TRY(ks_copy_string(ks_path_base(word), &a->name));
    if (file)
        return find_file(p, "architectures", word, &a->argument);
    KS_TRY(ks_copy_string(word, &a->argument));
    if (!p->check_files || named)
        return KS_OK;
    KS_TRY(ks_system_find(word, &system));
    return system ? KS_OK : ks_fail(KS_FORMAT, "architectures: unknown architecture '%s'", word);
}

size_t ks_study_find_architecture(const struct ks_study *s, const char *name)
{
    size_t i = 0;

    while (i < s->n_architectures && strcmp(s->architecture[i].name, name) != 0)
        i++;
    return i;
}

/* Takes the next free entry; from then on it is freed with the study. */
static ks_status new_architecture(struct ks_study *s, struct ks_study_architecture **a)
{
    if (s->n_architectures == KS_STUDY_ARCHITECTURES)
        return ks_fail(KS_FORMAT, "architectures: more than %d", KS_STUDY_ARCHITECTURES);
    *a = &s->architecture[s->n_architectures++];
    return KS_OK;
}

/* The name of the last architecture becomes a folder. */
static ks_status check_name(const struct ks_study *s)
{
    const char *name = s->architecture[s->n_architectures - 1].name;

    if (!ks_study_is_plain(name))
        return ks_fail(KS_FORMAT,
                       "architectures: '%s': expected a name of letters, digits and +-_.", name);
    return ks_study_find_architecture(s, name) == s->n_architectures - 1
               ? KS_OK
               : ks_fail(KS_FORMAT, "architectures: '%s' is given twice", name);
}

static ks_status add_architecture(struct ks_study_parser *p, const char *word)
{
    struct ks_study_architecture *a = NULL;

    KS_TRY(ks_shell_check("architectures", word));
    if (strcmp(word, "all") == 0) {
        for (const struct ks_architecture *named = ks_architectures; named->name; named++)
            KS_TRY(add_architecture(p, named->name));
        return KS_OK;
    }
    KS_TRY(new_architecture(p->study, &a));
    KS_TRY(set_network(p, word, a));
    return check_name(p->study);
}

ks_status ks_study_add_variant(struct ks_study_parser *p, const char *name)
{
    struct ks_study_architecture *a = NULL;

    KS_TRY(new_architecture(p->study, &a));
    p->variant = a;
    a->line = p->line;
    KS_TRY(ks_copy_string(name, &a->name));
    KS_TRY(check_name(p->study));
    return ks_architecture_find(name)
               ? ks_fail(KS_FORMAT, "[variant %s]: this is the name of an architecture", name)
               : KS_OK;
}

/* --- runs from elsewhere --- */

ks_status ks_study_add_elsewhere(struct ks_study *s, const char *name)
{
    struct ks_study_architecture *a = NULL;

    KS_TRY(new_architecture(s, &a));
    a->elsewhere = true;
    a->normalization = a->loss = "other";
    KS_TRY(ks_copy_string(name, &a->name));
    KS_TRY(ks_copy_string(name, &a->word));
    KS_TRY(ks_copy_string(name, &a->argument));
    return check_name(s);
}

static ks_status add_elsewhere(struct ks_study_parser *p, const char *word)
{
    return ks_study_add_elsewhere(p->study, word);
}

static ks_status set_family(struct ks_study_parser *p, const char *value)
{
    p->study->family_line = p->line;
    return ks_copy_string(value, &p->study->family);
}

static ks_status set_variant(struct ks_study_parser *p, const char *word)
{
    KS_TRY(ks_shell_check("architecture", word));
    return set_network(p, word, p->variant);
}

size_t ks_study_base(const struct ks_study *s, size_t architecture)
{
    const struct ks_study_architecture *variant = &s->architecture[architecture];
    size_t i = 0;

    while (i < s->n_architectures && (variant->line == 0 || s->architecture[i].line > 0 ||
                                      strcmp(s->architecture[i].word, variant->word) != 0))
        i++;
    return i;
}

/* --- numbers and switches --- */

static ks_status parse_seed(const char *word, uint64_t low, uint64_t *seed)
{
    return ks_parse_integer(word, low, MOST_SEED, seed)
               ? KS_OK
               : ks_fail(KS_FORMAT, "seeds: expected an integer from %zu to %d, found '%s'",
                         (size_t)low, MOST_SEED, word);
}

/* A seed, or a range of seeds ("0..4"). */
static ks_status add_seeds(struct ks_study_parser *p, const char *word)
{
    struct ks_study *s = p->study;
    const char *dots = strstr(word, "..");
    char first[24] = "";
    const size_t length = dots ? (size_t)(dots - word) : strlen(word);
    uint64_t from = 0, to = 0;

    if (length >= sizeof first)
        return ks_fail(KS_FORMAT, "seeds: expected an integer, found '%s'", word);
    snprintf(first, sizeof first, "%.*s", (int)length, word);
    KS_TRY(parse_seed(first, 0, &from));
    to = from;
    if (dots)
        KS_TRY(parse_seed(dots + 2, from, &to));
    for (; from <= to; from++) {
        if (ks_study_has_seed(s, from))
            return ks_fail(KS_FORMAT, "seeds: %zu is given twice", (size_t)from);
        if (s->n_seeds == KS_STUDY_SEEDS)
            return ks_fail(KS_FORMAT, "seeds: more than %d", KS_STUDY_SEEDS);
        s->seed[s->n_seeds++] = from;
    }
    return KS_OK;
}

#define AT(member) KS_KEY_AT(struct ks_study, member)

static const char *const trained[] = {"here", "elsewhere", NULL};
static const char *const missing[] = {"error", "drop", NULL};
static const char *const grids[] = {"all", "common", NULL};

/* The keys of [study] that are a number or a word. */
static const struct ks_key values[] = {{"steps", KS_ROW_COUNT(1, KS_MOST_STEPS), NULL, AT(steps)},
                                       {"stop", KS_ROW_COUNT(1, KS_MOST_STEPS), NULL, AT(stop)},
                                       {"trained", KS_ROW_CHOICE(trained), NULL, AT(elsewhere)},
                                       {"missing", KS_ROW_CHOICE(missing), NULL, AT(drop_missing)},
                                       {"grid", KS_ROW_CHOICE(grids), NULL, AT(common_grid)},
                                       KS_KEYS_END};

static ks_status set_value(struct ks_study_parser *p, const char *value)
{
    if (strcmp(p->key, "stop") == 0)
        p->study->stop_line = p->line;
    return ks_key_set(ks_key_find(values, p->key), "", value, p->study) == KS_OK ? KS_OK
                                                                                 : KS_FORMAT;
}

/* --- the scope of a further analysis --- */

static ks_status check_named(const struct ks_study_parser *p, const char *key)
{
    return p->analysis != p->study->analysis
               ? KS_OK
               : ks_fail(KS_FORMAT,
                         "%s: [analyze] is of every checkpoint; only an [analyze NAME] can be of "
                         "some",
                         key);
}

static ks_status set_checkpoints(struct ks_study_parser *p, const char *value)
{
    static const char *const words[] = {"all", "trained", "last", NULL};
    static const struct ks_key key = {"checkpoints", KS_ROW_CHOICE(words), NULL,
                                      KS_KEY_AT(struct ks_study_scope, checkpoints)};

    KS_TRY(check_named(p, key.name));
    return ks_key_set(&key, "", value, &p->analysis->scope);
}

static ks_status add_scope(struct ks_study_parser *p, const char *value)
{
    struct ks_study_scope *scope = &p->analysis->scope;
    KS_OWNED char *before = NULL;

    KS_TRY(check_named(p, "architectures"));
    before = scope->architectures;
    scope->line = p->line;
    return ks_print_string(&scope->architectures, "%s%s%s", before ? before : "", before ? " " : "",
                           value);
}

static ks_status resolve(struct ks_study_parser *p, const char *word)
{
    const struct ks_study *s = p->study;
    struct ks_study_scope *scope = &p->analysis->scope;
    const size_t i = ks_study_find_architecture(s, word);

    if (i == s->n_architectures)
        return ks_fail(KS_FORMAT,
                       "%s:%zu: architectures: expected architectures of the study, found '%s'",
                       s->path, scope->line, word);
    scope->of[i] = true;
    return KS_OK;
}

ks_status ks_study_resolve_scopes(struct ks_study *s)
{
    for (size_t k = 0; k < s->n_analyses; k++) {
        struct ks_study_scope *scope = &s->analysis[k].scope;

        for (size_t i = 0; i < s->n_architectures; i++)
            scope->of[i] = !scope->architectures;
        if (scope->architectures)
            KS_TRY(split(&(struct ks_study_parser){.study = s, .analysis = &s->analysis[k]},
                         scope->architectures, resolve));
    }
    return KS_OK;
}

bool ks_study_asks(const struct ks_study *s, size_t analysis, size_t architecture,
                   size_t checkpoint)
{
    const struct ks_study_scope *scope = &s->analysis[analysis].scope;

    if (!scope->of[architecture] || !ks_study_has_any(s, architecture, checkpoint))
        return false;
    switch (scope->checkpoints) {
    case KS_STUDY_TRAINED:
        return s->checkpoint[checkpoint] > s->first_update;
    case KS_STUDY_LAST:
        return checkpoint == ks_study_last_checkpoint(s, architecture);
    default:
        return true;
    }
}

bool ks_study_asks_checkpoint(const struct ks_study *s, size_t analysis, size_t checkpoint)
{
    for (size_t a = 0; a < s->n_architectures; a++)
        if (ks_study_asks(s, analysis, a, checkpoint))
            return true;
    return false;
}

size_t ks_study_asked_checkpoints(const struct ks_study *s, size_t analysis, size_t architecture)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_checkpoints; i++)
        n += ks_study_asks(s, analysis, architecture, i);
    return n;
}

/* --- all keys --- */

/* Keys with a meaning of their own; the others of [train], [variant] and [analyze] are settings. A
 * list may continue on indented lines; `set` gets its lines or, of WORDS, each of its words. */
static const struct {
    const char *name;
    ks_status (*set)(struct ks_study_parser *p, const char *value);
    enum ks_study_section section;
    enum { ONE, LIST, WORDS } form;
} keys[KS_STUDY_KEYS] = {
    {"env", set_env, KS_STUDY_SECTION, ONE},
    {"architectures", add_architecture, KS_STUDY_SECTION, WORDS},
    {"seeds", add_seeds, KS_STUDY_SECTION, WORDS},
    {"steps", set_value, KS_STUDY_SECTION, ONE},
    {"stop", set_value, KS_STUDY_SECTION, ONE},
    {"trained", set_value, KS_STUDY_SECTION, ONE},
    {"elsewhere", add_elsewhere, KS_STUDY_SECTION, WORDS},
    {"family", set_family, KS_STUDY_SECTION, ONE},
    {"missing", set_value, KS_STUDY_SECTION, ONE},
    {"grid", set_value, KS_STUDY_SECTION, ONE},
    {"architecture", set_variant, KS_VARIANT_SECTION, ONE},
    {"checkpoints", set_checkpoints, KS_ANALYZE_SECTION, ONE},
    {"architectures", add_scope, KS_ANALYZE_SECTION, LIST},
};

static ks_status refuse_second(const struct ks_study_parser *p, const char *key)
{
    return ks_fail(KS_FORMAT, "'%s' is given twice%s", key,
                   p->indented ? " (an indented line continues the one before it)" : "");
}

static ks_status add_setting(const struct ks_study_parser *p, struct ks_setting *list, size_t *n,
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

ks_status ks_study_take(struct ks_study_parser *p, const char *key, const char *value)
{
    static const char factors[] = "factors ";
    struct ks_study *s = p->study;
    struct ks_study_architecture *v = p->variant;
    struct ks_study_analysis *a = p->analysis;
    struct ks_settings alone;

    p->key = key;
    for (size_t i = 0; i < KS_STUDY_KEYS; i++)
        if (keys[i].section == p->section && strcmp(key, keys[i].name) == 0) {
            if (p->seen[i] && !(keys[i].form != ONE && p->indented))
                return refuse_second(p, key);
            p->seen[i] = true;
            return keys[i].form == WORDS ? split(p, value, keys[i].set) : keys[i].set(p, value);
        }
    switch (p->section) {
    case KS_NO_SECTION:
        return ks_fail(KS_FORMAT, "'%s' is outside of [study], [train], [variant] and [analyze]",
                       key);
    case KS_STUDY_SECTION:
        if (strncmp(key, factors, strlen(factors)) == 0)
            return s->n_factors == KS_STUDY_ARCHITECTURES
                       ? ks_fail(KS_FORMAT, "factors: more than %d", KS_STUDY_ARCHITECTURES)
                       : add_setting(p, s->factors, &s->n_factors,
                                     key + strlen(factors) + strspn(key + strlen(factors), " \t"),
                                     value);
        return ks_fail(KS_FORMAT, "unknown option '%s' for [study]", key);
    case KS_TRAIN_SECTION:
        KS_TRY(add_setting(p, s->train, &s->n_train, key, value));
        return ks_settings_set(&s->settings, key, value);
    case KS_VARIANT_SECTION: /* ks_study_read checks the setting together with [train] */
        KS_TRY(add_setting(p, v->own, &v->n_own, key, value));
        ks_settings_defaults(&alone);
        return ks_settings_set(&alone, key, value);
    default: /* each option is checked with those before it, so that a refusal names its line */
        KS_TRY(add_setting(p, a->setting, &a->n, key, value));
        return ks_study_set_option(a, key, a->setting[a->n - 1].value);
    }
}

void ks_study_open_section(struct ks_study_parser *p)
{
    p->section = KS_NO_SECTION;
    p->variant = NULL;
    p->analysis = NULL;
    for (size_t i = 0; i < KS_STUDY_KEYS; i++)
        p->seen[i] = p->seen[i] && keys[i].section == KS_STUDY_SECTION;
}
