/* Errors: a status travels up, the words are recorded where the cause is known.
 *
 * Functions that the outside world can make fail return a ks_status. The first failure's text is
 * kept in thread-local storage; only a program's main prints it. */
#ifndef KS_CORE_ERROR_H
#define KS_CORE_ERROR_H

typedef enum {
    KS_OK = 0,
    KS_USAGE,   /* an option, a setting or a value out of range       exit 2 */
    KS_FORMAT,  /* a file that is malformed or does not fit           exit 2 */
    KS_IO,      /* a file that cannot be opened, read or written      exit 2 */
    KS_MISSING, /* something that has to be installed first           exit 2 */
    KS_FULL,    /* a disk that is full or fails as it is written      exit 1 */
    KS_MEMORY,  /* an allocation that failed                          exit 1 */
    KS_NUMBER,  /* a NaN or an infinity where numbers must be finite  exit 1 */
    KS_RUN      /* any other failure at run time                      exit 1 */
} ks_status;

/* Records the message (one line, no newline at its end) and returns `status`, which is not KS_OK.
 * Control characters in it, which come from files, names and options, are escaped (say.h). */
ks_status ks_fail(ks_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
#ifdef __clang_analyzer__ /* which cannot know that `status` comes back */
#define ks_fail(status, ...) ((void)ks_fail(status, __VA_ARGS__), (status))
#endif

/* The message of the last failure in this thread; "" if there was none. */
const char *ks_error_text(void);

/* The exit status of a program that ends with `status`: 0, 1 or 2, as the table above says. */
int ks_exit_status(ks_status status);

/* For functions that own nothing yet: on failure, return it. */
#define KS_TRY(call)                                                                               \
    do {                                                                                           \
        ks_status ks_try_status = (call);                                                          \
        if (ks_try_status != KS_OK)                                                                \
            return ks_try_status;                                                                  \
    } while (0)

/* For functions that own something: on failure, keep it in `status` and go to `done`. */
#define KS_GO(call)                                                                                \
    do {                                                                                           \
        status = (call);                                                                           \
        if (status != KS_OK)                                                                       \
            goto done;                                                                             \
    } while (0)

#endif
