#include "core/error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#undef ks_fail

static _Thread_local char message[1024];

ks_status ks_fail(ks_status status, const char *format, ...)
{
    char words[sizeof message];
    va_list arguments;

    assert(status != KS_OK);
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    ks_escape(words, sizeof message, message);
    return status;
}

const char *ks_error_text(void)
{
    return message;
}

int ks_exit_status(ks_status status)
{
    switch (status) {
    case KS_OK:
        return 0;
    case KS_USAGE:
    case KS_FORMAT:
    case KS_IO:
    case KS_MISSING:
        return 2;
    case KS_PARTIAL:
        return 3;
    default:
        return 1;
    }
}

/* --- messages --- */

enum { LINE = 8192, ESCAPED = 4 }; /* bytes of a line, and of an escaped byte */

static bool continues(unsigned char byte)
{
    return (byte & 0xC0) == 0x80;
}

/* The length in bytes of the printable UTF-8 character at c; 0 if c is not printable or invalid. */
static size_t printable(const unsigned char *c)
{
    if (c[0] < 0x80)
        return c[0] >= 0x20 && c[0] != 0x7F;
    if (c[0] < 0xC2 || c[0] > 0xF4 || !continues(c[1]))
        return 0;
    if (c[0] < 0xE0)
        return c[0] > 0xC2 || c[1] >= 0xA0 ? 2 : 0;
    if ((c[0] == 0xE0 && c[1] < 0xA0) || (c[0] == 0xED && c[1] > 0x9F) || !continues(c[2]))
        return 0;
    if (c[0] < 0xF0)
        return 3;
    if ((c[0] == 0xF0 && c[1] < 0x90) || (c[0] == 0xF4 && c[1] > 0x8F) || !continues(c[3]))
        return 0;
    return 4;
}

char *ks_escape(const char *text, size_t size, char *out)
{
    const unsigned char *c = (const unsigned char *)text;
    size_t used = 0;

    while (*c) {
        size_t length = printable(c);

        if (used + (length > 0 ? length : ESCAPED) >= size)
            break;
        if (length > 0)
            memcpy(out + used, c, length);
        else
            snprintf(out + used, ESCAPED + 1, "\\x%02x", *c);
        used += length > 0 ? length : ESCAPED;
        c += length > 0 ? length : 1;
    }
    out[used] = '\0';
    return out;
}

void ks_say(const char *format, ...)
{
    char line[LINE], escaped[LINE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s\n", ks_escape(line, sizeof escaped, escaped));
}
