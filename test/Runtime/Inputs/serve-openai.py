# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""serve-openai.py PARROT EMBEDDING: serves both for OpenAI's own client."""

import os
import subprocess
import sys

import serving

with serving.Server([sys.argv[1]], "--chat-template=tools.jinja") as parrot, \
        serving.Server([sys.argv[2]]) as embedding:
    urls = [f"http://{server.host}:{server.port}"
            for server in (parrot, embedding)]
    script = os.path.join(os.path.dirname(__file__), "serve-openai.mjs")
    sys.exit(subprocess.run(["node", script, *urls]).returncode)
