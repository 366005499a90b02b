#!/usr/bin/env python3
"""Writes chat-templates.json: chat templates and what Jinja makes of them.

  python3 chat_templates.py > chat-templates.json

The environment is that of transformers' apply_chat_template. The templates use
the constructs that published ones use; expressions and refusals follow. Needs
the package jinja2 (python3-jinja2); the tests read the results alone.
"""

import datetime
import json
import sys

import jinja2
import jinja2.ext
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("say"), [], [], body,
                               lineno=line)

    def say(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None,
           sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent,
                      separators=separators, sort_keys=sort_keys)


ENVIRONMENT = ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True,
    extensions=[Generation, jinja2.ext.loopcontrols])
ENVIRONMENT.filters["tojson"] = tojson
ENVIRONMENT.globals["raise_exception"] = raise_exception
ENVIRONMENT.globals["strftime_now"] = (
    lambda layout: datetime.datetime.now().strftime(layout))

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "The \"weather\" <here> & später 你好",
    "parameters": {"type": "object", "required": ["city"], "properties": {
        "city": {"type": "string", "description": "A city", "enum": ["Rome"]},
        "days": {"type": ["integer", "null"], "default": 3},
        "where": {"type": "object", "properties": {"x": {"type": "number"}}},
        "list": {"type": "array", "items": {"type": "string"}}}}}}
PLAIN = {"type": "function", "function": {
    "name": "now", "description": "", "parameters": {"type": "object",
                                                     "properties": {}}}}


def user(content):
    return {"role": "user", "content": content}


def assistant(content, **more):
    return {"role": "assistant", "content": content, **more}


def system(content):
    return {"role": "system", "content": content}


def call(arguments, id):
    return {"id": id, "type": "function",
            "function": {"name": "get_weather", "arguments": arguments}}


CONVERSATIONS = {
    "one": [user("Hi there")],
    "system": [system("Be brief.  "), user(" Hello\n"), assistant(" Hey! "),
               user("q é 你好 🎉")],
    "thinking": [user("q"), assistant("<think>\nhm\n</think>\n\nfine"),
                 user("r"), assistant("yes", reasoning_content="because"),
                 user("s")],
    "tools": [system("S"), user("weather?"),
              assistant("", tool_calls=[
                  call({"city": "Rome", "f": 1.5, "b": True, "n": None}, "a1"),
                  call({"city": "Paris"}, "a2")]),
              {"role": "tool", "name": "get_weather", "content": "21.5",
               "tool_call_id": "a1"},
              {"role": "tool", "name": "get_weather", "content": "19",
               "tool_call_id": "a2"}, assistant("Warm."), user("thanks")],
    "parts": [system([{"type": "text", "text": "Sys"}]),
              user([{"type": "text", "text": "look "}, {"type": "image"},
                    {"type": "text", "text": "here"}])],
    "odd": [assistant("first"), user("a"), user("b")],
    "none": [],
}
# What a rendering may be given beside the messages.
SWITCHES = [{}, {"enable_thinking": False}, {"tools": [WEATHER, PLAIN]},
            {"add_generation_prompt": False},
            {"documents": [{"title": "T", "text": "words"}, {"text": "more"}]}]



def read(path):
    """Templates lie between lines of "=== NAME"."""
    name, lines, found = None, [], []
    for line in open(path, encoding="utf-8").read().split("\n"):
        if line.startswith("=== "):
            if name:
                found.append((name, "\n".join(lines)))
            name, lines = line[4:], []
        else:
            lines.append(line)
    return [(name, text.replace("@TAB@", "\t")
             .replace("@CR@", "\r").replace("@SP@", " "))
            for name, text in found]


def render(source, variables):
    try:
        return {"text": ENVIRONMENT.from_string(source).render(**variables)}
    except Exception as problem:  # whatever Jinja or Python raises
        return {"refused": f"{type(problem).__name__}: {problem}"}


def main():
    folder = sys.path[0]
    templates, cases = {}, []
    for name, source in read(f"{folder}/chat-templates.txt"):
        templates[name] = source
        for title, messages in CONVERSATIONS.items():
            for number, switch in enumerate(SWITCHES):
                variables = {"messages": messages, "tools": None,
                             "documents": None, "add_generation_prompt": True,
                             "bos_token": "<s>", "eos_token": "</s>", **switch}
                cases.append({"template": name, "conversation": title,
                              "switch": number,
                              **render(source, variables)})
    expressions = []
    for line in open(f"{folder}/chat-expressions.txt", encoding="utf-8"):
        source = line.rstrip("\n").replace("\\N", "\n")
        if source:
            expressions.append({"source": source, **render(source, {
                "d": {"items": 1, "a": 2, "b": {"c": [1, 2, 3]}, "z": None},
                "l": [3, 1, 2], "s": "Straße Ünï 你好 x", "e": [],
                "m": CONVERSATIONS["tools"]})})
    parts = {"conversations": CONVERSATIONS, "switches": SWITCHES,
             "templates": templates, "cases": cases,
             "expressions": expressions}
    lines = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
             for key, value in parts.items()]
    print("{" + ",\n".join(lines) + "}")


if __name__ == "__main__":
    main()
