/* Commands for the shell, as the study prints them. */
#ifndef KS_SHELL_H
#define KS_SHELL_H

#include <stdio.h>

/* Prints one word for the shell: in single quotes, unless no character of it is special there. */
void ks_shell_word(FILE *out, const char *word);

/* Prints " --KEY=VALUE", the value as a word. */
void ks_shell_option(FILE *out, const char *key, const char *value);

#endif
