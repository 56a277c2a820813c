/* Lines on standard error, and text of others in them. */
#ifndef KS_CORE_SAY_H
#define KS_CORE_SAY_H

#include <stddef.h>

/* Copies `text` into out[size] and returns out. What a terminal could take for a command, or what
 * would end the line, is written as \xNN, byte by byte: the control characters of ASCII, those that
 * UTF-8 adds (U+0080 to U+009F), and bytes that are no UTF-8. What does not fit is cut off. */
char *ks_escape(const char *text, size_t size, char *out);

/* Prints a line on standard error, in one piece, so that lines of several programs do not mix:
 * the format's text, escaped, and a newline behind it. */
void ks_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
