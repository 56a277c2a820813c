/* Attributes: named numbers, strings and lists of numbers, as HDF5 objects have them. */
#ifndef KS_IO_ATTRIBUTE_H
#define KS_IO_ATTRIBUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

enum { KS_ATTRIBUTE_NAME = 64 };

enum ks_attribute_type {
    KS_ATTRIBUTE_NUMBER,
    KS_ATTRIBUTE_INTEGER,
    KS_ATTRIBUTE_STRING,
    KS_ATTRIBUTE_LIST
};

struct ks_attribute {
    char name[KS_ATTRIBUTE_NAME];
    enum ks_attribute_type type;
    double number;   /* NUMBER           */
    int64_t integer; /* INTEGER          */
    char *string;    /* STRING; owned    */
    double *list;    /* LIST [n]; owned  */
    size_t n;
};

/* A list that grows; empty when zeroed. Whoever adds checks nothing: the first failure is kept, and
 * nothing is added after it. */
struct ks_attributes {
    struct ks_attribute *list; /* [n], with room for more; owned   */
    size_t n, room;
    ks_status status; /* KS_MEMORY once adding has failed */
};

/* The attribute of that name, or NULL. */
const struct ks_attribute *ks_attribute_find(const struct ks_attributes *a, const char *name);
/* The value of that name as a number, also of a list of one number; NaN if it is missing or not a
 * number. */
double ks_attribute_number(const struct ks_attributes *a, const char *name);
/* The string of an attribute; NULL if there is none, or if it is no string. Points into the list.
 */
const char *ks_attribute_text(const struct ks_attributes *a, const char *name);
/* Append. ks_attribute_add takes ownership of what `one` holds, also if it fails. */
void ks_attribute_add(struct ks_attributes *a, struct ks_attribute *one);
void ks_attribute_add_string(struct ks_attributes *a, const char *name, const char *value);
void ks_attribute_add_integer(struct ks_attributes *a, const char *name, int64_t value);
void ks_attribute_add_number(struct ks_attributes *a, const char *name, double value);
void ks_attribute_add_list(struct ks_attributes *a, const char *name, size_t n,
                           const double *value);
void ks_attribute_add_copies(struct ks_attributes *a, const struct ks_attributes *from);

/* A deep copy; the caller ends with ks_attribute_clear. */
ks_status ks_attribute_copy(const struct ks_attribute *from, struct ks_attribute *to);
/* Converts the value to `type` if nothing is lost: an integer to a number, a number without a
 * fraction to an integer, a list of one number to that number and back. Otherwise *fits is false
 * and the attribute unchanged. Fails only for lack of memory. */
ks_status ks_attribute_convert(struct ks_attribute *attribute, enum ks_attribute_type type,
                               bool *fits);
void ks_attribute_clear(struct ks_attribute *attribute);    /* frees its value */
void ks_attributes_clear(struct ks_attributes *attributes); /* frees; leaves an empty list */

#endif
