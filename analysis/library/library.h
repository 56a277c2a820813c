/* The structs behind the handles of include/kappascope.h. The public functions check their
 * arguments and call the pipeline in a single process.
 *
 * Only functions marked KAPPASCOPE_API are exported: all code has hidden visibility otherwise. */
#ifndef KS_LIBRARY_LIBRARY_H
#define KS_LIBRARY_LIBRARY_H

#include <locale.h>
#include <stddef.h>

#include "core/error.h"
#include "io/checkpoint.h"
#include "io/file.h"
#include "io/spectrum.h"
#include "kappascope.h"
#include "pipeline/pipeline.h"

struct kappascope_checkpoint {
    struct ks_checkpoint *c;     /* owned */
    char *path;                  /* the checkpoint's file, or "(memory)". Owned       */
    char digest[KS_SHA256_TEXT]; /* the SHA-256 of that file; "" if there is no file  */
};

struct kappascope_operator {
    const struct kappascope_checkpoint *checkpoint; /* not owned; NULL: the caller's operator */
    struct ks_checkpoint data; /* a copy with the chosen targets; owns nothing */
    struct ks_spectrum_options options;
    struct ks_pipeline p;      /* with the operator p.a; p.options are `options` */
    struct ks_operator *exact; /* of a caller's float32 products: in float64; NULL: none. Owned */
};

struct kappascope_spectrum {
    struct ks_spectrum *s; /* owned */
};

KS_OWNER(kappascope_checkpoint_free, struct kappascope_checkpoint *)
KS_OWNER(kappascope_operator_free, struct kappascope_operator *)

/* KS_TRY for functions of the public header: both enums have the same values. */
#define KS_PUBLIC(call)                                                                            \
    do {                                                                                           \
        ks_status ks_public_status = (call);                                                       \
        if (ks_public_status != KS_OK)                                                             \
            return (enum kappascope_status)ks_public_status;                                       \
    } while (0)
/* First in a function that reads or prints numbers: they have a decimal point, whatever the program
 * has set by setlocale. It lasts until the function returns, in this thread alone, so that the
 * caller's products see it, too. */
#define KS_POINTS KS_OWNED_BY(ks_library_restore) locale_t ks_public_locale = ks_library_points()
/* A pointer argument must not be NULL. */
#define KS_GIVEN(pointer)                                                                          \
    do {                                                                                           \
        if (!(pointer))                                                                            \
            return (enum kappascope_status)ks_fail(KS_USAGE, "%s: %s is NULL", __func__,           \
                                                   #pointer);                                      \
    } while (0)

/* The two halves of KS_POINTS: gives the thread a copy of its locale whose numbers are those of
 * "C", and returns the locale before, or 0 without memory for that; goes back to it. */
locale_t ks_library_points(void);
void ks_library_restore(locale_t before);
KS_OWNER(ks_library_restore, locale_t)

/* HDF5 is not reentrant: all reading and writing of files is between these two. */
void ks_library_lock(void);
void ks_library_unlock(void);

/* KS_USAGE unless low <= value <= high; `name` is the argument's. */
ks_status ks_library_range(const char *name, size_t value, size_t low, size_t high);
/* KS_NUMBER if one of values [n] is not finite. */
ks_status ks_library_finite(const char *name, size_t n, const double *values);

/* The spectrum of the operator with its options. */
ks_status ks_library_run(struct kappascope_operator *a, struct kappascope_spectrum **spectrum);
/* Makes a handle of a spectrum, which it then owns; frees the spectrum if `status` is a failure,
 * and returns it. */
ks_status ks_library_spectrum(ks_status status, struct ks_spectrum *s,
                              struct kappascope_spectrum **spectrum);

/* KS_MEMORY if `what` takes more bytes than are free. */
ks_status ks_library_fits(const char *what, double bytes);

#endif
