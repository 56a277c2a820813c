/* What makes the spectra of two architectures incomparable, and the groups of those that can be
 * compared. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "results/results.h"

const char *const ks_condition_names[KS_CONDITIONS] = {
    [KS_CONDITION_MINIBATCHES] = "number of minibatches",
    [KS_CONDITION_ROWS] = "rows of a minibatch",
    [KS_CONDITION_ORDER] = "order",
    [KS_CONDITION_OPERATOR] = "operator",
    [KS_CONDITION_DISCOUNT] = "discount",
    [KS_CONDITION_REWARD_SCALE] = "reward scale",
    [KS_CONDITION_LOSS] = "loss",
    [KS_CONDITION_KIND] = "minibatches (fixed or fresh)",
};

/* The root attributes of a spectrum that say it. */
static const char *const attributes[KS_CONDITIONS] = {
    [KS_CONDITION_MINIBATCHES] = "batches", [KS_CONDITION_ROWS] = "minibatch_rows",
    [KS_CONDITION_ORDER] = "order",         [KS_CONDITION_OPERATOR] = "operator",
    [KS_CONDITION_DISCOUNT] = "gamma",      [KS_CONDITION_REWARD_SCALE] = "reward_scale",
    [KS_CONDITION_LOSS] = "loss_kind",      [KS_CONDITION_KIND] = "minibatches",
};

enum { VALUE = sizeof((struct ks_conditions *)0)->value[0] };
static const char NOT_SAID[] = "not said", AND[] = " and ";

/* With all eigenvalues, or a tolerance, the order does not matter. */
static void print_order(const struct ks_spectrum *s, char text[VALUE])
{
    const double order = ks_attribute_number(&s->attributes, "order");

    if (ks_attribute_text(&s->attributes, "tolerance"))
        snprintf(text, VALUE, "by tolerance");
    else if (order >= ks_attribute_number(&s->attributes, "dimension"))
        snprintf(text, VALUE, "all");
    else
        snprintf(text, VALUE, "%g", order);
}

static void print_value(const struct ks_spectrum *s, enum ks_condition c, char text[VALUE])
{
    const char *word = ks_attribute_text(&s->attributes, attributes[c]);
    const double number = ks_attribute_number(&s->attributes, attributes[c]);

    if (c == KS_CONDITION_ORDER && !isnan(number))
        print_order(s, text);
    else if (word)
        snprintf(text, VALUE, "%.*s", 20, word);
    else if (isnan(number))
        snprintf(text, VALUE, "%s", NOT_SAID);
    else
        snprintf(text, VALUE, "%.10g", number);
}

/* Whether the list "a and b" has this value. */
static bool has_value(const char *list, const char *value)
{
    for (const char *at = list; at && *at;) {
        const char *end = strstr(at, AND);
        const size_t length = end ? (size_t)(end - at) : strlen(at);

        if (strlen(value) == length && strncmp(at, value, length) == 0)
            return true;
        at = end ? end + strlen(AND) : NULL;
    }
    return false;
}

/* Distinct values are joined as far as there is room. */
static void take_value(struct ks_conditions *of, enum ks_condition c, const char *value)
{
    char *list = of->value[c];
    const size_t used = strlen(list);

    if (has_value(list, value))
        return;
    /* A run notices at its second checkpoint that its minibatches are not the first one's. */
    if (c == KS_CONDITION_KIND && (has_value(list, "fixed") || has_value(list, "fresh")) &&
        (strcmp(value, "fixed") == 0 || strcmp(value, "fresh") == 0)) {
        snprintf(list, VALUE, "fresh");
        return;
    }
    if (used > 0)
        of->mixed = of->differs[c] = true;
    if (used + strlen(AND) + strlen(value) < VALUE)
        snprintf(list + used, VALUE - used, "%s%s", used > 0 ? AND : "", value);
}

/* Runs that are trained here choose fresh minibatches at each checkpoint, and divide rewards by
 * what their own returns say. */
static const char *known_here(enum ks_condition c)
{
    return c == KS_CONDITION_KIND ? "fresh" : c == KS_CONDITION_REWARD_SCALE ? "its own" : NULL;
}

static void read_conditions(struct ks_results *r, size_t architecture)
{
    const bool here = !r->study->architecture[architecture].elsewhere;
    struct ks_conditions *of = &r->conditions[architecture];
    const struct ks_result *run[KS_STUDY_SEEDS];
    const size_t n = ks_results_runs(r, architecture, run);

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < r->study->n_checkpoints; k++) {
            const struct ks_spectrum *s = ks_results_spectrum(r, run[i], 0, k);

            for (enum ks_condition c = 0; s && c < KS_CONDITIONS; c++) {
                char value[VALUE];

                print_value(s, c, value);
                take_value(of, c, here && known_here(c) ? known_here(c) : value);
            }
        }
}

/* --- groups --- */

static bool is_designed(const struct ks_results *r, size_t a)
{
    return !r->study->architecture[a].elsewhere || r->study->architecture[a].has_factors;
}

/* Whether `a` has the loss of any member of the group of `first`. */
static bool has_loss(const struct ks_results *r, size_t a, size_t first)
{
    const struct ks_conditions *all = r->conditions;

    for (size_t b = 0; b < r->study->n_architectures; b++)
        if (all[b].group == all[first].group &&
            (strcmp(all[a].value[KS_CONDITION_LOSS], all[b].value[KS_CONDITION_LOSS]) == 0 ||
             (is_designed(r, a) && is_designed(r, b))))
            return true;
    return false;
}

static bool agrees(const struct ks_results *r, size_t a, size_t first, enum ks_condition c)
{
    const struct ks_study_architecture *list = r->study->architecture;

    if (c == KS_CONDITION_LOSS)
        return has_loss(r, a, first);
    if (c == KS_CONDITION_REWARD_SCALE && (!list[a].elsewhere || !list[first].elsewhere))
        return true;
    return strcmp(r->conditions[a].value[c], r->conditions[first].value[c]) == 0;
}

/* Puts an architecture into the first group with which it agrees, or into a new one. first
 * [n_groups]: the first architecture of each. */
static void set_group(struct ks_results *r, size_t a, size_t *first)
{
    const bool here = !r->study->architecture[a].elsewhere;
    struct ks_conditions *of = &r->conditions[a];
    size_t g = 0;

    for (; g < r->n_groups && !(here && g == 0); g++) {
        bool all = !of->mixed && !r->conditions[first[g]].mixed;

        for (enum ks_condition c = 0; c < KS_CONDITIONS; c++)
            all = all && agrees(r, a, first[g], c);
        if (all)
            break;
    }
    if (g == r->n_groups)
        first[r->n_groups++] = a;
    of->group = g + 1;
}

/* Without architectures that are trained here, group 1 is the largest one, the first of these. */
static void number_groups(struct ks_results *r, size_t *first)
{
    size_t count[KS_STUDY_ARCHITECTURES + 1] = {0}, largest = 1;
    const size_t one = first[0];

    for (size_t a = 0; a < r->study->n_architectures; a++)
        count[r->conditions[a].group] += r->included[a];
    for (size_t g = 2; g <= r->n_groups; g++)
        largest = count[g] > count[largest] ? g : largest;
    if (largest == 1 || !r->study->architecture[one].elsewhere)
        return;
    for (size_t a = 0; a < r->study->n_architectures; a++) {
        size_t *group = &r->conditions[a].group;

        *group = *group == 1 ? largest : *group == largest ? 1 : *group;
    }
    first[0] = first[largest - 1];
    first[largest - 1] = one;
}

/* First those that are trained here, then those whose own spectra agree, then the others. */
ks_status ks_conditions_find(struct ks_results *r)
{
    const struct ks_study *s = r->study;
    size_t first[KS_STUDY_ARCHITECTURES] = {0};

    for (size_t a = 0; a < s->n_architectures; a++)
        if (r->included[a])
            read_conditions(r, a);
    for (int turn = 0; turn < 3; turn++)
        for (size_t a = 0; a < s->n_architectures; a++) {
            const int its = !s->architecture[a].elsewhere ? 0 : r->conditions[a].mixed ? 2 : 1;

            if (r->included[a] && its == turn)
                set_group(r, a, first);
        }
    number_groups(r, first);
    for (size_t a = 0; a < s->n_architectures; a++)
        for (enum ks_condition c = 0; c < KS_CONDITIONS && r->conditions[a].group > 1; c++)
            r->conditions[a].differs[c] = r->conditions[a].differs[c] || !agrees(r, a, first[0], c);
    return KS_OK;
}

void ks_conditions_print(const struct ks_conditions *of, const struct ks_conditions *first,
                         size_t room, char *text)
{
    size_t used = 0;

    *text = '\0';
    for (enum ks_condition c = 0; c < KS_CONDITIONS && used < room; c++) {
        const bool both = first && strcmp(of->value[c], first->value[c]) != 0;

        if (of->differs[c])
            used += (size_t)snprintf(text + used, room - used, "%s%s %s%s%s", used > 0 ? "; " : "",
                                     ks_condition_names[c], of->value[c], both ? " against " : "",
                                     both ? first->value[c] : "");
    }
}
