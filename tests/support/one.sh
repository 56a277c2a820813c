#!/bin/sh
# Runs one test program. Several run in parallel, so the output goes to a log and is printed when the
# program has ended. The name of a program that fails is appended to the file $FAILED.
"$1" >"$1.log" 2>&1 || echo "$1" >>"$FAILED"
exec flock "$FAILED" cat "$1.log"
