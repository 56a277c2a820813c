/* Assertions about a program's messages, which were redirected to the file "said" of a tree. */
#ifndef KS_SAID_H
#define KS_SAID_H

#include "tree.h"

static inline size_t count(const char *text, const char *words)
{
    size_t n = 0;

    for (; (text = strstr(text, words)); text++)
        n++;
    return n;
}

/* The messages contain `words` and have this number of lines (0: any number). */
static inline void assert_said(const char *words, size_t lines)
{
    const char *said = tree_text("said");

    if (!strstr(said, words))
        fail_msg("'%s' does not contain '%s'", said, words);
    if (lines > 0)
        assert_int_equal(count(said, "\n"), lines);
}

#endif
