/* What a study's file says of names: the groups of `family`, which share a colour, and the factors
 * of the XQC paper that runs from elsewhere have. */
#include "study/study_parse.h"

#include <stdlib.h>
#include <string.h>

#include "core/line.h"
#include "core/memory.h"

static ks_status find_named(struct ks_study *s, const char *name, struct ks_study_architecture **a)
{
    const size_t i = ks_study_find_architecture(s, name);

    *a = &s->architecture[i];
    return i < s->n_architectures
               ? KS_OK
               : ks_fail(KS_FORMAT, "expected names of the study, found '%s'", name);
}

/* The bars between the groups need no spaces. */
static ks_status resolve_family(struct ks_study *s)
{
    size_t family = 1;
    KS_OWNED char *copy = NULL;
    char *save = NULL;

    KS_TRY(ks_copy_string(s->family, &copy));
    for (char *next = copy; next; family++) {
        char *group = next;

        next = strchr(group, '|');
        if (next)
            *next++ = '\0';
        for (char *word = strtok_r(group, ", \t", &save); word;
             word = strtok_r(NULL, ", \t", &save)) {
            struct ks_study_architecture *a;

            KS_TRY(find_named(s, word, &a));
            if (a->family > 0)
                return ks_fail(KS_FORMAT, "'%s' is given twice", word);
            a->family = family;
        }
    }
    return KS_OK;
}

/* One word per factor, in any order; without a normalization there is none, and without a loss it
 * is the squared error's. */
static ks_status take_factors(const char *value, struct ks_study_architecture *a)
{
    static const char *const words[] = {"bn", "ln", "dense", "wn", "ce", "mse"};
    enum { WN = 3, CE, WORDS = 6 };
    bool seen[3] = {false};
    KS_OWNED char *copy = NULL;
    char *save = NULL;

    a->has_factors = true;
    a->normalization = words[WN - 1];
    a->loss = words[WORDS - 1];
    KS_TRY(ks_copy_string(value, &copy));
    for (char *word = strtok_r(copy, ", +\t", &save); word; word = strtok_r(NULL, ", +\t", &save)) {
        const size_t k = ks_word_index(word, WORDS, words), factor = k < WN ? 0 : k == WN ? 1 : 2;

        if (k == WORDS)
            return ks_fail(KS_FORMAT, "expected bn, ln or dense, wn, ce or mse, found '%s'", word);
        if (seen[factor])
            return ks_fail(KS_FORMAT, "'%s' contradicts or repeats the words before it", word);
        seen[factor] = true;
        if (k < WN)
            a->normalization = words[k];
        else if (k >= CE)
            a->loss = words[k];
        else
            a->weight_normalization = true;
    }
    return KS_OK;
}

/* The paper's claims compare one architecture with another. */
static ks_status check_distinct(const struct ks_study *s, const struct ks_study_architecture *a)
{
    for (size_t i = 0; i < s->n_architectures; i++) {
        const struct ks_study_architecture *b = &s->architecture[i];

        if (b != a && b->line == 0 && (b->has_factors || !b->elsewhere) &&
            strcmp(a->normalization, b->normalization) == 0 && strcmp(a->loss, b->loss) == 0 &&
            a->weight_normalization == b->weight_normalization)
            return ks_fail(KS_FORMAT, "'%s' has the same: the paper's claims need one of each",
                           b->name);
    }
    return KS_OK;
}

static ks_status resolve_factors(struct ks_study *s, const struct ks_setting *f)
{
    struct ks_study_architecture *a;

    KS_TRY(find_named(s, f->key, &a));
    if (!a->elsewhere)
        return ks_fail(KS_FORMAT, "'%s' is trained here, so its name says what it has", f->key);
    KS_TRY(take_factors(f->value, a));
    return check_distinct(s, a);
}

ks_status ks_study_resolve_names(struct ks_study *s)
{
    ks_status status;

    for (size_t i = 0; i < s->n_factors; i++)
        if (resolve_factors(s, &s->factors[i]) != KS_OK)
            return ks_study_fail_at(s, s->factors[i].line, "factors", KS_FORMAT);
    status = s->family ? resolve_family(s) : KS_OK;
    return status == KS_OK ? KS_OK : ks_study_fail_at(s, s->family_line, "family", status);
}
