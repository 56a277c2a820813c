/* Signals that ask a program to end. */
#ifndef KS_CORE_SIGNALS_H
#define KS_CORE_SIGNALS_H

#include <signal.h>

/* Calls `handler` on this signal; *old, where not NULL, is what was done before. One that is
 * ignored stays so: nohup and a shell's background jobs ask for that. */
void ks_signal_catch(int number, void (*handler)(int), struct sigaction *old);

#endif
