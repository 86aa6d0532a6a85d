"""Writes tests/data/templates/cases.json: small expressions and statements, and chat templates in the style of real ones (in
tests/data/templates/*.jinja, written for this repository), each with what transformers makes of it or the fact that it fails.

Run with a Python that has transformers: make_template_cases.py > tests/data/templates/cases.json
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import make_template_contexts as contexts  # noqa: E402
import make_template_expressions as small  # noqa: E402
import make_template_reference as reference  # noqa: E402

# Enough to take every branch of the templates; tests/interop/test_chat_template.py renders all contexts.
CONTEXTS = """single no-tokens system multi multi-no-system empty-content null-content list-content list-system image two-users late-system
two-systems unknown-role developer tools tools-system tool-call tool-call-text tool-call-twice reasoning think-tags-last thinking-on
thinking-off think-system dates documents markup space""".split()

# Python prints addresses for these, or does what genai says it does not support.
UNLIKE = ("<generator object", "<bound method", "<built-in method", "<function", " object at 0x", "list_reverseiterator")


def main():
    folder = pathlib.Path(__file__).parent.parent / "data" / "templates"
    templates = {file.stem: file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.jinja"))}
    every_context = {
        "variables": {"messages": [{"role": "user", "content": "Hello there"}], "extra": small.VARIABLES, **contexts.TOKENS},
        **{name: contexts.CONTEXTS[name] for name in CONTEXTS},
    }
    cases = []
    for source in small.expressions() + small.STATEMENTS:
        outcome = reference.outcome(source, every_context["variables"])
        if not any(mark in outcome.get("expected", "") for mark in UNLIKE):
            cases.append({"source": source, "context": "variables", **outcome})
    for name, source in templates.items():
        for context in CONTEXTS:
            cases.append({"template": name, "context": context, **reference.outcome(source, contexts.CONTEXTS[context])})
    document = {"reference": reference.versions(), "now": reference.NOW, "contexts": every_context, "templates": templates, "cases": cases}
    json.dump(document, sys.stdout, ensure_ascii=False, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
