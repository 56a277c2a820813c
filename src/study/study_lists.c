/* The lists of a study's file: architectures and seeds. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "study/study_parse.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/number.h"
#include "core/path.h"
#include "env/env.h"
#include "io/text.h"
#include "study/shell.h"
#include "train/architecture.h"
#include "train/system.h"

enum { MOST_SEED = 1000000000 };

/* Sets normalization and loss, known for the twelve named architectures. `word`: as the study's
 * file names the architecture, or the one that a variant changes. */
static void set_kind(struct ks_study_architecture *a, const char *word)
{
    const struct ks_architecture *named = ks_architecture_find(word);

    a->normalization = named ? named->normalization : "other";
    a->weight_normalization = named && named->weight_normalization;
    a->loss = named ? named->loss : "other";
}

/* Whether a name is safe as a folder, an option and a make target: letters, digits and +-_. only,
 * and no leading dot or dash. */
static bool study_is_plain(const char *name)
{
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("+-_.", *c))
            return false;
    return *name && *name != '.' && *name != '-';
}

/* The path of a file that is named relative to the folder of the study's file. Training gets the
 * folder's real path but the file's own name, even if that is a link: runs are named after it. */
static ks_status find_file(const struct ks_study *s, const char *key, const char *word,
                           bool check_files, char **path)
{
    const char *base = ks_path_base(word), *study = s->path;
    char *folder = NULL, *resolved;
    ks_status status;

    if (!check_files)
        return ks_copy_string(word, path);
    if (*word == '/')
        status = ks_print_string(&folder, "%.*s", (int)(base - word), word);
    else
        status = ks_print_string(&folder, "%.*s./%.*s", (int)(ks_path_base(study) - study), study,
                                 (int)(base - word), word);
    KS_TRY(status);
    resolved = realpath(folder, NULL);
    free(folder);
    status = ks_print_string(path, "%s/%s", resolved ? resolved : ".", base);
    free(resolved);
    KS_TRY(status);
    KS_TRY(ks_shell_check(key, *path));
    return resolved && ks_path_exists(*path)
               ? KS_OK
               : ks_fail(KS_FORMAT, "%s: %s: does not exist", key, word);
}

static ks_status set_file(const struct ks_study *s, const char *word, bool check_files,
                          struct ks_study_architecture *a)
{
    KS_TRY(ks_copy_string(ks_path_base(word), &a->name));
    return find_file(s, "architectures", word, check_files, &a->argument);
}

ks_status ks_study_set_env(struct ks_study *s, const char *word, bool check_files)
{
    const char *base = ks_path_base(word), *dot = strrchr(base, '.');
    bool file = ks_env_is_file(word);

    KS_TRY(ks_print_string(&s->env, "%.*s", file ? (int)(dot - base) : INT_MAX, base));
    if (!study_is_plain(s->env) || (base != word && !file) || ks_path_ends(base, ".task"))
        return ks_fail(KS_FORMAT, "env: expected the name of a task or of a .so file, found '%s'",
                       word);
    return file ? find_file(s, "env", word, check_files, &s->env_argument)
                : ks_copy_string(word, &s->env_argument);
}

static ks_status set_known(const char *word, bool check_files, struct ks_study_architecture *a)
{
    char *system;
    bool known;

    KS_TRY(ks_copy_string(word, &a->name));
    KS_TRY(ks_copy_string(word, &a->argument));
    if (!check_files || ks_architecture_find(word))
        return KS_OK;
    KS_TRY(ks_system_find(word, &system));
    known = system != NULL;
    free(system);
    return known ? KS_OK : ks_fail(KS_FORMAT, "architectures: unknown architecture '%s'", word);
}

static ks_status set_network(struct ks_study *s, const char *word, bool check_files,
                             struct ks_study_architecture *a)
{
    bool file = ks_architecture_is_file(word) || ks_system_is_file(word);

    if (!file && !study_is_plain(word))
        return ks_fail(KS_FORMAT, "architectures: unknown architecture '%s'", word);
    KS_TRY(ks_copy_string(word, &a->word));
    return file ? set_file(s, word, check_files, a) : set_known(word, check_files, a);
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

    if (!study_is_plain(name))
        return ks_fail(KS_FORMAT,
                       "architectures: '%s': expected a name of letters, digits and +-_.", name);
    for (size_t i = 0; i + 1 < s->n_architectures; i++)
        if (strcmp(s->architecture[i].name, name) == 0)
            return ks_fail(KS_FORMAT, "architectures: '%s' is given twice", name);
    return KS_OK;
}

static ks_status add_architecture(struct ks_study *s, const char *word, bool check_files)
{
    struct ks_study_architecture *a = NULL;

    KS_TRY(new_architecture(s, &a));
    KS_TRY(set_network(s, word, check_files, a));
    KS_TRY(check_name(s));
    set_kind(a, word);
    return KS_OK;
}

ks_status ks_study_add_variant(struct ks_study *s, const char *name, size_t line)
{
    struct ks_study_architecture *a = NULL;

    KS_TRY(new_architecture(s, &a));
    a->line = line;
    KS_TRY(ks_copy_string(name, &a->name));
    KS_TRY(check_name(s));
    return ks_architecture_find(name)
               ? ks_fail(KS_FORMAT, "[variant %s]: this is the name of an architecture", name)
               : KS_OK;
}

ks_status ks_study_set_network(struct ks_study *s, const char *word, bool check_files)
{
    struct ks_study_architecture *a = &s->architecture[s->n_architectures - 1];
    char *name = a->name;
    ks_status status;

    KS_TRY(ks_shell_check("architecture", word));
    a->name = NULL;
    status = set_network(s, word, check_files, a);
    free(a->name);
    a->name = name;
    set_kind(a, word);
    return status;
}

ks_status ks_study_add_architectures(struct ks_study *s, const char *word, bool check_files)
{
    KS_TRY(ks_shell_check("architectures", word));
    if (strcmp(word, "all") != 0)
        return add_architecture(s, word, check_files);
    for (const struct ks_architecture *named = ks_architectures; named->name; named++)
        KS_TRY(add_architecture(s, named->name, check_files));
    return KS_OK;
}

ks_status ks_study_parse_size(const char *what, const char *word, size_t low, size_t high,
                              size_t *value)
{
    uint64_t number = 0;

    if (!ks_parse_integer(word, low, high, &number))
        return ks_fail(KS_FORMAT, "%s: expected an integer from %zu to %zu, found '%s'", what, low,
                       high, word);
    *value = (size_t)number;
    return KS_OK;
}

ks_status ks_study_add_seeds(struct ks_study *s, const char *word)
{
    const char *dots = strstr(word, "..");
    char first[24] = "";
    size_t from = 0, to = 0, length = dots ? (size_t)(dots - word) : strlen(word);

    if (length >= sizeof first)
        return ks_fail(KS_FORMAT, "seeds: expected an integer, found '%s'", word);
    snprintf(first, sizeof first, "%.*s", (int)length, word);
    KS_TRY(ks_study_parse_size("seeds", first, 0, MOST_SEED, &from));
    to = from;
    if (dots)
        KS_TRY(ks_study_parse_size("seeds", dots + 2, from, MOST_SEED, &to));
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

size_t ks_study_base(const struct ks_study *s, size_t architecture)
{
    const struct ks_study_architecture *variant = &s->architecture[architecture];
    size_t i = 0;

    while (i < s->n_architectures && (variant->line == 0 || s->architecture[i].line > 0 ||
                                      strcmp(s->architecture[i].word, variant->word) != 0))
        i++;
    return i;
}

/* The scope of a further analysis: the keys `checkpoints` and `architectures` of [analyze NAME]. */

static const char CHECKPOINTS[] = "checkpoints", ARCHITECTURES[] = "architectures";

bool ks_study_is_scope(const char *key)
{
    return strcmp(key, CHECKPOINTS) == 0 || strcmp(key, ARCHITECTURES) == 0;
}

static ks_status set_checkpoints(struct ks_study_scope *scope, const char *value)
{
    static const char *const words[] = {"all", "trained", "last"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(value, words[i]) == 0) {
            scope->checkpoints = (enum ks_study_checkpoints)i;
            return KS_OK;
        }
    return ks_fail(KS_FORMAT, "checkpoints: expected all, trained or last, found '%s'", value);
}

/* Words after `list`, separated from it by a space; NULL: no words yet. */
static ks_status append(char **list, const char *words)
{
    char *longer = NULL;

    KS_TRY(ks_print_string(&longer, "%s%s%s", *list ? *list : "", *list ? " " : "", words));
    free(*list);
    *list = longer;
    return KS_OK;
}

ks_status ks_study_set_scope(struct ks_study_analysis *a, const char *key, const char *value,
                             size_t line)
{
    struct ks_study_scope *scope = &a->scope;

    if (strcmp(a->name, KS_STUDY_STANDARD) == 0)
        return ks_fail(
            KS_FORMAT,
            "%s: [analyze] is of every checkpoint; only an [analyze NAME] can be of some", key);
    if (strcmp(key, CHECKPOINTS) == 0)
        return set_checkpoints(scope, value);
    scope->line = line;
    return append(&scope->architectures, value);
}

/* The length of the word at the start of a list, after *list has passed the separators. */
static size_t next_word(const char **list)
{
    *list += strspn(*list, ", \t");
    return strcspn(*list, ", \t");
}

static bool lists(const char *list, const char *name)
{
    for (size_t n; (n = next_word(&list)) > 0; list += n)
        if (strlen(name) == n && strncmp(list, name, n) == 0)
            return true;
    return false;
}

static bool is_architecture(const struct ks_study *s, const char *word, size_t length)
{
    for (size_t i = 0; i < s->n_architectures; i++)
        if (strlen(s->architecture[i].name) == length &&
            strncmp(s->architecture[i].name, word, length) == 0)
            return true;
    return false;
}

ks_status ks_study_check_scopes(const struct ks_study *s)
{
    for (size_t k = 0; k < s->n_analyses; k++) {
        const struct ks_study_scope *scope = &s->analysis[k].scope;
        const char *list = scope->architectures ? scope->architectures : "";

        for (size_t n; (n = next_word(&list)) > 0; list += n)
            if (!is_architecture(s, list, n))
                return ks_fail(KS_FORMAT,
                               "%s:%zu: architectures: expected architectures of the study, found "
                               "'%.*s'",
                               s->path, scope->line, (int)n, list);
    }
    return KS_OK;
}

bool ks_study_asks_architecture(const struct ks_study *s, size_t analysis, size_t architecture)
{
    const char *list = s->analysis[analysis].scope.architectures;

    return !list || lists(list, s->architecture[architecture].name);
}

bool ks_study_asks_checkpoint(const struct ks_study *s, size_t analysis, size_t checkpoint)
{
    switch (s->analysis[analysis].scope.checkpoints) {
    case KS_STUDY_TRAINED:
        return s->checkpoint[checkpoint] > s->first_update;
    case KS_STUDY_LAST:
        return checkpoint + 1 == s->n_checkpoints;
    default:
        return true;
    }
}

size_t ks_study_asked_checkpoints(const struct ks_study *s, size_t analysis)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_checkpoints; i++)
        n += ks_study_asks_checkpoint(s, analysis, i);
    return n;
}

bool ks_study_asks(const struct ks_study *s, size_t analysis, size_t architecture,
                   size_t checkpoint)
{
    return ks_study_asks_checkpoint(s, analysis, checkpoint) &&
           ks_study_asks_architecture(s, analysis, architecture);
}
