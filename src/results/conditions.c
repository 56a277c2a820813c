/* What makes the spectra of two architectures incomparable, and the groups of those that can be
 * compared. Two architectures agree if they agree in each analysis of which both have spectra, as
 * Figure 4 may show another analysis than the standard one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/line.h"
#include "core/memory.h"
#include "operators/operator.h"
#include "results/results.h"

/* What they are called, and the root attributes of a spectrum that say them. */
static const struct {
    const char *name, *attribute;
} conditions[KS_CONDITIONS] = {
    [KS_CONDITION_MINIBATCHES] = {"number of minibatches", "batches"},
    [KS_CONDITION_ROWS] = {"rows of a minibatch", "minibatch_rows"},
    [KS_CONDITION_ORDER] = {"order", "order"},
    [KS_CONDITION_OPERATOR] = {"operator", "operator"},
    [KS_CONDITION_DISCOUNT] = {"discount", "gamma"},
    [KS_CONDITION_REWARD_SCALE] = {"reward scale", "reward_scale"},
    [KS_CONDITION_LOSS] = {"loss", "loss_kind"},
    [KS_CONDITION_KIND] = {"minibatches (fixed or fresh)", "minibatches"},
    [KS_CONDITION_PARAMETERS] = {"number of parameters", "dimension"},
};

static const char NOT_SAID[] = "not said";

static struct ks_comparability *conditions_of(const struct ks_results *r, size_t analysis,
                                              size_t architecture)
{
    return &r->conditions[analysis * r->study->n_architectures + architecture];
}

static bool has_spectra(const struct ks_results *r, size_t analysis, size_t architecture)
{
    return conditions_of(r, analysis, architecture)->value[0].n > 0;
}

/* With all eigenvalues, or a tolerance, the order does not matter. */
static ks_status print_order(const struct ks_spectrum *s, char **text)
{
    const double order = ks_attribute_number(&s->attributes, "order");

    if (ks_attribute_text(&s->attributes, "tolerance"))
        return ks_copy_string("by tolerance", text);
    return order >= ks_attribute_number(&s->attributes, "dimension")
               ? ks_copy_string("all", text)
               : ks_print_string(text, "%g", order);
}

/* Of an operator in coordinates that the optimizer moves, the dimension is not the number of
 * parameters: it changes as units die. */
static bool is_moving(const struct ks_spectrum *s)
{
    const char *name = ks_attribute_text(&s->attributes, "operator");
    const struct ks_operator_kind *kind = name ? ks_operator_kind_find(name) : NULL;

    return kind && kind->moving;
}

static ks_status print_value(const struct ks_spectrum *s, enum ks_condition c, char **text)
{
    const char *word = c == KS_CONDITION_PARAMETERS && is_moving(s)
                           ? "not compared"
                           : ks_attribute_text(&s->attributes, conditions[c].attribute);
    const char *options = c == KS_CONDITION_LOSS ? ks_attribute_text(&s->attributes, "loss_options")
                                                 : NULL;
    const double number = ks_attribute_number(&s->attributes, conditions[c].attribute);

    if (c == KS_CONDITION_ORDER && !isnan(number))
        return print_order(s, text);
    if (word)
        return ks_print_string(text, "%s%s%s", word, options ? " " : "", options ? options : "");
    return isnan(number) ? ks_copy_string(NOT_SAID, text) : ks_print_string(text, "%.10g", number);
}

static bool are_equal(const struct ks_list *a, const struct ks_list *b)
{
    bool equal = a->n == b->n;

    for (size_t i = 0; i < a->n && equal; i++)
        equal = strcmp(a->text[i], b->text[i]) == 0;
    return equal;
}

static ks_status take_value(struct ks_comparability *of, enum ks_condition c, const char *value)
{
    struct ks_list *v = &of->value[c];

    if (ks_word_index(value, v->n, (const char *const *)v->text) < v->n)
        return KS_OK;
    KS_TRY(ks_list_add(v, "%s", value));
    if (v->n > 1)
        of->mixed = of->differs[c] = true;
    return KS_OK;
}

/* Runs that are trained here choose fresh minibatches at each checkpoint, and divide rewards by
 * what their own returns say. */
static const char *known_here(enum ks_condition c)
{
    return c == KS_CONDITION_KIND ? "fresh" : c == KS_CONDITION_REWARD_SCALE ? "its own" : NULL;
}

/* A run notices at its second checkpoint that its minibatches are not the first one's. */
static bool has_fresh_minibatches(const struct ks_results *r, const struct ks_result *run)
{
    bool fresh = false;

    for (size_t i = 0; i < r->study->n_analyses * r->study->n_checkpoints; i++) {
        const struct ks_spectrum *s = run->spectrum[i];
        const char *kind = s ? ks_attribute_text(&s->attributes,
                                                 conditions[KS_CONDITION_KIND].attribute)
                             : NULL;

        fresh = fresh || (kind && strcmp(kind, "fresh") == 0);
    }
    return fresh;
}

/* What a spectrum says, except for what is known of its run. */
static ks_status read_spectrum(const struct ks_spectrum *s, bool here, bool fresh,
                               struct ks_comparability *of)
{
    for (enum ks_condition c = 0; c < KS_CONDITIONS; c++) {
        const char *known = here ? known_here(c) : NULL;
        KS_OWNED char *said = NULL;

        KS_TRY(print_value(s, c, &said));
        if (!known && c == KS_CONDITION_KIND && fresh && strcmp(said, "fixed") == 0)
            known = "fresh";
        KS_TRY(take_value(of, c, known ? known : said));
    }
    return KS_OK;
}

static ks_status read_conditions(struct ks_results *r, size_t architecture)
{
    const bool here = !r->study->architecture[architecture].elsewhere;
    const struct ks_runs runs = ks_results_runs(r, architecture);

    for (size_t a = 0; a < r->study->n_analyses; a++) {
        struct ks_comparability *of = conditions_of(r, a, architecture);

        for (size_t i = 0; i < runs.n; i++)
            for (size_t k = 0; k < r->study->n_checkpoints; k++) {
                const struct ks_spectrum *s = ks_results_spectrum(r, runs.run[i], a, k);

                if (s)
                    KS_TRY(read_spectrum(s, here, has_fresh_minibatches(r, runs.run[i]), of));
            }
        if (of->mixed)
            r->conditions[architecture].mixed = true;
    }
    return KS_OK;
}

/* Whether all spectra have this loss, whatever its options, or do not say theirs. */
static bool have_loss(const struct ks_list *of, const char *loss)
{
    const size_t length = strlen(loss);

    return of->n == 0 ||
           (of->n == 1 &&
            (strcmp(of->text[0], NOT_SAID) == 0 ||
             (strncmp(of->text[0], loss, length) == 0 && strchr(" ", of->text[0][length]))));
}

/* Factors whose loss the spectra contradict are not used. */
static ks_status check_factors(struct ks_results *r, struct ks_study_architecture *a)
{
    const struct ks_comparability *of = &r->conditions[a - r->study->architecture];
    KS_OWNED char *losses = NULL;

    if (!a->has_factors || have_loss(&of->value[KS_CONDITION_LOSS], a->loss))
        return KS_OK;
    KS_TRY(ks_condition_print(of, KS_CONDITION_LOSS, &losses));
    KS_TRY(ks_list_add(&r->warnings,
                       "%s: its factors are not used: they say %s, the loss of its spectra is %s",
                       a->name, a->loss, losses));
    a->has_factors = a->weight_normalization = false;
    a->normalization = a->loss = "other";
    return KS_OK;
}

/* --- groups --- */

static bool is_designed(const struct ks_results *r, size_t a)
{
    return !r->study->architecture[a].elsewhere || r->study->architecture[a].has_factors;
}

/* The first member of a group, without those that are mixed, that has spectra of the analysis;
 * n_architectures: none. */
static size_t find_member(const struct ks_results *r, size_t group, size_t analysis)
{
    size_t a = 0;

    while (
        a < r->study->n_architectures &&
        (r->conditions[a].group != group || r->conditions[a].mixed || !has_spectra(r, analysis, a)))
        a++;
    return a;
}

/* Whether `a` has the loss of any member of the group. */
static bool has_loss(const struct ks_results *r, size_t a, size_t group, size_t analysis)
{
    const struct ks_list *loss = &conditions_of(r, analysis, a)->value[KS_CONDITION_LOSS];

    for (size_t b = 0; b < r->study->n_architectures; b++)
        if (r->conditions[b].group == group && !r->conditions[b].mixed &&
            (are_equal(loss, &conditions_of(r, analysis, b)->value[KS_CONDITION_LOSS]) ||
             (is_designed(r, a) && is_designed(r, b))))
            return true;
    return false;
}

/* The number of parameters has to be equal only within one architecture. */
static bool agrees(const struct ks_results *r, size_t a, size_t group, size_t analysis,
                   enum ks_condition c)
{
    const struct ks_study_architecture *list = r->study->architecture;
    const size_t b = find_member(r, group, analysis);

    if (b == r->study->n_architectures || !has_spectra(r, analysis, a) ||
        c == KS_CONDITION_PARAMETERS)
        return true;
    if (c == KS_CONDITION_LOSS)
        return has_loss(r, a, group, analysis);
    if (c == KS_CONDITION_REWARD_SCALE && (!list[a].elsewhere || !list[b].elsewhere))
        return true;
    return are_equal(&conditions_of(r, analysis, a)->value[c],
                     &conditions_of(r, analysis, b)->value[c]);
}

/* Whether `a` and the members of the group, without those that are mixed, agree. */
static bool belongs(const struct ks_results *r, size_t a, size_t group)
{
    bool all = !r->conditions[a].mixed, any = false;

    for (size_t b = 0; b < r->study->n_architectures; b++)
        any = any || (r->conditions[b].group == group && !r->conditions[b].mixed);
    all = all && any;
    for (size_t k = 0; k < r->study->n_analyses; k++)
        for (enum ks_condition c = 0; c < KS_CONDITIONS; c++)
            all = all && agrees(r, a, group, k, c);
    return all;
}

/* Puts an architecture into the first group with which it agrees, or into a new one. One from
 * elsewhere without spectra is in none. */
static void set_group(struct ks_results *r, size_t a)
{
    const bool here = !r->study->architecture[a].elsewhere;
    bool any = here;
    size_t g = 1;

    for (size_t k = 0; k < r->study->n_analyses; k++)
        any = any || has_spectra(r, k, a);
    if (!any)
        return;
    while (g <= r->n_groups && !(here && g == 1) && !belongs(r, a, g))
        g++;
    r->n_groups = g > r->n_groups ? g : r->n_groups;
    r->conditions[a].group = g;
}

/* Without architectures that are trained here, group 1 is the largest group (of several, the
 * first). Architectures that lack the analysis in which their group differs from group 1 join
 * group 1. */
static void number_groups(struct ks_results *r)
{
    size_t count[KS_STUDY_ARCHITECTURES + 1] = {0}, largest = 1;

    for (size_t a = 0; a < r->study->n_architectures; a++) {
        if (r->included[a] && !r->study->architecture[a].elsewhere)
            return;
        count[r->conditions[a].group]++;
    }
    for (size_t g = 2; g <= r->n_groups; g++)
        largest = count[g] > count[largest] ? g : largest;
    for (size_t a = 0; a < r->study->n_architectures; a++) {
        size_t *group = &r->conditions[a].group;

        *group = *group == 1 ? largest : *group == largest ? 1 : *group;
    }
    for (size_t a = 0; a < r->study->n_architectures; a++)
        if (r->conditions[a].group > 1 && belongs(r, a, 1))
            r->conditions[a].group = 1;
}

bool ks_results_comparable(const struct ks_results *r, size_t a, size_t b)
{
    const size_t of_a = r->conditions ? r->conditions[a].group : 0,
                 of_b = r->conditions ? r->conditions[b].group : 0;

    return of_a == 0 || of_b == 0 || of_a == of_b;
}

static void find_differences(struct ks_results *r, size_t a)
{
    for (size_t k = 0; k < r->study->n_analyses; k++)
        for (enum ks_condition c = 0; c < KS_CONDITIONS; c++) {
            struct ks_comparability *of = conditions_of(r, k, a);

            if (r->conditions[a].group > 1 && !agrees(r, a, 1, k, c))
                of->differs[c] = true;
        }
}

/* Architectures that are trained here are put into groups first, then architectures whose own
 * spectra agree, then the others. */
ks_status ks_conditions_find(struct ks_results *r)
{
    struct ks_study *s = r->study;

    for (size_t a = 0; a < s->n_architectures; a++)
        if (r->included[a]) {
            KS_TRY(read_conditions(r, a));
            KS_TRY(check_factors(r, &s->architecture[a]));
        }
    for (int turn = 0; turn < 3; turn++)
        for (size_t a = 0; a < s->n_architectures; a++) {
            const int its = !s->architecture[a].elsewhere ? 0 : r->conditions[a].mixed ? 2 : 1;

            if (r->included[a] && its == turn)
                set_group(r, a);
        }
    r->n_groups = r->n_groups > 0 ? r->n_groups : 1;
    number_groups(r);
    for (size_t a = 0; a < s->n_architectures; a++)
        find_differences(r, a);
    for (size_t a = 0; a < s->n_architectures; a++) {
        const bool missing = !has_spectra(r, 0, a);

        for (enum ks_condition c = 0; c < KS_CONDITIONS && missing; c++)
            KS_TRY(take_value(&r->conditions[a], c, NOT_SAID));
    }
    return KS_OK;
}

void ks_conditions_clear(struct ks_results *r)
{
    const size_t n = r->conditions ? r->study->n_analyses * r->study->n_architectures : 0;

    for (size_t i = 0; i < n; i++)
        for (enum ks_condition c = 0; c < KS_CONDITIONS; c++)
            ks_list_clear(&r->conditions[i].value[c]);
}

/* --- as words --- */

static void print_values(const struct ks_list *v, FILE *out)
{
    for (size_t i = 0; i < v->n; i++)
        fprintf(out, "%s%s", i > 0 ? " and " : "", v->text[i]);
}

ks_status ks_condition_print(const struct ks_comparability *of, enum ks_condition c, char **text)
{
    size_t size;
    FILE *out = open_memstream(text, &size);

    if (out)
        print_values(&of->value[c], out);
    return ks_stream_close(out);
}

/* Prints a condition of an analysis; other: NULL, or the values that it is compared with. */
static void print_difference(const struct ks_study_analysis *analysis, const struct ks_list *its,
                             const struct ks_list *other, FILE *out)
{
    print_values(its, out);
    if (other && other->n > 0 && !are_equal(its, other)) {
        fputs(" against ", out);
        print_values(other, out);
    }
    if (strcmp(analysis->name, KS_STUDY_STANDARD) != 0)
        fprintf(out, " in [analyze %s]", analysis->name);
}

ks_status ks_conditions_print(const struct ks_results *r, size_t architecture, size_t against,
                              char **text)
{
    size_t size, n = 0;
    FILE *out = open_memstream(text, &size);

    for (enum ks_condition c = 0; out && c < KS_CONDITIONS; c++)
        for (size_t k = 0; k < r->study->n_analyses; k++) {
            const struct ks_comparability *of = conditions_of(r, k, architecture);

            if (!of->differs[c])
                continue;
            fprintf(out, "%s%s ", n++ > 0 ? "; " : "", conditions[c].name);
            print_difference(&r->study->analysis[k], &of->value[c],
                             against < r->study->n_architectures
                                 ? &conditions_of(r, k, against)->value[c]
                                 : NULL,
                             out);
            break; /* in further analyses likewise */
        }
    return ks_stream_close(out);
}
