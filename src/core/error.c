#include "core/error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/say.h"

#undef ks_fail

static _Thread_local char text[1024];

ks_status ks_fail(ks_status status, const char *format, ...)
{
    char words[sizeof text];
    va_list arguments;

    assert(status != KS_OK);
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    ks_escape(words, sizeof text, text);
    return status;
}

const char *ks_error_text(void)
{
    return text;
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
    default:
        return 1;
    }
}
