/* Fault injection: replaces the C library's functions that change files. Operations are counted
 * from 1, and at number `fault_at` one of these happens:
 *
 *   KILL        the process is killed (SIGKILL), in the middle of a write
 *   DISK_FULL   the disk is full from here on (ENOSPC)
 *   SIGNAL      the signal `signal_raised` is raised (SIGTERM by default)
 *
 * The monotonic clock returns the number of calls so far in seconds, so that times and rates are
 * the same in every run. */
#ifndef KS_TEST_DISK_H
#define KS_TEST_DISK_H

#include <stddef.h>

enum fault { NO_FAULT, KILL, DISK_FULL, SIGNAL };
extern enum fault fault;
extern size_t fault_at, operations;
extern int signal_raised;

#endif
