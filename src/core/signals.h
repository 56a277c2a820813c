/* Handlers for signals that ask a program to stop (SIGINT, SIGTERM). */
#ifndef KS_CORE_SIGNALS_H
#define KS_CORE_SIGNALS_H

#include <signal.h>

/* Installs `handler` for the signal, with SA_RESTART. If `old` is not NULL, it receives the
 * previous action. A signal that is ignored stays ignored, as nohup and a shell's background jobs
 * require. */
void ks_signal_catch(int number, void (*handler)(int), struct sigaction *old);

#endif
