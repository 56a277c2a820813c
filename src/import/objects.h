/* The arrays that a description asks for, in the canonical order (arch.h). */
#ifndef KS_IMPORT_OBJECTS_H
#define KS_IMPORT_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "net/arch.h"

enum { KS_OBJECT_NAME = 64 };

struct ks_object {
    char name[KS_OBJECT_NAME]; /* "00_dense/kernel"                                        */
    size_t n_dims, dims[2];    /* [rows, columns] or [columns]                             */
    bool state;                /* a running statistic; else a parameter                    */
    bool variance;             /* a running variance                                       */
    size_t offset;             /* in one critic's extended vector (arch.h), or its states  */
};

struct ks_objects {
    struct ks_object *list; /* [n]; owned: the caller frees it               */
    size_t n;
    bool read_states; /* a layer reads running statistics in training mode */
};

ks_status ks_objects_of(const struct KS(arch) *arch, struct ks_objects *objects);

#endif
