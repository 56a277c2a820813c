#include "io/attribute.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

const struct ks_attribute *ks_attribute_find(const struct ks_attributes *a, const char *name)
{
    for (size_t i = 0; i < a->n; i++)
        if (strcmp(a->list[i].name, name) == 0)
            return &a->list[i];
    return NULL;
}

void ks_attribute_add(struct ks_attributes *a, struct ks_attribute *one)
{
    if (a->status == KS_OK)
        a->status = ks_grow(a->n, sizeof *a->list, &a->room, &a->list);
    if (a->status == KS_OK)
        a->list[a->n++] = *one;
    else
        ks_attribute_clear(one);
}

static struct ks_attribute named(const char *name, enum ks_attribute_type type)
{
    struct ks_attribute one = {.type = type};

    snprintf(one.name, sizeof one.name, "%s", name);
    return one;
}

/* Adds a copy of an attribute whose string or list is the caller's. */
static void add_copy(struct ks_attributes *a, const struct ks_attribute *one)
{
    struct ks_attribute copy;

    if (a->status == KS_OK)
        a->status = ks_attribute_copy(one, &copy);
    if (a->status == KS_OK)
        ks_attribute_add(a, &copy);
}

void ks_attribute_add_string(struct ks_attributes *a, const char *name, const char *value)
{
    struct ks_attribute one = named(name, KS_ATTRIBUTE_STRING);

    one.string = (char *)value; /* only read */
    add_copy(a, &one);
}

void ks_attribute_add_integer(struct ks_attributes *a, const char *name, int64_t value)
{
    struct ks_attribute one = named(name, KS_ATTRIBUTE_INTEGER);

    one.integer = value;
    ks_attribute_add(a, &one);
}

void ks_attribute_add_number(struct ks_attributes *a, const char *name, double value)
{
    struct ks_attribute one = named(name, KS_ATTRIBUTE_NUMBER);

    one.number = value;
    ks_attribute_add(a, &one);
}

void ks_attribute_add_list(struct ks_attributes *a, const char *name, size_t n, const double *value)
{
    struct ks_attribute one = named(name, KS_ATTRIBUTE_LIST);

    one.list = (double *)value; /* only read */
    one.n = n;
    add_copy(a, &one);
}

void ks_attribute_add_copies(struct ks_attributes *a, const struct ks_attributes *from)
{
    for (size_t i = 0; i < from->n; i++)
        add_copy(a, &from->list[i]);
}

ks_status ks_attribute_copy(const struct ks_attribute *from, struct ks_attribute *to)
{
    *to = *from;
    to->string = NULL;
    to->list = NULL;
    if (from->type == KS_ATTRIBUTE_STRING)
        KS_TRY(ks_copy_string(from->string, &to->string));
    if (from->type == KS_ATTRIBUTE_LIST) {
        KS_TRY(ks_alloc(from->n, sizeof *to->list, &to->list));
        if (from->n > 0)
            memcpy(to->list, from->list, from->n * sizeof *to->list);
    }
    return KS_OK;
}

/* The value as a number; false for a string, and for a list unless it holds exactly one number. */
static bool as_number(const struct ks_attribute *a, double *number)
{
    switch (a->type) {
    case KS_ATTRIBUTE_NUMBER:
        *number = a->number;
        return true;
    case KS_ATTRIBUTE_INTEGER:
        *number = (double)a->integer;
        return true;
    case KS_ATTRIBUTE_LIST:
        if (a->n == 1)
            *number = a->list[0];
        return a->n == 1;
    default:
        return false;
    }
}

const char *ks_attribute_text(const struct ks_attributes *a, const char *name)
{
    const struct ks_attribute *one = ks_attribute_find(a, name);

    return one && one->type == KS_ATTRIBUTE_STRING ? one->string : NULL;
}

double ks_attribute_number(const struct ks_attributes *a, const char *name)
{
    const struct ks_attribute *one = ks_attribute_find(a, name);
    double number = NAN;

    return one && as_number(one, &number) ? number : NAN;
}

ks_status ks_attribute_convert(struct ks_attribute *a, enum ks_attribute_type type, bool *fits)
{
    static const double TWO_TO_53 = 9007199254740992.0; /* above it some integers are not doubles */
    double number = 0;

    *fits = a->type == type;
    if (*fits || type == KS_ATTRIBUTE_STRING || !as_number(a, &number))
        return KS_OK;
    if (type == KS_ATTRIBUTE_INTEGER && !(fabs(number) <= TWO_TO_53 && number == floor(number)))
        return KS_OK;
    if (type == KS_ATTRIBUTE_LIST) {
        KS_TRY(ks_alloc(1, sizeof *a->list, &a->list));
        a->list[0] = number;
        a->n = 1;
    } else {
        free(a->list);
        a->list = NULL;
        a->n = 0;
        a->number = number;
        a->integer = type == KS_ATTRIBUTE_INTEGER ? (int64_t)number : 0;
    }
    a->type = type;
    *fits = true;
    return KS_OK;
}

void ks_attribute_clear(struct ks_attribute *attribute)
{
    free(attribute->string);
    free(attribute->list);
    attribute->string = NULL;
    attribute->list = NULL;
    attribute->n = 0;
}

void ks_attributes_clear(struct ks_attributes *a)
{
    for (size_t i = 0; i < a->n; i++)
        ks_attribute_clear(&a->list[i]);
    free(a->list);
    *a = (struct ks_attributes){.n = 0};
}
