/* Runs programs and reads their messages, which go to the file "said" of a tree. The programs are
 * in $KS_BIN, or in build/bin if that is not set. */
#ifndef KS_SAID_H
#define KS_SAID_H

#include "tree.h"

#include <sys/wait.h>

/* Runs a program in a shell; its output goes to the file "said". */
static inline int run(const char *name, const char *arguments)
{
    const char *bin = getenv("KS_BIN") ? getenv("KS_BIN") : "build/bin";
    char command[4096];
    int result;

    snprintf(command, sizeof command, "%s/%s", bin, name);
    if (access(command, X_OK) != 0)
        skip();
    snprintf(command, sizeof command, "%s/%s %s >%s 2>&1 </dev/null", bin, name, arguments,
             tree_path("said"));
    result = system(command);
    return WIFEXITED(result) ? WEXITSTATUS(result) : -1;
}

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
