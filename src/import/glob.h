/* Patterns for names. `*` stands for any characters except '.' and '/', `**` for any characters,
 * and
 * `?` for one character except these two. Every other character stands for itself. */
#ifndef KS_IMPORT_GLOB_H
#define KS_IMPORT_GLOB_H

#include <stdbool.h>
#include <stddef.h>

enum { KS_GLOB_WILDCARDS = 8, KS_GLOB_LENGTH = 256 };

/* What each wildcard of the pattern stands for in a name. */
struct ks_glob_parts {
    size_t n;
    struct {
        const char *start; /* in the name */
        size_t length;
    } part[KS_GLOB_WILDCARDS];
};

/* Whether a pattern has at most KS_GLOB_WILDCARDS wildcards and fewer than KS_GLOB_LENGTH
 * characters, and is not empty. */
bool ks_glob_valid(const char *glob);
/* Whether the name matches. If so, sets *parts, unless it is NULL; wildcards at the left stand for
 * as few characters as possible. `glob` must be valid, and `name` shorter than KS_STORED_NAME. */
bool ks_glob_matches(const char *glob, const char *name, struct ks_glob_parts *parts);

/* Compares like strcmp, but digits as numbers: q2 is less than q10. */
int ks_glob_compare(const char *a, const char *b);

#endif
