/* Names by patterns: `*` stands for any characters except '.' and '/', `**` for any characters, `?`
 * for one character except these two. Every other character stands for itself. */
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

/* Whether a pattern has at most so many wildcards and characters. */
bool ks_glob_valid(const char *glob);
/* Whether the name matches; then the first parts are as short as possible. `glob` must be valid,
 * and `name` shorter than KS_STORED_NAME. `parts` may be NULL. */
bool ks_glob_matches(const char *glob, const char *name, struct ks_glob_parts *parts);

/* strcmp, but digits are compared as numbers: q2 before q10. */
int ks_glob_compare(const char *a, const char *b);

#endif
