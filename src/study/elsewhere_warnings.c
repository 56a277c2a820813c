/* Warnings about many files or rows: few lines, however many there are. */
#include "study/elsewhere.h"

#include <stdio.h>

enum { FEW = 3 };

void ks_left_out_add(struct ks_left_out *l, const char *name)
{
    if (l->n++ == 0)
        ks_escape(name, sizeof l->first, l->first); /* a line break would make two warnings */
}

ks_status ks_left_out_warn(struct ks_study *s, const char *folder, const struct ks_left_out *l,
                           const char *why)
{
    char more[48] = "";

    if (l->n == 0)
        return KS_OK;
    if (l->n > 1)
        snprintf(more, sizeof more, "; likewise %zu further", l->n - 1);
    return ks_list_add(&s->warnings, "%s/%s: %s%s", folder, l->first, why, more);
}

ks_status ks_warn_few(struct ks_study *s, size_t *n, const char *message)
{
    return ++*n > FEW ? KS_OK : ks_list_add(&s->warnings, "%s", message);
}

ks_status ks_warn_rest(struct ks_study *s, const char *path, size_t n, const char *what)
{
    return n <= FEW ? KS_OK
                    : ks_list_add(&s->warnings, "%s: %zu further %s%s", path, n - FEW, what,
                                  n - FEW == 1 ? " is left out" : "s are left out");
}
