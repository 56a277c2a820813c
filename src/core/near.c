#include "core/near.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { LONGEST = 24, SHORT = 6, MISSING = 1, SWAPPED = 1, ADDED = 2, REPLACED = 2 };

/* Lower case, without '_' and '-', from behind the last '.'; false if it is empty or too long. */
static bool normalize(const char *word, char out[LONGEST])
{
    const char *dot = strrchr(word, '.');
    size_t n = 0;

    for (const char *c = dot ? dot + 1 : word; *c; c++) {
        if (*c == '_' || *c == '-')
            continue;
        if (n + 1 == LONGEST)
            return false;
        out[n++] = (char)tolower((unsigned char)*c);
    }
    out[n] = '\0';
    return n > 0;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* The cheapest way to make `word` from `name` by missing, added, replaced and swapped letters
 * (Damerau, Communications of the ACM 7, 1964). */
static int cost(const char *word, const char *name)
{
    int at[LONGEST][LONGEST];
    const int n = (int)strlen(word), m = (int)strlen(name);

    for (int i = 0; i <= n; i++)
        for (int j = 0; j <= m; j++) {
            int best = i == 0 ? MISSING * j : ADDED * i;

            if (i > 0 && j > 0) {
                best = at[i - 1][j - 1] + (word[i - 1] == name[j - 1] ? 0 : REPLACED);
                best = least(best, at[i - 1][j] + ADDED);
                best = least(best, at[i][j - 1] + MISSING);
            }
            if (i > 1 && j > 1 && word[i - 1] == name[j - 2] && word[i - 2] == name[j - 1])
                best = least(best, at[i - 2][j - 2] + SWAPPED);
            at[i][j] = best;
        }
    return at[n][m];
}

const char *ks_near(const char *word, size_t n, const char *const *names,
                    const struct ks_near_alias *aliases)
{
    char found[LONGEST], known[LONGEST];
    const char *nearest = NULL, *name = NULL;
    int allowed;

    if (!normalize(word, found))
        return NULL;
    allowed = strlen(found) < SHORT ? 1 : 2;
    for (; aliases && aliases->word && !name; aliases++)
        if (strcmp(aliases->word, found) == 0)
            name = aliases->name;
    for (size_t i = 0; i < n; i++) {
        if (!normalize(names[i], known))
            continue;
        if (strcmp(known, found) == 0 || (name && strcmp(names[i], name) == 0))
            return names[i];
        if (cost(found, known) <= allowed) {
            allowed = cost(found, known) - 1;
            nearest = names[i];
        }
    }
    return nearest;
}
