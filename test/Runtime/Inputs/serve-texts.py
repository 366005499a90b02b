# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""serve-texts.py PRODUCT CLIENT|prompts|states: what the server writes is what
`generate` writes.

PRODUCT is the storyteller with a chat template; CLIENT is the example's. With
`prompts`, prompts share beginnings, or are long. With `states`, PRODUCT is a
model that keeps states, of random weights.
"""

import json
import subprocess
import sys
import threading

import serving

PROMPTS = ["Once upon a time", "The next day", "Wren and her friend went to",
           "One day a fox", "In a small house by the lake there lived an old "
           "man who had never seen the sea, and who did not want to",
           "", "The end.", "Once upon a time there was a big bear. He"]
THREADS = []
if sys.argv[2] == "states":
    PROMPTS.remove("")  # no token begins its texts
    THREADS.append("--threads=1")  # so small a model would wait for threads
COUNTS = ["attune_new_tokens_total", "attune_decode_steps_total"]


def generate(prompt, *options):
    run = subprocess.run([sys.argv[1], "generate", "--prompt", prompt,
                          "--format=json", *THREADS, *options],
                         capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def texts_alone():
    for body, options in [
        ({}, []),
        ({"temperature": 0.8, "seed": 7, "top_p": 0.9},
         ["--temperature=0.8", "--seed=7", "--top-p=0.9"]),
        ({"frequency_penalty": 0.5, "presence_penalty": 0.5},
         ["--frequency-penalty=0.5", "--presence-penalty=0.5"]),
        ({"logit_bias": {"5": -20}, "repetition_penalty": 1.3},
         ["--logit-bias=5:-20", "--repetition-penalty=1.3"]),
        ({"stop": [".", "xyz"]}, ["--stop=.", "--stop=xyz"]),
    ]:
        reply = server.post("/v1/completions", {
            "prompt": PROMPTS[0], "max_tokens": 40, **body})
        wanted = generate(PROMPTS[0], "--max-new-tokens=40", *options)
        choice = reply["choices"][0]
        assert choice["text"] == wanted["text"], (body, reply, wanted)
        reasons = {"eos": "stop", "stop": "stop", "length": "length",
                   "context": "length"}
        assert choice["finish_reason"] == reasons[wanted["stopped_by"]]
        assert reply["usage"] == {
            "prompt_tokens": 4, "completion_tokens": len(wanted["ids"]),
            "total_tokens": 4 + len(wanted["ids"]),
            "prompt_tokens_details": {"cached_tokens": 0}}, reply


def text_of(events):
    assert all(event["usage"] is None for event in events[:-1])
    assert events[-1]["choices"] == []
    return "".join(event["choices"][0]["text"] for event in events[:-1])


def streams():
    for body in ({}, {"stop": "friend"}, {"logprobs": 2}, {"echo": True}):
        body = {"prompt": PROMPTS[0], "max_tokens": 30,
                "stream_options": {"include_usage": True}, **body}
        whole = server.post("/v1/completions", body)
        events = server.stream("/v1/completions", body)
        choice = whole["choices"][0]
        assert text_of(events) == choice["text"], (body, events)
        last = events[-2]["choices"][0]
        assert last["finish_reason"] == choice["finish_reason"]
        assert events[-1]["usage"] == whole["usage"]
        if "logprobs" in body:
            sent = [event["choices"][0]["logprobs"] for event in events[:-2]]
            for key, values in choice["logprobs"].items():
                assert sum((part[key] for part in sent), []) == values, key
            wanted = generate(PROMPTS[0], "--max-new-tokens=30",
                              "--logprobs=2")["logprobs"]
            assert [token["logprob"] for token in wanted] == \
                choice["logprobs"]["token_logprobs"]
            assert "".join(choice["logprobs"]["tokens"]) == choice["text"]


def many_at_once():
    """More than there are slots; long prompts between short ones."""
    wanted = [generate(prompt, "--max-new-tokens=60")["text"]
              for prompt in PROMPTS]
    texts = [None] * len(PROMPTS) * 2

    def post(i):
        body = {"prompt": PROMPTS[i % len(PROMPTS)], "max_tokens": 60}
        if i % 2:
            texts[i] = "".join(event["choices"][0]["text"] for event in
                               server.stream("/v1/completions", body))
        else:
            texts[i] = server.post("/v1/completions",
                                   body)["choices"][0]["text"]

    threads = [threading.Thread(target=post, args=[i])
               for i in range(len(texts))]
    before = [server.metric(name) for name in COUNTS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == wanted * 2, (texts, wanted)
    # The first token of each text comes with its prompt.
    tokens, steps = (server.metric(name) - was
                     for name, was in zip(COUNTS, before))
    assert steps <= tokens - len(texts), (tokens, steps)
    assert 1 <= server.metric("attune_decode_batch_size") <= 3


def unequal_lengths():
    """Short and long ones in one step: the bits of each are its own."""
    prompts = ["Once upon a time", " ".join(PROMPTS[4:5] * 6), "The end."]
    options = ["--max-new-tokens=100", "--ignore-eos", "--logprobs=3"]
    wanted = [generate(prompt, *options)["logprobs"] for prompt in prompts]
    before = [server.metric(name) for name in COUNTS]
    # One request with all prompts, for they would come apart as several ones.
    reply = server.post("/v1/completions", {
        "prompt": prompts, "max_tokens": 100, "ignore_eos": True,
        "logprobs": 3})
    for choice, tokens in zip(reply["choices"], wanted, strict=True):
        served = choice["logprobs"]["token_logprobs"]
        assert [token["logprob"] for token in tokens] == served, choice
    tokens, steps = (server.metric(name) - was
                     for name, was in zip(COUNTS, before))
    # Texts that never shared a step would take one for each token but the
    # first of each; how many they share depends on the machine, for prompts
    # get a share of the time.
    assert tokens == 300 and steps < 297, (tokens, steps)


def shared_prompts():
    """What a slot holds of an earlier prompt is used, and changes no text."""
    long = " ".join(PROMPTS[4:5] * 4)
    wanted = generate(long, "--max-new-tokens=30")["text"]
    reused = server.metric("attune_reused_tokens_total")
    for i in range(3):
        reply = server.post("/v1/completions", {"prompt": long,
                                                "max_tokens": 30})
        assert reply["choices"][0]["text"] == wanted, (i, reply)
    # All but the last 16 tokens of the prompt.
    cached = reply["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert cached == reply["usage"]["prompt_tokens"] - 16 > 60, reply
    assert server.metric("attune_reused_tokens_total") >= reused + cached


def post_all(bodies):
    """The replies to requests that are sent at the same time."""
    replies = [None] * len(bodies)

    def post(i):
        replies[i] = server.post("/v1/completions", bodies[i])

    threads = [threading.Thread(target=post, args=[i])
               for i in range(len(bodies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return replies


def cached(reply):
    return reply["usage"]["prompt_tokens_details"]["cached_tokens"]


def shared_beginnings():
    """A beginning that texts share is computed once, whoever has it: a text at
    its end, one that goes on, one whose prompt is still computed."""
    system = " ".join(["A bird sang to the old man in the lake house."] * 12)
    prompts = [system + end for end in (
        " He heard it and smiled, for he had not heard a bird in a long time.",
        " The old man did not like it at all and he went to his bed at once.",
        " Wren and the fox came to the house and asked him for some food.")]
    wanted = [generate(prompt, "--max-new-tokens=30")["text"]
              for prompt in prompts]
    length = server.post("/tokenize", {"content": system})["count"]
    hits = server.metric("attune_prompt_hits_total")
    computed = server.metric("attune_prompt_tokens_total")
    # At the same time: each takes from the others what it lacks.
    replies = post_all([{"prompt": prompt, "max_tokens": 30}
                        for prompt in prompts])
    for reply, text in zip(replies, wanted):
        assert reply["choices"][0]["text"] == text, (reply, text)
    all_tokens = sum(reply["usage"]["prompt_tokens"] for reply in replies)
    computed = server.metric("attune_prompt_tokens_total") - computed
    assert computed == all_tokens - sum(map(cached, replies)), replies
    assert computed < length + 400, (computed, length)
    # One after the other: the longer prompts stay in their slots.
    for _ in range(2):
        for prompt, text in zip(prompts, wanted):
            reply = server.post("/v1/completions", {"prompt": prompt,
                                                    "max_tokens": 30})
            assert reply["choices"][0]["text"] == text, (reply, text)
            assert cached(reply) == reply["usage"]["prompt_tokens"] - 16
    assert server.metric("attune_prompt_hits_total") >= hits + 6


def paused_prompts():
    """A long prompt is paused for the tokens of others, and no text changes."""
    long = " ".join(["The bear ran to the lake and the bird sang a song."] * 20)
    prompts = [PROMPTS[0], PROMPTS[3], long]
    options = ["--max-new-tokens=150", "--ignore-eos"]
    wanted = [generate(prompt, *options)["text"] for prompt in prompts]
    pauses = server.metric("attune_prompt_pauses_total")
    for _ in range(3):
        replies = post_all([{"prompt": prompt, "max_tokens": 150,
                             "ignore_eos": True} for prompt in prompts])
        for reply, text in zip(replies, wanted):
            assert reply["choices"][0]["text"] == text, (reply, text)
        # Another beginning, which no slot holds.
        prompts[2] = "x" + prompts[2]
        wanted[2] = generate(prompts[2], *options)["text"]
    assert server.metric("attune_prompt_pauses_total") > pauses + 3


def one_prompt_for_several():
    """The prompt of `n` texts is computed once."""
    prompt = "The fox had a plan. " * 9
    before = server.metric("attune_prompt_tokens_total")
    reply = server.post("/v1/completions", {
        "prompt": prompt, "n": 3, "temperature": 1, "seed": 11,
        "max_tokens": 20})
    for i in range(3):
        assert reply["choices"][i]["text"] == generate(
            prompt, "--max-new-tokens=20", "--temperature=1",
            f"--seed={11 + i}")["text"], (i, reply)
    computed = server.metric("attune_prompt_tokens_total") - before
    usage = reply["usage"]
    assert computed == usage["prompt_tokens"] - cached(reply), (computed, usage)
    # Short ones, too, of which kernels give other bits than of long ones.
    reply = server.post("/v1/completions", {
        "prompt": PROMPTS[0], "n": 3, "temperature": 1, "seed": 3,
        "max_tokens": 8})
    for i in range(3):
        assert reply["choices"][i]["text"] == generate(
            PROMPTS[0], "--max-new-tokens=8", "--temperature=1",
            f"--seed={3 + i}")["text"], (i, reply)


def several():
    reply = server.post("/v1/completions", {
        "prompt": [PROMPTS[0], [5, 6, 7]], "n": 2, "temperature": 1,
        "seed": 3, "max_tokens": 8})
    choices = reply["choices"]
    assert [choice["index"] for choice in choices] == [0, 1, 2, 3]
    for i in range(2):  # the seeds are 3 and 4
        assert choices[i]["text"] == generate(
            PROMPTS[0], "--max-new-tokens=8", "--temperature=1",
            f"--seed={3 + i}")["text"], (i, choices)
    events = server.stream("/v1/completions", {
        "prompt": PROMPTS[0], "n": 2, "temperature": 1, "seed": 3,
        "max_tokens": 8})
    for i in range(2):
        parts = [choice["text"] for event in events
                 for choice in event["choices"] if choice["index"] == i]
        assert "".join(parts) == choices[i]["text"], (i, events)
    # Without a seed each text is another one.
    texts = {server.post("/v1/completions", {
        "prompt": PROMPTS[0], "temperature": 1, "max_tokens": 30,
        "ignore_eos": True})["choices"][0]["text"] for _ in range(4)}
    assert len(texts) > 1, texts


def chats():
    body = {"messages": [{"role": "system", "content": "Wren sings."},
                         {"role": "user", "content": [
                             {"type": "text", "text": "Once upon"},
                             {"type": "text", "text": " a time"}]}],
            "max_completion_tokens": 12, "logprobs": True, "top_logprobs": 1}
    wanted = generate(PROMPTS[0], "--system=Wren sings.",
                      "--max-new-tokens=12")
    reply = server.post("/v1/chat/completions", body)
    choice = reply["choices"][0]
    assert reply["object"] == "chat.completion"
    assert choice["message"] == {"role": "assistant", "refusal": None,
                                 "content": wanted["text"]}, reply
    for token in choice["logprobs"]["content"]:
        assert token["top_logprobs"][0]["logprob"] == token["logprob"]
        assert bytes(token["bytes"]).decode() == token["token"]
    events = server.stream("/v1/chat/completions", body)
    deltas = [event["choices"][0]["delta"] for event in events]
    assert deltas[0] == {"role": "assistant", "content": ""}, deltas
    assert deltas[-1] == {}
    assert "".join(delta.get("content", "") for delta in deltas) == \
        wanted["text"]
    for change, parameter in [
        ({"messages": [{"role": "boss", "content": "a"}]}, "messages"),
        ({"messages": [{"role": "user"}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
         "messages"),
        ({"messages": [{"role": "user", "content": "a " * 2000}]}, "messages"),
        ({"tools": {"type": "function"}}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "function"}}, "tool_choice"),
        ({"logprobs": False}, "top_logprobs"),
    ]:
        error = server.post("/v1/chat/completions", {**body, **change},
                            400)["error"]
        assert error["param"] == parameter, (change, error)


def tokens():
    reply = server.post("/tokenize", {"content": PROMPTS[0],
                                      "with_pieces": True})
    assert "".join(token["piece"] for token in reply["tokens"]) == PROMPTS[0]
    ids = [token["id"] for token in reply["tokens"]]
    assert server.post("/tokenize", {"content": PROMPTS[0]}) == {
        "tokens": ids, "count": 4}
    assert server.post("/detokenize", {"tokens": ids}) == {
        "content": PROMPTS[0]}
    status, _, model = server.request("GET", "/v1/models/storyteller")
    assert status == 200 and model["id"] == "storyteller", model
    # Clients write signs of a name as bytes.
    assert server.request("GET", "/v1/models/story%74eller")[2] == model
    assert server.request("GET", "/v1/models")[2]["data"] == [model]


def example():
    run = subprocess.run(
        [sys.executable, sys.argv[2], f"http://{server.host}:{server.port}",
         PROMPTS[0]], capture_output=True, text=True, check=True)
    text = generate(PROMPTS[0], "--max-new-tokens=60")["text"]
    assert run.stdout == PROMPTS[0] + text + "\n", run.stdout


LONG_PROMPTS = [shared_prompts, shared_beginnings, paused_prompts,
                one_prompt_for_several]
TEXTS = [texts_alone, streams, many_at_once, unequal_lengths, several, chats,
         tokens, example]
STATES = [many_at_once, unequal_lengths]

with serving.Server(sys.argv[1:2], "--slots=3", *THREADS) as server:
    serving.run({"prompts": LONG_PROMPTS, "states": STATES}.get(
        sys.argv[2], TEXTS))
    assert server.stop() == 0
