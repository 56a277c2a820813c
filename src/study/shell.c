#include "study/shell.h"

#include <ctype.h>
#include <string.h>

/* Copies as much of the word as fits, control characters as "\x0a". */
static void escape(const char *word, size_t room, char *text)
{
    size_t used = 0;

    for (; *word && used + 5 < room; word++)
        used += (size_t)snprintf(text + used, room - used,
                                 iscntrl((unsigned char)*word) ? "\\x%02x" : "%c",
                                 (unsigned char)*word);
}

ks_status ks_shell_check(const char *what, const char *word)
{
    char text[256] = "";

    for (const char *c = word; *c; c++)
        if (iscntrl((unsigned char)*c)) {
            escape(word, sizeof text, text);
            return ks_fail(KS_USAGE, "%s: expected no control characters, found '%s'", what, text);
        }
    return KS_OK;
}

void ks_shell_word(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "+-_./=:,";

    if (*word && word[strspn(word, plain)] == '\0') {
        fputs(word, out);
        return;
    }
    putc('\'', out);
    for (; *word; word++)
        if (*word == '\'')
            fputs("'\\''", out);
        else
            putc(*word, out);
    putc('\'', out);
}

void ks_shell_option(FILE *out, const char *key, const char *value)
{
    fprintf(out, " --%s=", key);
    ks_shell_word(out, value);
}
