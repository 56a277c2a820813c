#include "library/library.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>

#include "config.h"
#include "core/blas.h"
#include "core/memory.h"
#include "io/scout.h"

static_assert((int)KAPPASCOPE_OK == KS_OK && (int)KAPPASCOPE_USAGE == KS_USAGE &&
                  (int)KAPPASCOPE_FORMAT == KS_FORMAT && (int)KAPPASCOPE_IO == KS_IO &&
                  (int)KAPPASCOPE_MISSING == KS_MISSING && (int)KAPPASCOPE_FULL == KS_FULL &&
                  (int)KAPPASCOPE_MEMORY == KS_MEMORY && (int)KAPPASCOPE_NUMBER == KS_NUMBER &&
                  (int)KAPPASCOPE_RUN == KS_RUN,
              "public and internal statuses must have the same values");

static pthread_mutex_t files = PTHREAD_MUTEX_INITIALIZER;

const char *kappascope_error(void)
{
    return ks_error_text();
}

const char *kappascope_version(void)
{
    return KS_VERSION;
}

void kappascope_blas_one_thread(void)
{
    ks_blas_start(NULL);
}

const char *kappascope_blas_warning(void)
{
    return ks_blas_warning();
}

locale_t ks_library_points(void)
{
    locale_t copy = duplocale(uselocale((locale_t)0)), points;

    points = copy ? newlocale(LC_NUMERIC_MASK, "C", copy) : (locale_t)0;
    if (points)
        return uselocale(points);
    if (copy)
        freelocale(copy);
    return (locale_t)0;
}

void ks_library_restore(locale_t before)
{
    if (before)
        freelocale(uselocale(before));
}

void ks_library_lock(void)
{
    pthread_mutex_lock(&files);
    ks_scout_only_if_asked();
}

void ks_library_unlock(void)
{
    pthread_mutex_unlock(&files);
}

ks_status ks_library_range(const char *name, size_t value, size_t low, size_t high)
{
    if (value >= low && value <= high)
        return KS_OK;
    return ks_fail(KS_USAGE, "%s: expected %zu to %zu, found %zu", name, low, high, value);
}

ks_status ks_library_fits(const char *what, double bytes)
{
    double left = (double)ks_memory_available("", 1);

    if (bytes <= left || left == 0) /* 0: the system does not say */
        return KS_OK;
    return ks_fail(KS_MEMORY, "%s: expected at least %.0fK of free memory, found %.0fK", what,
                   ceil(bytes / 1024), floor(left / 1024));
}

ks_status ks_library_finite(const char *name, size_t n, const double *values)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return ks_fail(KS_NUMBER, "%s: expected finite numbers, found %g at element %zu", name,
                           values[i], i);
    return KS_OK;
}
