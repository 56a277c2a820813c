#include "ks/shell.h"

#include <string.h>

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
