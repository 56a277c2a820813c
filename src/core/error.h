/* Errors and messages. Functions return a status; the message is recorded where the cause is known.
 *
 * Every function that can fail because of the outside world (files, memory, options, NaN) returns a
 * ks_status. The message is kept in thread-local storage; only a program's main prints it. */
#ifndef KS_CORE_ERROR_H
#define KS_CORE_ERROR_H

#include <stddef.h>

typedef enum {
    KS_OK = 0,
    KS_USAGE,   /* an invalid option, setting or value               exit 2 */
    KS_FORMAT,  /* a malformed file, or one that does not match      exit 2 */
    KS_IO,      /* a file that cannot be opened, read or written     exit 2 */
    KS_MISSING, /* something that must be installed first            exit 2 */
    KS_FULL,    /* a disk that is full, or fails during a write      exit 1 */
    KS_MEMORY,  /* a failed allocation                               exit 1 */
    KS_NUMBER,  /* a NaN or infinity where numbers must be finite    exit 1 */
    KS_RUN,     /* any other failure at run time                     exit 1 */
    KS_PARTIAL  /* a result that is written, and less than asked for exit 3 */
} ks_status;

/* Records the message (one line without a newline) and returns `status`, which must not be KS_OK.
 * Control characters in it, which may come from file names or options, are escaped (see ks_escape).
 */
ks_status ks_fail(ks_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
#ifdef __clang_analyzer__ /* the analyzer does not see that `status` is returned */
#define ks_fail(status, ...) ((void)ks_fail(status, __VA_ARGS__), (status))
#endif

/* The message of the last failure in this thread, "" if nothing has failed. */
const char *ks_error_text(void);

/* The exit status for `status`, as listed above: 0, 1, 2 or 3. */
int ks_exit_status(ks_status status);

/* Returns from the calling function on failure; for functions that own nothing, or nothing but
 * variables that are freed on the way out (KS_OWNED of memory.h). */
#define KS_TRY(call)                                                                               \
    do {                                                                                           \
        ks_status ks_try_status = (call);                                                          \
        if (ks_try_status != KS_OK)                                                                \
            return ks_try_status;                                                                  \
    } while (0)

/* On failure stores the status in `status` and jumps to `done`, where other resources are
 * released. */
#define KS_GO(call)                                                                                \
    do {                                                                                           \
        status = (call);                                                                           \
        if (status != KS_OK)                                                                       \
            goto done;                                                                             \
    } while (0)

/* --- messages on standard error, and untrusted text in them --- */

/* Copies `text` into out[size] and returns out. Bytes that a terminal could interpret or that would
 * end the line are written as \xNN: control characters of ASCII, the control characters U+0080 to
 * U+009F, and invalid UTF-8. Text that does not fit is truncated. */
char *ks_escape(const char *text, size_t size, char *out);

/* Prints one escaped line on standard error, in a single write, so that lines of concurrent
 * programs do not interleave. The newline is added. */
void ks_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
