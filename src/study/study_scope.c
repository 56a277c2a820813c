/* The scope of a further analysis: the keys `checkpoints` and `architectures` of [analyze NAME]. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "io/text.h"
#include "study/study_keys.h"

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
