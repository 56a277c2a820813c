/* Messages on standard error, and escaping of untrusted text in them. */
#ifndef KS_CORE_SAY_H
#define KS_CORE_SAY_H

#include <stddef.h>

/* Copies `text` into out[size] and returns out. Bytes that a terminal could interpret or that would
 * end the line are written as \xNN: control characters of ASCII, the control characters U+0080 to
 * U+009F, and invalid UTF-8. Text that does not fit is truncated. */
char *ks_escape(const char *text, size_t size, char *out);

/* Prints one escaped line on standard error, in a single write, so that lines of concurrent
 * programs do not interleave. The newline is added. */
void ks_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
