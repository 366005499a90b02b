# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Log-probabilities of prompts that `serve` gives.

  serve-scores.py folder FOLDER TOKENIZER   makes a tiny Llama
  serve-scores.py float64 PRODUCT FOLDER    compares with a forward pass of it
  serve-scores.py perplexity PRODUCT        compares with `perplexity`
  serve-scores.py longrope PRODUCT          texts that are too long are refused
"""
import json
import math
import os
import shutil
import subprocess
import sys
import threading

import serving

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "lib"))
import decoder_layers as layers  # noqa: E402

layers.VOCAB = 1024
TEXT = "Once upon a time there was a big bear. He had a friend, Wren."
LONG = " ".join(f"The bear ran {i} times to the lake and sang." for i in
                range(60))
# Sums of some hundred products in 32 bits, of numbers of size 1, are right to
# 1e-5; logits are such sums of such sums.
NEAR = 1e-4


def forward(w, ids):
    """The logits behind each token, in float64."""
    x = layers.embed(w, "model.embed_tokens.weight", ids)
    for i in range(2):
        at = f"model.layers.{i}."
        n = layers.rms_norm(w, at + "input_layernorm", x, 1e-5)
        q, k, v = (layers.split(layers.linear(w, f"{at}self_attn.{name}_proj",
                                              n, 8 * heads), heads)
                   for name, heads in (("q", 4), ("k", 2), ("v", 2)))
        joined = layers.attend(layers.turn(q), layers.turn(k), v)
        x = [layers.add(a, b) for a, b in zip(x, layers.linear(
            w, at + "self_attn.o_proj", joined, 32))]
        n = layers.rms_norm(w, at + "post_attention_layernorm", x, 1e-5)
        x = [layers.add(a, b) for a, b in
             zip(x, layers.gated(w, at + "mlp.", n, layers.silu))]
    return layers.head(w, "lm_head", layers.rms_norm(w, "model.norm", x, 1e-5))


def logprobs(ids):
    """Of each token but the first, [vocabulary]."""
    for row in forward(layers.Weights(5), ids)[:-1]:
        most = max(row)
        total = most + math.log(math.fsum(math.exp(a - most) for a in row))
        yield [a - total for a in row]


def make_folder(folder, tokenizer):
    os.makedirs(folder)
    weights = layers.Weights(5)
    forward(weights, [1, 2])
    weights.save(os.path.join(folder, "model.safetensors"))
    shutil.copy(tokenizer, folder)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump({**layers.BASE, "architectures": ["LlamaForCausalLM"],
                   "model_type": "llama", "num_key_value_heads": 2,
                   "vocab_size": 1024, "rms_norm_eps": 1e-5,
                   "max_position_embeddings": 1024, "bos_token_id": 1023,
                   "eos_token_id": 1023, "tie_word_embeddings": False}, file)


def ids_of(text):
    return server.post("/tokenize", {"content": text})["tokens"]


def score(prompt, **more):
    """As the harness asks."""
    return server.post("/v1/completions", {
        "prompt": prompt, "temperature": 0, "max_tokens": 1, "logprobs": 1,
        "seed": 1234, "echo": True, **more})


def columns(reply, number=0):
    return reply["choices"][number]["logprobs"]


def scores():
    ids = ids_of(TEXT)
    pieces = [token["piece"] for token in server.post("/tokenize", {
        "content": TEXT, "with_pieces": True})["tokens"]]
    reply = score(TEXT, logprobs=3)
    choice, found = reply["choices"][0], columns(reply)
    assert choice["text"].startswith(TEXT), choice
    assert {len(column) for column in found.values()} == {len(ids) + 1}, found
    assert found["tokens"][:-1] == pieces, found
    assert found["token_logprobs"][0] is None and \
        found["top_logprobs"][0] is None, found
    offset = 0
    for place, piece in enumerate(found["tokens"]):
        assert found["text_offset"][place] == offset, found
        offset += len(piece)
    for place, wanted in enumerate(logprobs(ids), 1):
        own = found["token_logprobs"][place]
        assert abs(own - wanted[ids[place]]) < NEAR, (place, own)
        top = found["top_logprobs"][place]
        best = sorted(wanted, reverse=True)[:3]
        assert top[pieces[place]] == own, (place, top)
        assert len(top) in (3, 4), (place, top)
        for value, right in zip(sorted(top.values(), reverse=True), best):
            assert abs(value - right) < NEAR, (place, top)
    assert reply["usage"]["prompt_tokens"] == len(ids), reply
    # What the harness makes of it: the sum behind the context, and whether all
    # of that is what the model says itself.
    greedy = score(ids, max_tokens=5, return_tokens_as_token_ids=True)
    names = columns(greedy)["tokens"]
    both = [int(name.removeprefix("token_id:")) for name in names]
    assert both[:len(ids)] == ids, names
    found = columns(score(both))
    for own, top in zip(found["token_logprobs"][len(ids):-1],
                        found["top_logprobs"][len(ids):-1], strict=True):
        assert own == max(top.values()), found


def ways_to_ask():
    ids = ids_of(TEXT)
    wanted = columns(score(TEXT))
    for more in {"max_tokens": 0}, {"max_tokens": 0, "stream": False}:
        reply = score(TEXT, **more)
        choice = reply["choices"][0]
        assert choice["text"] == TEXT and choice["finish_reason"] == "length"
        assert columns(reply) == {name: column[:-1] for name, column
                                  in wanted.items()}, reply
        assert reply["usage"]["completion_tokens"] == 0, reply
    assert columns(score(ids)) == wanted
    reply = score([TEXT, "The end.", "Once"])
    assert columns(reply) == wanted
    assert columns(reply, 1) == columns(score("The end."))
    assert len(columns(reply, 2)["tokens"]) == 2, reply
    reply = score([ids, ids[:5]], n=2)
    for number, count in enumerate((len(ids), len(ids), 5, 5)):
        found = columns(reply, number)
        # Fewer than 16 rows are other bits.
        assert all(abs(a - b) < NEAR for a, b in
                   zip(found["token_logprobs"][1:5],
                       wanted["token_logprobs"][1:5])), (number, found)
        assert len(found["tokens"]) == count + 1, (number, found)
    # More texts than slots: the prompt is scored for one of them.
    name, count = "attune_prompt_tokens_total", len(ids_of(LONG))
    before = server.metric(name)
    reply = score(LONG, n=5, max_tokens=0)
    assert all(columns(reply, number) == columns(reply) for number in range(5))
    assert count <= server.metric(name) - before < 2 * count, count
    # A text that spells a special token out has it in it; ids have not.
    for prompt, offsets in (("Once<|endoftext|>upon", True),
                            (ids_of("Once<|endoftext|>upon"), False)):
        found = columns(score(prompt))
        at = found["tokens"].index("<|endoftext|>")
        before, behind = found["text_offset"][at:at + 2]
        assert before == 4 and behind == (17 if offsets else 4), found
    # A new token that a stop text takes off is there, too.
    word = score(TEXT)["choices"][0]["text"][len(TEXT):]
    found = score(TEXT, stop=[word]) if word else None
    assert found and found["choices"][0]["text"] == TEXT, found
    assert len(columns(found)["tokens"]) == len(ids) + 1, found
    # vLLM's form of the same.
    choice = server.post("/v1/completions", {
        "prompt": ids, "max_tokens": 1, "prompt_logprobs": 2, "logprobs": 1,
        "echo": True})["choices"][0]
    assert choice["logprobs"]["top_logprobs"] == wanted["top_logprobs"], choice
    assert choice["prompt_logprobs"][0] is None, choice
    for place, row in enumerate(logprobs(ids), 1):
        found = choice["prompt_logprobs"][place]
        own = found[str(ids[place])]
        assert own["logprob"] == wanted["token_logprobs"][place], found
        assert own["decoded_token"] == wanted["tokens"][place], found
        # Two of nearly equal numbers may have changed places.
        assert abs(own["rank"] - 1 - sum(value > row[ids[place]]
                                         for value in row)) <= 1, found
        assert {1, 2} <= {value["rank"] for value in found.values()}, found
        assert len(found) in (2, 3), found
    error = server.post("/v1/completions", {
        "prompt": ids, "prompt_logprobs": 1, "stream": True}, 400)["error"]
    assert error["param"] == "prompt_logprobs", error
    # The new token is there even if it is the end of the text.
    found = columns(score(TEXT, logit_bias={"1023": 100}))
    assert len(found["tokens"]) == len(ids) + 1, found
    assert found["tokens"][-1] == "<|endoftext|>", found
    for count in 0, 4:
        parts = [event["choices"][0] for event in server.stream(
            "/v1/completions", {"prompt": TEXT, "echo": True, "logprobs": 1,
                                "max_tokens": count})]
        whole = score(TEXT, max_tokens=count)["choices"][0]
        assert "".join(part["text"] for part in parts) == whole["text"]
        for name, column in whole["logprobs"].items():
            assert sum((part["logprobs"][name] for part in parts
                        if part["logprobs"]), []) == column, (name, parts)
    # A text as long as the context has a score, without a new token.
    full = (ids * 61)[:1024]
    assert len(columns(score(full, max_tokens=0))["tokens"]) == 1024
    error = server.post("/v1/completions", {"prompt": full, "max_tokens": 1},
                        400)["error"]
    assert error["code"] == "context_length_exceeded", error
    # Without `echo`, nothing but the prompt is computed.
    choice = server.post("/v1/completions", {"prompt": TEXT, "max_tokens": 0})
    assert choice["choices"][0]["text"] == "", choice


def generate(prompt):
    run = subprocess.run([product, "generate", "--prompt", prompt,
                          "--format=json", "--max-new-tokens=8",
                          "--logprobs=2"], capture_output=True, text=True,
                         check=True)
    return [token["logprob"] for token in json.loads(run.stdout)["logprobs"]]


def caches():
    """What slots hold changes no score, and scores change no text."""
    prompt = LONG[:900]
    body = {"prompt": prompt, "max_tokens": 8, "temperature": 0, "logprobs": 2}
    before = server.post("/v1/completions", body)
    first = columns(score(prompt))
    # All of it was in a cache, and its beginning is in another one.
    assert columns(score(prompt)) == first
    assert score(prompt)["usage"]["prompt_tokens_details"] == {
        "cached_tokens": 0}
    shorter = columns(score(prompt[:400]))
    assert all(abs(a - b) < NEAR for a, b in
               zip(shorter["token_logprobs"][1:-3],
                   first["token_logprobs"][1:])), shorter
    other = LONG[450:]
    score(other)
    after = server.post("/v1/completions", {**body, "prompt": other})
    assert after["usage"]["prompt_tokens_details"]["cached_tokens"] > 60, after
    for reply, text in (before, prompt), (after, other):
        assert columns(reply)["token_logprobs"] == generate(text), reply


def beside_others():
    """While another text is written, and many at once."""
    wanted = columns(score(LONG))
    mean_is_that_of_perplexity(wanted, LONG)
    talk = {"prompt": TEXT, "max_tokens": 300, "ignore_eos": True,
            "temperature": 0}
    text = server.post("/v1/completions", talk)["choices"][0]["text"]
    told, found = [], []
    threads = [threading.Thread(target=lambda: told.append(
        server.post("/v1/completions", talk)["choices"][0]["text"]))]
    threads += [threading.Thread(target=lambda: found.append(
        columns(score(LONG)))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == [text]
    assert found == [wanted] * 3, found


def refused():
    for more, parameter in (({"max_tokens": -1}, "max_tokens"),
                            ({"logprobs": 21}, "logprobs"),
                            ({"prompt": [[1] * 1023] * 64 * 2}, "prompt")):
        error = server.post("/v1/completions", {
            "prompt": TEXT, "echo": True, "logprobs": 1, **more}, 400)["error"]
        assert error["param"] == parameter, error


def mean_is_that_of_perplexity(found, text):
    with open("text.txt", "w") as file:
        file.write(text)
    run = subprocess.run([product, "perplexity", "--file=text.txt",
                          "--window=1024", "--format=json"],
                         capture_output=True, text=True, check=True)
    said = json.loads(run.stdout)
    own = found["token_logprobs"][1:-1]
    assert said["tokens"] == len(own) > 512, said
    # Six digits are said, and sums are in another order.
    assert abs(-math.fsum(own) / len(own) - said["cross_entropy"]) < 1e-5, (
        said, own)


def as_perplexity():
    for _ in range(2):
        mean_is_that_of_perplexity(columns(score(LONG)), LONG)


def short_alone():
    assert len(columns(score([5, 6, 7, 8, 9, 10]))["tokens"]) == 7
    error = server.post("/v1/completions", {
        "prompt": list(range(5, 20)), "echo": True, "logprobs": 1},
        400)["error"]
    assert "computes texts of more than 8 otherwise" in error["message"], error


verb, product = sys.argv[1:3]
if verb == "folder":
    make_folder(*sys.argv[2:])
else:
    TESTS = {"float64": [scores, ways_to_ask, caches, beside_others, refused],
             "perplexity": [as_perplexity], "longrope": [short_alone]}
    with serving.Server([product], "--slots=3", "--threads=2") as server:
        serving.run(TESTS[verb])
        assert server.stop() == 0
