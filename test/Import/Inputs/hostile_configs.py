# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""hostile_configs.py FOLDER ATTUNE: files config.json that ask for too much.

Each is imported with 1 GiB of address space and ten seconds of a processor. It must end with
exit code 1, name the file, and have the message that the table states.
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "lib"))
import limited

PLAIN = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3",
         "hidden_size": 64, "intermediate_size": 128, "vocab_size": 320,
         "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 16, "hidden_act": "silu",
         "max_position_embeddings": 512, "rms_norm_eps": 1e-6}


def config(**keys):
    return json.dumps({**PLAIN, **keys})


def with_text(text):
    return json.dumps(PLAIN)[:-1] + "," + text + "}"


def cases():
    """Name, text of the file, the message."""
    many = ",".join(f'"unknown_letter_{i}":1' for i in range(1000000))
    yield "many keys", with_text(many + ',"rope_x":3'), "/rope_x: this key may"
    yield ("long type", config(model_type="Q" * (50 << 20), architectures=[]),
           "is not known; known are")
    yield ("deep list", with_text('"x":' + "[" * 10 ** 5 + "]" * 10 ** 5),
           "nested deeper than the limit of 64 levels")
    yield ("deep object", '{"x":' * 10 ** 5,
           "nested deeper than the limit of 64 levels")
    yield "digits", with_text('"x":' + "9" * 10 ** 6), "number is too large"
    yield ("width", config(hidden_size=10 ** 12),
           "expected an integer from 1 to 2147483647")
    yield ("layers", config(num_hidden_layers=10 ** 12),
           "expected an integer from 1 to 100000")
    yield ("vocabulary", config(vocab_size=10 ** 12),
           "expected an integer from 1 to 2147483647")


def main():
    folder, attune = sys.argv[1:3]
    count = wrong = 0
    for name, text, message in cases():
        path = os.path.join(folder, name)
        os.makedirs(path)
        with open(os.path.join(path, "config.json"), "w") as file:
            file.write(text)
        code, errors = limited.run([attune, "import", path], seconds=10)
        count += 1
        if code != 1 or message not in errors or "config.json:" not in errors:
            wrong += 1
            print(f"{name}: exit code {code}, {errors[:1000]}")
    print(f"{count} files, {wrong} wrong")


if __name__ == "__main__":
    main()
