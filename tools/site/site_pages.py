#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Static pages of everything that is written about Attune in its sources.

    site_pages.py SOURCES REFERENCE ATTUNE OUT

REFERENCE holds the pages that mlir-tblgen makes of dialects and passes. The
READMEs, the reference of descriptions (from the schema, with an example of each
key), the command line (from --help) and the C interface become HTML in OUT.
cmark-gfm converts Markdown. Ends with 1 if a link leads nowhere.
"""

import html
import json
import pathlib
import posixpath
import re
import subprocess
import sys
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "manual"))
from manual import Page  # noqa: E402

STYLE = """
:root { --ink: #1c2430; --soft: #5a6675; --line: #d8dee6; --back: #ffffff; --code: #f4f6f9; --link: #0b5cad; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e3e8ee; --soft: #9aa7b5; --line: #333d49; --back: #14191f; --code: #1d242c; --link: #7ab8f5; } }
* { box-sizing: border-box; }
body { margin: 0; font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--back); display: flex; }
nav { width: 17rem; flex: none; height: 100vh; position: sticky; top: 0; overflow-y: auto; padding: 1.2rem; border-right: 1px solid var(--line); font-size: .9rem; }
nav h2 { font-size: .78rem; text-transform: uppercase; letter-spacing: .06em; color: var(--soft); margin: 1.2rem 0 .3rem; }
nav a { display: block; padding: .08rem 0; color: var(--ink); text-decoration: none; }
nav a.here { font-weight: 600; color: var(--link); }
main { flex: 1; min-width: 0; max-width: 60rem; padding: 1.5rem 2.5rem 5rem; }
a { color: var(--link); } h1, h2, h3, h4 { line-height: 1.25; margin: 1.8em 0 .5em; } h1 { margin-top: .2em; }
pre { background: var(--code); padding: .8rem 1rem; overflow-x: auto; border-radius: 6px; font-size: .85rem; line-height: 1.45; }
code { font-family: ui-monospace, monospace; font-size: .9em; } :not(pre) > code { background: var(--code); padding: .1em .3em; border-radius: 4px; }
table { border-collapse: collapse; display: block; overflow-x: auto; font-size: .9rem; } th, td { border: 1px solid var(--line); padding: .3rem .6rem; text-align: left; vertical-align: top; }
@media (max-width: 50rem) { body { display: block; } nav { width: auto; height: auto; position: static; } main { padding: 1rem; } }
"""


def slug(text):
    """What GitHub calls a heading."""
    text = re.sub(r"<[^>]+>", "", text).strip().lower()
    return re.sub(r" ", "-", re.sub(r"[^\w\- ]", "", html.unescape(text)))


def markdown(text):
    done = subprocess.run(["cmark-gfm", "--unsafe", "-e", "table", "-e", "autolink"], input=text,
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    seen = {}

    def heading(match):
        name = slug(match[2])
        count = seen[name] = seen.get(name, -1) + 1
        name += f"-{count}" if count else ""
        return f'<h{match[1]} id="{name}">{match[2]}</h{match[1]}>'
    done = re.sub(r"<h([1-6])>(.*?)</h\1>", heading, done, flags=re.S)
    return done.replace("<p>[TOC]</p>", "")


def preformatted(text):
    return f"<pre><code>{html.escape(textwrap.dedent(text))}</code></pre>"


class Site:
    def __init__(self, sources, out):
        self.sources, self.out = sources, out
        self.pages = {}   # place in the site -> (title, body)
        self.origins = {}  # place in the source tree -> place in the site
        self.menu = []    # (group, [place])

    def add(self, place, title, body, origin=None):
        self.pages[place] = (title, body)
        if origin is not None:
            self.origins[origin] = place
            folder, name = posixpath.split(origin)
            if name == "README.md":
                self.origins[folder or "."] = place

    def add_readme(self, origin, place=None, title=None):
        text = (self.sources / origin).read_text()
        found = re.search(r"^# (.*)$", text, re.M)
        place = place or origin.removesuffix("README.md").rstrip("/").replace(".md", "") + ".html"
        self.add(place, title or (found[1] if found else origin), markdown(text), origin)
        return place

    def resolve(self, place, link):
        """Where a link of a page leads, as this site has it; None: nowhere."""
        target, _, fragment = link.partition("#")
        if re.match(r"[a-z]+:", link):
            return link
        if not target:
            return link
        origin = next((o for o, p in self.origins.items() if p == place
                       and (o.endswith(".md"))), None)
        base = posixpath.dirname(origin) if origin else posixpath.dirname(place)
        full = posixpath.normpath(posixpath.join(base, target))
        if full not in self.origins and (self.sources / full).is_file():
            self.add(f"source/{full}.html", full, f"<h1>{html.escape(full)}</h1>" + preformatted(
                (self.sources / full).read_text(errors="replace")), full)
        if full in self.origins:
            full = self.origins[full]
        elif full not in self.pages:
            return None
        shown = posixpath.relpath(full, posixpath.dirname(place) or ".")
        return shown + ("#" + fragment if fragment else "")

    def write(self):
        """Writes all pages; returns the links that lead nowhere."""
        broken, done = [], {}
        queue = list(self.pages)
        while queue:
            place = queue.pop(0)
            known = set(self.pages)
            title, body = self.pages[place]

            def link(match):
                target = self.resolve(place, html.unescape(match[1]))
                if target is None:
                    broken.append(f"{place}: {match[1]}")
                    return match[0]
                return f'href="{html.escape(target)}"'
            done[place] = (title, re.sub(r'href="([^"]*)"', link, body))
            queue += [new for new in self.pages if new not in known]
        for place, (title, body) in done.items():
            for target in re.findall(r'href="([^"]*)"', body):
                target = html.unescape(target)
                if re.match(r"[a-z]+:", target) or "#" not in target:
                    continue
                path, _, fragment = target.partition("#")
                full = posixpath.normpath(posixpath.join(posixpath.dirname(place), path)) if path else place
                if f'id="{fragment}"' not in done[full][1]:
                    broken.append(f"{place}: {target}")
            file = self.out / place
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self.page(place, title, body))
        (self.out / "style.css").write_text(STYLE.lstrip())
        return broken

    def page(self, place, title, body):
        def to(other):
            return posixpath.relpath(other, posixpath.dirname(place) or ".")
        menu = ""
        for group, places in self.menu:
            menu += f"<h2>{html.escape(group)}</h2>\n"
            for other in places:
                here = ' class="here"' if other == place else ""
                menu += f'<a href="{to(other)}"{here}>{html.escape(self.pages[other][0])}</a>\n'
        return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
                f'<meta name="viewport" content="width=device-width, initial-scale=1">'
                f"<title>{html.escape(title)} - Attune</title>"
                f'<link rel="stylesheet" href="{to("style.css")}"></head>\n'
                f"<body><nav>{menu}</nav>\n<main>{body}</main></body></html>\n")


# --- The reference of descriptions

def definition(schema, part):
    name = part.get("$ref", "").removeprefix("#/$defs/")
    return name, schema["$defs"][name] if name else part


def type_of(part):
    if "$ref" in part:
        name = part["$ref"].removeprefix("#/$defs/")
        return f'<a href="#{name}">{name}</a>'
    if "enum" in part:
        return " | ".join(f"<code>{html.escape(json.dumps(word))}</code>" for word in part["enum"])
    if "const" in part:
        return f"<code>{html.escape(json.dumps(part['const']))}</code>"
    for key in ("oneOf", "anyOf"):
        if key in part:
            return " or ".join(type_of(item) for item in part[key])
    kinds = part.get("type", "any")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if "array" in kinds and "items" in part:
        return "array of " + type_of(part["items"])
    if "object" in kinds and isinstance(part.get("additionalProperties"), dict):
        return "object of " + type_of(part["additionalProperties"])
    # Every integer may be an expression over named numbers.
    return " or ".join(kind for kind in kinds if not (kind == "string" and "integer" in kinds))


def collect_examples(schema, part, value, examples):
    """Notes the value of each key of each definition that `value` uses."""
    name, part = definition(schema, part)
    for key in ("oneOf", "anyOf"):
        for item in part.get(key, []):
            collect_examples(schema, item, value, examples)
    if isinstance(value, dict):
        for key, item in value.items():
            known = part.get("properties", {}).get(key)
            if known is not None:
                examples.setdefault((name, key), item)
                collect_examples(schema, known, item, examples)
            elif isinstance(part.get("additionalProperties"), dict):
                collect_examples(schema, part["additionalProperties"], item, examples)
    elif isinstance(value, list) and isinstance(part.get("items"), dict):
        for item in value:
            collect_examples(schema, part["items"], item, examples)


def short_json(value, limit=60):
    """JSON of one line; what is long inside becomes an ellipsis."""
    text = json.dumps(value)
    if len(text) <= limit:
        return text
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {short_json(item, 18)}"
                               for key, item in list(value.items())[:3]) + (
            ", ..." if len(value) > 3 else "") + "}"
    if isinstance(value, list):
        return "[" + short_json(value[0], limit - 8) + (", ..." if len(value) > 1 else "") + "]"
    return json.dumps(value[:limit - 5] + "...") if isinstance(value, str) else text


def describe(schema, name, part, examples):
    required = part.get("required", [])
    out = f'<p>{html.escape(part.get("description", ""))}</p>\n' if name else ""
    properties = part.get("properties", {})
    if not properties:
        return out + f"<p>{type_of(part)}</p>\n"
    out += "<table><tr><th>key</th><th>value</th><th>meaning</th><th>example</th></tr>\n"
    for key, value in properties.items():
        example = ""
        if (name, key) in examples:
            example = f"<code>{html.escape(json.dumps(key))}: " \
                      f"{html.escape(short_json(examples[name, key]))}</code>"
        mark = " (required)" if key in required else ""
        out += (f"<tr><td><code>{html.escape(key)}</code>{mark}</td><td>{type_of(value)}</td>"
                f'<td>{html.escape(value.get("description", ""))}</td><td>{example}</td></tr>\n')
    return out + "</table>\n"


def description_page(sources):
    schema = json.loads((sources / "lib/Spec/attune-spec-v1.schema.json").read_text())
    examples = {}
    for path in [*sorted(sources.glob("examples/*/*.json")), sources / "test/Unit/Spec/every-key.json"]:
        value = json.loads(path.read_text())
        if isinstance(value, dict) and ("layers" in value or "streams" in value):
            collect_examples(schema, schema, value, examples)
    body = ("<h1>Model descriptions</h1><p>Every key of a description, from the schema that the "
            "parser holds files to; <code>attune compile model.json</code> reads one. An integer may "
            "be an expression over the numbers of <code>dims</code>, such as <code>\"4*D\"</code>.</p>")
    body += '<h2 id="model">model</h2>' + describe(schema, "", schema, examples)
    for name, part in sorted(schema["$defs"].items()):
        body += f'<h2 id="{name}">{name}</h2>' + describe(schema, name, part, examples)
    return body


# --- The command line and the C interface

def verb_body(title, page):
    body = f"<h1>{html.escape(title)}</h1>" + preformatted("\n".join(page.usage))
    body += "".join(f"<p>{html.escape(text)}</p>" for text in page.paragraphs)
    body += "<table>" + "".join(
        f"<tr><td><code>{html.escape(name)}</code></td><td>{html.escape(text)}</td></tr>\n"
        for name, text in page.items) + "</table>"
    return body


def header_body(text):
    """A C header: its comments as text, what they are about as code."""
    text = text[text.index("\n/* ") + 1:]
    body = "<h1>The C interface</h1><p>Of products: <code>attune compile -o model.so</code> " \
           "writes the header beside.</p>"
    for comment, code in re.findall(r"/\*(.*?)\*/\n(.*?)(?=\n/\*|\Z)", text, re.S):
        words = re.sub(r"^ \* ?", "", comment, flags=re.M).strip()
        paragraphs, lines = [], []
        for line in words.splitlines() + [""]:
            if line.startswith("  ") != bool(lines and lines[0].startswith("  ")) or not line:
                if lines:
                    paragraphs.append(preformatted("\n".join(lines)) if lines[0].startswith("  ")
                                      else f"<p>{html.escape(' '.join(lines))}</p>")
                lines = []
            if line:
                lines.append(line)
        body += "".join(paragraphs)
        code = re.sub(r"^#.*$|^extern \"C\" \{$|^\}$", "", code, flags=re.M)
        code = re.sub(r"ATTUNE_API ", "", code).strip()
        if code:
            body += preformatted(re.sub(r"\n{3,}", "\n\n", code))
    return body


def build(sources, reference, attune, out):
    site = Site(sources, out)

    def ask(*arguments):
        return subprocess.run([attune, *arguments], check=True, text=True,
                              stdout=subprocess.PIPE).stdout

    def group(title, places):
        site.menu.append((title, places))

    group("Attune", [site.add_readme("README.md", "index.html"),
                     site.add_readme("CHANGELOG.md", "changes.html"),
                     site.add_readme("CONTRIBUTING.md", "contributing.html"),
                     site.add_readme("SECURITY.md", "security.html")])
    site.add("description.html", "Model descriptions", description_page(sources))
    header = "include/attune/Runtime/attune.h"
    site.add("c-interface.html", "The C interface", header_body((sources / header).read_text()), header)
    verbs = Page(ask("--help"))
    site.add("commands/attune.html", "attune", verb_body("attune", verbs))
    commands = ["commands/attune.html"]
    for verb, _ in verbs.items:
        commands.append(f"commands/{verb}.html")
        site.add(commands[-1], f"attune {verb}", verb_body(f"attune {verb}", Page(ask(verb, "--help"))))
    pages = []
    for path in sorted(reference.glob("*.md")):
        text = path.read_text()
        found = re.search(r"^# (.*)$", text, re.M)
        title = found[1] if found else re.sub(r"(?<!^)(?=[A-Z][a-z])", " ", path.stem)
        if not found:
            text = f"# {title}\n\n{text}"
        pages.append(f"reference/{path.stem}.html")
        site.add(pages[-1], title.replace("'", ""), markdown(text), f"BUILD/docs/{path.name}")
    group("Reference", ["description.html", *commands, "c-interface.html"])
    group("Dialects and passes", pages)
    course = site.add_readme("examples/course/README.md")
    lessons = []
    for path in sorted(sources.glob("examples/course/*.mlir")):
        origin = str(path.relative_to(sources))
        lessons.append(origin.replace(".mlir", ".html"))
        site.add(lessons[-1], f"Lesson {path.stem}", f"<h1>{path.stem}</h1>"
                 + preformatted(path.read_text()), origin)
    examples = [site.add_readme(str(path.relative_to(sources)))
                for path in sorted(sources.glob("examples/*/README.md")) if path.parent.name != "course"]
    group("Learn", [course, *lessons, site.add_readme("examples/README.md", "examples/index.html"), *examples])
    rooms = [site.add_readme(str(path.relative_to(sources)))
             for top in ("dialects", "lib", "test", "tools")
             for path in sorted((sources / top).rglob("README.md"))]
    group("Inside", rooms)
    return site.write(), len(site.pages)


def main():
    sources, reference, attune, out = sys.argv[1:5]
    broken, count = build(pathlib.Path(sources), pathlib.Path(reference), attune, pathlib.Path(out))
    for link in broken:
        print(f"error: leads nowhere: {link}")
    print(f"{count} pages in {out}")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
