# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Commands that get files which ask for too much."""
import resource
import subprocess

GIBIBYTE = 1 << 30


def run(command, seconds):
    """The exit code and stderr of a command that may have 1 GiB of address
    space and so many seconds of processor time, which do not depend on what
    else runs. A command that takes longer is ended by a signal."""
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (GIBIBYTE, GIBIBYTE))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    done = subprocess.run(command, preexec_fn=limit, capture_output=True,
                          text=True)
    return done.returncode, done.stderr
