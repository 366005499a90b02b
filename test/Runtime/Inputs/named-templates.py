# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""named-templates.py FOLDER: gives the storyteller in FOLDER three templates,
and makes its token "." a special one."""
import json
import os
import sys

TEMPLATES = {"tool_use": "Tools", "rag": "Once",
             "default": "{{ bos_token }}{{ messages[-1].content }}"}


def change(name, how):
    path = os.path.join(sys.argv[1], name)
    with open(path) as file:
        content = json.load(file)
    how(content)
    with open(path, "w") as file:
        json.dump(content, file)


change("tokenizer_config.json", lambda config: config.update(
    chat_template=[{"name": name, "template": text}
                   for name, text in TEMPLATES.items()]))
change("tokenizer.json", lambda tokenizer: tokenizer["added_tokens"].append(
    {"id": tokenizer["model"]["vocab"]["."], "content": ".", "special": True}))
