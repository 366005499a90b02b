#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Manual pages and shell completion, from what `attune --help` says.

    manual.py ATTUNE OUT

writes OUT/man1/attune.1, a page for each verb (attune-compile.1, ...), and
OUT/completion/attune for bash. `attune --help` prints the tables that the
command line is parsed with, so that nothing here has to be kept up to date.
"""

import pathlib
import re
import subprocess
import sys


class Page:
    """What a help text says: usage lines, paragraphs, and flags or verbs."""

    def __init__(self, text):
        self.usage, self.about, self.items = [], [], []
        section = "about"
        for line in text.splitlines():
            if line.startswith("usage: "):
                self.usage.append(line[len("usage: "):])
            elif line in ("flags:", "verbs:"):
                section = "items"
            elif section == "items" and re.match(r" {2}\S", line):
                # A name too long for its column has its help on the next line.
                name, _, text = line.strip().partition("  ")
                self.items.append([name, text.strip()])
            elif section == "items" and re.match(r" {8,}\S", line):
                self.items[-1][1] = (self.items[-1][1] + " " + line.strip()).strip()
            else:
                section = section if not line or section == "about" else "more"
                self.about.append(line)
        text = "\n".join(self.about).strip()
        self.paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text)]


def roff(text):
    """Text as roff: backslashes, hyphens and lines that look like requests."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def write_page(path, name, summary, page, version, others):
    lines = [f'.TH {name.upper()} 1 "" "Attune {version}" "Attune"',
             ".SH NAME", f"{roff(name)} \\- {roff(summary)}", ".SH SYNOPSIS"]
    for usage in page.usage:
        lines += [f".B {roff(usage)}", ".br"]
    lines.append(".SH DESCRIPTION")
    for paragraph in page.paragraphs:
        lines += [roff(paragraph), ".PP"]
    lines.append(".SH " + ("VERBS" if name == "attune" else "OPTIONS"))
    for item, text in page.items:
        lines += [".TP", f".B {roff(item)}", roff(text)]
    lines += [".SH SEE ALSO", ", ".join(
        f"\\fB{roff(other)}\\fR(1)" for other in others if other != name)]
    path.write_text("\n".join(lines) + "\n")


def flag_names(page):
    """The spellings of a page's flags; those that take a value end in '='."""
    for item, _ in page.items:
        for spelling in item.split(", "):
            name = re.match(r"--?[\w-]+", spelling).group(0)
            optional = "[=" in spelling
            yield name + ("=" if "=" in spelling and not optional else "")


COMPLETION = """# Completion of attune for bash, made from its flags.
_attune() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} verb=${{COMP_WORDS[1]}} flags=
  COMPREPLY=()
  if [[ $COMP_CWORD -eq 1 ]]; then
    COMPREPLY=($(compgen -W '{verbs} --help --version' -- "$word"))
    return
  fi
  case $verb in
{cases}
  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$word"))
    [[ ${{COMPREPLY[0]}} == *= ]] && compopt -o nospace
  else
    COMPREPLY=($(compgen -f -- "$word"))
    compopt -o filenames
  fi
}}
complete -F _attune attune
"""


def main():
    attune, out = sys.argv[1], pathlib.Path(sys.argv[2])

    def ask(*arguments):
        return subprocess.run([attune, *arguments], check=True, text=True,
                              stdout=subprocess.PIPE).stdout

    version = ask("--version").split()[1]
    whole = Page(ask("--help"))
    pages = {verb: Page(ask(verb, "--help")) for verb, _ in whole.items}
    for folder in ("man1", "completion"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    names = ["attune"] + [f"attune-{verb}" for verb in pages]
    write_page(out / "man1/attune.1", "attune", "a compiler of transformer models",
               whole, version, names)
    for verb, summary in whole.items:
        write_page(out / f"man1/attune-{verb}.1", f"attune-{verb}", summary,
                   pages[verb], version, names)
    cases = "\n".join(f"    {verb}) flags='{' '.join(flag_names(page))}' ;;"
                      for verb, page in pages.items())
    (out / "completion/attune").write_text(
        COMPLETION.format(verbs=" ".join(pages), cases=cases))


if __name__ == "__main__":
    main()
