"""The reference for chat templates: transformers' own rendering, as apply_chat_template reaches it without a tokenizer.

Imported by make_template_cases.py and by tests/interop/test_chat_template.py. Needs transformers (5.24 was used) with jinja2 3.1.6 or newer.
"""

import datetime
import os
import time

os.environ["TZ"] = "UTC"
time.tzset()

import jinja2  # noqa: E402
from transformers.utils import chat_template_utils  # noqa: E402

NOW = 1764500645  # 2025-11-30 11:04:05 UTC, what strftime_now sees


class _Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(NOW, tz)


chat_template_utils.datetime = _Clock


def render(template, context):
    """Renders like apply_chat_template(..., tokenize=False). `context` is a dict of the case file's form."""
    messages = chat_template_utils._normalize_chat_messages(context["messages"])
    variables = {name: context[name] for name in ("bos_token", "eos_token") if context.get(name)}
    variables.update(context.get("extra") or {})
    documents = variables.pop("documents", None)
    rendered, _ = chat_template_utils.render_jinja_template(
        conversations=[messages],
        tools=context.get("tools"),
        documents=documents,
        chat_template=template,
        add_generation_prompt=context.get("add_generation_prompt", False),
        **variables,
    )
    return rendered[0]


def outcome(template, context):
    """{"expected": text}, {"raises": message} where the template itself refused, or {"fails": type and message}."""
    try:
        return {"expected": render(template, context)}
    except jinja2.exceptions.TemplateError as error:
        if type(error) is jinja2.exceptions.TemplateError:
            return {"raises": str(error)}
        return {"fails": f"{type(error).__name__}: {error}"}
    except Exception as error:  # whatever Python raises inside the template
        return {"fails": f"{type(error).__name__}: {error}"}


def versions():
    import transformers

    return f"jinja2 {jinja2.__version__}, transformers {transformers.__version__}"
