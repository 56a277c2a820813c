#include "report/panels.h"

#include <assert.h>
#include <string.h>

/* Columns: of normalizations, with and without weight normalization, of others, and of all. */
enum { WIDEST = 3, NAMED = 2 * WIDEST, OTHERS = 2, MOST = NAMED + OTHERS, LOOKS = 4 };

static size_t index_of(const char *word, const char *const *words, size_t n)
{
    size_t i = 0;

    while (i < n && strcmp(words[i], word) != 0)
        i++;
    return i;
}

/* Column and row in the full grid of the twelve architectures; false for any other, variants of
 * them included. */
static bool find_place(enum ks_panels_kind kind, const struct ks_study_architecture *a, size_t *x,
                       size_t *y)
{
    static const char *const norms[] = {"bn", "ln", "dense"}, *const losses[] = {"ce", "mse"};
    size_t loss = index_of(a->loss, losses, 2), norm = index_of(a->normalization, norms, WIDEST);
    bool wide = kind == KS_PANELS_NORMALIZATIONS_AND_WEIGHTS;

    *x = wide ? 2 * norm + a->weight_normalization : norm;
    *y = wide ? loss : 2 * loss + a->weight_normalization;
    return norm < WIDEST && loss < 2 && a->line == 0;
}

/* Closes up: empty columns and rows are left out. Returns the number of places that are used. */
static size_t close_up(size_t n, size_t *place, size_t places)
{
    size_t used = 0;

    for (size_t p = 0; p < places; p++) {
        bool found = false;

        for (size_t i = 0; i < n; i++)
            if (place[i] == p) {
                found = true;
                place[i] = used;
            }
        used += found;
    }
    return used;
}

bool ks_panels_fill(enum ks_panels_kind kind, size_t n,
                    const struct ks_study_architecture *const *architecture,
                    struct ks_panels *panels)
{
    size_t others = 0, most = kind == KS_PANELS_NORMALIZATIONS ? 0 : OTHERS;
    bool taken[MOST][LOOKS] = {{false}};

    for (size_t i = 0; i < n; i++) {
        size_t x, y;

        if (!find_place(kind, architecture[i], &x, &y)) {
            if (others == most)
                return false;
            x = NAMED + others++;
            if (i > 0 && strcmp(architecture[i]->loss, "other") == 0)
                y = panels->y[0];
        }
        if (taken[x][y])
            return false;
        taken[x][y] = true;
        panels->x[i] = x;
        panels->y[i] = y;
    }
    panels->columns = close_up(n, panels->x, MOST);
    panels->rows = close_up(n, panels->y, LOOKS);
    return n > others && 3 * (n - others) >= 2 * (panels->columns - others) * panels->rows;
}

void ks_panels_place(size_t n, const struct ks_study_architecture *const *architecture,
                     struct ks_panels *panels)
{
    if (ks_panels_fill(KS_PANELS_NORMALIZATIONS, n, architecture, panels))
        return;
    panels->columns = n == 4 ? 2 : n < WIDEST ? n : WIDEST;
    assert(panels->columns > 0); /* as n >= 1 */
    panels->rows = (n + panels->columns - 1) / panels->columns;
    for (size_t i = 0; i < n; i++) {
        panels->x[i] = i % panels->columns;
        panels->y[i] = i / panels->columns;
    }
}
