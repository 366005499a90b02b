# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""serve-members.py PARROT BROKEN: members of requests, tools that templates do
not know, and /v1/responses. The parrot repeats what stands before '?' in a
prompt; BROKEN has a weight that is not a number.
"""
import json
import sys

import serving

parrot, broken = [[path] for path in sys.argv[1:3]]


def long_texts():
    """Of a text far beyond the context, no more is cut than shows that."""
    with serving.Server(parrot, "--chat-template=tools.jinja") as server:
        name = "attune_tokenized_bytes_total"
        for path, body in (
                ("/v1/completions", {"prompt": "$%" * 2000000}),
                ("/v1/chat/completions", {"messages": [
                    {"role": "user", "content": "$%" * 2000000}]})):
            before = server.metric(name)
            error = server.post(path, body, 400)["error"]
            # 4,000 tokens of context: a byte is a token here.
            assert server.metric(name) - before <= 16 * 4000 + 4096, path
            assert error["code"] == "context_length_exceeded", error
            assert "more than 3999 tokens" in error["message"], error
            assert "context of 4000" in error["message"], error
        # One that is a little too long is counted.
        error = server.post("/v1/completions", {"prompt": "$" * 4001},
                            400)["error"]
        assert "has 4001 tokens" in error["message"], error
        # So are numbers that a reply would have to hold at once.
        error = server.post("/v1/completions", {
            "prompt": [[1] * 3999] * 64, "echo": True, "logprobs": 20},
            400)["error"]
        assert "of which at most 199728 are scored at once" in error[
            "message"], error
    with serving.Server(broken) as server:
        error = server.post("/v1/completions", {
            "prompt": [1, 2, 3], "echo": True, "logprobs": 1}, 500)["error"]
        assert "logits of the prompt hold NaN" in error["message"], error


def limits():
    """What a small request would multiply is refused."""
    schema = json.dumps({"enum": list(range(30000))})
    call = {"role": "assistant", "tool_calls": [{
        "id": "a", "type": "function", "function": {
            "name": "f", "arguments": json.dumps([1] * 400000)}}]}
    say = [{"role": "user", "content": "a"}]
    with serving.Server(parrot, "--chat-template=tools.jinja") as server:
        def post(body, status):
            chat = "messages" in body
            return server.post("/v1/chat/completions" if chat else
                               "/v1/completions",
                               body if chat else {"prompt": "a", **body},
                               status)

        for body, parameter, wanted in (
                ({"stop_token_ids": list(range(257))}, "stop_token_ids",
                 "at most 256 ids, found 257"),
                ({"logit_bias": {f"{i % 1000:0{4 + i // 1000}}": 1
                                 for i in range(5000)}}, "logit_bias",
                 "at most 4096 tokens, found 5000"),
                ({"stop": "a" * 5000}, "stop", "at most 4096 bytes"),
                ({"prompt": [[1] * 3999] * 64, "echo": True, "logprobs": 20,
                  "n": 16}, "echo", "at most 12483 are scored at once with 20 "
                 "likeliest ones beside each in 16 choices"),
                ({"prompt": [[1] * 3999] * 64, "echo": True, "logprobs": 20,
                  "n": 16, "prompt_logprobs": 20}, "echo", "at most 6241 are"),
                ({"guided_json": schema}, "guided_json", "20000 values"),
                ({"guided_json": " " * (2 << 20) + "{}"}, "guided_json",
                 "1 MiB"),
                ({"messages": say + [call, call, call]}, "messages", "2 MiB"),
                ({"messages": say, "chat_template_kwargs": {
                    f"v{i}": 1 for i in range(257)}}, "chat_template_kwargs",
                 "at most 256 members, found 257"),
                ({"repeat_penalty": 0}, "repeat_penalty", "from 0.01"),
                ({"messages": say, "n_predict": 0}, "n_predict", "1 or more"),
                ({"n_predict": -2}, "n_predict", "0 or more")):
            error = post(body, 400)["error"]
            assert error["param"] == parameter, error
            assert wanted in error["message"], error
        # As many of one as there may be values.
        post({"stop_token_ids": [2] * 5000, "max_tokens": 1,
              "repeat_penalty": 1.1}, 200)
        reply = post({"prompt": "abcdef?", "n_predict": 2}, 200)
        assert reply["usage"]["completion_tokens"] == 2, reply
        reply = post({"prompt": "abcdef?", "n_predict": -1}, 200)
        assert reply["choices"][0]["text"] == "abcdef", reply
        # Looked for one by one, these members would take the desk a minute.
        server.post("/v1/responses", {
            "input": "a", **{f"member{i}": 1 for i in range(100000)}})


def members_of_chats():
    """vLLM's and llama.cpp's members that change an answer."""
    with serving.Server(parrot, "--chat-template=tools.jinja") as server:
        def say(text, **more):
            reply = server.post("/v1/chat/completions", {
                "messages": [{"role": "user", "content": text}], **more})
            return reply["choices"][0]["message"]["content"]

        text = '{"age": 7}'
        schema = {"type": "object", "properties": {"age": {"type": "integer"}},
                  "required": ["age"], "additionalProperties": False}
        letters = "[a-c]{3}"
        for more in ({"guided_json": schema}, {"json_schema": schema},
                     {"guided_json": json.dumps(schema)},
                     {"guided_regex": r"\{.*\}"},
                     {"guided_grammar": 'root ::= [{}a-z":0-9 ]+'},
                     {"grammar": 'root ::= [{}a-z":0-9 ]+'},
                     {"guided_choice": ['{"age": 8}', text, "no"]},
                     {"structured_outputs": {"json": schema}},
                     {"structured_outputs": {"json_object": True}},
                     {"structured_outputs": {"regex": r"\{.*\}"}},
                     {"structured_outputs": {"choice": [text]}}):
            assert say(text, **more) == text, more
        for more in ({"guided_regex": letters},
                     {"structured_outputs": {"regex": letters}},
                     {"guided_grammar": "root ::= " + "[a-c]" * 3}):
            said = say("Hello", **more)
            assert len(said) == 3 and set(said) <= set("abc"), (more, said)
        choices = ['say "no"', "a\\b\n", "ü"]
        for choice in choices:
            assert say(choice, guided_choice=choices) == choice
        # '#' is token 2: the text ends there, which is not part of it.
        reply = server.post("/v1/chat/completions", {
            "messages": [{"role": "user", "content": "ab#c"}],
            "stop_token_ids": [2]})
        choice = reply["choices"][0]
        assert choice["message"]["content"] == "ab", choice
        assert choice["finish_reason"] == "stop", choice

        reply = server.post("/v1/chat/completions", {
            "messages": [{"role": "user", "content": "ab"}], "logprobs": True,
            "top_logprobs": 1, "return_tokens_as_token_ids": True})
        for token in reply["choices"][0]["logprobs"]["content"]:
            for each in token, *token["top_logprobs"]:
                assert each["token"] == f"token_id:{each['id']}", reply

        reply = server.post("/v1/chat/completions", {
            "messages": [{"role": "user", "content": "ab"}],
            "prompt_logprobs": 0})
        first, *others = reply["prompt_logprobs"]
        assert first is None and len(others) + 1 == reply["usage"][
            "prompt_tokens"], reply
        assert all(list(value.values())[0].keys() == {
            "logprob", "rank", "decoded_token"} for value in others), others

    with open("turns.jinja", "w") as file:
        file.write("{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}"
                   "</>{% endfor %}{% if add_generation_prompt %}<assistant>"
                   "{% endif %}")
    with serving.Server(parrot, "--chat-template=turns.jinja") as server:
        def count(text):
            return server.post("/tokenize", {"content": text})["count"]

        def prompt_tokens(**more):
            return server.post("/v1/chat/completions", {
                "messages": [{"role": "user", "content": "a"},
                             {"role": "assistant", "content": "b c "}],
                "max_tokens": 1, **more})["usage"]["prompt_tokens"]

        said = "<user>a</><assistant>b c"
        assert prompt_tokens() == count(said + "</><assistant>")
        assert prompt_tokens(add_generation_prompt=False) == count(said + "</>")
        assert prompt_tokens(continue_final_message=True) == count(said)
        assert prompt_tokens(continue_final_message=True,
                             add_generation_prompt=False) == count(said)
        for more in ({"add_generation_prompt": True},
                     {"messages": [{"role": "assistant", "content": ""}]}):
            error = server.post("/v1/chat/completions", {
                "messages": [{"role": "assistant", "content": "b"}],
                "continue_final_message": True, **more}, 400)["error"]
            assert error["param"] in ("continue_final_message", "messages")


def continued_messages():
    """A prompt ends where the last message does, whatever stands around it."""
    marks = "<|im_start|>{{ m.role }}\n{{ m.content%s }}<|im_end|>\n"
    said = "<|im_start|>assistant\n"
    for trims, content, wanted in (("", "end", "end"), ("", "a \n", "a \n"),
                                   (" | trim", " end ", "end"),
                                   (" | trim", "im_end", "im_end"),
                                   (" | trim + ' '", "a ", "a")):
        with open("chatml.jinja", "w") as file:
            file.write("{% for m in messages %}" + marks % trims +
                       "{% endfor %}")
        with serving.Server(parrot, "--chat-template=chatml.jinja") as server:
            for form in content, [{"type": "text", "text": content}]:
                reply = server.post("/v1/chat/completions", {
                    "messages": [{"role": "assistant", "content": form}],
                    "continue_final_message": True, "prompt_logprobs": 0,
                    "max_tokens": 1})
                tokens = [list(value.values())[0]["decoded_token"]
                          for value in reply["prompt_logprobs"][1:]]
                pieces = server.post("/tokenize", {
                    "content": said + wanted, "with_pieces": True})["tokens"]
                assert tokens == [each["piece"] for each in pieces][1:], (
                    trims, content, tokens)


def plain_tools():
    """Tools, where the template knows none."""
    tools = [{"type": "function", "function": {
        "name": "add", "description": "Adds.", "parameters": {
            "type": "object", "properties": {"x": {"type": "integer"}},
            "required": ["x"], "additionalProperties": False}}}]
    call = '<tool_call>{"name": "add", "arguments": {"x": 1}}</tool_call>'
    turns = ("{% for m in messages %}{% if m.role == 'system' %}SYSTEM"
             "{% elif m.role not in ['user', 'assistant'] or (m.role == "
             "'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles "
             "must alternate') }}{% endif %}[{{ m.role }} {{ m.content }}]"
             "{% endfor %}")
    # As Gemma's: what the system says is in front of what the user says first.
    gemma = ("{% if messages[0].role == 'system' %}{% set first = "
             "messages[0].content %}{% set messages = messages[1:] %}{% endif "
             "%}{{ first }}" + turns)
    refuses = turns.replace("SYSTEM", "{{ raise_exception('no system') }}")
    for template in gemma, refuses:
        with open("plain.jinja", "w") as file:
            # The parrot repeats what stands before '?'.
            file.write(template + "\n?")
        with serving.Server(parrot, "--chat-template=plain.jinja",
                            "--context=4000") as server:
            def ask(messages, **more):
                reply = server.post("/v1/chat/completions", {
                    "messages": messages, "max_tokens": 2000, **more})
                return reply["choices"][0]["message"]

            # What it was told comes back, and is no call as text is behind it.
            asked = [{"role": "user", "content": "One and two"}]
            told = ask(asked, tools=tools)["content"]
            assert '"name":"add","description":"Adds."' in told, told
            assert call[:20] in told and "One and two" in told, told
            assert "add" not in ask(asked, tools=tools,
                                    tool_choice="none")["content"]
            # Of several tools the model is told of those it may call.
            other = {"type": "function", "function": {"name": "other"}}
            told = ask(asked, tools=[*tools, other], tool_choice={
                "type": "allowed_tools", "allowed_tools": {
                    "mode": "auto", "tools": [other]}})["content"]
            assert '"name":"other"' in told and "Adds." not in told, told
            # Calls and results are texts of the two who talk.
            history = asked + [
                {"role": "assistant", "content": None, "tool_calls": [
                    {"id": name, "type": "function", "function": {
                        "name": "add", "arguments": '{"x": 1}'}}
                    for name in "ab"]},
                {"role": "tool", "tool_call_id": "a", "content": "3"},
                {"role": "tool", "tool_call_id": "b", "content": "4"}]
            wanted = (f"[assistant {call}\n{call}][user <tool_response>\n3\n"
                      "</tool_response>\n<tool_response>\n4\n"
                      "</tool_response>]")
            wanted = wanted.replace('{"x": 1}', '{"x":1}')
            for more in {"tools": tools}, {}:
                told = ask(history, **more)["content"]
                assert wanted in told, (more, told)
            for choice in "required", {"type": "function",
                                       "function": {"name": "add"}}:
                made = ask(asked, tools=tools, tool_choice=choice,
                           max_tokens=80)
                if "tool_calls" in made:
                    assert made["tool_calls"][0]["function"]["name"] == "add"
    # ChatML shows whatever there is, and would leave calls out.
    with open("plain.jinja", "w") as file:
        file.write("{% for m in messages %}<|im_start|>{{ m.role }}\n"
                   "{{ m.content }}<|im_end|>\n{% endfor %}?")
    with serving.Server(parrot, "--chat-template=plain.jinja") as server:
        for more in {}, {"tools": tools, "tool_choice": "none"}:
            told = server.post("/v1/chat/completions", {
                "messages": history, "max_tokens": 2000, **more})
            told = told["choices"][0]["message"]["content"]
            assert told.count(call.replace(": 1", ":1")) == 2, told
            assert "<tool_response>\n4\n</tool_response>" in told, told
            assert "<|im_start|>tool" not in told, told
    with open("plain.jinja", "w") as file:
        file.write("{% for m in messages if m.role == 'user' %}"
                   "{{ m.content }}{% endfor %}?")
    with serving.Server(parrot, "--chat-template=plain.jinja") as server:
        body = {"messages": [{"role": "system", "content": "S"},
                             {"role": "user", "content": ""}],
                "tools": tools, "max_tokens": 2000}
        told = server.post("/v1/chat/completions", body)
        assert "Adds" in told["choices"][0]["message"]["content"], told
    # Such calls are read, whatever other way the template has for them.
    for way in "", "{# <｜tool▁calls▁begin｜> #}":
        with open("plain.jinja", "w") as file:
            file.write(way + "{% for m in messages %}{{ m.content[:14] if "
                       "m.role == 'system' else m.content }}{% endfor %}?")
        with serving.Server(parrot, "--chat-template=plain.jinja") as server:
            def talk(text, **more):
                return server.post("/v1/chat/completions", {
                    "messages": [{"role": "user", "content": text}],
                    **more})["choices"][0]

            assert talk(call)["message"]["content"] == call
            choice = talk(" Hm. " + call + call, tools=tools)
            assert choice["message"]["content"] == "You may call f Hm. ", choice
            made = [each["function"] for each in
                    choice["message"]["tool_calls"]]
            assert made == [{"name": "add", "arguments": '{"x":1}'}] * 2, made
            assert choice["finish_reason"] == "tool_calls", choice
            choice = talk(call + call, tools=tools, parallel_tool_calls=False)
            assert len(choice["message"]["tool_calls"]) == 1, choice


def responses():
    """OpenAI's Responses API, in the shapes that its clients send."""
    with serving.Server(parrot, "--chat-template=think.jinja") as server:
        def ask(given, **more):
            return server.post("/v1/responses", {
                "model": "fake", "input": given, **more})

        reply = ask("Hello")
        assert reply["object"] == "response", reply
        assert reply["id"].startswith("resp_"), reply
        assert reply["status"] == "completed" and reply["error"] is None
        assert reply["store"] is False and reply["tools"] == [], reply
        [item] = reply["output"]
        [part] = item["content"]
        assert (item["type"], item["role"], item["status"]) == (
            "message", "assistant", "completed"), item
        assert (part["type"], part["text"], part["annotations"]) == (
            "output_text", "Hello", []), part
        usage = reply["usage"]
        assert usage["output_tokens"] > 0 and usage["total_tokens"] == (
            usage["input_tokens"] + usage["output_tokens"]), usage
        assert set(usage["input_tokens_details"]) == {"cached_tokens"}
        # Items, and what clients send along.
        reply = ask([{"role": "developer", "content": "B"},
                     {"type": "message", "role": "user", "content": [
                         {"type": "input_text", "text": "C"}]},
                     {"type": "reasoning", "id": "rs_1", "summary": [
                         {"type": "summary_text", "text": "E"}]},
                     {"type": "message", "id": "msg_1", "role": "assistant",
                      "status": "completed", "content": [
                          {"type": "output_text", "text": "D",
                           "annotations": []}]},
                     {"role": "user", "content": "F"}],
                    instructions="A", store=True, include=[
                        "reasoning.encrypted_content"],
                    metadata={"a": "b"}, parallel_tool_calls=True,
                    truncation="disabled", temperature=1.0, top_p=1.0, seed=1,
                    top_k=1, reasoning={"effort": "high", "summary": "auto"},
                    max_output_tokens=100, text={"format": {"type": "text"},
                                                 "verbosity": "low"})
        assert reply["output"][0]["content"][0]["text"] == (
            "A\n\nBCD[E]F/high/True/True"), reply
        assert reply["metadata"] == {"a": "b"} and reply["store"] is False
        assert reply["reasoning"]["effort"] == "high", reply
        # Reasoning is an item of its own; calls are, too.
        tool = {"type": "function", "name": "add", "strict": True,
                "description": None, "parameters": {
                    "type": "object", "properties": {"x": {"type": "integer"}},
                    "required": ["x"], "additionalProperties": False}}
        said = ("<think>Hm.</think>So <tool_call>add<arg_key>x</arg_key>"
                "<arg_value>1</arg_value></tool_call>")
        reply = ask(said, tools=[tool])
        thought, message, call = reply["output"]
        assert thought["type"] == "reasoning", reply
        assert thought["summary"] == [{"type": "summary_text", "text": "Hm."}]
        assert message["content"][0]["text"].strip() == "So", reply
        assert (call["type"], call["name"], call["arguments"]) == (
            "function_call", "add", '{"x":1}'), call
        assert call["call_id"] and call["id"] != call["call_id"], call
        assert reply["usage"]["output_tokens_details"]["reasoning_tokens"] > 0
        # They go back as they are, with what came out.
        ask([{"role": "user", "content": "a"}, *reply["output"],
             {"type": "function_call_output", "call_id": call["call_id"],
              "output": "3"}], tools=[tool])
        # Reasoning that no answer came behind is none of a later one.
        thought = {"type": "reasoning", "id": "rs_1", "summary": [
            {"type": "summary_text", "text": "E"}]}
        for items, wanted in (
                ([{"role": "user", "content": "a"}, thought,
                  {"role": "user", "content": "b"},
                  {"role": "assistant", "content": "c"}], "abc"),
                ([{"role": "user", "content": "a"}, thought], "a"),
                ([thought, thought, {"role": "assistant", "content": "c"}],
                 "c[E\nE]")):
            reply = ask(items)
            assert reply["output"][0]["content"][0]["text"] == wanted, reply
        # A form, a call that is asked for, an end for want of room.
        schema = tool["parameters"]
        reply = ask('{"x": 5}', text={"format": {
            "type": "json_schema", "name": "n", "schema": schema,
            "strict": True}})
        assert reply["output"][0]["content"][0]["text"] == '{"x": 5}', reply
        reply = ask('{"name": "add", "arguments": {"x": 7}}', tools=[tool],
                    tool_choice={"type": "function", "name": "add"})
        assert reply["output"][0]["arguments"] == '{"x":7}', reply
        allowed = {"type": "allowed_tools", "mode": "required", "tools": [
            {"type": "function", "name": "add"}]}
        reply = ask('{"name": "add", "arguments": {"x": 7}}',
                    tools=[tool, {**tool, "name": "other"}],
                    tool_choice=allowed)
        assert reply["output"][0]["name"] == "add", reply
        reply = ask("Hello there", max_output_tokens=1)
        assert reply["status"] == "incomplete", reply
        assert reply["incomplete_details"] == {"reason": "max_output_tokens"}
        reply = ask("Hello", top_logprobs=2, include=[
            "message.output_text.logprobs"])
        tokens = reply["output"][0]["content"][0]["logprobs"]
        assert "".join(token["token"] for token in tokens) == "Hello", tokens
        assert len(tokens[0]["top_logprobs"]) == 2, tokens
        for more, parameter in (
                ({"previous_response_id": "resp_1"}, "previous_response_id"),
                ({"conversation": "c"}, "conversation"),
                ({"background": True}, "background"),
                ({"tools": [{"type": "web_search"}]}, "tools"),
                ({"input": 5}, "input"), ({"input": None}, "input"),
                ({"input": [{"type": "item_reference", "id": "a"}]}, "input"),
                ({"input": [{"role": "user", "content": [
                    {"type": "input_file", "file_id": "a"}]}]}, "input"),
                ({"input": [{"role": "boss", "content": "a"}]}, "input"),
                ({"input": [{"type": "function_call", "name": "a"}]}, "input"),
                ({"input": "a " * 9000}, "input"),
                ({"max_output_tokens": 0}, "max_output_tokens"),
                ({"max_tokens": 5}, "max_tokens"),
                ({"reasoning": {"effort": 3}}, "reasoning"),
                ({"text": {"format": {"type": "xml"}}}, "text"),
                ({"tool_choice": "required"}, "tool_choice"),
                ({"tool_choice": allowed}, "tool_choice"),
                ({"tool_choice": {**allowed, "mode": 1}, "tools": [tool]},
                 "tool_choice"),
                ({"truncation": "auto"}, "truncation"),
                ({"stop": "a"}, "stop")):
            error = server.post("/v1/responses", {
                "model": "fake", "input": "a", **more}, 400)["error"]
            assert error["param"] == parameter, (more, error)
            assert "messages" not in error["message"], error


def streamed_responses():
    """Named events, whose parts make what the last one has."""
    with serving.Server(parrot, "--chat-template=think.jinja") as server:
        tool = {"type": "function", "name": "add"}
        said = ("<think>Hm. Well.</think>So it is <tool_call>add<arg_key>x"
                "</arg_key><arg_value>1</arg_value></tool_call>")
        body = {"model": "fake", "input": said, "tools": [tool],
                "stream": True}

        def ask(**more):
            with server.connect() as connection:
                connection.request("POST", "/v1/responses",
                                   json.dumps({**body, **more}),
                                   {"Content-Type": "application/json"})
                text = connection.getresponse().read().decode()
            events = []
            for event in text.strip().split("\n\n"):
                name, data = event.split("\n")
                data = json.loads(data[len("data: "):])
                assert name == "event: " + data["type"], event
                assert data["sequence_number"] == len(events), event
                events.append(data)
            done = [event["item"] for event in events
                    if event["type"] == "response.output_item.done"]
            output = events[-1]["response"]["output"]
            assert done == output, (done, output)
            return events

        events = ask()
        kinds = [event["type"].replace("response.", "") for event in events]
        once = [kind for i, kind in enumerate(kinds)
                if i == 0 or kind != kinds[i - 1]]
        assert once == [
            "created", "in_progress",
            "output_item.added", "reasoning_summary_part.added",
            "reasoning_summary_text.delta", "reasoning_summary_text.done",
            "reasoning_summary_part.done", "output_item.done",
            "output_item.added", "content_part.added", "output_text.delta",
            "output_text.done", "content_part.done", "output_item.done",
            "output_item.added", "function_call_arguments.delta",
            "function_call_arguments.done", "output_item.done",
            "completed"], once
        last = events[-1]["response"]
        assert events[0]["response"]["status"] == "in_progress", events[0]
        assert events[0]["response"]["id"] == last["id"], last
        thought, message, call = last["output"]
        for item, kind, whole in (
                (thought, "reasoning_summary_text", "Hm. Well."),
                (message, "output_text", "So it is "),
                (call, "function_call_arguments", '{"x":1}')):
            deltas = [event for event in events
                      if event["type"] == f"response.{kind}.delta"]
            assert {event["item_id"] for event in deltas} == {item["id"]}
            assert "".join(event["delta"] for event in deltas) == whole, deltas
        assert thought["summary"][0]["text"] == "Hm. Well.", thought
        assert message["content"][0]["text"] == "So it is ", message
        assert last["usage"]["output_tokens"] > 0, last
        # An end for want of room is one, and so is nothing at all.
        for more, name in ({"max_output_tokens": 1}, "incomplete"), (
                {"input": ""}, "completed"):
            last = ask(**more)[-1]
            assert last["type"] == "response." + name, last
            assert last["response"]["output"], last
        # A call that is whole is so where no room is left behind it.
        room = server.post("/tokenize", {"content": said})["count"]
        last = ask(max_output_tokens=room)[-1]
        assert last["type"] == "response.incomplete", last
        assert last["response"]["output"][-1]["type"] == "function_call", last
        assert last["response"]["output"][-1]["status"] == "completed", last
        # Log-probabilities are those of the text, in a stream and without.
        more = {"input": said.replace("is <", "is<"), "top_logprobs": 1}
        events = ask(**more)
        whole = server.post("/v1/responses", {**body, **more, "stream": False})
        text = whole["output"][1]["content"][0]
        sent = sum((event["logprobs"] for event in events if event["type"] ==
                    "response.output_text.delta"), [])
        assert text["text"] == "So it is", text
        assert "".join(each["token"] for each in sent) == text["text"], sent
        assert sent == text["logprobs"], (sent, text)
        [item] = [item for item in events[-1]["response"]["output"]
                  if item["type"] == "message"]
        assert item["content"] == [text], item


serving.run([long_texts, limits, members_of_chats, continued_messages,
             plain_tools, responses, streamed_responses])
